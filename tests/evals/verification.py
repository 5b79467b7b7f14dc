"""Verification on labelled pairs of a sentence and a passage: `python -m tests.evals verification`.

`verification.jsonl` holds passages, and sentences in both languages about each: those that it supports, and those with
one fault (another number, unit, date or name, a negation or bound turned round, a condition dropped, the neighbouring
row, something invented). Parts: `fit` and `report`, by turns; and `unseen`, written after the rules were. Thresholds
come from `fit` alone. No model writes here: sentences are given.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from unittest import mock
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from agent.grounding.checking import check
from agent.grounding.citations import Evidence
from agent.grounding.verification import Verifier
from agent.language.text import passage_text
from agent.language.tiers import contradicts
from core.records import Hit, Scores
from core.settings import Settings
from core.text import language_of
from inference.interfaces import Embedder, Vectors
from inference.select import open_embedder
from policy.egress import Policy
from tests.paths import BENCHMARKS, EVALS, PROJECT

DATA = EVALS / "verification.jsonl"
TARGET = BENCHMARKS / "verification.json"
PARTS = ("fit", "report", "unseen")
# What the check was before rules compared dates, bounds, negations and what belongs together.
WITHOUT_RULES = ("_wrong_date", "_wrong_claim", "_wrong_across")
# Passages beside the right one when a citation is looked for, and the ranks at which that one stands.
OTHERS = 7
RANKS = (1, 3, 6)
SHOWN = 5

Judge = Callable[["Pair"], Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """One sentence beside one passage; `fault` None: supported."""

    hit: Hit
    part: str
    sentence: str
    question: str
    fault: str | None

    @property
    def languages(self) -> str:
        """Of the sentence and of the passage."""
        return f"{language_of(self.sentence)} on {language_of(self.hit.text)}"


def load() -> list[Pair]:
    """All labelled pairs, by passage."""
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    return [
        Pair(hit_of(row, number), row["part"], pair["sentence"], pair.get("question", ""), pair["fault"])
        for number, row in enumerate(rows)
        for pair in row["pairs"]
    ]


def hit_of(row: dict[str, Any], number: int) -> Hit:
    """A passage as search would find it."""
    return Hit(
        rank=1,
        chunk_id=number,
        document_id=uuid5(NAMESPACE_URL, row["id"]),
        title=row["title"],
        path=f"{row['id']}.md",
        collection="evals",
        heading_path=(row["heading"],),
        page=None,
        text=row["text"],
        section_text=row["text"],
        kind=row["kind"],
        effective_from=None,
        effective_to=None,
        updated_at=datetime(2026, 1, 1, tzinfo=UTC),
        scores=Scores(0.9, 3.0, 1.0),
    )


# --- is it supported? -----------------------------------------------------------------------------------------------


def by_words(pair: Pair) -> bool:
    """Amounts, names and words alone."""
    with ExitStack() as taken_out:
        for rule in WITHOUT_RULES:
            taken_out.enter_context(mock.patch(f"agent.grounding.checking.{rule}", lambda *_: None))
        return check(pair.sentence, passage_text(pair.hit), pair.question, pair.hit.section_text).ok


def by_rules(pair: Pair) -> bool:
    """All rules, those for tiers among them."""
    ok = check(pair.sentence, passage_text(pair.hit), pair.question, pair.hit.section_text).ok
    return ok and not contradicts(pair.sentence, pair.hit.text.splitlines(), pair.question)


async def by_meaning(pair: Pair, embedder: Embedder) -> bool:
    """Rules and the embedder, as an answer over several passages is verified, this one alone found."""
    evidence = Evidence()
    handles = evidence.add([pair.hit])
    return bool((await Verifier(evidence, embedder).verify(pair.sentence, pair.question, handles)).handles)


def scores(pairs: Sequence[Pair], accepted: Sequence[bool]) -> dict[str, Any]:
    """Precision and recall of `supported`, and the share of each fault that is found out."""
    right = sum(ok and pair.fault is None for pair, ok in zip(pairs, accepted, strict=True))
    caught: dict[str, list[bool]] = defaultdict(list)
    for pair, ok in zip(pairs, accepted, strict=True):
        if pair.fault is not None:
            caught[pair.fault].append(not ok)
    return {
        "pairs": len(pairs),
        "precision": round(right / max(sum(accepted), 1), 3),
        "recall": round(right / max(sum(pair.fault is None for pair in pairs), 1), 3),
        "caught": {fault: [sum(found), len(found)] for fault, found in sorted(caught.items())},
    }


# --- is the right passage cited? ------------------------------------------------------------------------------------


def evidence_for(pairs: Sequence[Pair], right: Sequence[Hit], rank: int) -> tuple[Evidence, tuple[str, ...]]:
    """The right passages from `rank` on among others of both languages; the sentence's theme stands in no other."""
    every = list({pair.hit.chunk_id: pair.hit for pair in pairs}.values())
    half = len(every) // 2
    near = {(hit.chunk_id + shift) for hit in right for shift in (0, half, -half)}
    start = right[0].chunk_id * 3 % len(every)
    others = [hit for hit in (*every[start:], *every[:start]) if hit.chunk_id not in near][:OTHERS]
    ordered = [*others[: rank - 1], *right, *others[rank - 1 :]]
    evidence = Evidence()
    return evidence, evidence.add([replace(hit, rank=n) for n, hit in enumerate(ordered, start=1)])


