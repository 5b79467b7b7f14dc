"""What the queue is doing, as server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Final

from fastapi import APIRouter, Request, Response
from sse_starlette import EventSourceResponse, ServerSentEvent

from api import auth, problems
from api.auth import Admin
from api.context import Context, InContext
from api.watch import Watch, events
from core.errors import IntramurosError, Unauthenticated
from core.logs import trace_id
from core.records import Principal

router = APIRouter(prefix="/v1/documents", tags=["documents"])

STREAM: Final = "text/event-stream"
# Seconds between two looks.
LOOK: Final = 1.0


@router.get(
    "/events",
    response_class=Response,
    responses={
        200: {"content": {STREAM: {}}, "description": "`document`, `gone` and `queue` events as long as one listens."}
    },
)
async def watch_documents(request: Request, principal: Admin, context: InContext) -> Response:
    """Tell of documents as they change (`document`) or are deleted (`gone`), and of how much is waiting (`queue`)."""
    return EventSourceResponse(_sent(request, principal, context), sep="\n")


async def _sent(request: Request, principal: Principal, context: Context) -> AsyncIterator[ServerSentEvent]:
    watch = Watch(context.runtime.db, principal)
    clock = asyncio.get_running_loop().time
    due = clock() + context.recheck
    try:
        while True:
            for name, data in events(await watch.look()):
                yield _event(name, data)
            await asyncio.sleep(LOOK)
            if clock() >= due:
                due = clock() + context.recheck
                if await auth.user(request, context) != principal:
                    raise Unauthenticated
    except IntramurosError as error:
        yield _failed(error)
    except Exception as error:  # noqa: BLE001 the status is sent: all that is left is to say so in the stream
        problems.log_defect(error)
        yield _failed(IntramurosError())


def _failed(error: IntramurosError) -> ServerSentEvent:
    return _event("failed", {"code": error.code, "message": error.message, "trace": trace_id()})


def _event(name: str, data: object) -> ServerSentEvent:
    return ServerSentEvent(event=name, data=json.dumps(data, ensure_ascii=False), sep="\n")
