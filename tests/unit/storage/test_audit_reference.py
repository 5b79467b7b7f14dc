"""The reference names every action that the sources put into the audit log, and no other."""

import ast
import re

from tests.paths import PROJECT

ACTION = re.compile(r"[a-z_]+\.[a-z_]+")
NOTING = {"note", "note_as_owner", "record", "record_all", "record_change"}


def written() -> set[str]:
    """Actions that are handed to the log, wherever they are spelled in the module that does so."""
    found = set()
    for package in ("storage", "agent", "api", "ingest"):
        for path in (PROJECT / package).rglob("*.py"):
            tree = ast.parse(path.read_text())
            calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
            noting = [call for call in calls if ast.unparse(call.func).rpartition(".")[2] in NOTING]
            if not any("audit" in ast.unparse(call.func) or path.name == "audit.py" for call in noting):
                continue
            named = [node for node in ast.walk(tree) if isinstance(node, ast.Tuple | ast.Call | ast.AnnAssign)]
            constants = (leaf for node in named for leaf in ast.walk(node) if isinstance(leaf, ast.Constant))
            found |= {leaf.value for leaf in constants if isinstance(leaf.value, str) and ACTION.fullmatch(leaf.value)}
    return found


def queries() -> set[str]:
    """Names of queries look alike."""
    files = (PROJECT / "storage" / "sql").glob("*.sql")
    return {f"{path.stem}.{name}" for path in files for name in re.findall(r"^-- name: (\w+)$", path.read_text(), re.M)}


def test_every_action_is_documented_and_no_other() -> None:
    page = (PROJECT / "docs/reference/storage.md").read_text()
    table = page[page.index("| action | when |") :].partition("\n\n")[0]
    documented = {
        action for line in table.splitlines() for action in re.findall(r"`([a-z_]+\.[a-z_]+)`", line.split("|")[1])
    }
    # The first is made by a migration, in SQL.
    assert {"audit.begun"} | written() - queries() == documented
