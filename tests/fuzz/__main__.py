"""`python -m tests.fuzz TARGET [-runs=N ...]`: one target under atheris, which follows the branches that are taken.

Options are libFuzzer's. Exit code 0 when nothing was found; else it writes the input down and says where.
"""

import sys
import tempfile
from pathlib import Path

import atheris

# What is compared with a text guides the fuzzer too.
atheris.enabled_hooks.add("str")

with atheris.instrument_imports(include=["agent", "api", "ingest", "policy"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Does not come back: the fuzzer ends the process."""
    name, *options = sys.argv[1:]
    from tests.fuzz.test_targets import seeds

    folder = Path(tempfile.mkdtemp(prefix="intramuros-corpus-"))
    for number, seed in enumerate(seeds(name, folder / "samples")):
        (folder / str(number)).write_bytes(seed)
    atheris.Setup([sys.argv[0], *options, str(folder)], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
