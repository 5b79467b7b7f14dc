"""Cut a parsed document into chunks: along its headings, evenly at sentences, tables by rows, without overlap.

The sizes come from trials on a company handbook: pieces of up to 500 characters (250 Chinese ones) are found best;
longer pieces, overlap and whole-document texts all did worse.
"""

import math
import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate, takewhile
from typing import Literal

from core.records import Box, Chunk, Element, ParsedDocument
from core.text import count_cjk, is_cjk
from ingest.suspicion import suspicion

# A chunk's weight is its characters, Chinese ones counted twice.
CHUNK_WEIGHT = 500
# A section is what the model and the reader are handed around a chunk: bounded, so that it fits a small prompt.
SECTION_WEIGHT = 4 * CHUNK_WEIGHT

# After a full stop that ends a sentence: Chinese ones end it at once, Latin ones before a blank.
_SENTENCE_END = re.compile(r"(?<=[。！？!?；])[”’」』）)\"']*|(?<=[.!?])[\"'”’)\]]*\s+(?=[^\sa-z])|\n+")
_ABBREVIATION = re.compile(
    r"\b(?:e\.g|i\.e|etc|vs|cf|no|nos|art|sec|fig|dr|mr|mrs|ms|st|approx|inc|ltd|[A-Z])\.$", re.I
)
_CLAUSE_END = re.compile(r"(?<=[;；，,、:：])\s*|\s+\|\s+|\s+")


@dataclass(frozen=True, slots=True)
class _Atom:
    """The least piece that a cut may leave whole: a sentence, list item or row, with what joins it to the next."""

    text: str
    weight: int
    kind: Literal["text", "table"]
    page: int | None
    boxes: tuple[Box, ...]
    # How badly a cut after this atom reads: 0 between paragraphs, more inside one, most after "as follows:".
    reluctance: float