def joined(pairs: Sequence[Pair]) -> Iterator[tuple[Pair, Pair, str, bool]]:
    """Sentences that two passages support together, and those of which one half is wrong: both pairs, the sentence,
    whether it is supported."""
    by_passage: dict[int, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if not pair.question:
            by_passage[pair.hit.chunk_id].append(pair)
    passages = list(by_passage.values())
    for one, other in pairwise(passages):
        for language in ("en", "zh"):
            mine = [pair for pair in one if language_of(pair.sentence) == language]
            its = [pair for pair in other if language_of(pair.sentence) == language]
            first = next((pair for pair in mine if pair.fault is None), None)
            for wanted in (None, "number"):
                second = next((pair for pair in its if pair.fault == wanted), None)
                if first is not None and second is not None:
                    yield first, second, _join(first.sentence, second.sentence, language), wanted is None


def _join(first: str, second: str, language: str) -> str:
    if language == "zh":
        return f"{first.rstrip('。')}，而{second}"
    return f"{first.rstrip('.')}, and {second[0].lower()}{second[1:]}"


def best_of_the_first(sentence: str, question: str, evidence: Evidence, handles: Sequence[str]) -> tuple[str, ...]:
    """As it was done before: the one of the passages shown that passes and holds most of the words."""
    found = []
    for handle, hit in zip(handles[:SHOWN], evidence.hits(handles[:SHOWN]), strict=True):
        pair = Pair(hit, "", sentence, question, None)
        if by_words(pair):
            found.append((check(sentence, passage_text(hit), question, hit.section_text).share, handle))
    return (max(found)[1],) if found else ()


async def citations(pairs: Sequence[Pair], embedder: Embedder) -> dict[str, Any]:
    """For each rank of the right passage: how often it is cited, and how often something is cited that does not say it,
    before and now; and the same for sentences that need two passages."""
    figures: dict[str, Any] = {}
    for rank in RANKS:
        asked = [(pair, (pair.hit,), pair.sentence, pair.fault is None) for pair in pairs]
        figures[f"rank {rank}"] = await _cited(pairs, asked, rank, embedder)
    two = [(one, (one.hit, other.hit), sentence, good) for one, other, sentence, good in joined(pairs)]
    figures["two passages, ranks 3 and 4"] = await _cited(pairs, two, 3, embedder)
    return figures


async def _cited(
    pairs: Sequence[Pair], asked: Sequence[tuple[Pair, tuple[Hit, ...], str, bool]], rank: int, embedder: Embedder
) -> dict[str, Any]:
    found: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for pair, right, sentence, good in asked:
        evidence, handles = evidence_for(pairs, right, rank)
        wanted = {hit.chunk_id for hit in right}
        now = (await Verifier(evidence, embedder).verify(sentence, pair.question, handles[:SHOWN])).handles
        before = best_of_the_first(sentence, pair.question, evidence, handles)
        for way, cited in (("before", before), ("now", now)):
            chunks = {hit.chunk_id for hit in evidence.hits(cited)}
            kind = "right" if good else "wrong"
            across = "across" if pair.languages in ("en on zh", "zh on en") else "within"
            found[f"{way}, {across}"][kind].append(chunks == wanted if good else bool(chunks))
    return {
        way: {kind: [sum(results), len(results)] for kind, results in kinds.items()} for way, kinds in found.items()
    }


class Remembering:
    """Implements `inference.interfaces.Embedder` over another, each text embedded once."""

    def __init__(self, embedder: Embedder) -> None:
        self.id, self.dimension = embedder.id, embedder.dimension
        self._embedder = embedder
        self._kept: dict[tuple[str, str], Vectors] = {}

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        missing = [text for text in dict.fromkeys(texts) if ("passage", text) not in self._kept]
        for text, vector in zip(missing, await self._embedder.embed_passages(missing), strict=True):
            self._kept["passage", text] = vector
        return np.stack([self._kept["passage", text] for text in texts])

    async def embed_query(self, text: str) -> Vectors:
        if ("query", text) not in self._kept:
            self._kept["query", text] = await self._embedder.embed_query(text)
        return self._kept["query", text]

    async def close(self) -> None:
        await self._embedder.close()


# --- the report -----------------------------------------------------------------------------------------------------


async def measure() -> dict[str, Any]:
    """All figures."""
    settings = Settings.load()
    embedder = Remembering(await open_embedder(settings, Policy.of(settings)))
    pairs = load()
    ways = {
        "amounts, names, words": [by_words(pair) for pair in pairs],
        "all rules": [by_rules(pair) for pair in pairs],
        "rules and meaning": [await by_meaning(pair, embedder) for pair in pairs],
    }
    figures: dict[str, Any] = {"embedder": embedder.id, "measured_at": datetime.now(UTC).date().isoformat()}
    for part in PARTS:
        figures[part] = {}
        for languages in dict.fromkeys(pair.languages for pair in pairs):
            at = [n for n, pair in enumerate(pairs) if (pair.part, pair.languages) == (part, languages)]
            chosen = [pairs[n] for n in at]
            figures[part][languages] = {way: scores(chosen, [found[n] for n in at]) for way, found in ways.items()}
    figures["citations"] = await citations([pair for pair in pairs if pair.part != "fit"], embedder)
    await embedder.close()
    return figures


def run() -> int:
    """Measure, print, keep."""
    figures = asyncio.run(measure())
    TARGET.write_text(json.dumps(figures, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    print(section())
    print(f"\nwritten to {TARGET.relative_to(PROJECT)}")
    return 0


def section() -> str:
    """The part of docs/benchmarks.md, empty when nothing was measured."""
    if not TARGET.exists():
        return ""
    figures = json.loads(TARGET.read_text(encoding="utf-8"))
    parts = ["## Verification of sentences", ABOUT.format(embedder=figures["embedder"], date=figures["measured_at"])]
    parts += [_table(figures[part], CAPTIONS[part]) for part in ("report", "unseen")]
    return "\n\n".join([*parts, _citations(figures["citations"])])


ABOUT = """From `make eval-verification` on {date}: sentences with one passage each, labelled by their author;
`en on zh` is an English sentence on a Chinese passage. Precision and recall are of "supported"; then, for each fault,
how many were found out. Meaning: the vectors of `{embedder}`. The rules were written with the first two parts in view,
their thresholds fitted on the one that is not shown. No model judged here."""
CAPTIONS = {
    "report": "The half that no threshold was fitted on:",
    "unseen": "Pairs written after the rules; some slips that they brought to light are mended since:",
}


def _table(part: dict[str, Any], caption: str) -> str:
    faults = sorted({fault for ways in part.values() for row in ways.values() for fault in row["caught"]})
    lines = [
        f"| languages | check | pairs | precision | recall | {' | '.join(faults)} |",
        "|---" * (5 + len(faults)) + "|",
    ]
    for languages, ways in part.items():
        for way, row in ways.items():
            cells = [f"{row['caught'][f][0]}/{row['caught'][f][1]}" if f in row["caught"] else "" for f in faults]
            lines.append(
                f"| {languages} | {way} | {row['pairs']} | {row['precision']:.2f} | {row['recall']:.2f} "
                f"| {' | '.join(cells)} |"
            )
    return caption + "\n\n" + "\n".join(lines)


def _citations(figures: dict[str, Any]) -> str:
    """`right`: sentences that are supported, and the passages cited are the right ones, no more and no fewer."""
    head = (
        "The right passage among seven others of both languages, no mark given: supported sentences cited rightly, and "
        "unsupported ones that were given a citation all the same. Before: the best by words of the first five.\n\n"
        "| where it stands | languages | rightly cited, before | now | wrongly cited, before | now |\n"
        "|---|---|---|---|---|---|"
    )
    lines = []
    for place, ways in figures.items():
        for across in ("within", "across"):
            cells = []
            for kind in ("right", "wrong"):
                for way in ("before", "now"):
                    found = ways.get(f"{way}, {across}", {}).get(kind)
                    cells.append(f"{found[0]} of {found[1]}" if found else "")
            if any(cells):
                lines.append(f"| {place} | {across} | {' | '.join(cells)} |")
    return "\n".join([head, *lines])
