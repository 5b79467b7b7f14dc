"""Where the project and the public data sets lie."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
EVALS = PROJECT / "tests" / "evals"
BENCHMARKS = PROJECT / "docs" / "benchmarks"


def shared_data() -> Path | None:
    """The folder of public data sets beside the project, None where there is none."""
    folder = PROJECT.parent / "shared" / "data"
    return folder if folder.is_dir() else None
