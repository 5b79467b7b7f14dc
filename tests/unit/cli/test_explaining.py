"""How an explained search reads in a terminal, in both languages."""

from datetime import date
from io import StringIO
from uuid import UUID

from rich.cells import cell_len
from rich.console import Console

from api.cli import explaining
from api.explained import ExplainedHitView, ExplanationView, FiltersView, MarkedView
from api.views import HitView
from tests.unit.cli.records import hit

ENGLISH = "Whoever travels books a hotel through the portal, and pays no more than the cap of the city. " * 4
CHINESE = "出差的员工应当通过差旅系统预订酒店，房价不得超过所在城市的上限；超出部分须事先获得部门负责人的书面同意。" * 4


def shown(text: str, matched: str) -> list[str]:
    found = hit(1, "handbook/en/travel.md", text)
    before, _, after = text.partition(matched)
    pieces = tuple(MarkedView(text=part, matched=part == matched) for part in (before, matched, after))
    view = ExplanationView(
        query="?",
        filters=FiltersView(
            collections=("hr", "it"),
            documents=(UUID(int=7),),
            languages=("en", "zh"),
            media_types=None,
            as_of=date(2026, 1, 31),
        ),
        synonyms={},
        terms=(),
        documents=1,
        chunks=9,
        words=0.5,
        exact=True,
        nearest=(),
        lexical=(),
        hits=(
            ExplainedHitView(
                hit=HitView.of(found), passage=pieces, nearest_rank=1, lexical_rank=None, by_vector=1, by_words=0
            ),
        ),
    )
    out = StringIO()
    explaining.show(Console(file=out, width=100, highlight=False, markup=False), view)
    return out.getvalue().splitlines()


def test_passages_are_folded_where_their_language_allows() -> None:
    for text, matched in ((ENGLISH, "hotel"), (CHINESE, "酒店")):
        lines = [line for line in shown(text, matched) if line.startswith("    ")]
        assert len(lines) > 3
        assert all(cell_len(line) <= 88 for line in lines)
        assert any(f"*{matched}*" in line for line in lines)
        assert not any(line.strip().startswith(("，", "。", "；", ",", ".")) for line in lines)


def test_what_it_was_narrowed_to_is_named() -> None:
    first = shown(ENGLISH, "hotel")[0]
    assert first == (
        "Rights and filters leave 1 document with 9 chunks: collection hr or it, "
        f"document {UUID(int=7)}, language en or zh, in force on 2026-01-31."
    )
