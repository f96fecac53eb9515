"""`python -m harness`: the same as the command `harness`."""

import sys
from pathlib import Path


def own_packages_first() -> None:
    """Move the working folder, which `python -m` puts first on the import path, to the end of it.

    Otherwise a user's metrics.py beside an experiment would be imported in place of this distribution's package.
    """
    first = sys.path[0] if sys.path else ""
    is_working_folder = not first or Path(first).resolve() == Path.cwd()
    if not sys.flags.safe_path and is_working_folder and Path(__file__).resolve().parents[1] != Path.cwd():
        sys.path.append(sys.path.pop(0))


if __name__ == "__main__":
    own_packages_first()
    from harness.cli import main

    main()
