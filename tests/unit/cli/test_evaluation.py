"""The arithmetic of retrieval evaluation, and its file format."""

from pathlib import Path
from typing import Any

import pytest

from api import evaluation
from api.cli.evaluate import show
from api.evaluation import Question, Score
from core.errors import InvalidRequest
from tests.unit.cli.records import hit


def test_scores_of_known_ranks() -> None:
    score = Score.of([1, 3, None, 8, 20])
    assert (score.hit_1, score.hit_5, score.hit_10) == (0.2, 0.4, 0.6)
    assert score.mrr == pytest.approx((1 + 1 / 3 + 1 / 8 + 1 / 20) / 5)


def test_rank_counts_documents_not_chunks() -> None:
    hits = [hit(1, "a/x.md"), hit(2, "a/x.md"), hit(3, "a/y.md"), hit(4, "a/x.md"), hit(5, "a/z.md")]
    assert evaluation.rank(hits, ["z.md"]) == 3
    assert evaluation.rank(hits, ["absent.md"]) is None
    assert evaluation.rank(hits, ["absent.md", "z.md"]) == 3


def test_the_end_of_a_path_is_whole_components() -> None:
    assert evaluation.ends_with("handbook/en/leave.md", "en/leave.md")
    assert evaluation.ends_with("leave.md", "leave.md")
    assert not evaluation.ends_with("handbook/en/sick-leave.md", "leave.md")


def test_unknown_documents_are_named() -> None:
    known, stray = Question("q", ("b.md",)), Question("r", ("c.md",))
    assert evaluation.unknown(["a/b.md"], [known, stray]) == [stray]


def test_load_skips_blank_lines(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"question": "那住宿费呢？", "document": "a.md"}\n\n', encoding="utf-8")
    assert evaluation.load(file) == [Question("那住宿费呢？", ("a.md",))]


def test_several_documents_may_answer(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"question": "q", "document": ["a.md", "b.md"]}\n', encoding="utf-8")
    assert evaluation.load(file) == [Question("q", ("a.md", "b.md"))]


@pytest.mark.parametrize(
    "row",
    [
        "not json",
        "[1]",
        '{"question": "q"}',
        '{"question": "", "document": "a"}',
        '{"question": "q", "document": 1}',
        '{"question": "q", "document": []}',
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, row: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"question": "q", "document": "a.md"}\n' + row + "\n", encoding="utf-8")
    with pytest.raises(InvalidRequest, match=r"q\.jsonl, line 2: "):
        evaluation.load(file)


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"\n"])
def test_an_unusable_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "q.jsonl"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidRequest, match=r"q\.jsonl"):
        evaluation.load(file)


def test_report_names_what_the_fused_search_missed() -> None:
    asked = (Question("a", ("a.md",)), Question("b", ("b.md",)), Question("c", ("c.md",)))
    ranks: dict[Any, tuple[int | None, ...]] = {"vector": (1, 1, 1), "bm25": (1, None, 2), "hybrid": (1, None, 11)}
    report = evaluation.Report(asked, ranks, "fake", 2.0)
    assert [missed["question"] for missed in report.as_json()["missed"]] == ["b", "c"]
    assert report.as_json()["modes"]["bm25"] == {"hit@1": 0.3333, "hit@5": 0.6667, "hit@10": 0.6667, "mrr": 0.5}
    assert report.as_json()["questions_per_second"] == 1.5


def test_questions_in_several_languages_are_told_apart() -> None:
    asked = (Question("hotel", ("a.md",)), Question("酒店", ("b.md",)), Question("住宿标准", ("c.md",)))
    report = evaluation.Report(asked, {"hybrid": (1, 2, None)}, "fake", 2.0)
    shown = report.as_json()["by_language"]
    assert {language: scores["hybrid"]["mrr"] for language, scores in shown.items()} == {"en": 1, "zh": 0.25}
    assert evaluation.Report(asked[1:], {"hybrid": (2, None)}, "fake", 2.0).by_language == {}


def test_the_table_has_a_column_for_each_language_and_the_misses_below(capsys: pytest.CaptureFixture[str]) -> None:
    asked = (Question("hotel", ("a.md",)), *(Question(f"酒店{n}", ("b.md", "c.md")) for n in range(12)))
    show(evaluation.Report(asked, {"hybrid": (1, *[None] * 12)}, "fake", 2.0))
    head, _, row, speed, *missed = capsys.readouterr().out.splitlines()
    assert head.split() == ["hit@1", "hit@5", "hit@10", "MRR", "MRR", "en", "MRR", "zh"]
    assert row.split()[-3:] == ["0.077", "1.000", "0.000"]
    assert speed == "13 questions, 6.5 a second, embedder fake"
    assert missed[0] == "not among the first 10: b.md or c.md (酒店0)"
    assert (len(missed), missed[-1]) == (11, "and 2 more, which --json names")
