"""Answers and their citations as JSON columns hold them, and back."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final
from uuid import UUID

from core.records import Answer, Citation, Outcome

# What is not kept of an answer: where it was stored, and what a refusal found closest.
_LEFT_OUT: Final = frozenset({"session_id", "turn_id", "nearest"})


def citations_json(answer: Answer) -> str:
    return json.dumps([asdict(citation) for citation in answer.citations], default=str)


def citation_of(value: Mapping[str, Any]) -> Citation:
    """A stored citation. Those of earlier versions say less, none of them more."""
    own = {"document_id": UUID(str(value["document_id"])), "heading_path": tuple(value["heading_path"])}
    return Citation(**{**value, **own})


def answer_json(answer: Answer) -> str:
    kept = [each.name for each in fields(Answer) if each.name not in _LEFT_OUT]
    values = {name: getattr(answer, name) for name in kept}
    values |= {"citations": json.loads(citations_json(answer)), "timings": dict(answer.timings)}
    return json.dumps(values)


def answer_of(value: Mapping[str, Any]) -> Answer:
    own = {
        "outcome": Outcome(value["outcome"]),
        "citations": tuple(map(citation_of, value["citations"])),
        **{name: tuple(value[name]) for name in ("missing", "searched", "contacts")},
    }
    return Answer(**{**value, **own})
