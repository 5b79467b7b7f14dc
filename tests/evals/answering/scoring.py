"""What became of one question, and the figures over many."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from tests.evals.answering.questions import Question


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a system replied: `cited` are the texts of the passages that the answer's marks name, in order.

    `calls` counts model calls, `seconds` is wall time.
    """

    text: str
    refused: bool
    cited: tuple[str, ...]
    calls: int
    seconds: float


def judged(question: Question, outcome: Outcome) -> dict[str, Any]:
    """One question with its outcome as a row of figures.

    A citation is right when its passage states one of the facts; a fact is covered when one cited passage states it.
    """
    right = [any(question.stated(text)) for text in outcome.cited]
    covered = [any(found) for found in zip(*map(question.stated, outcome.cited), strict=True)]
    answered = question.answerable and not outcome.refused and question.answered_by(outcome.text)
    return {
        "id": question.id,
        "language": question.language,
        "kind": question.kind,
        "right": answered,
        "citations": len(right),
        "citations_right": sum(right),
        "facts": len(question.facts),
        "facts_covered": sum(covered),
        **{key: value for key, value in asdict(outcome).items() if key != "cited"},
    }


def figures(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Shares from 0 to 1 over rows of `judged`; None where there is nothing to divide by.

    `accuracy`: right of the answerable. `cited`: right with at least one right citation. `false_refusals`: refused of
    the answerable. `refusals`: refused of the unanswerable. Citations' precision and recall: over answers given.
    """
    answerable = [row for row in rows if row["kind"] != "unanswerable"]
    given = [row for row in answerable if not row["refused"]]
    nowhere = [row for row in rows if row["kind"] == "unanswerable"]
    return {
        "questions": len(rows),
        "accuracy": _share(sum(row["right"] for row in answerable), len(answerable)),
        "cited": _share(sum(row["right"] and row["citations_right"] > 0 for row in answerable), len(answerable)),
        "citation_precision": _share(_sum(given, "citations_right"), _sum(given, "citations")),
        "citation_recall": _share(_sum(given, "facts_covered"), _sum(given, "facts")),
        "false_refusals": _share(sum(row["refused"] for row in answerable), len(answerable)),
        "refusals": _share(sum(row["refused"] for row in nowhere), len(nowhere)),
        "model_calls": round(_sum(rows, "calls") / len(rows), 2) if rows else None,
        "seconds_median": round(median(row["seconds"] for row in rows), 2) if rows else None,
    }


def by_part(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures over all rows, of each language and of each kind."""
    parts = {"all": list(rows)}
    for key in ("language", "kind"):
        for value in dict.fromkeys(row[key] for row in rows):
            parts[value] = [row for row in rows if row[key] == value]
    return {part: figures(chosen) for part, chosen in parts.items()}


def _sum(rows: Sequence[dict[str, Any]], key: str) -> int:
    return sum(row[key] for row in rows)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None
