"""The questions that answers are measured on: the sample handbook and the GSA's, in English and Chinese.

Kinds: `single` (one fact), `multi` (several, a comparison, several documents), `conflict` (two versions of one policy,
asked on a day), `unanswerable`. `facts` are what an answer must state, each a list of ways to write it; `wrong` what it
must not (the other version); `sentences` say the facts as a good writer would. Chinese questions about the GSA's
handbook are answered by English documents.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from core.records import Language
from core.text import fold

FILE = Path(__file__).parent / "questions.jsonl"

Kind = Literal["single", "multi", "conflict", "unanswerable"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question, the collection it is asked of, and what a right answer states."""

    id: str
    language: Language
    kind: Kind
    corpus: Literal["handbook", "gsa"]
    question: str
    documents: tuple[str, ...]
    facts: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    as_of: date | None = None

    @property
    def answerable(self) -> bool:
        return self.kind != "unanswerable"

    def stated(self, text: str) -> list[bool]:
        """For each fact, whether a text states it."""
        return [any(states(text, way) for way in ways) for ways in self.facts]

    def answered_by(self, text: str) -> bool:
        """Whether a text states every fact and nothing of the wrong version."""
        return all(self.stated(text)) and not any(states(text, way) for way in self.wrong)


def states(text: str, fact: str) -> bool:
    """Whether a text holds a fact as a whole number or word: `4` is not in `14`, nor in `4.5`."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", fold(text))
    wanted = re.escape(fold(fact))
    before = r"(?<![\d.])" if fact[0].isdigit() else r"(?<![a-z])" if fact[0].isascii() else ""
    after = r"(?!\.?\d)" if fact[-1].isdigit() else r"(?![a-z])" if fact[-1].isascii() else ""
    return re.search(before + wanted + after, plain) is not None


def load(path: Path = FILE, ids: Iterable[str] = ()) -> list[Question]:
    """All questions, or those of these ids."""
    wanted = set(ids)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return [_question(row) for row in rows if not wanted or row["id"] in wanted]


def _question(row: dict[str, object]) -> Question:
    values = dict(row)
    values["documents"] = tuple(values["documents"])  # type: ignore[arg-type]
    values["facts"] = tuple(tuple(ways) for ways in values["facts"])  # type: ignore[attr-defined]
    values["sentences"] = tuple(values.get("sentences", ()))  # type: ignore[arg-type]
    values["wrong"] = tuple(values.get("wrong", ()))  # type: ignore[arg-type]
    values["as_of"] = date.fromisoformat(str(values["as_of"])) if "as_of" in values else None
    return Question(**values)  # type: ignore[arg-type]


def sample(questions: Sequence[Question], most: int) -> list[Question]:
    """At most so many, every n-th: the kinds and languages keep their shares."""
    step = max(1, -(-len(questions) // most))
    return list(questions[::step])
