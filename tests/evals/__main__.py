"""`python -m tests.evals [--most N] [NAME ...]`: measure retrieval; `formats [FOLDER ...]`: how files end;
`answers ...`: answers; `verification`: sentences beside passages.

The switches are thrown before third-party imports.
"""

import sys


def main() -> int:
    from policy import boot

    boot.seal()
    if sys.argv[1:2] == ["formats"]:
        from tests.evals import formats

        return formats.run(sys.argv[2:])
    if sys.argv[1:2] == ["answers"]:
        from tests.evals.answering import run

        return run.main(sys.argv[2:])
    if sys.argv[1:2] == ["verification"]:
        from tests.evals import verification

        return verification.run()
    from tests.evals import retrieval

    return retrieval.run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
