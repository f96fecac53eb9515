"""One MLflow run being written, always by its explicit id: MLflow's active run belongs to a thread, ours does not."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag

from harness.tracking.delivery import Delivery
from harness.tracking.names import (
    MAX_DIGEST,
    MAX_PARAM,
    MAX_TAG,
    clean_name,
    clean_names,
    file_name,
    param_text,
    rounded,
    shortened,
    storable,
    usable_metrics,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Status = Literal["finished", "failed", "killed"]
_PARENT = "mlflow.parentRunId"
_TABLES = "mlflow.loggedArtifacts"
_PARAMS_AT_ONCE = 100
_METRICS_AT_ONCE = 1000
_Item = TypeVar("_Item")


class TrackedRun:
    """One run. Every method may be called from any thread, and none raises because the store failed.

    Args:
        client: MLflow's client of the store.
        delivery: carries the writes and counts what did not arrive.
        experiment_id: the MLflow experiment.
        run_id: the run; empty when it could not be created, then everything written to it is counted as lost.
        children: runs below this one by name, when it is continued.
        logged_params: params the run has already; MLflow never changes one.
    """

    def __init__(
        self,
        client: MlflowClient,
        delivery: Delivery,
        experiment_id: str,
        run_id: str,
        children: Mapping[str, str] | None = None,
        logged_params: Mapping[str, str] | None = None,
    ) -> None:
        self._client = client
        self._delivery = delivery
        self._known_children = dict(children or {})
        self._children: dict[str, TrackedRun] = {}
        self._logged_params = set(logged_params or ())
        self._skipped: list[str] = []
        self._lock = threading.Lock()
        self._ended = False
        self.experiment_id = experiment_id
        self.run_id = run_id

    @property
    def skipped(self) -> Sequence[str]:
        """Names of metrics that were not finite numbers and were left out."""
        return tuple(self._skipped)

    def child(self, name: str, tags: Mapping[str, str] | None = None) -> TrackedRun:
        """The run of this name below this one: the open one, the one of a continued run, else a new one."""
        with self._lock:
            if name not in self._children:
                self._children[name] = self._open_child(name, tags or {})
            return self._children[name]

    def metrics(self, values: Mapping[str, object], step: int | None = None) -> None:
        """Log numbers, all at once. None, NaN and infinity are left out; see `skipped`."""
        usable = usable_metrics(values)
        self._skipped.extend(usable.skipped)
        now = int(time.time() * 1000)
        metrics = [Metric(name, value, now, step or 0) for name, value in usable.values.items()]
        for batch in _batches(metrics, _METRICS_AT_ONCE):
            self._write("metrics", lambda batch=batch: self._client.log_batch(self.run_id, metrics=batch))

    def params(self, values: Mapping[str, object]) -> None:
        """Log settings. A text too long for MLflow is cut there and kept whole under `params/`.

        A param the run has already is left as it is: MLflow never changes one.
        """
        params: list[Param] = []
        for name, clean in clean_names(values).items():
            if clean in self._logged_params:
                continue
            text = param_text(values[name])
            where = f"params/{file_name(clean)}.txt"
            if len(text) > MAX_PARAM:
                self.text(text, where)
            params.append(Param(clean, shortened(text, MAX_PARAM, where)))
        for batch in _batches(params, _PARAMS_AT_ONCE):
            if self._write("params", lambda batch=batch: self._client.log_batch(self.run_id, params=batch)):
                self._logged_params.update(param.key for param in batch)

    def tags(self, values: Mapping[str, object]) -> None:
        """Set tags; a tag set again is replaced."""
        tags = [RunTag(name, text) for name, text in tag_texts(values).items()]
        for batch in _batches(tags, _PARAMS_AT_ONCE):
            self._write("tags", lambda batch=batch: self._client.log_batch(self.run_id, tags=batch))

    def table(self, rows: Sequence[Mapping[str, Any]], path: str) -> None:
        """Log rows as a table that MLflow's pages show and compare across runs; written again, it is replaced.

        MLflow's own `log_table` appends, so a continued run would hold every row twice. The columns are the keys
        of the first row; what is not a number or a text is written as JSON.
        """
        columns = list(rows[0]) if rows else []
        data = [[_cell(row.get(column)) for column in columns] for row in rows]
        self.text(json.dumps({"columns": columns, "data": data}, ensure_ascii=False), path)
        self._write(f"the table {path}", lambda: self._declare_table(path))

    def text(self, text: str, path: str) -> None:
        """Log a text file."""
        self._write(path, lambda: self._client.log_text(self.run_id, storable(text), path))

    def html(self, page: str, path: str) -> None:
        """Log a page; MLflow shows it in a sandbox, so it must bring everything along."""
        self.text(page, path)

    def figure(self, figure: Figure | bytes, path: str) -> None:
        """Log a matplotlib figure, or an image that is already PNG bytes."""
        if not isinstance(figure, bytes):
            self._write(path, lambda: self._client.log_figure(self.run_id, figure, path))
            return
        self._write(path, lambda: self._log_bytes(figure, path))

    def file(self, file: Path, folder: str | None = None) -> None:
        """Log one file under its own name."""
        self._write(file.name, lambda: self._client.log_artifact(self.run_id, str(file), folder))

    def folder(self, folder: Path, path: str) -> None:
        """Log every file of a folder below `path`."""
        self._write(f"the folder {path}", lambda: self._client.log_artifacts(self.run_id, str(folder), path))

    def dataset(self, name: str, digest: str, context: str, source: str = "") -> None:
        """Say which data the run used, and for what (`context`: train, validation, test).

        The digest is cut to MLflow's 36 characters. `source` is shown as it is: no path of this machine.
        """
        data = Dataset(name, digest[:MAX_DIGEST], "local", json.dumps({"uri": source or name}))
        used = DatasetInput(data, tags=[InputTag("mlflow.data.context", context)])
        self._write(f"the dataset {name}", lambda: self._client.log_inputs(self.run_id, datasets=[used]))

    def finish(self, status: Status = "finished") -> None:
        """End the run, and before it every child that is still open, with the same status; again, nothing happens."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            children = list(self._children.values())
        for child in children:
            child.finish(status)
        self._write("the end of a run", lambda: self._client.set_terminated(self.run_id, status.upper()))

    def _open_child(self, name: str, tags: Mapping[str, str]) -> TrackedRun:
        run_id = self._known_children.pop(name, "")
        if run_id:
            self._delivery.attempt("a run", lambda: self._client.update_run(run_id, status="RUNNING"))
        else:
            texts = tag_texts({**tags, _PARENT: self.run_id, "mlflow.runType": "genai_evaluate"})
            run = self._write("a run", lambda: self._client.create_run(self.experiment_id, tags=texts, run_name=name))
            run_id = run.info.run_id if run else ""
        return TrackedRun(self._client, self._delivery, self.experiment_id, run_id)

    def _declare_table(self, path: str) -> bool:
        tables = json.loads(self._client.get_run(self.run_id).data.tags.get(_TABLES, "[]"))
        entry = {"path": path, "type": "table"}
        if entry not in tables:
            self._client.set_tag(self.run_id, _TABLES, json.dumps([*tables, entry]))
        return True

    def _log_bytes(self, content: bytes, path: str) -> None:
        folder, _, name = path.rpartition("/")
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch, name)
            file.write_bytes(content)
            self._client.log_artifact(self.run_id, str(file), folder or None)

    def _write(self, what: str, write: Callable[[], Any]) -> Any:
        """The write's result (True when it has none), or None when it did not arrive."""
        if not self.run_id:
            self._delivery.lose(what, "its run could not be created")
            return None

        def done() -> Any:
            result = write()
            return True if result is None else result

        return self._delivery.attempt(what, done)


def tag_texts(values: Mapping[str, object]) -> dict[str, str]:
    """Tags as MLflow takes them: clean names, texts within its limit."""
    return {clean_name(name): shortened(param_text(value), MAX_TAG) for name, value in values.items()}


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    return rounded(value) if isinstance(value, float) else param_text(value)


def _batches(items: Sequence[_Item], size: int) -> Iterator[list[_Item]]:
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
