"""Named SQL: every statement lives in `storage/sql/<file>.sql` under `-- name: <name>` and is called as `file.name`."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "sql"
_HEAD = re.compile(r"^-- name: ([a-z_]+)[ \t]*$", re.MULTILINE)


def parse(source: str) -> dict[str, str]:
    """The statements of one file by name; whatever stands before the first name is commentary."""
    parts = _HEAD.split(source)
    statements: dict[str, str] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        if name in statements:
            raise ValueError(f"query {name!r} stands twice in one file")
        statements[name] = body.strip().rstrip(";")
    return statements


@cache
def _file(stem: str) -> Mapping[str, str]:
    return parse((FOLDER / f"{stem}.sql").read_text(encoding="utf-8"))


def text(name: str) -> str:
    """The text of the query `file.name`. Raises KeyError for a name that no file holds."""
    stem, _, query = name.partition(".")
    return _file(stem)[query]
