"""Verification: each sentence of an answer is held against the evidence, and gets the passages that say it.

By rules first (see checking: amounts, dates, names, bounds, negations and what belongs together, exactly), then by
meaning: the sentence's vector beside those of the passage's own sentences. Where a capable model is there, it judges
what is then still in doubt. A sentence may need several passages, each for a part of it.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Final

import numpy as np
from pydantic import BaseModel

from agent.grounding.checking import LEAST_OVERLAP, check
from agent.grounding.citations import Evidence, marks, without_marks
from agent.grounding.passages import heading
from agent.language.amounts import facts
from agent.language.binding import clauses, content, holds
from agent.language.claims import drops_condition
from agent.language.links import without_links
from agent.language.names import names
from agent.language.text import around, passage_text, sentences, terms
from agent.language.tiers import contradicts
from agent.models import prompts
from agent.models.metered import MeteredChat
from agent.models.trace import Trace
from core.errors import InferenceError
from core.records import Hit
from core.text import fold, language_of
from inference.interfaces import Embedder, Vectors

logger = logging.getLogger(__name__)

# Cosines of a sentence, as a query, and the nearest sentence of a passage, by embedder and the two languages: under the
# first the passage does not speak of it, under the second that is in doubt. From the part `fit` of the pairs that
# `make eval-verification` measures: a little under the least that a supported sentence has there, and where the faulty
# ones begin. Embedders that are not here only order what the rules let pass.
MEANING: Final[dict[tuple[str, str, str], tuple[float, float]]] = {
    ("embedded:multilingual-e5-small:1", "en", "en"): (0.850, 0.900),
    ("embedded:multilingual-e5-small:1", "zh", "zh"): (0.855, 0.930),
    ("embedded:multilingual-e5-small:1", "en", "zh"): (0.790, 0.860),
    ("embedded:multilingual-e5-small:1", "zh", "en"): (0.790, 0.860),
}
# Least share of a sentence's words in a passage that only its meaning can speak for.
LEAST_WORDS: Final = 0.25
# Content words from which a clause says something of its own.
LEAST_SPEAKING: Final = 2
# Passages whose meaning is compared, and those that are tried two by two, of the ones that come nearest by words.
MOST_COMPARED: Final = 4
MOST_JOINED: Final = 4
# Calls of the judging model for one answer, and tokens of a passage that it is shown.
MOST_JUDGED: Final = 4
_SHOWN_TOKENS: Final = 300


class Judged(BaseModel):
    """Whether a passage says what a sentence says."""

    supported: bool


@dataclass(frozen=True, slots=True)
class Verified:
    """What became of a sentence: the handles of the passages that say it (none: nothing does), and else the fault."""

    text: str
    handles: tuple[str, ...] = ()
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A passage that passed the rules: how much of the sentence it holds, and how near it comes in meaning.

    `reworded`: only its meaning can speak for it: it holds few of the words, or is in another language and holds none
    of the amounts and names. `unproven`: nor is its meaning near enough to; only the judging model can.
    """

    handle: str
    share: float
    near: float | None = None
    named: bool = False
    reworded: bool = False
    doubtful: bool = False
    unproven: bool = False

    @property
    def order(self) -> tuple[bool, float]:
        """What the model named comes first, then what holds most and comes nearest."""
        return self.named, self.share + (self.near or 0.0)


