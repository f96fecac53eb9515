"""The store of runs, opened: start a run, continue one, find one by what people call it."""

from __future__ import annotations

import getpass
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mlflow import MlflowClient
from mlflow.entities import Experiment, LifecycleStage, Run
from mlflow.exceptions import MlflowException

from harness.errors import HarnessError, UsageError, nearest
from harness.tracking.delivery import Delivery
from harness.tracking.names import file_name
from harness.tracking.run import TrackedRun, tag_texts
from harness.tracking.store import TrackingLocation, prepare, reason, tracking_location

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_PARENT = "mlflow.parentRunId"
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What the store knows of one run. `status` is MLflow's word: RUNNING, FINISHED, FAILED, KILLED."""

    run_id: str
    experiment_id: str
    experiment: str
    name: str
    status: str
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]

    @property
    def parent(self) -> str | None:
        """The run above this one."""
        return self.tags.get(_PARENT)


class Tracker:
    """An open store. Create it with `Tracker.open`; one Tracker may serve many threads.

    Opening, starting and continuing raise one sentence when the store is not there: that is before any model
    call. From then on a store that fails is told once and counted in `failures`, and the run goes on.
    """

    def __init__(self, client: MlflowClient, location: TrackingLocation, on_problem: Callable[[str], None]) -> None:
        self._client = client
        self._delivery = Delivery(location, on_problem)
        self.location = location

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        on_problem: Callable[[str], None] = _log.warning,
    ) -> Tracker:
        """Open the store of a working folder and make the first contact with it.

        Args:
            folder: the working folder; its store is made when it has none, which takes a few seconds once.
            environment: where MLFLOW_TRACKING_URI is looked up, the process's own when None.
            on_problem: told, once, that something did not reach the store.

        Raises:
            UsageError: a store that cannot be used (a file store, a memory store).
            HarnessError: a store that is not there or cannot be read.
        """
        location = tracking_location(folder, os.environ if environment is None else environment)
        prepare(location)
        client = _ask(location, "opened", lambda: MlflowClient(tracking_uri=location.uri))
        _ask(location, "opened", lambda: client.search_experiments(max_results=1))
        return cls(client, location, on_problem)

    @property
    def failures(self) -> int:
        """How many writes did not reach the store."""
        return self._delivery.failures

    def start_run(
        self,
        experiment: str,
        name: str,
        params: Mapping[str, object] | None = None,
        tags: Mapping[str, object] | None = None,
    ) -> TrackedRun:
        """A new run at the top of an experiment, which is made when it does not exist.

        Raises:
            HarnessError: the store did not take it.
            UsageError: the experiment was deleted in MLflow.
        """
        experiment_id = self._experiment_id(experiment)
        texts = tag_texts(
            {
                "mlflow.user": _user(),
                "mlflow.source.name": "harness",
                "mlflow.runType": "genai_evaluate",  # keeps set_terminated from printing on stdout; no page reads it
                **(tags or {}),
            }
        )
        run = self._ask("written", lambda: self._client.create_run(experiment_id, tags=texts, run_name=name))
        tracked = TrackedRun(self._client, self._delivery, experiment_id, run.info.run_id)
        tracked.params(params or {})
        return tracked

    def resume_run(self, run_id: str) -> TrackedRun:
        """Continue a run that was interrupted, with the children it has.

        Raises:
            UsageError: the run is no longer in the store.
        """
        run = self._existing(run_id)
        if run is None:
            raise UsageError(f"run {run_id} is not in {self.location.label} any more; start it again with --force")
        self._ask("written", lambda: self._client.update_run(run_id, status="RUNNING"))
        children = {child.info.run_name or "": child.info.run_id for child in self._children(run)}
        return TrackedRun(
            self._client, self._delivery, run.info.experiment_id, run_id, children, logged_params=run.data.params
        )

    def find_run(self, reference: str, tags: Mapping[str, str] | None = None) -> RunInfo:
        """The run people mean by a run id, the beginning of one, or an experiment's name (its latest finished run).

        Args:
            reference: what they wrote.
            tags: of an experiment's runs only those that have these tags.

        Raises:
            UsageError: no such run, or several; names the nearest.
        """
        reference = reference.strip()
        exact = self._existing(reference)
        if exact is not None:
            return self._info(exact)
        experiments = {found.name: found for found in self._experiments()}
        if reference in experiments:
            return self._latest_finished(experiments[reference], tags or {})
        matches = self._with_prefix(reference, list(experiments.values()))
        if len(matches) == 1:
            return self._info(matches[0])
        if matches:
            names = ", ".join(f"{run.info.run_id[:12]} ({run.info.run_name})" for run in matches[:5])
            raise UsageError(f"run {reference!r} is not unique in {self.location.label}: {names}")
        known = [name for name, found in experiments.items() if found.experiment_id != "0"]
        hint = nearest(reference, known) if known else "it holds no experiment yet"
        raise UsageError(f"no run or experiment {reference!r} in {self.location.label}; {hint}")

    def latest_run(self) -> RunInfo | None:
        """The run at the top of any experiment that was started last, whatever became of it."""
        runs = self._top_runs([found.experiment_id for found in self._experiments()])
        return self._info(runs[0]) if runs else None

    def run_address(self, run: RunInfo | TrackedRun, port: int = 5000) -> str:
        """The run's page, on the server or on `harness ui`."""
        return self.location.run_address(run.experiment_id, run.run_id, port)

    def download(self, run_id: str, path: str, destination: Path) -> Path:
        """Copy an artifact, a file or a folder, into an existing folder.

        Raises:
            UsageError: the run has no such artifact.
        """
        try:
            return Path(self._client.download_artifacts(run_id, path, str(destination)))
        except (MlflowException, OSError) as error:
            raise UsageError(f"run {run_id[:12]} has no {path!r} in {self.location.label}") from error

    def _experiment_id(self, name: str) -> str:
        found = self._ask("read", lambda: self._client.get_experiment_by_name(name))
        if found is None:
            found = self._ask("written", lambda: self._create_experiment(name))
        if found.lifecycle_stage == LifecycleStage.DELETED:
            raise UsageError(
                f"MLflow experiment {name!r} was deleted in {self.location.label}; give the experiment another name, "
                f"or bring it back with `mlflow experiments restore --experiment-id {found.experiment_id}`"
            )
        return found.experiment_id

    def _create_experiment(self, name: str) -> Experiment:
        root = self.location.artifact_root
        location = None if root is None else str(root / file_name(name))
        try:
            return self._client.get_experiment(self._client.create_experiment(name, artifact_location=location))
        except MlflowException:
            found = self._client.get_experiment_by_name(name)  # another process was faster
            if found is None:
                raise
            return found

    def _existing(self, run_id: str) -> Run | None:
        if not re.fullmatch(r"[0-9a-f]{32}", run_id):
            return None
        try:
            run = self._client.get_run(run_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise _sentence(self.location, "read", error) from error
            return None
        return run if run.info.lifecycle_stage == LifecycleStage.ACTIVE else None

    def _experiments(self) -> list[Experiment]:
        return self._paged(lambda token: self._client.search_experiments(max_results=_PAGE, page_token=token))

    def _children(self, run: Run) -> list[Run]:
        return self._runs([run.info.experiment_id], f"tags.`{_PARENT}` = '{run.info.run_id}'")

    def _top_runs(self, experiment_ids: list[str], condition: str = "") -> list[Run]:
        return [run for run in self._runs(experiment_ids, condition) if _PARENT not in run.data.tags]

    def _runs(self, experiment_ids: list[str], condition: str) -> list[Run]:
        if not experiment_ids:
            return []
        order = ["attributes.start_time DESC"]
        return self._paged(
            lambda token: self._client.search_runs(
                experiment_ids, condition, max_results=_PAGE, order_by=order, page_token=token
            )
        )

    def _latest_finished(self, experiment: Experiment, tags: Mapping[str, str]) -> RunInfo:
        runs = self._top_runs([experiment.experiment_id])
        for run in runs:
            if run.info.status == "FINISHED" and tags.items() <= run.data.tags.items():
                return self._info(run)
        latest = f"; its latest run {runs[0].info.run_id[:12]} is {runs[0].info.status}" if runs else ""
        raise UsageError(f"experiment {experiment.name!r} has no finished run in {self.location.label}{latest}")

    def _with_prefix(self, prefix: str, experiments: Sequence[Experiment]) -> list[Run]:
        if not re.fullmatch(r"[0-9a-f]{4,31}", prefix):
            return []
        runs = self._runs([found.experiment_id for found in experiments], "")
        return [run for run in runs if run.info.run_id.startswith(prefix)]

    def _info(self, run: Run) -> RunInfo:
        experiment = self._ask("read", lambda: self._client.get_experiment(run.info.experiment_id))
        return RunInfo(
            run.info.run_id,
            run.info.experiment_id,
            experiment.name,
            run.info.run_name or "",
            run.info.status,
            run.data.params,
            run.data.metrics,
            run.data.tags,
        )

    def _paged(self, page: Callable[[str | None], Sequence[_T]]) -> list[_T]:
        found: list[_T] = []
        token: str | None = None
        while True:
            part = self._ask("read", lambda token=token: page(token))
            found.extend(part)
            token = getattr(part, "token", None)
            if not token:
                return found

    def _ask(self, done: str, question: Callable[[], _T]) -> _T:
        return _ask(self.location, done, question)


def _ask(location: TrackingLocation, done: str, question: Callable[[], _T]) -> _T:
    """The answer, or one sentence that says the store could not be opened, read or written."""
    try:
        return question()
    except Exception as error:  # MLflow, SQLAlchemy and requests each bring their own; all become one sentence
        raise _sentence(location, done, error) from error


def _sentence(location: TrackingLocation, done: str, error: Exception) -> HarnessError:
    why = reason(error, location)
    if "out-of-date database schema" in why:
        address = f"sqlite:///{location.label}" if location.database_file else location.label
        return UsageError(
            f"{location.label} was written by another MLflow version; "
            f"back it up, then run `mlflow db upgrade {address}`"
        )
    return HarnessError(f"the MLflow store at {location.label} could not be {done}: {why}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container without a name for its user
        return "unknown"
