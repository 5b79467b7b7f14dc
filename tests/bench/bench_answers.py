"""What a person waits for on the sample handbook, warm: sources, the answer, and what is ours beside the model's time.

`python -m tests.bench.bench_answers` prints one JSON object. The time of a model call is taken around the chat model
itself, so that `ours_ms` is everything else: database, embedding the question, the graph, checking, storing.
"""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.ask import Agent
from api.cli.ingest import ensure_tenant
from api.runtime import Runtime
from core.records import Answered, Principal, Refused, Source
from core.settings import Settings
from inference.interfaces import ChatModel, Completion, Message
from inference.select import Models
from storage import search, sessions, users

HANDBOOK = Path(__file__).parents[2] / "deploy" / "demo" / "handbook"
QUESTIONS = (
    "What is the hotel cap per night in Berlin for a P3 employee?",
    "Who approves an order above EUR 50,000?",
    "出差回来以后多少天之内要交报销单？",
    "How soon must I report a lost laptop?",
)
SEARCH_ROUNDS = 25


class TimedChat:
    """A chat model that adds up the seconds spent in it."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self.name, self.identity, self.provider, self.traits = model.name, model.identity, model.provider, model.traits
        self.seconds = 0.0

    async def complete(self, messages: Sequence[Message], **options: Any) -> Completion:
        started = time.perf_counter()
        try:
            return await self.model.complete(messages, **options)
        finally:
            self.seconds += time.perf_counter() - started

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[str]:
        started = time.perf_counter()
        async for piece in self.model.stream(messages, **options):
            yield piece
        self.seconds += time.perf_counter() - started

    async def first_token(self, messages: Sequence[Message], **options: Any) -> Mapping[str, float] | None:
        started = time.perf_counter()
        try:
            return await self.model.first_token(messages, **options)
        finally:
            self.seconds += time.perf_counter() - started

    def langchain(self) -> Any:
        return self.model.langchain()

    async def close(self) -> None:
        await self.model.close()


async def ask(agent: Agent, chat: TimedChat, reader: Principal, session: Any, question: str) -> dict[str, Any]:
    """One question: milliseconds to the first source and to the end, and our share of them."""
    chat.seconds, started, sources = 0.0, time.perf_counter(), 0.0
    outcome = "failed"
    async for event in agent.ask(reader, question, session_id=session):
        if isinstance(event, Source) and not sources:
            sources = time.perf_counter() - started
        if isinstance(event, Answered | Refused):
            outcome = event.answer.outcome.value
    total = time.perf_counter() - started
    return {
        "question": question,
        "outcome": outcome,
        "sources_ms": round(1000 * sources),
        "total_ms": round(1000 * total),
        "ours_ms": round(1000 * (total - chat.seconds)),
    }


async def search_times(runtime: Runtime, reader: Principal, models: Models) -> list[float]:
    """Milliseconds of a hybrid search each, the question's embedding left out."""
    found = []
    vectors = [await models.embedder.embed_query(question) for question in QUESTIONS]
    for _ in range(SEARCH_ROUNDS):
        for question, vector in zip(QUESTIONS, vectors, strict=True):
            started = time.perf_counter()
            await search.search(runtime.db, reader, question, vector, embedder_id=models.embedder.id)
            found.append(1000 * (time.perf_counter() - started))
    return sorted(found)


async def measure(settings: Settings) -> dict[str, Any]:
    """Ingest the sample handbook into `settings.home`, warm everything up, then measure."""
    async with Runtime.open(settings) as runtime:
        tenant = await ensure_tenant(runtime, "bench")
        started = time.perf_counter()
        ready = 0
        async for progress in runtime.ingestor.ingest_folder(tenant.id, "handbook", HANDBOOK):
            ready += progress.result is not None and progress.result.outcome != "failed"
        ingest_seconds = time.perf_counter() - started
        models = await runtime.models()
        chat = TimedChat(models.chat)
        agent = Agent(runtime.db, Models(chat, models.embedder), runtime.policy, settings)
        reader = users.operator(tenant.id)
        session = (await sessions.create(runtime.db, reader, "bench")).id
        await ask(agent, chat, reader, session, QUESTIONS[0])
        answers = [await ask(agent, chat, reader, session, question) for question in QUESTIONS]
        times = await search_times(runtime, reader, models)
    return {
        "chat_model": models.chat.name,
        "handbook": {"documents": ready, "seconds": round(ingest_seconds, 1)},
        "search_ms": {"p50": round(statistics.median(times), 1), "p95": round(times[int(len(times) * 0.95)], 1)},
        "answers": answers,
        "worst_sources_ms": max(row["sources_ms"] for row in answers),
        "worst_ours_ms": max(row["ours_ms"] for row in answers),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        # PostgreSQL runs as a user of its own when we are root, and must reach its folder.
        Path(scratch).chmod(0o755)
        settings = Settings.load(home=Path(scratch) / "home", embedded_idle=5.0, answer_cache=False)
        print(json.dumps(asyncio.run(measure(settings)), ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
