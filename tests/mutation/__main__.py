"""Takes every guard away, one at a time, in a copy of the project: a test must turn red for each. `make mutation`."""

import sys
import tempfile
from pathlib import Path

from tests.mutation.guards import GUARDS
from tests.mutation.running import copy, run, survives


def main() -> int:
    """The number of guards that nobody missed."""
    with tempfile.TemporaryDirectory(prefix="intramuros-mutation-") as folder:
        project = copy(Path(folder))
        if run(project, sorted({guard.test for guard in GUARDS})):
            print("the tests are red before anything was taken away")
            return 1
        missed = 0
        for guard in GUARDS:
            survived = survives(project, guard)
            missed += survived
            print(f"{'NOT MISSED' if survived else 'missed':10}  {guard.name}  ({guard.file})", flush=True)
    print(f"{len(GUARDS) - missed} of {len(GUARDS)} guards are missed by their test when they go")
    return missed


if __name__ == "__main__":
    sys.exit(main())
