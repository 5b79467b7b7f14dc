"""The systems that are compared: ours on its two paths and with fewer retries, and a bare loop of model and tools."""

from dataclasses import replace
from time import perf_counter
from typing import Final

from agent.ask import Agent
from agent.sources.retrieval import Retrieval
from api.runtime import Runtime
from core.errors import NotFound
from core.records import Answered, Citation, Failed, Mode, Principal, Refused
from core.settings import Settings
from inference.interfaces import ChatModel
from inference.select import Models
from storage import documents
from tests.evals.answering import bare
from tests.evals.answering.perfect import Perfect, gold_text
from tests.evals.answering.questions import Question
from tests.evals.answering.scoring import Outcome

# The mode of each of ours and its rewrites of the query at most, None for as many as the settings say.
OURS: Final[dict[str, tuple[Mode, int | None]]] = {
    "quick": ("quick", None),
    "agent": ("agent", None),
    "retries-0": ("quick", 0),
    "retries-1": ("quick", 1),
    "retries-2": ("quick", 2),
}
SYSTEMS: Final = (*OURS, "bare")
MODELS: Final = ("embedded", "perfect")


class Bench:
    """One ingested tenant, asked question after question."""

    def __init__(self, runtime: Runtime, models: Models, principal: Principal, settings: Settings) -> None:
        self._runtime, self._models, self._principal, self._settings = runtime, models, principal, settings
        self._retrieval = Retrieval(runtime.db, models.embedder, models.reranker)

    async def ask(self, system: str, model: str, question: Question) -> Outcome:
        """One question to one system with one model."""
        chat: ChatModel = self._models.chat if model == "embedded" else await self._perfect(question)
        if system == "bare":
            return await bare.ask(self._runtime.db, self._retrieval, self._principal, question, chat)
        mode, rewrites = OURS[system]
        # Asked before by another system: an answer that was kept would not be this one's.
        changes = {"answer_cache": False} | ({} if rewrites is None else {"max_rewrites": rewrites})
        settings = self._settings.model_copy(update=changes)
        agent = Agent(self._runtime.db, replace(self._models, chat=chat), self._runtime.policy, settings)
        return await self._ours(agent, question, mode)

    async def _ours(self, agent: Agent, question: Question, mode: Mode) -> Outcome:
        started = perf_counter()
        asked = agent.ask(
            self._principal, question.question, collections=[question.corpus], mode=mode, as_of=question.as_of
        )
        async for event in asked:
            if isinstance(event, Failed):
                return Outcome(event.message, True, (), 0, perf_counter() - started)
            if isinstance(event, Answered | Refused):
                answer = event.answer
        seconds = perf_counter() - started
        cited = [await self._passage(citation) for citation in answer.citations]
        refused = isinstance(event, Refused)
        return Outcome(answer.answer, refused, tuple(filter(None, cited)), answer.model_calls, seconds)

    async def _passage(self, citation: Citation) -> str:
        try:
            passage = await documents.passage(
                self._runtime.db, self._principal, citation.document_id, citation.chunk_id
            )
        except NotFound:
            return ""
        return passage.text

    async def _perfect(self, question: Question) -> Perfect:
        titles, texts = [], []
        for document in await documents.listing(self._runtime.db, self._principal, question.corpus):
            if document.path.removeprefix(f"{question.corpus}/") in question.documents:
                titles.append(document.title)
                chunks = await documents.chunks(self._runtime.db, self._principal, document.id)
                texts += [stored.chunk.text for stored in chunks]
        return Perfect(question, gold_text(titles, texts))
