"""Where runs are kept, and the first contact with it: a wrong address is one sentence before any model call.

`MLFLOW_TRACKING_URI` wins; without it runs go to SQLite, `mlruns/mlflow.db` under the working folder, with their
artifacts beside it. Both are absolute for MLflow, so that a store written from one folder opens from another.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import os
import re
import sqlite3
import ssl
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from harness.errors import HarnessError, UsageError, nearest
from harness.files import kind_of
from harness.foreign import whole

STORE_FOLDER = "mlruns"
_DATABASE = "mlflow.db"
_ARTIFACTS = "artifacts"
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")
_PASSWORD = re.compile(r"//[^/]*@")
_PROBE_SECONDS = 5.0
_SCHEMES = ("http", "https", "sqlite", "postgresql", "mysql", "mssql", "databricks")
_EXAMPLES = "http://HOST:5000 or sqlite:///FOLDER/mlflow.db"


@dataclass(frozen=True, slots=True)
class TrackingLocation:
    """Where MLflow keeps runs.

    Attributes:
        uri: what MLflow is given; absolute. It may hold a password: print `label` instead.
        artifact_root: absolute folder for artifacts of new experiments, None where a server decides.
        folder: the working folder.
        chosen: True when MLFLOW_TRACKING_URI named it.
    """

    uri: str = field(repr=False)
    artifact_root: Path | None
    folder: Path
    chosen: bool = False

    @property
    def is_server(self) -> bool:
        """True when runs go to a tracking server over HTTP."""
        return self.uri.startswith(("http://", "https://"))

    @property
    def is_database(self) -> bool:
        """True when MLflow opens the database itself."""
        return urlsplit(self.uri).scheme.partition("+")[0] in ("sqlite", "postgresql", "mysql", "mssql")

    @property
    def database_file(self) -> Path | None:
        """The SQLite file, or None for any other store."""
        return Path(self.uri.removeprefix("sqlite:///")) if self.uri.startswith("sqlite:///") else None

    @property
    def label(self) -> str:
        """The address for people: no password, and SQLite relative to the working folder."""
        file = self.database_file
        if file is not None:
            return file.relative_to(self.folder).as_posix() if file.is_relative_to(self.folder) else file.as_posix()
        return without_password(self.uri)

    def ui_command(self) -> str:
        """The line that opens MLflow's pages on this store from the working folder, or the server's own address.

        >>> default_location(Path("/work")).ui_command()
        'mlflow ui --backend-store-uri sqlite:///mlruns/mlflow.db'
        """
        if self.is_server:
            return self.label
        return "mlflow ui --backend-store-uri " + (f"sqlite:///{self.label}" if self.database_file else self.label)

    def run_address(self, experiment_id: str, run_id: str, port: int = 5000) -> str:
        """The page of one run, on the server or on `harness ui` at `port`.

        >>> default_location(Path("/work")).run_address("1", "abc")
        'http://127.0.0.1:5000/#/experiments/1/runs/abc'
        """
        base = self.label.rstrip("/") if self.is_server else f"http://127.0.0.1:{port}"
        return f"{base}/#/experiments/{experiment_id}/runs/{run_id}"


def default_location(folder: Path) -> TrackingLocation:
    """SQLite under the working folder."""
    root = folder.absolute() / STORE_FOLDER
    return TrackingLocation(f"sqlite:///{(root / _DATABASE).as_posix()}", root / _ARTIFACTS, folder.absolute())


def tracking_location(folder: Path, environment: Mapping[str, str]) -> TrackingLocation:
    """Where runs of this working folder go; nothing is opened or created.

    Raises:
        UsageError: MLFLOW_TRACKING_URI is no address, is of a kind MLflow does not know, names a file store, which
            MLflow 3 no longer writes, or keeps nothing.
    """
    folder = folder.absolute()
    uri = environment.get("MLFLOW_TRACKING_URI", "").strip()
    default = default_location(folder)
    if not uri:
        return default
    _refuse_malformed(uri)
    _refuse_file_store(uri, default)
    _refuse_unknown_scheme(uri)
    if not uri.startswith("sqlite:"):
        server = uri.startswith(("http://", "https://"))
        return TrackingLocation(uri, None if server else default.artifact_root, folder, chosen=True)
    path = uri.removeprefix("sqlite:///")
    if path in ("", ":memory:") or not uri.startswith("sqlite:///"):
        raise UsageError(f"MLFLOW_TRACKING_URI: {uri!r} names no file; write sqlite:///FOLDER/mlflow.db")
    file = folder / path
    return TrackingLocation(f"sqlite:///{file.as_posix()}", file.parent / _ARTIFACTS, folder, chosen=True)


def _refuse_malformed(uri: str) -> None:
    shown = _PASSWORD.sub("//***@", whole(uri))
    try:
        parts = urlsplit(uri)
        wrong = "" if parts.port is None or parts.hostname else "it names no host"  # asking for the port checks it
    except ValueError as error:
        wrong = str(error)
    else:
        if parts.scheme in ("http", "https") and not parts.hostname:
            wrong = "it names no host"
        elif whole(uri) != uri or not uri.isprintable():
            wrong = "it holds a character no address has"
    if wrong:
        raise UsageError(f"MLFLOW_TRACKING_URI: {shown!r} is no address ({wrong}); write {_EXAMPLES}")


def _refuse_unknown_scheme(uri: str) -> None:
    scheme = uri if uri == "databricks" else urlsplit(uri).scheme.partition("+")[0]
    if scheme in _SCHEMES or scheme in {plugin.name for plugin in entry_points(group="mlflow.tracking_store")}:
        return
    raise UsageError(
        f"MLFLOW_TRACKING_URI: MLflow keeps no runs at addresses that begin with {scheme}:; "
        f"{nearest(scheme, _SCHEMES)} (write {_EXAMPLES})"
    )


def _refuse_file_store(uri: str, default: TrackingLocation) -> None:
    if uri == "databricks" or (_SCHEME.match(uri) and not uri.startswith("file:")):
        return
    source = uri.removeprefix("file:").removeprefix("//") or "./mlruns"
    raise UsageError(
        f"MLFLOW_TRACKING_URI: {uri!r} is a file store, which MLflow 3 no longer writes; unset it to use "
        f"{default.label}, and bring its runs over with "
        f"`mlflow migrate-filestore --source {source} --target sqlite:///{default.label}`"
    )


def prepare(location: TrackingLocation) -> None:
    """The first contact: the SQLite file is created where it is missing, a server is asked whether it is there.

    Raises:
        HarnessError: the server does not answer, or the database cannot be created.
    """
    if location.is_server and not server_answers(location.uri):
        raise HarnessError(
            f"the MLflow server at {location.label} (MLFLOW_TRACKING_URI) does not answer; "
            "start it, or unset MLFLOW_TRACKING_URI to track in a local file"
        )
    file = location.database_file
    missing = file is not None and kind_of(file) == "missing"
    if file is not None and not missing:
        _refuse_other_file(file, location.label)
    if location.is_database:
        _load_database_store()
    if file is not None and missing:
        try:
            _create_database(file, location.artifact_root or location.folder)
        except Exception as error:  # the disk, SQLAlchemy and MLflow each bring their own
            raise HarnessError(
                f"the tracking database {location.label} cannot be created: "
                f"{getattr(error, 'strerror', None) or reason(error, location)}"
            ) from error


def _refuse_other_file(file: Path, label: str) -> None:
    """Refuse what is no database of MLflow's, which would write its tables into any SQLite file it is given."""
    kind = kind_of(file)
    if kind != "file":
        what = "a folder" if kind == "folder" else "a pipe or a device"
        raise UsageError(f"the tracking database {label} is {what}; name a file: sqlite:///FOLDER/mlflow.db")
    try:
        with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.OperationalError as error:
        if not os.access(file, os.R_OK):  # MLflow would try for minutes
            raise UsageError(f"the tracking database {label} may not be read; its owner is somebody else") from error
        return  # locked for a moment, or in a folder that may only be read
    except sqlite3.DatabaseError as error:
        raise UsageError(
            f"{label} is no MLflow database ({error}); name another file in MLFLOW_TRACKING_URI, or move it away"
        ) from error
    if tables and "experiments" not in tables:
        raise UsageError(
            f"{label} is the database of something else (it holds the table {min(tables)!r}); name a file of its own "
            "for MLflow in MLFLOW_TRACKING_URI"
        )


