"""Asking: a whole answer as JSON, or its making as server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Request, Response
from pydantic import Field
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from api import auth, problems
from api.auth import User
from api.bodies import Body, Day, Name, Question
from api.clients import GONE, unless_gone
from api.context import InContext
from api.runs import Final, Run
from api.views import AnswerView, HitView
from core.errors import IntramurosError, Unauthenticated
from core.logs import trace_id
from core.records import Answered, Event, Failed, Refused, Source, Status, Token

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
    mode: Literal["auto", "quick", "agent"] = "auto"
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
    try:
        first = await run.next()
    except BaseException:
        await run.stop()
        raise
    if isinstance(first, Failed):
        # Nothing was sent yet: a status says it better than an event.
        await run.stop()
        return problems.by_code(first.code, first.message)

    async def still_allowed() -> None:
        if await auth.user(request, context) != principal:
            raise Unauthenticated

    return AnswerStream(run, _sent(run, first, still_allowed, context.recheck))


class AnswerStream(EventSourceResponse):
    """The events of a run. The run ends with the response, also when the client goes away before its end."""

    def __init__(self, run: Run, content: AsyncIterator[ServerSentEvent]) -> None:
        super().__init__(content, sep="\n")
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._run.stop()


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


async def _sent(
    run: Run, first: Event | None, still_allowed: Callable[[], Awaitable[None]], recheck: float
) -> AsyncIterator[ServerSentEvent]:
    """The events as sent; every `recheck` seconds the user must still be allowed to read on."""
    clock = asyncio.get_running_loop().time
    due = clock() + recheck
    event = first
    try:
        while True:
            if clock() >= due:
                await still_allowed()
                due = clock() + recheck
            if event is not None:
                yield _encoded(event)
                if isinstance(event, Final):
                    return
            event = await run.next(max(0.0, due - clock()))
    except IntramurosError as error:
        yield _encoded(Failed(error.code, error.message))
    except Exception as error:  # noqa: BLE001 the status is sent: all that is left is to say so in the stream
        problems.log_defect(error)
        yield _encoded(Failed(IntramurosError.code, IntramurosError().message))


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
