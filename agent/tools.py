"""The two read-only tools of the model: closures over one run: it sees no tenant and cannot widen its reach."""

from typing import Final

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from agent.citations import defuse, mark
from agent.passages import heading, shown
from agent.run import Run
from agent.text import around, terms

# Passages that one search shows to the model, and the share of the prompt budget that a tool's result may take.
SHOWN_HITS: Final = 4
_RESULT_SHARE: Final = 0.7


class SearchInput(BaseModel):
    """Arguments of kb_search."""

    query: str = Field(description="What to look for, in a few words", max_length=400)


class ReadInput(BaseModel):
    """Arguments of kb_read_chunk."""

    chunk: str = Field(description="The six characters after 'chunk:' in a passage's mark", max_length=40)


async def search_result(run: Run, query: str) -> str:
    """Search, and put what was found in words for the model, within the budget."""
    handles = run.evidence.add(await run.retriever.find(query))
    if not handles:
        return "Nothing was found."
    return result_of(run, handles[:SHOWN_HITS], query)


def result_of(run: Run, handles: tuple[str, ...], query: str) -> str:
    """Hits under their marks, as kb_search shows them."""
    each = int(run.settings.prompt_budget * _RESULT_SHARE) // max(len(handles), 1)
    hits = run.evidence.hits(handles)
    return "\n\n".join(f"{mark(handle)}\n{shown(hit, query, each)}" for handle, hit in zip(handles, hits, strict=True))


async def read_result(run: Run, chunk: str) -> str:
    """A passage that a search of this run found, with the text around it."""
    handle = chunk.strip().strip("[]").removeprefix("chunk:").strip()
    hit = run.evidence.get(handle)
    if hit is None:
        return "There is no such passage. Use a mark that kb_search returned in this conversation."
    text = defuse(await run.retriever.read(hit))
    budget = int(run.settings.prompt_budget * _RESULT_SHARE)
    return f"{mark(handle)}\n{heading(hit)}\n{around(text, terms(hit.text) | terms(run.question), budget)}"


def make_tools(run: Run) -> list[BaseTool]:
    """kb_search and kb_read_chunk for one run."""

    async def kb_search(query: str) -> str:
        return await search_result(run, query)

    async def kb_read_chunk(chunk: str) -> str:
        return await read_result(run, chunk)

    return [
        StructuredTool.from_function(
            coroutine=kb_search,
            name="kb_search",
            description="Search the organisation's documents. Returns passages, each under its mark.",
            args_schema=SearchInput,
        ),
        StructuredTool.from_function(
            coroutine=kb_read_chunk,
            name="kb_read_chunk",
            description="Read one passage that kb_search returned, with the text around it.",
            args_schema=ReadInput,
        ),
    ]
