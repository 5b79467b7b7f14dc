"""Answering on the sample handbook with the real models: `python -m tests.evals.answering [--replies FILE]`.

Three kinds of questions: answerable ones, unanswerable ones, and *hard* ones, answerable in principle but asked with
the document that answers them out of reach. Prints what was right and cited, what was refused, how long it took, and
the grade of every passage looked at, for fitting the thresholds in agent/grounding/answering.py. With `--replies` the
model's replies are kept in a file and used again, so that another threshold costs no model call.
"""

import argparse
import asyncio
import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, cast

from langchain_core.language_models import BaseChatModel

from agent.ask import Agent
from agent.language.text import passage_text
from agent.workflow.run import Run
from api.cli.opened import owner
from api.runtime import Runtime
from core.errors import NotFound
from core.records import Answer, Answered, Failed, Principal, Refused, Tenant
from core.settings import Settings
from inference.interfaces import ChatModel, Completion, Ended, Message
from inference.select import Models
from storage import tenants, users
from tests.paths import EVALS, PROJECT

HANDBOOK = PROJECT / "deploy" / "demo" / "handbook"
QUESTIONS = EVALS / "handbook_answers.jsonl"

KINDS = ("answerable", "unanswerable", "hard")

Row = dict[str, Any]


class KeptReplies:
    """A chat model whose replies are kept by prompt; the model is asked only for what is not there yet."""

    def __init__(self, chat: ChatModel, file: Path | None) -> None:
        self._chat = chat
        self._file = file
        self.name, self.identity, self.provider, self.traits = chat.name, chat.identity, chat.provider, chat.traits
        self._kept: dict[str, Any] = {}
        if file is not None and file.exists():
            self._kept = dict(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())

    def _key(self, kind: str, messages: Sequence[Message], **options: Any) -> str:
        text = json.dumps([kind, [asdict(message) for message in messages], options], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def _keep(self, key: str, value: Any) -> None:
        self._kept[key] = value
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as out:
                out.write(json.dumps([key, value], ensure_ascii=False) + "\n")

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        key = self._key("complete", messages, max_tokens=max_tokens, stop=list(stop), schema=schema)
        if key not in self._kept:
            reply = await self._chat.complete(messages, max_tokens=max_tokens, stop=stop, schema=schema)
            self._keep(key, [reply.text, reply.finish])
        text, finish = self._kept[key]
        return Completion(text, cast(Literal["stop", "length"], finish), 0, 0)

    async def first_token(
        self, messages: Sequence[Message], *, top: int = 20, ended: Ended | None = None
    ) -> Mapping[str, float] | None:
        key = self._key("first_token", messages)
        if key not in self._kept:
            self._keep(key, await self._chat.first_token(messages, top=top, ended=ended))
        return cast("Mapping[str, float] | None", self._kept[key])

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int, stop: Sequence[str] = (), ended: Ended | None = None
    ) -> AsyncIterator[str]:
        return self._chat.stream(messages, max_tokens=max_tokens, stop=stop, ended=ended)

    def langchain(self) -> BaseChatModel:
        return self._chat.langchain()

    async def close(self) -> None:
        await self._chat.close()


class Watched(Agent):
    """An agent whose last run can be looked into."""

    def _run(self, *args: Any, **kwargs: Any) -> Run:
        self.last = super()._run(*args, **kwargs)
        return self.last