def server_answers(uri: str, seconds: float = _PROBE_SECONDS) -> bool:
    """Whether anything speaks HTTP at `uri`; any status counts, also a refused login.

    MLflow's own client repeats a call to a server that is away for minutes, so it is never asked first.
    """
    try:
        with urllib.request.urlopen(f"{without_user(uri).rstrip('/')}/health", timeout=seconds):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except urllib.error.URLError as error:
        return isinstance(error.reason, ssl.SSLError)  # someone is there; MLflow knows the user's certificates
    except (OSError, http.client.HTTPException, ValueError):
        return False


def _create_database(file: Path, artifact_root: Path) -> None:
    """Migrate under a name of this process's own, then link it into place: complete or not there at all.

    Two processes may do this at the same moment: the link of the second one fails and its copy is dropped. A
    process killed in the middle leaves no half database under the real name.
    """
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    try:
        with contextlib.closing(sqlite3.connect(draft)) as probe:
            probe.execute("VACUUM")  # a place where no file can be made: MLflow would try for minutes
        with _quiet_migrations():
            store = SqlAlchemyStore(f"sqlite:///{draft.as_posix()}", str(artifact_root))
        store.engine.dispose()
        _link(draft, file)
    finally:
        draft.unlink(missing_ok=True)


def _link(draft: Path, file: Path) -> None:
    try:
        os.link(draft, file)
    except FileExistsError:
        return
    except OSError:  # file systems without hard links: the window between the two lines is all that is left
        if not file.exists():
            os.replace(draft, file)


