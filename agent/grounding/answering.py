"""The answering step: from passages to sentences that stand, each with the passage it comes from.

*One passage alone* (small models): each passage is put before the model by itself, after one answered and one refused
example of prose and of a table. The probability that the reply begins as a refusal grades the passage; from the best
one comes one sentence, out of the same prompt, so that the passage is read once. The citation is that passage by
construction. Where a server gives no probabilities, the reply itself says whether it refuses.

*Several passages* (capable models): one answer with the model's own marks, each sentence verified against all evidence.

In both, a sentence that nothing supports is dropped, or marked by setting, and with none left there is no answer.
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agent.grounding.checking import check, on_the_subject, sounds_refused, speaks_of
from agent.grounding.citations import Evidence, delimited, without_marks
from agent.grounding.passages import shown_within
from agent.grounding.verification import Verifier
from agent.language.links import without_links
from agent.language.text import estimate_tokens, passage_text, plain, sentences, terms
from agent.language.tiers import contradicts
from agent.models import prompts
from agent.models.fitting import within
from agent.models.metered import MeteredChat
from agent.models.prompting import Prompt
from core.records import Hit, Language
from core.text import language_of
from inference.interfaces import Traits

# --- thresholds -----------------------------------------------------------------------------------------------------
# Probabilities that the reply begins as a refusal. Fitted with `python -m tests.evals.answering` on the 50 calibration
# questions of the sample handbook, Qwen2.5-Coder-1.5B Q4, temperature 0. Of 24 answerable 22 were right and cited and 2
# refused; of 16 unanswerable 16 were refused; of 10 answerable ones without the right document 8. Fitted on these same
# questions by one author: refit them for another model, another prompt or documents of your own.

# At most this: the passage states the answer, no further one is looked at.
SURE: Final[dict[Language, float]] = {"en": 0.25, "zh": 0.001}
# At most this: the sentence is hardly held against the question's words as well.
CERTAIN: Final[dict[Language, float]] = {"en": 0.05, "zh": 0.006}
# More than this: the passage does not state the answer.
GATE: Final[dict[Language, float]] = {"en": 0.30, "zh": 0.01}
# The same for a capable model over several passages, where the examples' help is not needed.
GATE_SEVERAL: Final = 0.50

# Passages graded one at a time, and passages that a capable model answers over.
ALONE_PASSAGES: Final = 3
SEVERAL_PASSAGES: Final = 8
# Most sentences of an answer from passages alone: each costs a call.
MOST_SENTENCES: Final = 3

_SENTENCE_TOKENS: Final = 80
_SEVERAL_TOKENS: Final = 320
# Tokens of a prompt that are neither passage nor question: labels and the chat template.
_OVERHEAD: Final = 40

_COMPOUND: Final = re.compile(
    r"\b(and|or|as well as|both|each|respectively|compare|compared|difference|versus|vs)\b|[？?].*[？?]"
    r"|和|与|及|以及|还有|分别|各|、|区别|或者"
)
_MARK_AFTER_STOP: Final = re.compile(r"([.!?。！？])\s*((?:\[\s*chunk\s*:[^\[\]\n]*\]\s*)+)", re.IGNORECASE)
_OPEN_MARK: Final = re.compile(r"\[[^\[\]\n]{0,40}\Z")
_LIST_MARKER: Final = re.compile(r"^(?:[-*•]|\d+[.)])\s+|^(?:Answer|答案|回答|答)\s*[:：]\s*")
_REFUSALS: Final = ("NOT FOUND", "Not found", "未找到")
_CLAUSE: Final = re.compile(r"(,\s+(?:and|but|while|whereas|although)\s+|;\s+|，(?:但是?|而|不过)?|；)")
_ENDS: Final = (".", "!", "?", "。", "！", "？", "”", '"', ")", "）")


def depth(traits: Traits) -> int:
    """How many passages of a batch, from the best on, are looked at for an answer."""
    return SEVERAL_PASSAGES if traits.capable else ALONE_PASSAGES


@dataclass(frozen=True, slots=True)
class Supported:
    """A sentence and the handles of the passages that support it; none: `fault` says why it is not supported."""

    text: str
    handles: tuple[str, ...]
    fault: str | None = None


class Answering:
    """The answering step of one run over one question; grades are kept, so that no passage is read twice."""

    def __init__(
        self,
        chat: MeteredChat,
        evidence: Evidence,
        language: Language,
        budget: int,
        grader: MeteredChat | None = None,
        verifier: Verifier | None = None,
        unsupported: Literal["remove", "mark"] = "remove",
    ) -> None:
        """`grader`: what grades passages, where it is not the chat model itself. `unsupported`: what becomes of a
        sentence over several passages that none of them supports."""
        self._chat = chat
        self._grader = grader or chat
        self._verifier = verifier or Verifier(evidence)
        self._marks_unsupported = unsupported == "mark"
        self._evidence = evidence
        self._language = language
        self._budget = budget
        self.grades: dict[str, float] = {}

    async def passes(self, question: str, handles: Sequence[str]) -> bool:
        """Whether these passages state an answer, as far as the model can say without writing one."""
        if not handles:
            return False
        if self._grader.traits.capable:
            return await self._several_grade(question, handles) <= GATE_SEVERAL
        async for _ in self._surest(question, handles):
            return True
        return False

    async def answer(
        self, question: str, handles: Sequence[str], *, thorough: bool = False
    ) -> AsyncIterator[Supported]:
        """The sentences of the answer as they pass the check; none: nothing supports an answer. `thorough`: one passage
        that answers is not enough, the others are told as well."""
        many = thorough or _COMPOUND.search(question) is not None
        form = self._several(question, handles) if self._chat.traits.capable else self._alone(question, handles, many)
        said: set[str] = set()
        # What nothing supports is only told beside what something does: it waits for that.
        waiting: list[Supported] = []
        supported = False
        async for sentence in form:
            if sentence.text in said or not self._tells(sentence):
                continue
            said.add(sentence.text)
            waiting.append(sentence)
            supported = supported or bool(sentence.handles)
            while supported and waiting:
                yield waiting.pop(0)

    def _tells(self, sentence: Supported) -> bool:
        marked = self._marks_unsupported and sentence.fault not in ("empty", "refusal", "language")
        return bool(sentence.handles) or marked

    def _made(self, make: Callable[[int], Prompt], reply: int) -> Prompt:
        """A prompt with as much evidence as the budget and the models' contexts let."""
        context = min(self._chat.traits.context_tokens, self._grader.traits.context_tokens)
        return within(make, self._budget, context - reply)

    def _shown(self, question: str, handles: Sequence[str], budget: int) -> list[str]:
        room = budget - estimate_tokens(question) - _OVERHEAD
        return shown_within(self._evidence.hits(handles), question, room)

    # --- one passage alone ------------------------------------------------------------------------------------------

    def _alone_prompt(self, question: str, handle: str) -> Prompt:
        def make(budget: int) -> Prompt:
            return prompts.alone(self._language, question, self._shown(question, [handle], budget)[0])

        return self._made(make, _SENTENCE_TOKENS)

    async def grade(self, question: str, handle: str) -> float:
        """Probability that one passage does not state the answer; 0 where the server gives no probabilities."""
        if handle not in self.grades:
            tokens = None
            if self._grader.traits.logprobs:
                tokens = await self._grader.first_token(self._alone_prompt(question, handle))
            self.grades[handle] = starting_with(tokens or {}, prompts.REFUSING[self._language])
        return self.grades[handle]

    async def _surest(self, question: str, handles: Sequence[str]) -> AsyncIterator[str]:
        """The passages that state an answer: each sure one as soon as it is found, then the others, best first."""
        fair: list[tuple[float, str]] = []
        for handle in handles[:ALONE_PASSAGES]:
            refusing = await self.grade(question, handle)
            if refusing <= SURE[self._language]:
                yield handle
            elif refusing <= GATE[self._language]:
                fair.append((refusing, handle))
        for _, handle in sorted(fair):
            yield handle

    async def _alone(self, question: str, handles: Sequence[str], many: bool) -> AsyncIterator[Supported]:
        """One sentence from the surest passage; more only where many are wanted and a passage speaks of something that
        was asked for and that no sentence so far speaks of."""
        told: list[str] = []
        async for handle in self._surest(question, handles):
            if told and not self._adds(question, handle, told):
                continue
            sentence = await self._tell(question, handle)
            if sentence is not None:
                told.append(sentence)
                yield Supported(sentence, (handle,))
            if len(told) >= (MOST_SENTENCES if many else 1):
                return

    def _adds(self, question: str, handle: str, told: Sequence[str]) -> bool:
        missing = terms(question) - terms("\n".join(told))
        return bool(missing & terms("\n".join(map(passage_text, self._evidence.hits([handle])))))

    async def _tell(self, question: str, handle: str) -> str | None:
        """One checked sentence from one passage alone."""
        hit = self._evidence.hits([handle])[0]
        prompt = self._alone_prompt(question, handle)
        reply = await self._chat.complete(prompt, max_tokens=_SENTENCE_TOKENS, stop=("\n",))
        pieces = whole_sentences(plain(reply.text), cut=reply.finish == "length")
        # Asked for two things, a model may say first which of them this passage lacks.
        stated = [clause for piece in pieces if (clause := without_refusal(piece))]
        if not stated or (without_refusal(pieces[0]) is None and not _COMPOUND.search(question)):
            return None
        sentence = finished(without_links(without_marks(stated[0])), self._language)
        fault = self._fault(sentence, question, hit, self.grades.get(handle, 1.0))
        self._verifier.note(sentence, () if fault else (handle,), fault)
        return None if fault else sentence

    def _fault(self, sentence: str, question: str, hit: Hit, refusing: float) -> str | None:
        """What is wrong with a sentence from one passage. In the passage's language instead of the asker's it is no
        answer to them; and passage and sentence must speak of what was asked, less so where the model was certain."""
        text = passage_text(hit)
        if language_of(sentence) != self._language:
            return "language"
        if fault := check(sentence, text, question, hit.section_text).fault:
            return fault
        if contradicts(sentence, hit.text.splitlines(), question):
            return "row"
        certain = refusing <= CERTAIN[self._language]
        spoken_of = certain or speaks_of(sentence, question)
        return None if spoken_of and on_the_subject(sentence, text, question, certain=certain) else "subject"

    # --- several passages, the model's own marks --------------------------------------------------------------------

    def _several_prompt(self, question: str, handles: Sequence[str]) -> Prompt:
        best = handles[:SEVERAL_PASSAGES]

        def make(budget: int) -> Prompt:
            texts = self._shown(question, best, budget)
            return prompts.several(self._language, question, list(map(delimited, best, texts)))

        return self._made(make, _SEVERAL_TOKENS)

    async def _several_grade(self, question: str, handles: Sequence[str]) -> float:
        if not self._grader.traits.logprobs:
            return 0.0
        tokens = await self._grader.first_token(self._several_prompt(question, handles))
        return starting_with(tokens or {}, prompts.REFUSING["en"])

    async def _several(self, question: str, handles: Sequence[str]) -> AsyncIterator[Supported]:
        """Sentences as the model writes them, each verified once it is whole, unsupported ones too."""
        best = handles[:SEVERAL_PASSAGES]
        text, done = "", 0
        async for token in self._chat.stream(self._several_prompt(question, handles), max_tokens=_SEVERAL_TOKENS):
            text += token
            # The last sentence may still be given a mark: it waits for what comes after it, and that for its end.
            if _OPEN_MARK.search(text):
                continue
            pieces = whole_sentences(plain(text), cut=False)
            for piece in pieces[done:-1]:
                yield await self._verified(piece, question, best)
            done = max(done, len(pieces) - 1)
        for piece in whole_sentences(plain(text), cut=True)[done:]:
            yield await self._verified(piece, question, best)

    async def _verified(self, piece: str, question: str, shown: Sequence[str]) -> Supported:
        found = await self._verifier.verify(piece, question, shown)
        sentence = finished(found.text, self._language)
        # In another language than the asker's it is no answer to them.
        if language_of(sentence) != self._language:
            return Supported(sentence, (), "language")
        return Supported(sentence, found.handles, found.fault)


