"""The read-only tools of the model: closures over one run: it sees no tenant and cannot widen its reach."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from agent.grounding.citations import defuse, delimited
from agent.grounding.passages import heading
from agent.language.text import around, estimate_tokens, terms
from agent.workflow.run import Run
from agent.workflow.searching import breaks_off, look, passages_of, promising, read_on
from agent.workflow.structure import found_result, outline_result, shelf_result
from core.errors import NotFound

# Passages that one search shows to the model, and the share of the prompt budget that a tool's result may take, what is
# read on of one of them besides.
SHOWN_HITS: Final = 4
_RESULT_SHARE: Final = 0.7
_READ_SHARE: Final = 0.3


class SearchInput(BaseModel):
    """Arguments of kb_search."""

    query: str = Field(description="What to look for, in a few words", max_length=400)


class ReadInput(BaseModel):
    """Arguments of kb_read_chunk."""

    chunk: str = Field(description="The six characters after 'chunk:' in a passage's mark", max_length=40)


class ListInput(BaseModel):
    """Arguments of kb_list_documents."""

    about: str = Field("", description="Words of a title or file name; empty: all", max_length=200)


class OutlineInput(BaseModel):
    """Arguments of kb_outline."""

    document: str = Field(description="Title or file name, as kb_list_documents shows it", max_length=400)


class FindInput(BaseModel):
    """Arguments of kb_find."""

    text: str = Field(description="The exact text, such as a code or name; * stands for anything", max_length=400)


async def search_result(run: Run, query: str) -> str:
    """Search, and put what was found in words for the model, within the budget; a promising passage that is cut is
    read on at once."""
    return await told(run, (await look(run, query))[:SHOWN_HITS], query)


async def told(run: Run, handles: Sequence[str], query: str) -> str:
    """Hits under their marks, as kb_search shows them, and the first of them in full where it is promising and cut."""
    if not handles:
        return "Nothing was found."
    budget = int(run.budget * _RESULT_SHARE)
    pieces = passages_of(run, handles, query, budget)
    first = run.evidence.hits(handles[:1])[0]
    if promising(first, query) and (breaks_off(first) or estimate_tokens(first.text) > budget // len(handles)):
        # What was deleted since it was found cannot be read on.
        with suppress(NotFound):
            read = await _passages(run, handles[0], int(run.budget * _READ_SHARE))
            pieces.append(f"Read on:\n{read}")
    return "\n\n".join(pieces)


async def read_result(run: Run, chunk: str) -> str:
    """A passage that a tool of this run showed, with those around it."""
    handle = chunk.strip().strip("[]").removeprefix("chunk:").strip()
    if run.evidence.get(handle) is None:
        return "There is no such passage. Use a mark that a tool returned in this conversation."
    return await _passages(run, handle, int(run.budget * _RESULT_SHARE))


async def _passages(run: Run, handle: str, budget: int) -> str:
    """A passage and its neighbours under their marks: first what it takes itself, then what is left for each."""
    pieces = []
    for near in await read_on(run, handle):
        hit = run.evidence.hits([near])[0]
        if budget <= 0:
            break
        text = around(defuse(hit.text), terms(hit.text) | terms(run.question), budget)
        budget -= estimate_tokens(text)
        pieces.append(delimited(near, f"{heading(hit)}\n{text}"))
    return "\n\n".join(pieces)


def make_tools(run: Run) -> list[BaseTool]:
    """The tools that look into the documents. A small model has two: each more costs it time and sense."""
    tools = [
        tool(
            run,
            search_result,
            "kb_search",
            SearchInput,
            "Search the organisation's documents. Returns passages, each under its mark.",
        ),
        tool(
            run,
            read_result,
            "kb_read_chunk",
            ReadInput,
            "Read one passage that a tool returned, with the text around it.",
        ),
    ]
    if run.chat.traits.capable:
        tools += [
            tool(run, shelf_result, "kb_list_documents", ListInput, "List the documents there are, by their titles."),
            tool(
                run,
                outline_result,
                "kb_outline",
                OutlineInput,
                "The headings of one document, each with a mark to read.",
            ),
            tool(run, found_result, "kb_find", FindInput, "Find an exact text, with the position of each place."),
        ]
    return tools


def tool(
    run: Run, result: Callable[..., Awaitable[str]], name: str, arguments: type[BaseModel], description: str
) -> BaseTool:
    """One tool over a run: `result` is given the run and the arguments, and gives the text that the model reads."""

    async def call(**given: Any) -> str:
        return await result(run, **given)

    return StructuredTool.from_function(coroutine=call, name=name, description=description, args_schema=arguments)
