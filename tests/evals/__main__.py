"""`python -m tests.evals [NAME ...]`: measure retrieval. The switches are thrown before third-party imports."""

import sys


def main() -> int:
    from policy import boot

    boot.seal()
    from tests.evals.retrieval import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