def _load_database_store() -> None:
    with warnings.catch_warnings():
        # MLflow 3.17 maps its tables with a loader strategy that SQLAlchemy 2.1 deprecates; ours to hide, not to fix.
        warnings.filterwarnings("ignore", message=r".*noload.*", category=DeprecationWarning)
        import mlflow.store.tracking.sqlalchemy_store  # noqa: F401


@contextlib.contextmanager
def _quiet_migrations() -> Iterator[None]:
    """MLflow announces two steps of its migration on stderr; a first run has enough to say."""

    def only_problems(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING

    logger = logging.getLogger("mlflow.store.db.utils")
    logger.addFilter(only_problems)
    try:
        yield
    finally:
        logger.removeFilter(only_problems)


def without_user(uri: str) -> str:
    """The address without user and password.

    >>> without_user("https://me:secret@host:5000/x")
    'https://host:5000/x'
    """
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def without_password(uri: str) -> str:
    """The address with the password, where there is one, replaced by stars.

    >>> without_password("postgresql://me:secret@host/db")
    'postgresql://me:***@host/db'
    """
    parts = urlsplit(uri)
    user, at, host = parts.netloc.rpartition("@")
    if not at or ":" not in user:
        return uri
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:***@{host}"))


def reason(error: BaseException, location: TrackingLocation) -> str:
    """What went wrong in one line of at most 300 characters, without the store's address or password."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    text = lines[0].replace(location.uri, location.label)
    password = urlsplit(location.uri).password
    if password:
        text = re.sub(rf"(?<![^\W_]){re.escape(password)}(?![^\W_])", "***", text)  # not inside words: it may be `p`
    return text if len(text) <= 300 else text[:297] + "..."
