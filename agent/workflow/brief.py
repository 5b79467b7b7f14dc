"""A brief: a report in sections. An outline from the evidence, one sub-agent for each section, one numbering over all.

`outline` divides the topic, `compose` writes what the sub-agents found. Every sentence passes the same check as in any
answer; a section for which nothing was found is left out and told as missing.
"""

import re
from collections.abc import Collection, Sequence
from typing import Final

from agent.questions import deciding
from agent.workflow.run import Finding, Run, Section
from agent.workflow.searching import passages_of
from agent.workflow.state import Change, Context, State, emit, status, within_time
from agent.workflow.steps import numbered
from agent.workflow.subagents import research
from core.errors import InferenceError
from core.records import Hit, Token

# Hits of the first search that the outline is made from.
_OUTLINED: Final = 6
# The number of a heading in its document means nothing in a brief.
_NUMBER: Final = re.compile(r"^(?:\d+(?:\.\d+)*[.)]?|第[一二三四五六七八九十百]+[条章节]|[一二三四五六七八九十]+、)\s*")


@within_time
async def outline(state: State, runtime: Context) -> Change:
    """Divide the topic into sections, by a capable model or by the headings of what was found."""
    run, topic = runtime.context, state["standalone"]
    status(runtime, "reading", "status_outlining")
    best = run.evidence.batches[-1][:_OUTLINED]
    with run.timed("plan"):
        planned = await _planned(run, topic, best) if run.chat.traits.capable else None
    sections = planned or by_headings(topic, run.evidence.hits(best))
    offered = [section.question for section in sections]
    accepted = run.queue.offer(offered)
    run.sections = tuple(section for section in sections if section.question in accepted)
    by = "model" if planned else "code"
    run.trace.note("decompose", by=by, offered=offered, accepted=accepted, counts=dict(run.queue.counts))
    return {"refused": not run.sections}


async def _planned(run: Run, topic: str, handles: Sequence[str]) -> list[Section] | None:
    passages = passages_of(run, handles, topic, run.budget)
    decided = await run.chat.decide(deciding.outline(run.language, topic, passages), deciding.Outlined)
    if decided is None:
        return None
    return [Section(_line(part.heading), _line(part.question)) for part in decided.sections]


def by_headings(topic: str, hits: list[Hit]) -> list[Section]:
    """A section for each heading under which something was found, in the order found; its question is the topic under
    that heading."""
    headings = (_line(hit.heading_path[-1] if hit.heading_path else hit.title) for hit in hits)
    found = dict.fromkeys(_NUMBER.sub("", heading) or heading for heading in headings)
    return [Section(heading, f"{topic} ({heading})") for heading in found][: deciding.MOST_SECTIONS]


@within_time
async def compose(state: State, runtime: Context) -> Change:
    """Look into every section, then write them in the order of the outline."""
    run = runtime.context
    status(runtime, "searching", "status_topics", n=len(run.sections), first=run.sections[0].heading)
    with run.timed("agent"):
        run.findings = await research(run, [section.question for section in run.sections])
    told: dict[Section, str] = {}
    try:
        with run.timed("answer"):
            for section, finding in zip(run.sections, run.findings, strict=True):
                if text := await _written(run, runtime, section, finding, told=told.values()):
                    told[section] = text
    except InferenceError:
        if not told:
            raise
        run.limit = "model_stopped"
    run.sentences = ["\n\n".join(told.values())] if told else []
    run.missing = tuple(section.heading for section in run.sections if section not in told)
    return {}


async def _written(run: Run, runtime: Context, section: Section, finding: Finding, *, told: Collection[str]) -> str:
    """One section in Markdown, sent as it is written; empty where no sentence stands that was not `told` before."""
    if not finding.handles:
        return ""
    status(runtime, "answering", "status_section", heading=section.heading)
    text = ""
    async for sentence in finding.answering.answer(finding.question, finding.handles, thorough=True):
        said = numbered(runtime, sentence)
        if said is None or any(said in part for part in told):
            continue
        head = f"## {section.heading}\n\n" if not text else "" if run.language == "zh" else " "
        emit(runtime, Token(("\n\n" if told and not text else "") + head + said))
        text += head + said
    return text


def _line(text: str) -> str:
    """One line that Markdown reads as words."""
    return " ".join(text.replace("#", " ").replace("[", "(").replace("]", ")").split())