class Meaning:
    """Compares sentences by the embedder; what was embedded once in a run is kept."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._kept: dict[str, Vectors] = {}

    def thresholds(self, sentence: str, passage: str) -> tuple[float, float] | None:
        """Least cosine, and the one from which nothing is in doubt; None where this embedder was not measured."""
        if self._embedder is None:
            return None
        return MEANING.get((self._embedder.id, language_of(sentence), language_of(passage)))

    async def nearest(self, sentence: str, texts: Sequence[str]) -> list[tuple[float, str]]:
        """For each text the cosine of its nearest sentence, and that sentence. Empty where nothing can be compared."""
        split = [_pieces(text) for text in texts]
        if self._embedder is None or not any(split):
            return []
        pieces = list(dict.fromkeys(piece for parts in split for piece in parts))
        try:
            await self._embed([piece for piece in pieces if piece not in self._kept])
            asked = await self._embedder.embed_query(sentence)
        except InferenceError as error:
            logger.warning("not compared by meaning", extra={"code": error.code})
            return []
        cosines = {piece: float(self._kept[piece] @ asked) for piece in pieces}
        return [max(((cosines[piece], piece) for piece in parts), default=(0.0, "")) for parts in split]

    async def _embed(self, pieces: Sequence[str]) -> None:
        if pieces and self._embedder is not None:
            vectors = await self._embedder.embed_passages(pieces)
            self._kept.update(zip(pieces, np.asarray(vectors), strict=True))


def _pieces(text: str) -> list[str]:
    """The sentences of a passage, and each with the one before it, which may say what it speaks of."""
    alone = sentences(text)
    return [*alone, *(" ".join(pair) for pair in pairwise(alone))]


class Verifier:
    """Verifies the sentences of one run. Not for passages that were answered from alone: their citation is given."""

    def __init__(
        self, evidence: Evidence, embedder: Embedder | None = None, judge: MeteredChat | None = None,
        trace: Trace | None = None,
    ) -> None:  # fmt: skip
        self._evidence = evidence
        self._meaning = Meaning(embedder)
        self._judge = judge if judge is not None and judge.traits.capable else None
        self._trace = trace or Trace()
        self._judged = 0

    async def verify(self, piece: str, question: str, shown: Sequence[str]) -> Verified:
        """Find the passages that say what a sentence says. `piece` may carry marks: these passages are tried first,
        then those that the model was `shown`, then all others that this request found."""
        named = [handle for handle in dict.fromkeys(marks(piece)) if self._evidence.get(handle) is not None]
        sentence = without_links(without_marks(piece))
        handles = list(dict.fromkeys((*named, *shown, *self._evidence.handles)))
        fitting, fault = self._by_rules(sentence, question, handles, named)
        kept = await self._by_meaning(sentence, fitting)
        if kept:
            found = await self._chosen(sentence, kept)
        else:
            fault = "meaning" if fitting else fault
            found = self._together(sentence, question, handles, named)
        self.note(sentence, found, None if found else fault)
        return Verified(sentence, found, None if found else fault)

    def note(self, sentence: str, handles: Sequence[str], fault: str | None) -> None:
        """Put into the trace what became of a sentence."""
        chunks = [hit.chunk_id for hit in self._evidence.hits(handles)]
        self._trace.note("verify", sentence=sentence, chunks=chunks, fault=fault)

    # --- one passage ------------------------------------------------------------------------------------------------

    def _by_rules(
        self, sentence: str, question: str, handles: Sequence[str], named: Sequence[str]
    ) -> tuple[list[_Candidate], str]:
        fitting, faults = [], []
        for handle, hit in zip(handles, self._evidence.hits(handles), strict=True):
            verdict = check(sentence, passage_text(hit), question, hit.section_text)
            if verdict.ok and contradicts(sentence, hit.text.splitlines(), question):
                faults.append("row")
            elif verdict.ok and _has_strange_clause(sentence, passage_text(hit), question):
                faults.append("words")
            elif verdict.ok or (verdict.fault == "words" and verdict.share >= LEAST_WORDS):
                share = _joint_share(sentence, hit)
                mute = not verdict.ok or _says_nothing(sentence, hit)
                fitting.append(_Candidate(handle, share, named=handle in named, reworded=mute))
            else:
                faults.append(verdict.fault or "words")
        return sorted(fitting, key=lambda one: one.order, reverse=True), faults[0] if faults else "words"

    async def _by_meaning(self, sentence: str, fitting: Sequence[_Candidate]) -> list[_Candidate]:
        """Those near enough in meaning, best first, each with whether that is in doubt."""
        compared = list(fitting[:MOST_COMPARED])
        hits = self._evidence.hits([one.handle for one in compared])
        found = await self._meaning.nearest(sentence, [hit.text for hit in hits])
        if not found:
            return [one for one in compared if not one.reworded]
        kept = []
        for one, hit, (near, piece) in zip(compared, hits, found, strict=True):
            limits = self._meaning.thresholds(sentence, hit.text)
            # Words of another language say nothing: what is not near enough to speak alone is for a model to judge.
            judged = self._judge is not None and language_of(sentence) != language_of(hit.text)
            unproven = one.reworded and (limits is None or near < limits[1])
            if (unproven and not judged) or (limits is not None and near < limits[0]):
                continue
            doubtful = unproven or (limits is not None and (near < limits[1] or drops_condition(sentence, piece)))
            kept.append(replace(one, near=near, doubtful=doubtful, unproven=unproven))
        return sorted(kept, key=lambda one: one.order, reverse=True)

    async def _chosen(self, sentence: str, kept: Sequence[_Candidate]) -> tuple[str, ...]:
        """All that the model named, else the best; what is in doubt only where the judging model agrees."""
        wanted = [one for one in kept if one.named] or kept[:1]
        return tuple([one.handle for one in wanted if not one.doubtful or await self._entailed(sentence, one)])

    async def _entailed(self, sentence: str, one: _Candidate) -> bool:
        """What the judging model says; where there is none, or it can say nothing, true for all but the unproven."""
        if self._judge is None or self._judged >= MOST_JUDGED:
            return not one.unproven
        self._judged += 1
        hit = self._evidence.hits([one.handle])[0]
        passage = f"{heading(hit)}\n{around(hit.text, terms(sentence), _SHOWN_TOKENS)}"
        judged = await self._judge.decide(prompts.supports(sentence, [passage]), Judged)
        return not one.unproven if judged is None else judged.supported

    # --- several passages -------------------------------------------------------------------------------------------

    def _together(self, sentence: str, question: str, handles: Sequence[str], named: Sequence[str]) -> tuple[str, ...]:
        """Passages that say a sentence together: one for each of its clauses, or two that each add to the other."""
        by_clause = self._clause_by_clause(sentence, question, handles)
        if by_clause:
            return by_clause
        for pair in self._pairs(sentence, handles, named):
            hits = self._evidence.hits(pair)
            text, around_it = "\n".join(map(passage_text, hits)), "\n".join(hit.section_text for hit in hits)
            if check(sentence, text, question, around_it).ok:
                return tuple(pair)
        return ()

    def _clause_by_clause(self, sentence: str, question: str, handles: Sequence[str]) -> tuple[str, ...]:
        parts = clauses(sentence)
        if len(parts) < 2:
            return ()
        found: list[str] = []
        for part in parts:
            if not content(part) and not facts(part):
                return ()
            fitting = [one for one in self._by_rules(part, question, handles, ())[0] if not one.reworded]
            if not fitting:
                return ()
            # A passage that serves another part already serves best.
            found.append(next((one.handle for one in fitting if one.handle in found), fitting[0].handle))
        return tuple(dict.fromkeys(found))

    def _pairs(self, sentence: str, handles: Sequence[str], named: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Pairs of passages that each hold a part of the sentence that the other lacks, likeliest first."""
        known = {
            handle: _held(sentence, hit)
            for handle, hit in zip(handles, self._evidence.hits(handles), strict=True)
            if language_of(passage_text(hit)) == language_of(sentence)
        }
        likely = sorted(known, key=lambda handle: (handle in named, len(known[handle])), reverse=True)[:MOST_JOINED]
        for one, other in combinations(likely, 2):
            if known[one] - known[other] and known[other] - known[one]:
                yield one, other


