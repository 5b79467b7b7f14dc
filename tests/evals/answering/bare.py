"""The baseline: LangChain's `create_agent` with a search and a read tool, asked to cite by number. Nothing else."""

import re
from collections.abc import Sequence
from datetime import date
from time import perf_counter
from typing import Any, Final

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import GraphRecursionError

from agent.sources.retrieval import Retrieval
from core.errors import InferenceError
from core.records import Filters, Hit, Principal
from inference.interfaces import ChatModel
from storage import documents
from storage.database import Database
from tests.evals.answering.questions import Question
from tests.evals.answering.scoring import Outcome

_SYSTEM: Final = (
    "You answer employees' questions from the organisation's documents. Use kb_search to find passages and "
    "kb_read_chunk to read one in its context. Cite the passages that you use by number, such as [1]. If the documents "
    "do not answer the question, reply NOT FOUND. Answer in the language of the question."
)
_STEPS: Final = 24
_SHOWN: Final = 4
_LENGTH: Final = 900
_REFUSED: Final = re.compile(
    r"not found|未找到|找不到|没有(?:找到|提到|相关)|cannot find|could not find|no information", re.I
)


class Shelf:
    """What the tools found, by number."""

    def __init__(self, db: Database, retrieval: Retrieval, principal: Principal, filters: Filters) -> None:
        self._db, self._retrieval, self._principal, self._filters = db, retrieval, principal, filters
        self.hits: list[Hit] = []

    async def search(self, query: str) -> str:
        """The best passages, each after its number."""
        found = await self._retrieval.find(self._principal, query, filters=self._filters, limit=_SHOWN)
        start = len(self.hits)
        self.hits += found
        shown = (f"[{start + n}]\n{hit.title}\n{hit.text[:_LENGTH]}" for n, hit in enumerate(found, start=1))
        return "\n\n".join(shown) or "Nothing was found."

    async def read(self, number: int) -> str:
        """One passage in its context."""
        if not 1 <= number <= len(self.hits):
            return "There is no such number."
        hit = self.hits[number - 1]
        passage = await documents.passage(self._db, self._principal, hit.document_id, hit.chunk_id)
        return f"[{number}]\n" + "\n".join((passage.before, passage.text, passage.after))[: 2 * _LENGTH]

    def tools(self) -> list[BaseTool]:
        """kb_search and kb_read_chunk."""

        async def kb_search(query: str) -> str:
            """Search the documents for a few words."""
            return await self.search(query)

        async def kb_read_chunk(number: int) -> str:
            """Read the passage of that number with the text around it."""
            return await self.read(number)

        return [StructuredTool.from_function(coroutine=tool) for tool in (kb_search, kb_read_chunk)]


async def ask(db: Database, retrieval: Retrieval, principal: Principal, question: Question, chat: ChatModel) -> Outcome:
    """One question, answered by the loop alone."""
    day: date | None = question.as_of
    shelf = Shelf(db, retrieval, principal, Filters((question.corpus,), as_of=day))
    loop: Any = create_agent(chat.langchain(), shelf.tools(), system_prompt=_SYSTEM)
    started = perf_counter()
    messages: Sequence[Any] = ()
    try:
        async for state in loop.astream(
            {"messages": [("user", question.question)]}, {"recursion_limit": _STEPS}, stream_mode="values"
        ):
            messages = state["messages"]
    except (GraphRecursionError, InferenceError):
        # The loop ran in circles or outgrew the context: what it said last stands.
        pass
    said = [message for message in messages if isinstance(message, AIMessage)]
    text = said[-1].text if said else ""
    numbers = dict.fromkeys(int(n) for n in re.findall(r"\[(\d+)\]", text))
    cited = tuple(shelf.hits[n - 1].text for n in numbers if 1 <= n <= len(shelf.hits))
    refused = not text.strip() or bool(_REFUSED.search(text))
    return Outcome(text, refused, cited, len(said), perf_counter() - started)
