"""What has to be done so that documents say what a folder holds: a pure comparison of digests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core.records import Document

# From so many documents on, a sync that would delete more than half of them is refused.
MANY: Final = 20


@dataclass(frozen=True, slots=True)
class Move:
    """A document whose bytes now stand at another path. It keeps id, chunks, vectors and citations."""

    document: Document
    path: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A file that holds the same bytes as another one, which is the document."""

    path: str
    of: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a sync does, in this order: `deleted`, `moved`, `changed` (in order), `new` (in order).

    `clashes` are files whose path belongs to a document of another source or attachment: they are left alone.
    """

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    moved: tuple[Move, ...] = ()
    deleted: tuple[Document, ...] = ()
    unchanged: tuple[Document, ...] = ()
    copies: tuple[Copy, ...] = ()
    clashes: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing needs to be done."""
        return not (self.new or self.changed or self.moved or self.deleted)

    @property
    def steps(self) -> int:
        """How many documents it touches."""
        return len(self.new) + len(self.changed) + len(self.moved) + len(self.deleted)


def _never(_: str) -> bool:
    return False


def plan(
    found: Mapping[str, str],
    known: Sequence[Document],
    elsewhere: Sequence[Document] = (),
    unclear: Callable[[str], bool] = _never,
) -> Plan:
    """Compare the files found (digest by path) with the documents known to come from that folder.

    A document at a path that is still there is the same one, changed or not. Of the others, one whose bytes stand at
    a new path has moved; the rest are deleted, save where `unclear` says that the file may be there unseen. Two
    documents never hold the same bytes: further files with them are copies. `elsewhere` are the collection's other
    documents; an upload whose very path is found in the folder is taken for the folder's own from then on, and what
    came inside other files is not compared with.
    """
    taken_over = [document for document in elsewhere if _becomes_ours(document, found)]
    foreign = [document for document in elsewhere if not _becomes_ours(document, found)]
    clashes = {d.path for d in foreign if d.path in found}
    comparison = _Comparison(
        found={path: found[path] for path in sorted(found) if path not in clashes},
        here={document.path: document for document in (*known, *taken_over)},
        holders={document.sha256: document.path for document in foreign if document.parent_id is None},
    )
    return comparison.plan(unclear, tuple(sorted(clashes)))


def refusal(plan: Plan, known: int) -> str | None:
    """Why a plan is not carried out unasked: of `known` documents it deletes so many that a share may be missing."""
    gone = len(plan.deleted)
    if gone and gone == known:
        return f"it would delete all {known} documents of this source"
    if known >= MANY and 2 * gone > known:
        return f"it would delete {gone} of the {known} documents of this source"
    return None


def _becomes_ours(document: Document, found: Mapping[str, str]) -> bool:
    return document.path in found and document.source is None and document.parent_id is None


class _Comparison:
    """The work of `plan`. `holders` maps digests to the path of the file or document that has them."""

    def __init__(self, found: Mapping[str, str], here: Mapping[str, Document], holders: dict[str, str]) -> None:
        self._found = found
        self._here = here
        self._holders = holders
        self._copies: list[Copy] = []
        self._gone: dict[str, Document] = {}

    def plan(self, unclear: Callable[[str], bool], clashes: tuple[str, ...]) -> Plan:
        unchanged = [self._here[path] for path, sha256 in self._found.items() if self._same(path, sha256)]
        absent = [document for path, document in self._here.items() if path not in self._found]
        self._gone = {document.sha256: document for document in absent if not unclear(document.path)}
        kept = [document for document in absent if document.sha256 not in self._gone]
        self._holders |= {document.sha256: document.path for document in (*unchanged, *kept)}
        changed = [path for path in self._found if path in self._here and self._changed(path)]
        new = [path for path in self._found if path not in self._here and self._first(path)]
        moved = [Move(self._gone.pop(self._found[path]), path) for path in new if self._found[path] in self._gone]
        arrived = {move.path for move in moved}
        ordered, swapped = self._in_order(changed)
        return Plan(
            new=tuple(path for path in new if path not in arrived),
            changed=tuple(ordered),
            moved=(*moved, *swapped),
            deleted=tuple(sorted(self._gone.values(), key=lambda document: document.path)),
            unchanged=tuple(unchanged),
            copies=tuple(sorted(self._copies, key=lambda copy: copy.path)),
            clashes=clashes,
        )

    def _same(self, path: str, sha256: str) -> bool:
        return path in self._here and self._here[path].sha256 == sha256

    def _changed(self, path: str) -> bool:
        document = self._here[path]
        if document.sha256 == self._found[path]:
            return False
        if self._first(path):
            return True
        # The path holds a copy of another document: what it held before is gone from here, though perhaps not far.
        self._gone[document.sha256] = document
        return False

    def _first(self, path: str) -> bool:
        """Whether no other file or document holds this file's bytes; from now on it does."""
        sha256 = self._found[path]
        holder = self._holders.setdefault(sha256, path)
        if holder != path:
            self._copies.append(Copy(path, holder))
        return holder == path

    def _in_order(self, changed: Sequence[str]) -> tuple[list[str], list[Move]]:
        """The changed paths, each after the one whose old bytes it now holds; where that goes round, moves instead."""
        owner = {self._here[path].sha256: path for path in changed}
        waits_for = {path: owner[self._found[path]] for path in changed if self._found[path] in owner}
        ordered: dict[str, None] = {}
        swapped: dict[str, Move] = {}
        for start in changed:
            chain: dict[str, None] = {}
            path: str | None = start
            while path is not None and path not in ordered and path not in swapped and path not in chain:
                chain[path] = None
                path = waits_for.get(path)
            if path is not None and path in chain:
                swapped |= {each: Move(self._here[waits_for[each]], each) for each in chain}
            else:
                ordered |= dict.fromkeys(reversed(chain))
        return list(ordered), list(swapped.values())
