"""What changed from one revision of a document to another: sentence by sentence, and within those word by word."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Final, Literal, TypeVar

from core.records import Chunk, Document, Principal
from storage import documents
from storage.database import Database

Operation = Literal["same", "added", "removed"]
_Headed = tuple[tuple[str, ...], str]
Item = TypeVar("Item")

# Two stretches of more sentences or words than this are not compared but shown whole: it takes the product of both.
MOST: Final = 4000

_SENTENCE = re.compile(r"(?:[^\n。！？!?.]|\.(?!\s)|[!?](?!\s))*(?:[。！？]+[”’」』）)]*|[.!?]+(?=\s)|\n|$)[ \t]*\n*")
# A word with the blanks after it; a Han character, kana or sign by itself.
_WORD = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af]+\s*|\S\s*|\s+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text that both revisions have, or only the newer (`added`), or only the older (`removed`)."""

    op: Operation
    text: str
    heading_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from revision `first` to revision `second`."""

    first: int
    second: int
    pieces: tuple[Piece, ...]


async def compare(
    db: Database, principal: Principal, document: Document, first: int | None, second: int | None
) -> Comparison:
    """Compare two revisions of a document; by default the last with the one before it. Raises NotFound."""
    later = second or max(document.revision, 1)
    earlier = first or max(later - 1, 1)
    after, before = [await documents.revision_chunks(db, principal, document.id, one) for one in (later, earlier)]
    sides = [stored.chunk for stored in before], [stored.chunk for stored in after]
    return Comparison(earlier, later, tuple(await asyncio.to_thread(differences, *sides)))


def differences(before: Sequence[Chunk], after: Sequence[Chunk]) -> list[Piece]:
    """The pieces in reading order, whole sentences each; what was removed stands before what was added in its place.

    All but the removed ones give the newer text, all but the added the older one, save for blanks and line ends. What
    keeps its words under another heading counts as removed there and added here.
    """
    old, new = _by_heading(before), _by_heading(after)
    pieces: list[Piece] = []
    for tag, was, is_now in _compared([headings for headings, _ in old], [headings for headings, _ in new], old, new):
        if tag == "equal":
            for (headings, earlier), (_, later) in zip(was, is_now, strict=True):
                pieces += _texts(earlier, later, headings)
        else:
            pieces += [Piece("removed", text, headings) for headings, text in was]
            pieces += [Piece("added", text, headings) for headings, text in is_now]
    return _joined(pieces)


def words(before: str, after: str) -> list[Piece]:
    """The same of two texts, single words and Chinese characters each. Blanks and line ends are no difference."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    found: list[tuple[str, str, str]] = []
    removed = added = ""
    for tag, before_it, after_it in _compared(_stripped(old), _stripped(new), old, new):
        if tag == "equal":
            found.append((removed, added, "".join(after_it)))
            removed = added = ""
        else:
            removed, added = removed + "".join(before_it), added + "".join(after_it)
    pieces = []
    for was, is_now, same in _readable([*found, (removed, added, "")]):
        pieces += [Piece("removed", was), Piece("added", is_now), Piece("same", same)]
    return [piece for piece in pieces if piece.text]


def _by_heading(chunks: Sequence[Chunk]) -> list[_Headed]:
    """Neighbours under the same headings as one text: where they were cut is no difference."""
    grouped = groupby(chunks, key=lambda chunk: chunk.heading_path)
    return [(headings, "".join(chunk.text + "\n" for chunk in group)) for headings, group in grouped]


def _texts(before: str, after: str, headings: tuple[str, ...]) -> Iterator[Piece]:
    old, new = _sentences(before), _sentences(after)
    for tag, was, is_now in _compared(_stripped(old), _stripped(new), old, new):
        if tag == "equal":
            yield Piece("same", "".join(is_now), headings)
            continue
        if was:
            yield Piece("removed", "".join(was), headings)
        if is_now:
            yield Piece("added", "".join(is_now), headings)


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE.findall(text) if sentence]


def _stripped(parts: Sequence[str]) -> list[str]:
    return [" ".join(part.split()) for part in parts]


def _compared(
    old_keys: Sequence[object], new_keys: Sequence[object], old: Sequence[Item], new: Sequence[Item]
) -> Iterator[tuple[str, Sequence[Item], Sequence[Item]]]:
    """(`equal` or another tag, the older items, the newer items) of each stretch, by their keys."""
    if max(len(old), len(new)) > MOST:
        yield ("equal" if old_keys == new_keys else "replace"), old, new
        return
    for tag, i, j, k, m in SequenceMatcher(None, old_keys, new_keys, autojunk=False).get_opcodes():
        yield tag, old[i:j], new[k:m]


def _readable(found: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """(removed, added, same after them), with what is the same by chance between two changes taken into them.

    A lone `the` or `的` between two rewritten stretches tells a reader nothing and tears both apart.
    """
    kept: list[tuple[str, str, str]] = []
    for removed, added, same in found:
        if kept and _by_chance(kept[-1], max(len(removed), len(added))):
            earlier_removed, earlier_added, between = kept.pop()
            removed, added = earlier_removed + between + removed, earlier_added + between + added
        kept.append((removed, added, same))
    return kept


def _by_chance(earlier: tuple[str, str, str], changed_after: int) -> bool:
    removed, added, same = earlier
    changed_before = max(len(removed), len(added))
    return bool(changed_before and changed_after) and len(same.strip()) <= min(changed_before, changed_after) // 2


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbours of one kind under the same headings as one piece."""
    grouped = groupby(pieces, key=lambda piece: (piece.op, piece.heading_path))
    return [Piece(op, "".join(piece.text for piece in group), headings) for (op, headings), group in grouped]
