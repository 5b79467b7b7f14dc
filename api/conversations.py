"""A conversation as its owner is shown it: brought up to date, citations with what became of them; and as Markdown."""

from typing import Final
from uuid import UUID

from api.views import CitationView, ConversationView, ReadingView, SessionView, TurnView, UnansweredView
from core.errors import NotFound
from core.records import Language, Principal
from storage import pinning, runs, sessions, traces
from storage.database import Database

_WORDS: Final[dict[str, dict[Language, str]]] = {
    "sources": {"en": "Sources", "zh": "来源"},
    "page": {"en": "page {n}", "zh": "第 {n} 页"},
    "revision": {"en": "revision {n}, characters {start}–{end}", "zh": "第 {n} 版，第 {start}–{end} 字符"},
    "changed": {"en": "the document has changed since", "zh": "文档此后已有改动"},
    "gone": {"en": "the document was replaced since", "zh": "文档此后已被替换"},
    "deleted": {"en": "the document was deleted since", "zh": "文档此后已被删除"},
    "withheld": {"en": "you may no longer read this document", "zh": "您已无权查阅该文档"},
}


async def conversation(db: Database, principal: Principal, session_id: UUID) -> ConversationView:
    """One's own session. What was left half-way is settled first. Raises NotFound."""
    # Imported late: it brings LangGraph along, which a page that only lists things need not wait for.
    from agent.settling import settle

    await sessions.get(db, principal, session_id)
    await settle(db, principal, session_id)
    session = await sessions.get(db, principal, session_id)
    turns = await sessions.turns(db, principal, session_id)
    cited = [citation for turn in turns for citation in turn.citations]
    standings = await pinning.standings(db, principal, cited)
    left = await runs.unanswered(db, principal, session_id)
    return ConversationView(
        session=SessionView.of(session),
        turns=tuple(TurnView.of(turn).pinned(standings) for turn in turns),
        unanswered=None if left is None else UnansweredView(state=left[0], question=left[1]),
        readings=tuple(map(ReadingView.of, await traces.readings(db, principal, session_id))),
    )


def only(whole: ConversationView, turn_id: UUID) -> ConversationView:
    """The conversation with one of its turns alone. Raises NotFound."""
    turns = tuple(turn for turn in whole.turns if turn.turn_id == turn_id)
    if not turns:
        raise NotFound
    return whole.model_copy(update={"turns": turns})


def markdown(whole: ConversationView, language: Language) -> str:
    """The conversation with all that is pinned of its citations, ending in one line feed."""
    parts = [f"# {_line(whole.session.title)}"]
    for turn in whole.turns:
        parts += [f"## {_line(turn.question)}", turn.answer]
        if turn.notice:
            parts.append(f"*{_line(turn.notice)}*")
        if turn.citations:
            heading = f"**{_WORDS['sources'][language]}**"
            parts += [heading, "\n".join(_source(citation, language) for citation in turn.citations)]
    return "\n\n".join(parts) + "\n"


def _source(citation: CitationView, language: Language) -> str:
    facts = [citation.title, *(heading for heading in citation.heading_path if heading != citation.title)]
    where = [" > ".join(map(_line, facts)), citation.document]
    if citation.page:
        where.append(_WORDS["page"][language].format(n=citation.page))
    if citation.revision:
        span = {"n": citation.revision, "start": citation.start, "end": citation.end}
        where.append(_WORDS["revision"][language].format(**span))
    if citation.standing != "present":
        where.append(_WORDS[citation.standing][language])
    quoted = f"\n  > {_line(citation.quote)}" if citation.quote else ""
    return f"- [{citation.n}] {', '.join(where)}{quoted}"


def _line(text: str) -> str:
    return " ".join(text.split())
