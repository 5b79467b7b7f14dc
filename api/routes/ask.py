"""Asking: a whole answer as JSON, or its making as server-sent events."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Request, Response
from pydantic import Field
from sse_starlette import ServerSentEvent

from api import problems
from api.auth import User
from api.bodies import Body, Day, Name, Question
from api.clients import GONE, unless_gone
from api.context import InContext
from api.following import AnswerStream, following
from api.runs import Final, Run
from api.views import AnswerView, HitView
from core.logs import trace_id
from core.records import Answered, Event, Failed, Mode, Refused, Source, Status, Token

router = APIRouter(prefix="/v1", tags=["ask"])

STREAM = "text/event-stream"


class AskBody(Body):
    """A question; in a session, the turns before it are understood and this one is stored.

    It is answered from what is in force on the day `as_of` (today).
    """

    question: Question
    # Not strict: JSON has no UUID type.
    session_id: Annotated[UUID | None, Field(strict=False)] = None
    collections: Annotated[list[Name] | None, Field(max_length=100)] = None
    mode: Mode = "auto"
    as_of: Day | None = None


@router.post(
    "/ask",
    response_model=AnswerView,
    responses={200: {"content": {STREAM: {}}, "description": "The answer, or the events of its making."}},
)
async def ask(body: AskBody, principal: User, context: InContext, request: Request) -> Response:
    """Answer a question from one's documents. With `Accept: text/event-stream`, as events while it is made."""
    agent = await context.runtime.agent(principal.tenant_id)
    run = Run(
        agent.ask(
            principal,
            body.question,
            session_id=body.session_id,
            collections=body.collections,
            mode=body.mode,
            as_of=body.as_of,
        )
    )
    if STREAM not in request.headers.get("accept", ""):
        return await _whole(run, request)
    followed = await following(run, principal, request, context)
    if isinstance(followed, Response):
        return followed
    return AnswerStream(run, _sent(followed))


async def _whole(run: Run, request: Request) -> Response:
    try:
        last = await unless_gone(request, run.last())
        return _reply(last) if last is not None else Response(status_code=GONE)
    finally:
        await run.stop()


def _reply(event: Final) -> Response:
    match event:
        case Failed(code, message):
            return problems.by_code(code, message)
        case Answered(answer) | Refused(answer):
            return Response(AnswerView.of(answer).model_dump_json(), media_type="application/json")


async def _sent(events: AsyncIterator[Event]) -> AsyncIterator[ServerSentEvent]:
    async for event in events:
        yield _encoded(event)


def _encoded(event: Event) -> ServerSentEvent:
    name, data = _named(event)
    return ServerSentEvent(event=name, data=json.dumps(data, ensure_ascii=False), sep="\n")


def _named(event: Event) -> tuple[str, dict[str, Any]]:
    match event:
        case Status(stage, text):
            return "status", {"stage": stage, "text": text}
        case Source(hit):
            return "source", HitView.of(hit).model_dump(mode="json")
        case Token(text):
            return "token", {"text": text}
        case Answered(answer):
            return "answered", AnswerView.of(answer).model_dump(mode="json")
        case Refused(answer):
            return "refused", AnswerView.of(answer).model_dump(mode="json")
        case Failed(code, message):
            return "failed", {"code": code, "message": message, "trace": trace_id()}
