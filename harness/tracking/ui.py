"""MLflow's pages on the right store: `harness ui`."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from harness.errors import HarnessError, UsageError
from harness.tracking.store import STORE_FOLDER, TrackingLocation, server_answers, tracking_location
from harness.tracking.tracker import Tracker

_START_SECONDS = 120.0
_STOP_SECONDS = 10.0
_LOG = "ui.log"


def serve_ui(folder: Path, host: str = "127.0.0.1", port: int = 5000, *, say: Callable[[str], None] = print) -> int:
    """Serve MLflow's pages until Ctrl-C (or SIGTERM, SIGHUP); says where they are, and where the last run is.

    With MLFLOW_TRACKING_URI on a server there is nothing to serve: its addresses are said.

    Args:
        folder: the working folder.
        host: address to listen on; anything but this machine shows every run to the network.
        port: port to listen on.
        say: receives the lines for people.

    Returns:
        The exit code: 0.

    Raises:
        UsageError: the port is taken (names the next free one), or nothing was tracked here yet.
        HarnessError: MLflow's server ended by itself, or the store cannot be read.
    """
    location = tracking_location(folder, os.environ)
    if location.database_file is not None and not location.database_file.exists():
        raise UsageError(f"no runs yet: {location.label} does not exist here; `harness run FILE` makes it")
    if location.is_server:
        _say_addresses(folder, location.label, port, say)
        return 0
    _check_port(host, port)
    with contextlib.suppress(KeyboardInterrupt), _interrupted_by_signals(), _server(location, host, port) as server:
        _wait_until_up(server, location, host, port)
        _say_addresses(folder, f"http://{host}:{port}", port, say)
        say("Ctrl-C stops it")
        server.wait()
        raise _ended(location)
    return 0


def free_port(host: str, first: int) -> int | None:
    """The first port from `first` on that nobody listens on, within a hundred."""
    return next((port for port in range(first, min(first + 100, 65536)) if _is_free(host, port)), None)


def _say_addresses(folder: Path, base: str, port: int, say: Callable[[str], None]) -> None:
    tracker = Tracker.open(folder)
    latest = tracker.latest_run()
    say(f"MLflow: {base}")
    if latest is not None:
        say(f"last run, {latest.experiment} ({latest.status.lower()}): {tracker.run_address(latest, port)}")


def _check_port(host: str, port: int) -> None:
    if _is_free(host, port):
        return
    other = free_port(host, port + 1)
    hint = f"; free: harness ui --port {other}" if other else ""
    raise UsageError(f"port {port} on {host} is taken{hint}")


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _command(host: str, port: int) -> list[str]:
    """MLflow's server with one worker; -P keeps a user's file called metrics.py from being imported by it."""
    return [sys.executable, "-P", "-m", "mlflow", "server", "--host", host, "--port", str(port), "--workers", "1"]


@contextlib.contextmanager
def _server(location: TrackingLocation, host: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The server in a process group of its own, so that all of it can be stopped.

    The store goes through the environment: it may hold a password, and a command line is seen by everyone.
    """
    root = (location.artifact_root or location.folder / STORE_FOLDER).as_posix()
    environment = {
        **os.environ,
        "MLFLOW_BACKEND_STORE_URI": location.uri,
        "MLFLOW_DEFAULT_ARTIFACT_ROOT": root,
        "MLFLOW_ARTIFACTS_DESTINATION": root,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "PYTHONSAFEPATH": "1",
    }
    home = location.folder / STORE_FOLDER
    home.mkdir(parents=True, exist_ok=True)
    with (home / _LOG).open("wb") as log:
        server = subprocess.Popen(
            _command(host, port), env=environment, cwd=home, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield server
    finally:
        _stop(server)


@contextlib.contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """A closed terminal and `kill` end it as Ctrl-C does, or the server, in its own group, would outlive us."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    before = [signal.signal(number, interrupt) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _wait_until_up(server: subprocess.Popen[bytes], location: TrackingLocation, host: str, port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not server_answers(f"http://{host}:{port}", seconds=2.0):
        if server.poll() is not None or time.monotonic() > deadline:
            raise _ended(location)
        time.sleep(0.2)


def _ended(location: TrackingLocation) -> HarnessError:
    log = location.folder / STORE_FOLDER / _LOG
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    last = lines[-1].replace(location.uri, location.label) if lines else "it said nothing"
    return HarnessError(f"MLflow's server ended by itself: {last} (all of it in {STORE_FOLDER}/{_LOG})")


def _stop(server: subprocess.Popen[bytes]) -> None:
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(server.pid, signal_number)
        try:
            server.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return