@dataclass(slots=True)
class _Section:
    heading: str
    path: tuple[str, ...]
    own: list[Element] = field(default_factory=list)
    children: list["_Section"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is packed together: atoms under one heading path."""

    path: tuple[str, ...]
    atoms: tuple[_Atom, ...]

    @property
    def weight(self) -> int:
        return sum(atom.weight for atom in self.atoms)


def weigh(text: str) -> int:
    """Characters of a text, Chinese ones counted twice."""
    return len(text) + count_cjk(text)


def chunk(parsed: ParsedDocument, *, quarantine: bool = False) -> list[Chunk]:
    """The document's chunks in reading order, spans counted in their texts joined by line feeds.

    With `quarantine` a chunk whose text, headings or document title read like instructions to the model says so.
    """
    chunks = list(_chunks(parsed))
    return list(_judged(chunks, parsed.title)) if quarantine else chunks


def _judged(chunks: Iterable[Chunk], title: str) -> Iterator[Chunk]:
    # Headings stand over many chunks.
    of_headings = cache(suspicion)
    for piece in chunks:
        found = suspicion(piece.text) or of_headings(" > ".join((title, *piece.heading_path)))
        yield replace(piece, suspicion=found) if found else piece


def _chunks(parsed: ParsedDocument) -> Iterator[Chunk]:
    ordinal = start = 0
    for number, (path, atoms) in enumerate(_numbered_sections(_units(_tree(parsed.elements)))):
        for piece in _pieces(atoms):
            text = _joined(piece)
            if not text:
                continue
            yield Chunk(
                ordinal=ordinal,
                text=text,
                heading_path=path,
                section=number,
                start=start,
                end=start + len(text),
                kind=_kind(piece),
                page=next((atom.page for atom in piece if atom.page is not None), None),
                boxes=tuple(dict.fromkeys(box for atom in piece for box in atom.boxes)),
            )
            ordinal += 1
            start += len(text) + 1


# --- headings to a tree, the tree to units ----------------------------------------------------------------------------


def _tree(elements: Iterable[Element]) -> _Section:
    root = _Section(heading="", path=())
    stack: list[tuple[int, _Section]] = [(0, root)]
    for element in elements:
        if element.kind != "title":
            stack[-1][1].own.append(element)
            continue
        while len(stack) > 1 and stack[-1][0] >= element.level:
            stack.pop()
        parent = stack[-1][1]
        section = _Section(element.text, (*parent.path, element.text))
        parent.children.append(section)
        stack.append((element.level, section))
    return root


def _units(section: _Section) -> Iterator[_Unit]:
    """Whole sections where they are small, small neighbours joined under their common parent."""
    filled = [child for child in section.children if next(_atoms_of(child), None)]
    if not section.own and len(filled) == 1:
        # A heading over nothing but another one adds its words to the path, no text.
        yield from _units(filled[0])
        return
    whole = _Unit(section.path, tuple(_atoms_of(section)))
    if whole.weight <= CHUNK_WEIGHT:
        if whole.atoms:
            yield whole
        return
    waiting: list[_Unit] = []
    for units in _parts(section):
        joinable = len(units) == 1 and units[0].weight <= CHUNK_WEIGHT
        if waiting and not (joinable and _join([*waiting, *units], section.path).weight <= CHUNK_WEIGHT):
            yield _join(waiting, section.path)
            waiting = []
        if joinable:
            waiting += units
        else:
            yield from units
    if waiting:
        yield _join(waiting, section.path)


def _parts(section: _Section) -> Iterator[list[_Unit]]:
    own = tuple(_atoms(section.own))
    if own:
        yield [_Unit(section.path, own)]
    for child in section.children:
        units = list(_units(child))
        if units:
            yield units


def _join(units: list[_Unit], parent: tuple[str, ...]) -> _Unit:
    if len(units) == 1:
        return units[0]
    atoms: list[_Atom] = []
    for unit in units:
        below = unit.path[len(parent) :]
        if below:
            atoms.append(_heading_atom(" > ".join(below)))
        atoms += unit.atoms
    return _Unit(parent, tuple(atoms))


def _atoms_of(section: _Section) -> Iterator[_Atom]:
    """Everything below a section, the headings under it as lines."""
    yield from _atoms(section.own)
    for child in section.children:
        inner = tuple(_atoms_of(child))
        if inner:
            yield _heading_atom(child.heading)
            yield from inner


def _heading_atom(text: str) -> _Atom:
    return _Atom(text + "\n", weigh(text) + 1, "text", None, (), reluctance=4.0)


# --- elements to atoms ------------------------------------------------------------------------------------------------


def _atoms(elements: Iterable[Element]) -> Iterator[_Atom]:
    for element in elements:
        spans = list(_spans(element))
        total = len(element.text)
        for index, (begin, end) in enumerate(spans):
            part = element.text[begin:end]
            ends_line = index == len(spans) - 1 or part.endswith("\n")
            text = part.rstrip("\n") + "\n" if ends_line else part
            yield _Atom(
                text=text,
                weight=weigh(text),
                kind="table" if element.kind == "table" else "text",
                page=element.page,
                boxes=_boxes_of(element.boxes, begin / total, end / total),
                reluctance=_reluctance(text, ends_line),
            )


def _reluctance(text: str, ends_line: bool) -> float:
    if text.rstrip().endswith((":", "：")):
        return 3.0
    return 0.0 if ends_line else 1.0


def _boxes_of(boxes: tuple[Box, ...], begin: float, end: float) -> tuple[Box, ...]:
    """The share of an element's line boxes that a part of its text covers: lines are about equally long."""
    return boxes[math.floor(begin * len(boxes)) : max(math.ceil(end * len(boxes)), 1)] if boxes else ()


def _spans(element: Element) -> Iterator[tuple[int, int]]:
    if element.kind == "table":
        ends = [match.end() for match in re.finditer("\n", element.text)]
    else:
        ends = [match.end() for match in _SENTENCE_END.finditer(element.text) if _ends_sentence(element.text, match)]
    begin = 0
    for end in (*ends, len(element.text)):
        if element.text[begin:end].strip():
            yield from _short_spans(element.text, begin, end)
            begin = end


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    if "\n" in match[0]:
        return True
    return not _ABBREVIATION.search(text[max(0, match.start() - 12) : match.start()])


def _short_spans(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The span itself, or, when heavier than a chunk, parts cut at clauses, at blanks, or anywhere."""
    while weigh(text[begin : min(end, begin + CHUNK_WEIGHT + 1)]) > CHUNK_WEIGHT:
        limit = begin + _fitting(text, begin)
        cuts = [match.end() for match in _CLAUSE_END.finditer(text, begin, limit)]
        cut = next((c for c in reversed(cuts) if begin < c < limit), limit)
        yield begin, cut
        begin = cut
    if begin < end:
        yield begin, end


def _fitting(text: str, begin: int) -> int:
    """How many characters fit into a chunk, of a text that from `begin` on is heavier than one."""
    weights = accumulate(1 + is_cjk(char) for char in text[begin : begin + CHUNK_WEIGHT + 1])
    return sum(1 for _ in takewhile(lambda weight: weight <= CHUNK_WEIGHT, weights))


# --- units to sections and pieces -------------------------------------------------------------------------------------


def _numbered_sections(units: Iterable[_Unit]) -> Iterator[tuple[tuple[str, ...], Sequence[_Atom]]]:
    """Units, those too heavy for one section divided evenly."""
    for unit in units:
        for atoms in _divide(unit.atoms, SECTION_WEIGHT):
            yield unit.path, atoms


def _pieces(atoms: Sequence[_Atom]) -> Iterator[Sequence[_Atom]]:
    """Chunks of a section: whole, or its tables and the texts between them, each divided evenly."""
    if _weight(atoms) <= CHUNK_WEIGHT:
        yield atoms
        return
    for run in _runs(atoms):
        yield from _divide(run, CHUNK_WEIGHT)


def _runs(atoms: Sequence[_Atom]) -> Iterator[list[_Atom]]:
    run: list[_Atom] = []
    for atom in atoms:
        if run and atom.kind != run[-1].kind:
            yield run
            run = []
        run.append(atom)
    if run:
        yield run


def _divide(atoms: Sequence[_Atom], limit: int) -> list[Sequence[_Atom]]:
    """As few parts as fit the limit, about equally heavy, cut where a cut reads best."""
    sums = list(accumulate((atom.weight for atom in atoms), initial=0))
    parts = max(1, math.ceil(sums[-1] / limit))
    while True:
        divided = _cut(atoms, sums, parts)
        if all(_weight(part) <= limit or len(part) == 1 for part in divided):
            return divided
        if parts >= len(atoms):
            return [piece for part in divided for piece in _filled(part, limit)]
        parts += 1 + parts // 20


def _filled(atoms: Sequence[_Atom], limit: int) -> Iterator[Sequence[_Atom]]:
    """The last resort where no even cut fits: parts filled one after the other."""
    part: list[_Atom] = []
    for atom in atoms:
        if part and _weight(part) + atom.weight > limit:
            yield part
            part = []
        part.append(atom)
    yield part


def _cut(atoms: Sequence[_Atom], sums: Sequence[int], parts: int) -> list[Sequence[_Atom]]:
    target = sums[-1] / parts

    def cost(end: int, wanted: float) -> float:
        return abs(sums[end] - wanted) + target * 0.15 * atoms[end - 1].reluctance

    divided: list[Sequence[_Atom]] = []
    begin = 0
    for number in range(1, parts):
        nearest = bisect(sums, number * target)
        ends = range(max(begin + 1, nearest - 6), min(len(atoms), nearest + 6))
        if ends:
            end = min(ends, key=lambda end: cost(end, number * target))
            divided.append(atoms[begin:end])
            begin = end
    divided.append(atoms[begin:])
    return divided


def _weight(atoms: Iterable[_Atom]) -> int:
    return sum(atom.weight for atom in atoms)


def _joined(atoms: Sequence[_Atom]) -> str:
    return "".join(atom.text for atom in atoms).strip()


def _kind(atoms: Sequence[_Atom]) -> Literal["text", "table"]:
    rows = sum(atom.weight for atom in atoms if atom.kind == "table")
    return "table" if rows * 2 > _weight(atoms) else "text"
