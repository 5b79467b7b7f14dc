"""Chunks follow headings, stay small, keep tables whole where they fit, and know their place in the text."""

import pytest

from core.records import Box, Chunk, Element, ParsedDocument
from core.text import embedded_text, is_cjk
from ingest import chunking
from ingest.chunking import CHUNK_WEIGHT, SECTION_WEIGHT, chunk, weigh

SENTENCE = "The travel desk books every hotel and keeps the receipts of all trips. "
SATZ = "差旅服务台负责预订全部酒店，并保存每次出差的票据。"


def parsed(*elements: Element) -> ParsedDocument:
    return ParsedDocument("Travel", elements)


def title(text: str, level: int = 1) -> Element:
    return Element("title", text, level=level)


def check_spans(chunks: list[Chunk]) -> None:
    full = "\n".join(piece.text for piece in chunks)
    assert [full[piece.start : piece.end] for piece in chunks] == [piece.text for piece in chunks]
    assert [piece.ordinal for piece in chunks] == list(range(len(chunks)))


def test_sections_too_large_to_join_keep_their_own_paths() -> None:
    long = SENTENCE * 5
    chunks = chunk(
        parsed(
            title("A"), Element("text", long), title("B", 2), Element("text", long), title("C"), Element("text", long)
        )
    )
    assert [piece.heading_path for piece in chunks] == [("A",), ("A", "B"), ("C",)]
    assert [piece.section for piece in chunks] == [0, 1, 2]
    check_spans(chunks)


def test_small_siblings_are_joined_with_their_headings_as_lines() -> None:
    chunks = chunk(
        parsed(
            title("Costs"),
            title("Meals", 2),
            Element("text", "42 EUR a day."),
            title("Taxis", 2),
            Element("text", "At night only."),
            title("Trains"),
            Element("text", SENTENCE * 7),
        )
    )
    assert chunks[0].text == "Meals\n42 EUR a day.\nTaxis\nAt night only."
    assert chunks[0].heading_path == ("Costs",)
    assert chunks[1].heading_path == ("Trains",)


def test_the_rest_of_a_large_section_does_not_join_its_neighbour() -> None:
    chunks = chunk(
        parsed(
            title("A"),
            Element("text", SENTENCE * 8),
            title("A1", 2),
            Element("text", "Small."),
            title("B"),
            Element("text", "Tiny."),
        )
    )
    assert chunks[-2].heading_path == ("A", "A1")
    assert chunks[-1].heading_path == ("B",)


@pytest.mark.parametrize("sentence", [SENTENCE, SATZ], ids=["en", "zh"])
def test_long_text_is_cut_evenly_at_sentences_without_overlap(sentence: str) -> None:
    chunks = chunk(parsed(title("A"), Element("text", sentence * 23)))
    assert "".join(piece.text for piece in chunks).replace(" ", "") == (sentence * 23).replace(" ", "")
    assert all(weigh(piece.text) <= CHUNK_WEIGHT for piece in chunks)
    assert all(piece.text.endswith((".", "。")) for piece in chunks)
    check_spans(chunks)
    by_section = [[weigh(p.text) for p in chunks if p.section == number] for number in {p.section for p in chunks}]
    for weights in by_section:
        assert max(weights) - min(weights) <= 2 * weigh(sentence)


def test_chinese_chunks_have_half_the_characters() -> None:
    assert max(len(piece.text) for piece in chunk(parsed(Element("text", SATZ * 40)))) <= 250


def test_a_section_is_bounded() -> None:
    chunks = chunk(parsed(title("A"), Element("text", SENTENCE * 100)))
    for number in {piece.section for piece in chunks}:
        assert sum(weigh(piece.text) for piece in chunks if piece.section == number) <= SECTION_WEIGHT


def test_text_without_any_stop_is_cut_all_the_same() -> None:
    for text in ("x" * 5000, "word " * 1000, "字" * 3000, "a,b;" * 900):
        chunks = chunk(parsed(Element("text", text)))
        assert all(0 < weigh(piece.text) <= CHUNK_WEIGHT for piece in chunks)
        assert sum(len(piece.text.replace(" ", "")) for piece in chunks) == len(text.replace(" ", ""))
        check_spans(chunks)


def test_cutting_looks_at_each_character_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    def counted(char: str) -> bool:
        nonlocal looked
        looked += 1
        return is_cjk(char)

    monkeypatch.setattr(chunking, "is_cjk", counted)
    chunk(parsed(Element("text", "x" * 100_000)))
    assert 100_000 <= looked < 20 * 100_000


def test_a_table_that_fits_is_one_chunk() -> None:
    table = Element("table", "\n".join(f"City: C{n} | Cap: {n}00 EUR" for n in range(9)))
    chunks = chunk(parsed(title("Caps"), Element("text", SENTENCE * 6), table, Element("text", SENTENCE)))
    tables = [piece for piece in chunks if piece.kind == "table"]
    assert [piece.text for piece in tables] == [table.text]


def test_a_long_table_is_cut_between_rows() -> None:
    rows = [f"City: Town number {n} | Grade: A | Cap: {n}00 EUR per night" for n in range(60)]
    chunks = chunk(parsed(title("Caps"), Element("table", "\n".join(rows))))
    assert [row for piece in chunks for row in piece.text.splitlines()] == rows
    assert {piece.kind for piece in chunks} == {"table"}


def test_a_small_section_keeps_its_table_beside_its_text() -> None:
    chunks = chunk(parsed(title("Caps"), Element("text", "By city:"), Element("table", "City: Berlin | Cap: 180 EUR")))
    assert [piece.text for piece in chunks] == ["By city:\nCity: Berlin | Cap: 180 EUR"]


def test_a_lead_in_is_not_left_alone_at_the_end() -> None:
    items = [Element("list", f"- {SENTENCE.strip()}") for _ in range(6)]
    chunks = chunk(parsed(Element("text", SENTENCE * 3 + "You need:"), *items))
    assert len(chunks) > 1
    assert not any(piece.text.endswith(":") for piece in chunks)


def test_abbreviations_end_no_sentence() -> None:
    text = "Use a form, e.g. Form Nine, for it. " * 20
    assert not any(piece.text.endswith("e.g.") for piece in chunk(parsed(Element("text", text))))


def test_pages_and_boxes_follow_the_part_that_was_taken() -> None:
    boxes = tuple(Box(3, 0.1, 0.1 * n, 0.9, 0.1 * n + 0.1) for n in range(9))
    chunks = chunk(parsed(Element("text", (SENTENCE * 14).strip(), page=3, boxes=boxes)))
    assert {piece.page for piece in chunks} == {3}
    assert chunks[0].boxes[0] == boxes[0]
    assert chunks[-1].boxes[-1] == boxes[-1]
    assert boxes[-1] not in chunks[0].boxes


def test_headings_without_text_give_no_chunk() -> None:
    assert chunk(parsed(title("A"), title("B"))) == []


def test_the_embedded_text_begins_with_title_and_headings() -> None:
    piece = chunk(parsed(title("Caps"), Element("text", SENTENCE * 4)))[0]
    assert embedded_text("Travel", piece.heading_path, piece.text).splitlines()[0] == "Travel > Caps"
