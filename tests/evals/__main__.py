"""`python -m tests.evals [NAME ...]`: measure retrieval; `python -m tests.evals formats [FOLDER ...]`: how files end.

The switches are thrown before third-party imports.
"""

import sys


def main() -> int:
    from policy import boot

    boot.seal()
    if sys.argv[1:2] == ["formats"]:
        from tests.evals import formats

        return formats.run(sys.argv[2:])
    from tests.evals import retrieval

    return retrieval.run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
