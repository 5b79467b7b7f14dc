"""Console entry point `intramuros`. The switches of policy.boot are thrown before the first third-party import."""

import sys


def main() -> None:
    """Seal the process, then run the command line. Exit code 1 and one line when the process may not start."""
    from core.errors import IntramurosError
    from policy import boot

    try:
        boot.seal()
    except IntramurosError as error:
        sys.stderr.write(f"error: {error.message}\n")
        raise SystemExit(1) from None
    from api.cli.app import run

    raise SystemExit(run())


if __name__ == "__main__":
    main()