def starting_with(tokens: Mapping[str, float], beginnings: Sequence[str]) -> float:
    """Summed probability of the tokens that begin so, the space before them aside."""
    return sum(share for token, share in tokens.items() if token.strip().startswith(tuple(beginnings)))


def whole_sentences(text: str, *, cut: bool) -> list[str]:
    """The sentences of a reply, each with its marks. Under `cut` an unfinished last one is left out, unless it is the
    only one and short; a reply that begins as a refusal has none."""
    moved = _MARK_AFTER_STOP.sub(lambda found: f" {found[2].strip()}{found[1]} ", text)
    pieces = sentences(moved)
    if pieces and pieces[0].startswith(_REFUSALS):
        return []
    if cut and pieces and not pieces[-1].endswith(_ENDS):
        pieces.pop()
    return pieces


def without_refusal(sentence: str) -> str | None:
    """The sentence up to a clause that says what the passage does not say; None when nothing stands before it."""
    clauses = _CLAUSE.split(sentence)
    while clauses and sounds_refused(clauses[-1]):
        clauses = clauses[:-2]
    return "".join(clauses) or None


def finished(sentence: str, language: Language) -> str:
    """The sentence without a list marker or label before it, closed by a full stop."""
    bare = _LIST_MARKER.sub("", sentence.strip()).strip()
    if not bare or bare.endswith(_ENDS):
        return bare
    return bare.rstrip(",，;；:：") + ("。" if language == "zh" else ".")
