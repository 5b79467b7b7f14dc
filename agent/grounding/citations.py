"""Citations: what a request may cite, under handles that only this request knows, and their numbers [n].

Evidence is handed to a model under random handles made for the request, `[chunk:xxxxxx]`. A document is written
before the request and so cannot hold one; text in it that looks like a mark is defused all the same.
"""

import re
import secrets
import threading
from collections.abc import Sequence
from typing import Final

from agent.language.amounts import facts
from agent.language.text import spans, terms
from core.records import Citation, Hit

MAX_CITATIONS: Final = 20
_ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz23456789"
_HANDLE_LENGTH: Final = 6

_MARK: Final = re.compile(r"\[\s*chunk\s*:([^\[\]\n]{1,200})\]", re.IGNORECASE)
_HANDLE: Final = re.compile(rf"[a-z0-9]{{{_HANDLE_LENGTH}}}")
_LOOKS_LIKE_MARK: Final = re.compile(r"(chunk)(?:\s*[:：﹕︰])+", re.IGNORECASE)
_END_MARK: Final = re.compile(rf"\s*\[\s*end\s*:\s*[a-z0-9]{{{_HANDLE_LENGTH}}}\s*\]", re.IGNORECASE)
# What a document may not say as it stands, and what is left of it.
_FORGED: Final = (
    (_LOOKS_LIKE_MARK, r"\1 "),
    (
        re.compile(
            r"<\|?/?\s*((?:im|start|end|begin|eot|eom|fim|system|user|assistant|tool|think|thinking|reasoning)\w*)\s*\|?>",
            re.I,
        ),
        r"\1",
    ),
    (re.compile(r"\[/?\s*(INST|SYS|TOOL_CALLS|AVAILABLE_TOOLS)\s*\]|<<\s*/?\s*SYS\s*>>|</?s>", re.I), r"\1"),
    (re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+"), "\n"),
)
_ANY_NUMBER: Final = re.compile(
    r"\s*[\[［【〔⟦]\s*(?:\^|\s*来源\s*|\s*source\s*)?\s*[\d①-⑳⑴-⒇]+(?:\s*[,，、-]\s*\d+)*\s*[\]］】〕⟧]", re.I
)
_END: Final = re.compile(r"\s*([.!?。！？；;]*)\s*\Z")


def defuse(text: str) -> str:
    """A document's text with everything that could pass for a mark, or for a turn of the conversation, made harmless:
    words of chat templates, tags of tool calls and of thinking, and blank lines, which part a prompt.

    Applying it twice changes nothing.
    """
    before = ""
    while text != before:
        before = text
        for pattern, harmless in _FORGED:
            text = pattern.sub(harmless, text)
    return text


def mark(handle: str) -> str:
    """The mark under which a passage is shown to the model."""
    return f"[chunk:{handle}]"


def marks(text: str) -> list[str]:
    """Handles that a text's marks name, in order; whether they exist is for Evidence to say."""
    return [handle for found in _MARK.finditer(text) for handle in _HANDLE.findall(found[1].casefold())]


def delimited(handle: str, text: str) -> str:
    """A passage between its mark and an end that, like the mark, only this request knows."""
    return f"{mark(handle)}\n{text}\n[end:{handle}]"


def without_marks(text: str) -> str:
    """The text without marks and without bracketed numbers of any look: every [n] in an answer is ours.

    Taken out until there is none: what stood around one may be another.
    """
    before = ""
    while text != before:
        before, text = text, " ".join(_ANY_NUMBER.sub("", _END_MARK.sub("", _MARK.sub("", text))).split())
    return text


class Evidence:
    """The hits of one request under their handles, in the order found. One lock: tools run in parallel."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hits: dict[str, Hit] = {}
        self._handles: dict[tuple[str, int], str] = {}
        self.batches: list[tuple[str, ...]] = []

    def branch(self) -> "Evidence":
        """For a part of the request that searches on its own: the same hits and handles, batches of its own."""
        made = Evidence()
        made._lock, made._hits, made._handles = self._lock, self._hits, self._handles
        return made

    def issue(self, hits: Sequence[Hit]) -> tuple[str, ...]:
        """A handle for each hit; a chunk keeps the one it has."""
        with self._lock:
            return tuple(self._issue(hit) for hit in hits)

    def add(self, hits: Sequence[Hit]) -> tuple[str, ...]:
        """Issue a handle for each hit and remember them as one batch."""
        batch = self.issue(hits)
        self.batches.append(batch)
        return batch

    def _issue(self, hit: Hit) -> str:
        key = (str(hit.document_id), hit.chunk_id)
        if key not in self._handles:
            handle = "".join(secrets.choice(_ALPHABET) for _ in range(_HANDLE_LENGTH))
            while handle in self._hits:
                handle = "".join(secrets.choice(_ALPHABET) for _ in range(_HANDLE_LENGTH))
            self._handles[key] = handle
            self._hits[handle] = hit
        return self._handles[key]

    @property
    def handles(self) -> tuple[str, ...]:
        """Every handle of the request, in the order issued."""
        with self._lock:
            return tuple(self._hits)

    def get(self, handle: str) -> Hit | None:
        """The hit that this request issued the handle for, None for any other handle."""
        return self._hits.get(handle)

    def hits(self, handles: Sequence[str]) -> list[Hit]:
        """The hits of known handles, in the order asked for."""
        return [self._hits[handle] for handle in handles if handle in self._hits]

    @property
    def collections(self) -> frozenset[str]:
        """The collections that the hits come from."""
        with self._lock:
            return frozenset(hit.collection for hit in self._hits.values())

    def __len__(self) -> int:
        return len(self._hits)


class Numbering:
    """Hands out [n] in order of first appearance, at most MAX_CITATIONS; unknown handles get none."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._lock = threading.Lock()
        self._citations: dict[str, Citation] = {}

    def cite(self, handle: str, sentence: str) -> int | None:
        """The number of a handle; `sentence` chooses the passage that is quoted when it is new."""
        hit = self._evidence.get(handle)
        if hit is None:
            return None
        with self._lock:
            if handle not in self._citations:
                if len(self._citations) >= MAX_CITATIONS:
                    return None
                self._citations[handle] = _citation(len(self._citations) + 1, hit, sentence)
            return self._citations[handle].n

    @property
    def citations(self) -> tuple[Citation, ...]:
        """What was cited, by number."""
        return tuple(self._citations.values())


def _citation(n: int, hit: Hit, sentence: str) -> Citation:
    start, end = quote_span(hit.text, sentence)
    return Citation(
        n=n,
        chunk_id=hit.chunk_id,
        document_id=hit.document_id,
        document=hit.path,
        title=hit.title,
        heading_path=hit.heading_path,
        page=hit.page,
        quote=hit.text[start:end],
        revision=hit.revision,
        start=hit.start + start,
        end=hit.start + end,
        collection=hit.collection,
        origin=hit.origin,
    )


def quote_span(passage: str, sentence: str) -> tuple[int, int]:
    """Where in a passage the sentence or row stands that comes nearest to an answer's sentence: start and end, in
    characters of the passage. Amounts count first; the whole passage where it has no sentence."""
    wanted, amounts = terms(sentence), facts(sentence)

    def nearness(span: tuple[int, int]) -> tuple[int, int]:
        piece = passage[slice(*span)]
        return len(amounts & facts(piece)), len(wanted & terms(piece))

    return max(spans(passage), key=nearness, default=(0, len(passage)))


def quote(passage: str, sentence: str) -> str:
    """The sentence or row of a passage that comes nearest to an answer's sentence, verbatim."""
    return passage[slice(*quote_span(passage, sentence))]


def with_numbers(sentence: str, numbers: Sequence[int]) -> str:
    """The sentence with its [n] before the closing punctuation: `... per night [1].`"""
    shown = "".join(f"[{n}]" for n in dict.fromkeys(numbers))
    if not shown:
        return sentence
    end = _END.search(sentence)
    body, stop = (sentence[: end.start()], end[1]) if end else (sentence, "")
    space = "" if stop and stop[0] in "。！？；" else " "
    return f"{body}{space}{shown}{stop}"
