"""What the structure tools tell a model: which documents there are, how one is built, where an exact text stands."""

from typing import Final

from agent.grounding.citations import defuse, delimited, mark
from agent.grounding.passages import heading
from agent.workflow.run import Run
from core.errors import InvalidRequest
from storage.structure import Shelved

_LISTED: Final = 30
# Characters shown before and after a text that was found.
_AROUND: Final = 160


async def shelf_result(run: Run, about: str = "") -> str:
    """The documents that may be read, those about something first asked for by its words."""
    shown, total = await run.retriever.shelf(about.strip() or None, _LISTED)
    run.trace.note("tool", name="kb_list_documents", about=about, documents=total)
    if not shown:
        return "There is no such document."
    more = [f"and {total - len(shown)} more: name words of a title"] if total > len(shown) else []
    return "\n".join([*map(_line, shown), *more])


async def outline_result(run: Run, document: str) -> str:
    """The headings of one document in order, each with the mark of the first passage under it."""
    found = await _named(run, document.strip())
    if isinstance(found, str):
        return found
    hits = await run.retriever.outline(found.document_id)
    handles = run.evidence.issue(hits)
    run.trace.note("tool", name="kb_outline", document=found.path, headings=len(hits))
    lines = [
        f"{'  ' * max(len(hit.heading_path) - 1, 0)}{_last(hit.heading_path, hit.title)}"
        f"{f' (page {hit.page})' if hit.page else ''} {mark(handle)}"
        for handle, hit in zip(handles, hits, strict=True)
    ]
    return "\n".join([_line(found), *lines])


async def found_result(run: Run, text: str) -> str:
    """Where an exact text stands: each passage under its mark, with its place in the document and what is around."""
    try:
        found = await run.retriever.find_text(text)
    except InvalidRequest as error:
        return error.message
    handles = run.evidence.add([at.hit for at in found])
    run.trace.note("tool", name="kb_find", text=text, hits=list(handles))
    pieces = []
    for handle, at in zip(handles, found, strict=True):
        start, end = at.start - at.hit.start, at.end - at.hit.start
        near = at.hit.text[max(start - _AROUND, 0) : end + _AROUND]
        where = f"characters {at.start} to {at.end}" + (f", page {at.hit.page}" if at.hit.page else "")
        pieces.append(delimited(handle, f"{heading(at.hit)} ({where})\n{defuse(near)}"))
    return "\n\n".join(pieces) or "This text stands nowhere."


async def _named(run: Run, name: str) -> Shelved | str:
    """The one document of this title or path, or words that say which there are."""
    shown, _ = await run.retriever.shelf(name, _LISTED)
    exact = [one for one in shown if name.casefold() in (one.title.casefold(), one.path.casefold())]
    chosen = exact or shown
    if len(chosen) == 1:
        return chosen[0]
    return "\n".join(["Which of these?", *map(_line, chosen)]) if chosen else "There is no such document."


def _line(one: Shelved) -> str:
    pages = f", {one.pages} pages" if one.pages else ""
    since = f", in force from {one.effective_from}" if one.effective_from else ""
    until = f" until {one.effective_to}" if one.effective_to else ""
    return defuse(f"{one.title} ({one.path}{pages}{since}{until})")


def _last(headings: tuple[str, ...], title: str) -> str:
    return defuse(headings[-1] if headings else title)
