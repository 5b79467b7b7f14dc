"""Asking in the manner of OpenAI's chat completions, for programs that speak it: the answer's text carries its [n], and
the member `intramuros` says what they stand for.
"""

import json
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Annotated, Any, Final, Literal
from uuid import UUID, uuid4

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sse_starlette import ServerSentEvent

from api import problems
from api.auth import User
from api.bodies import Body, Day, Name
from api.clients import GONE, unless_gone
from api.context import InContext
from api.following import AnswerStream, following
from api.runs import Run
from api.views import AnswerView
from core.errors import InvalidRequest
from core.records import Answer, Answered, Event, Failed, Mode, Outcome, Refused, Token

router = APIRouter(prefix="/v1", tags=["ask"])

MODEL: Final = "intramuros"
MOST_MESSAGES: Final = 200
LONGEST: Final = 20_000
# What of an answer is beside its text.
BESIDE: Final = {
    *("outcome", "language", "standalone_question", "citations", "notice", "verdict", "missing", "searched"),
    *("contacts", "timings", "model_calls", "session_id", "turn_id"),
}


class Lenient(BaseModel):
    """What clients of that interface send beside (`temperature`, `user` ...) is passed over: our settings decide."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Part(Lenient):
    """A piece of a message; only text is read."""

    type: Annotated[str, Field(max_length=40)]
    text: Annotated[str, Field(max_length=LONGEST)] = ""


class Message(Lenient):
    """A message. Those of the system are passed over: they would speak to a model that is not there."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Annotated[str, Field(max_length=LONGEST)] | Annotated[list[Part], Field(max_length=100)] | None = None

    @property
    def text(self) -> str:
        """All that it says."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type == "text").strip()
        return (self.content or "").strip()


class Own(Body):
    """What `POST /v1/ask` takes beside the question."""

    session_id: Annotated[UUID | None, Field(strict=False)] = None
    collections: Annotated[list[Name] | None, Field(max_length=100)] = None
    mode: Mode = "auto"
    as_of: Day | None = None


class CompletionBody(Lenient):
    """The last message is the question; those before it are what was said, unless a session remembers that."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=MOST_MESSAGES)]
    model: Annotated[str, Field(max_length=200)] = MODEL
    stream: bool = False
    intramuros: Own = Own()


@router.post(
    "/chat/completions",
    response_model=None,
    responses={200: {"content": {"application/json": {}, "text/event-stream": {}}, "description": "A completion."}},
)
async def complete(body: CompletionBody, principal: User, context: InContext, request: Request) -> Response:
    """Answer the last message from one's documents, as a chat completion or as its chunks."""
    *before, last = body.messages
    if last.role != "user" or not last.text:
        raise InvalidRequest("The last message must be the user's, with a text: it is the question.")
    agent = await context.runtime.agent(principal.tenant_id)
    own = body.intramuros
    run = Run(
        agent.ask(
            principal,
            last.text,
            session_id=own.session_id,
            collections=own.collections,
            mode=own.mode,
            as_of=own.as_of,
            history=_said(before),
        )
    )
    if not body.stream:
        return await _whole(run, request)
    followed = await following(run, principal, request, context)
    return followed if isinstance(followed, Response) else AnswerStream(run, _chunks(followed))


def _said(messages: list[Message]) -> list[Any]:
    """Questions with their answers, as the agent takes them."""
    from agent.kept.memory import remember

    talk = [message for message in messages if message.role in ("user", "assistant") and message.text]
    asked = [(one.text, two.text) for one, two in pairwise(talk) if (one.role, two.role) == ("user", "assistant")]
    return [message for question, answer in asked for message in remember(question, answer, question)]


async def _whole(run: Run, request: Request) -> Response:
    try:
        last = await unless_gone(request, run.last())
    finally:
        await run.stop()
    match last:
        case None:
            return Response(status_code=GONE)
        case Failed(code, words):
            return problems.by_code(code, words)
        case Answered(answer) | Refused(answer):
            message = {"role": "assistant", "content": answer.answer}
            choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
            body = {**_frame("chat.completion", choice), "intramuros": _beside(answer)}
            return Response(json.dumps(body, ensure_ascii=False), media_type="application/json")


async def _chunks(events: AsyncIterator[Event]) -> AsyncIterator[ServerSentEvent]:
    frame = _frame("chat.completion.chunk", {})

    def chunk(delta: dict[str, str], finish: str | None = None, **more: Any) -> ServerSentEvent:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _sent({**frame, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    begun = False
    async for event in events:
        match event:
            case Token(text):
                begun = True
                yield chunk({"content": text})
            case Answered(answer) | Refused(answer):
                if not begun:
                    yield chunk({"content": answer.answer})
                yield chunk({}, _finish(answer), intramuros=_beside(answer))
                yield ServerSentEvent(data="[DONE]", sep="\n")
            case Failed(code, message):
                yield _sent({"error": {"code": code, "message": message}})


def _frame(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": MODEL,
        "choices": [choice],
    }


def _finish(answer: Answer) -> str:
    return "length" if answer.outcome is Outcome.INCOMPLETE else "stop"


def _beside(answer: Answer) -> dict[str, Any]:
    return AnswerView.of(answer).model_dump(mode="json", include=BESIDE)


def _sent(body: dict[str, Any]) -> ServerSentEvent:
    return ServerSentEvent(data=json.dumps(body, ensure_ascii=False), sep="\n")
