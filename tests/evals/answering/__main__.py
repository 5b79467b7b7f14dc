"""`python -m tests.evals.answering`: the switches are thrown before third-party imports."""

import sys


def main() -> int:
    from policy import boot

    boot.seal()
    from tests.evals.answering import measure

    return measure.main()


if __name__ == "__main__":
    sys.exit(main())
