"""Searching and reading on, as every part of a run does it: what is found is evidence, and what was done is noted."""

from collections.abc import Sequence
from typing import Any, Final

from agent.grounding.citations import delimited
from agent.grounding.passages import shown_within
from agent.language.text import overlap, passage_text, terms
from agent.workflow.run import Run
from core.records import Hit

# Share of a query's content words that a passage holds which is worth reading on.
PROMISING: Final = 0.5
_ENDS: Final = (".", "!", "?", "。", "！", "？", "：", ":", "|", "”", '"', ")", "）")


async def look(run: Run, query: str) -> tuple[str, ...]:
    """Search for a run; the handles of what was found, best first."""
    hits = await run.retriever.find(query)
    run.searched.append(query)
    return taken(run, "search", hits, query=query)


async def look_into(run: Run, query: str, question: str) -> tuple[str, ...]:
    """Search in other words, and with the question itself in the document that these find first: they lead to a
    document whose words the question does not have, and say less of the place in it. The handles of both in turn."""
    hits = await run.retriever.find(query)
    run.searched.append(query)
    if not hits:
        return taken(run, "search", (), query=query)
    within = await run.retriever.find(question, hits[0].document_id)
    both = merged([run.evidence.issue(within), run.evidence.issue(hits)])
    return taken(run, "search", run.evidence.hits(both), query=query, closer=hits[0].path)


def taken(run: Run, kind: str, hits: Sequence[Hit], **what: str) -> tuple[str, ...]:
    """Make hits the run's evidence and note the step that found them; their handles, in the same order."""
    handles = run.evidence.add(hits)
    run.trace.note(kind, **what, hits=[_noted(*pair) for pair in zip(handles, hits, strict=True)])
    return handles


def passages_of(run: Run, handles: Sequence[str], question: str, budget: int) -> list[str]:
    """Passages as a model is shown them: each between its marks, within a budget of tokens together."""
    return list(map(delimited, handles, shown_within(run.evidence.hits(handles), question, budget)))


async def read_on(run: Run, handle: str) -> tuple[str, ...]:
    """A passage with those after and before it, which become evidence too. Raises NotFound."""
    return taken(run, "read", await run.retriever.around(run.evidence.hits([handle])[0]), chunk=handle)


def promising(hit: Hit, query: str) -> bool:
    """Whether a passage holds enough of what was searched for that it is worth reading on."""
    return overlap(terms(query), passage_text(hit)) >= PROMISING


def breaks_off(hit: Hit) -> bool:
    """Whether a passage stops in the middle of something that its section goes on with."""
    return hit.kind == "text" and hit.section_text != hit.text and not hit.text.rstrip().endswith(_ENDS)


def _noted(handle: str, hit: Hit) -> dict[str, Any]:
    scores = hit.scores
    return {
        "handle": handle,
        "document_id": str(hit.document_id),
        "chunk_id": hit.chunk_id,
        "path": hit.path,
        "vector": scores.vector,
        "bm25": scores.bm25,
        "fused": scores.fused,
        "reranked": scores.reranked,
    }


def merged(batches: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The best of every batch first, then the second best: no search crowds another out."""
    depth = max(map(len, batches), default=0)
    ranked = (batch[rank] for rank in range(depth) for batch in batches if rank < len(batch))
    return tuple(dict.fromkeys(ranked))
