"""Which attack or fault which test stands for: `@pytest.mark.threat(NUMBER, ...)`, gathered from the syntax tree.

The table in SECURITY.md is written from here: `python -m deploy.threat_table`. A row without a test says why.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

TESTS = Path(__file__).resolve().parent
SECURITY = TESTS.parent / "SECURITY.md"
BEGIN, END = "<!-- threats: made by deploy/threat_table.py -->", "<!-- end of threats -->"

ROWS = {
    1: "An event loop in C (uvloop), whose connections nobody sees",
    2: "The tripwire is not in force in the running loop",
    3: "libpq and other C code connect past the tripwire",
    4: "Anything at all leaves in a whole day of use",
    5: "Telemetry when the document library is imported",
    6: "Telemetry at each reading of a document, from a thread",
    7: "An upgrade of a library turns telemetry on again",
    8: "A missing language model is fetched behind our back",
    9: "Tracing variables left in the host's environment",
    10: "A proxy variable in the environment",
    11: "The model server redirects a question elsewhere",
    12: "`OLLAMA_HOST` or an API key in the environment",
    13: "A cloud model, or one with a remote host, is chosen",
    14: "The model server is made to pull a model",
    15: "The policy is missing or malformed",
    16: "The policy changes in the middle of a run",
    17: "A tool that the scope forbids is shown to the model",
    18: "The model calls a forbidden tool all the same",
    19: "The model guesses the name of a tool",
    20: "A tool runs in a worker thread",
    21: "Odd socket addresses and families",
    22: "Data leaves by UDP or in a name look-up",
    23: "A program is started, or a library loaded, after the start",
    24: "The tripwire is set twice",
    25: "A denial is swallowed by a broad except",
    26: "The model floods with calls that are denied",
    27: "Other spellings of an IPv4 address",
    28: "IPv4 inside IPv6, 6to4, NAT64, CGNAT, zone ids",
    29: "Two parsers read one URL differently",
    30: "A name that moves between check and connection",
    31: "A name with allowed and forbidden addresses",
    32: "A redirect from an allowed host",
    33: "Trailing dot, upper case, look-alike names",
    34: "Secrets of a denied URL in logs",
    35: "A page loads something from elsewhere",
    36: "The container network leaks names or ignores its rules",
    37: "The service manager's address filter does not work",
    38: "The program connects as the owner of the tables",
    39: "A new table without row security",
    40: "A view or function that runs with its owner's rights",
    41: "The tenant of one request stays on a pooled connection",
    42: "A setting for a whole database session",
    43: "A query without a tenant",
    44: "Reading another tenant's object by id, on every route",
    45: "Writing into another tenant",
    46: "A unique or foreign key tells what another tenant has",
    47: "A partition is read directly",
    48: "Foreign neighbours crowd out one's own passages",
    49: "The time of a search tells of foreign documents",
    50: "Scores, plans or database errors shown to a user",
    51: "A conversation's id is guessed",
    52: "A conversation without an owner",
    53: "A deleted document still answers",
    54: "A right is taken away in the middle of a conversation",
    55: "Rights are checked after the best k were chosen",
    56: "A cache serves another tenant, user or policy",
    57: "Several processes prepare an empty database at once",
    58: "A stored checkpoint that runs code when it is read",
    80: "A document gives the model orders",
    82: "Citation marks are forged in a document",
    83: "A citation of what was not read, or may not be",
    85: "An image or a link in an answer carries data out",
    99: "A disabled user goes on working",
    100: "A role or tenant in the body of a request",
    101: "A tenant's administrator changes what holds for all",
    102: "One of several writers of a setting skips its guard",
    103: "A denied action leaves no record, or the record can be altered",
    104: "Log injection, and questions in logs",
    105: "Passwords, invitations or tokens are guessed",
    106: "The embedding model was changed",
    107: "One document repeated many times crowds out the rest",
    108: "An installation from a bundle that was tampered with",
    109: "A restored backup without its walls",
    110: "The clock jumps",
    111: "One job is delivered twice",
    112: "The summary of a long conversation fails",
    113: "An owner or user id in a request",
    114: "A guard that one route or client lacks",
}

# Rows that no test stands for, and why. A row with a test may not stand here.
UNCOVERED: dict[int, str] = {}


def marked() -> dict[int, list[str]]:
    """For each row the tests that stand for it, as `file::name` below tests/, in order."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for name, row in _marks(ast.parse(path.read_text())):
            test = f"{path.relative_to(TESTS).as_posix()}::{name}"
            if test not in found[row]:
                found[row].append(test)
    return dict(found)


def _marks(tree: ast.Module) -> Iterator[tuple[str, int]]:
    of_all = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for mark in (call for marks in (*of_all, *node.decorator_list) for call in ast.walk(marks)):
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.threat":
                    yield from ((node.name, ast.literal_eval(row)) for row in mark.args)


def table(found: Mapping[int, list[str]]) -> str:
    """The Markdown table of every row: its tests, or the reason why it has none."""
    lines = ["| # | attack or fault | tests |", "|---|---|---|"]
    for row, words in ROWS.items():
        tests = "<br>".join(f"`{test}`" for test in found.get(row, ())) or f"none: {UNCOVERED[row]}"
        lines.append(f"| {row} | {words} | {tests} |")
    return "\n".join(lines)


def written(text: str, made: str) -> str:
    """`text` with the table `made` between its two marks."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{rest.partition(END)[2]}"
