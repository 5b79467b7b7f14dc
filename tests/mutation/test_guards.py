"""The list of guards is true of the sources; the guards whose tests need no database are taken away here and now."""

import ast
from pathlib import Path

import pytest

from tests.mutation.guards import GUARDS, Guard
from tests.mutation.running import copy, survives
from tests.paths import PROJECT

# Enough to know that the run itself works; `make mutation` takes away all.
HERE = [guard for guard in GUARDS if guard.quick][4:6]


@pytest.mark.threat(114)
@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_is_where_the_list_says_and_has_its_test(guard: Guard) -> None:
    source = (PROJECT / guard.file).read_text(encoding="utf-8")
    assert source.count(guard.text) == 1
    if guard.file.endswith(".py"):
        # What is no program turns every test red, or none: that would show nothing.
        ast.parse(source.replace(guard.text, guard.without))
    file, _, name = guard.test.partition("::")
    tree = ast.parse((PROJECT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy(tmp_path_factory.mktemp("project"))


@pytest.mark.threat(114)
@pytest.mark.parametrize("guard", HERE, ids=lambda guard: guard.name)
def test_a_guard_that_goes_is_missed(project: Path, guard: Guard) -> None:
    assert not survives(project, guard)


def test_a_change_that_breaks_nothing_is_told_from_one_that_does(project: Path) -> None:
    harmless = Guard("nothing", GUARDS[0].file, "\nclass ", "\n\nclass ", GUARDS[0].test)
    assert survives(project, harmless)
