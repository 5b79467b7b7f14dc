import ast
import re
from collections.abc import Iterator
from pathlib import Path

from policy import boot
from policy.address import AddressClass

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/reference/policy.md").read_text()


def reasons() -> Iterator[str]:
    """Every reason code that the package can give, from its source."""
    for path in (ROOT / "policy").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            given: list[ast.expr] = []
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {
                "Decision",
                "ledger.deny",
                "ledger.count",
                "ValueError",
            }:
                given = node.args
            elif isinstance(node, ast.Return) and path.name == "hook.py" and node.value is not None:
                given = [node.value]
            constants = [c.value for value in given for c in ast.walk(value) if isinstance(c, ast.Constant)]
            yield from (
                value for value in constants if isinstance(value, str) and re.fullmatch(r"[a-z]+(_[a-z]+)*", value)
            )


def test_every_reason_is_explained() -> None:
    documented = set(re.findall(r"`([a-z_]+)`", PAGE))
    internal = {"loopback", "peer", "localhost", "shape"}
    classes = {kind.value for kind in AddressClass} - {"loopback", "private"}
    found = set(reasons()) | classes
    assert {"public", "redirect", "program", "mixed_answers", "malformed_dsn", "tool_unknown"} <= found
    assert found - internal - documented == set()


def test_every_proxy_variable_and_loop_that_stops_the_start_is_named() -> None:
    for name in (*boot.BLIND_LOOPS, *(proxy.upper() for proxy in boot.PROXIES)):
        assert f"`{name}`" in PAGE