def load(path: Path) -> list[Row]:
    """The calibration questions."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


async def ingest(runtime: Runtime, tenant_id: Any, alone: Sequence[str]) -> dict[str, str]:
    """Ingest the handbook: documents that hard questions go without each in a collection of its own."""
    where = {document: f"alone-{number}" for number, document in enumerate(sorted(alone))}
    for path in sorted(HANDBOOK.rglob("*")):
        if path.is_file():
            name = path.relative_to(HANDBOOK).as_posix()
            await runtime.ingestor.ingest_path(tenant_id, where.get(name, "handbook"), path, HANDBOOK)
    return where


async def ask(agent: Watched, principal: Principal, row: Row, collections: list[str], mode: str) -> Row:
    """One question: the row with what came of it."""
    started = perf_counter()
    answer: Answer | None = None
    first_source = None
    asked = agent.ask(principal, row["question"], collections=collections, mode=mode)  # type: ignore[arg-type]
    async for event in asked:
        if first_source is None and type(event).__name__ == "Source":
            first_source = perf_counter() - started
        if isinstance(event, Failed):
            raise SystemExit(f"{row['question']}: {event.message}")
        if isinstance(event, Answered | Refused):
            answer = event.answer
    assert answer is not None
    evidence, grades = agent.last.evidence, agent.last.answering.grades
    judged = [
        {"document": hit.path, "grade": round(grade, 4), "good": _good(row, hit.path, passage_text(hit))}
        for handle, grade in grades.items()
        if (hit := evidence.get(handle)) is not None
    ]
    cited = [citation.document for citation in answer.citations]
    right = all(part in answer.answer for part in row["must_include"])
    return row | {
        "outcome": answer.outcome.value,
        "answer": answer.answer,
        "right": right and bool(cited),
        "cited": row["document"] in cited,
        "seconds": round(perf_counter() - started, 1),
        "source_seconds": round(first_source or 0.0, 2),
        "model_calls": answer.model_calls,
        "judged": judged,
    }


def _good(row: Row, document: str, text: str) -> bool:
    return row["kind"] == "answerable" and document == row["document"] and all(p in text for p in row["must_include"])


def report(rows: Sequence[Row]) -> Row:
    """The figures by language: right and cited, false refusals, refused where nothing answers, seconds."""
    figures: Row = {}
    for language in ("en", "zh", "all"):
        chosen = [row for row in rows if language in ("all", row["language"])]
        kinds = {
            kind: [row for row in chosen if row["kind"] == kind] for kind in ("answerable", "unanswerable", "hard")
        }
        refused = Counter(row["kind"] for row in chosen if row["outcome"] == "refused")
        figures[language] = {
            "answerable": len(kinds["answerable"]),
            "right_and_cited": sum(row["right"] for row in kinds["answerable"]),
            "of_the_expected_document": sum(row["right"] and row["cited"] for row in kinds["answerable"]),
            "false_refusals": refused["answerable"],
            "unanswerable": len(kinds["unanswerable"]),
            "unanswerable_refused": refused["unanswerable"],
            "hard": len(kinds["hard"]),
            "hard_refused": refused["hard"],
            "seconds_median": sorted(row["seconds"] for row in chosen)[len(chosen) // 2] if chosen else None,
            "source_seconds_most": max((row["source_seconds"] for row in chosen), default=None),
        }
    return figures


async def _tenant(runtime: Runtime) -> Tenant:
    try:
        return await tenants.get(runtime.db, "eval-answering")
    except NotFound:
        return await tenants.create(owner(runtime), "eval-answering", "Answering")


async def run(arguments: argparse.Namespace) -> int:
    """Ingest, ask, report."""
    rows = [row for row in load(QUESTIONS) if arguments.kind in (None, row["kind"])]
    with tempfile.TemporaryDirectory(prefix="intramuros-answering-") as work:
        home = arguments.home or Path(work) / "home"
        settings = Settings.load(home=home, database_url=None, answer_cache=False)
        async with Runtime.open(settings) as runtime:
            tenant = await _tenant(runtime)
            where = await ingest(runtime, tenant.id, [row["document"] for row in rows if row["kind"] == "hard"])
            every = ["handbook", *where.values()]
            models = await runtime.models()
            kept = Models(KeptReplies(models.chat, arguments.replies), models.embedder)
            agent = Watched(runtime.db, kept, runtime.policy, settings)
            done: list[Row] = []
            for row in rows:
                without = where.get(row["document"]) if row["kind"] == "hard" else None
                reach = [name for name in every if name != without]
                done.append(await ask(agent, users.operator(tenant.id), row, reach, arguments.mode))
                print(json.dumps(done[-1], ensure_ascii=False), flush=True)
    print(json.dumps(report(done), indent=2))
    return 0


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=Path, help="keep the model's replies in this file and use them again")
    parser.add_argument(
        "--home", type=Path, help="ingest into this folder and use it again; a temporary one if not given"
    )
    parser.add_argument("--kind", choices=KINDS, help="only questions of this kind")
    parser.add_argument("--mode", choices=["auto", "quick", "agent"], default="auto", help="the agent's mode")
    return asyncio.run(run(parser.parse_args()))