def _has_strange_clause(sentence: str, passage: str, question: str) -> bool:
    """Whether a clause of the sentence shares no word and no amount with passage and question, in one language: what
    is true must not carry what is invented."""
    parts = clauses(sentence)
    if len(parts) < 2 or language_of(sentence) != language_of(passage):
        return False
    known, stated = content(passage) | content(question), facts(passage) | facts(question)
    return any(
        len(content(part)) >= LEAST_SPEAKING
        and not content(part) & known
        and not any(holds(fact, stated) for fact in facts(part))
        for part in parts
    )


def _says_nothing(sentence: str, hit: Hit) -> bool:
    """Whether a passage in another language holds nothing of a sentence that can be compared."""
    text = passage_text(hit)
    if language_of(sentence) == language_of(text):
        return False
    stated, known = facts(text), fold(text)
    return not any(holds(fact, stated) for fact in facts(sentence)) and not any(n in known for n in names(sentence))


def _joint_share(sentence: str, hit: Hit) -> float:
    """How much of a sentence a passage holds, comparable across languages: its words where they can be compared, its
    amounts besides."""
    said, text = facts(sentence), passage_text(hit)
    amounts = sum(holds(fact, facts(text)) for fact in said) / len(said) if said else 0.0
    if language_of(sentence) != language_of(text):
        return LEAST_OVERLAP + amounts / 2
    wanted = terms(sentence)
    return len(wanted & terms(text)) / len(wanted) + amounts / 2 if wanted else amounts


def _held(sentence: str, hit: Hit) -> frozenset[object]:
    """The words and amounts of a sentence that a passage holds."""
    text = passage_text(hit)
    stated = facts(text)
    return frozenset((*(content(sentence) & content(text)), *(fact for fact in facts(sentence) if holds(fact, stated))))
