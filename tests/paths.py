"""Where the project and the public data sets lie."""

import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
# Where `make test` puts uvloop, which no environment of the program may hold: tests show it to processes of their own.
UVLOOP = Path(f"{sys.prefix}-uvloop")
EVALS = PROJECT / "tests" / "evals"
BENCHMARKS = PROJECT / "docs" / "benchmarks"


def shared_data() -> Path | None:
    """The folder of public data sets beside the project, None where there is none."""
    folder = PROJECT.parent / "shared" / "data"
    return folder if folder.is_dir() else None
