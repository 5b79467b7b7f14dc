"""Named SQL: every name that the code calls exists, and every one that exists is called."""

import ast
import re
from pathlib import Path

import pytest

from storage import queries

PACKAGE = Path(queries.__file__).parent
_NAME = re.compile(r"[a-z_]+\.[a-z_]+")


def defined() -> set[str]:
    return {
        f"{path.stem}.{name}"
        for path in sorted(queries.FOLDER.glob("*.sql"))
        for name in queries.parse(path.read_text(encoding="utf-8"))
    }


def called() -> set[str]:
    stems = {path.stem for path in queries.FOLDER.glob("*.sql")}
    return {
        node.value
        for path in PACKAGE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.fullmatch(node.value)
        if node.value.split(".")[0] in stems and not node.value.endswith(".sql")
    }


def test_every_query_is_called_and_every_call_has_its_query() -> None:
    assert called() == defined()


def test_a_query_is_found_by_file_and_name() -> None:
    assert queries.text("session.reset") == "RESET ALL"
    with pytest.raises(KeyError):
        queries.text("session.nothing")


def test_a_name_that_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        queries.parse("-- name: one\nSELECT 1\n-- name: one\nSELECT 2\n")


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_no_statement_is_pasted_together(path: Path) -> None:
    """No f-string, % or + makes SQL: what a user typed can then never become a part of a statement."""
    pasted = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("execute", "executemany", "SQL")
        and node.args
        and isinstance(node.args[0], ast.JoinedStr | ast.BinOp)
    ]
    assert pasted == []


@pytest.mark.threat(42)
def test_settings_outlive_a_transaction_in_one_place_only() -> None:
    """`SET` and set_config(..., false) leak through a pool; the one use is the checkpointer's, reset by the pool."""
    lasting = [
        name
        for name in sorted(defined())
        if re.search(r"set_config\([^;]*false\)|^\s*SET\s", queries.text(name), re.MULTILINE)
    ]
    assert lasting == ["schema.become_owner", "session.enter_connection"]
