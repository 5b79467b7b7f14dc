"""A run's events as a response sends them, for as long as its user may read on."""

import asyncio
from collections.abc import AsyncIterator

from fastapi import Request, Response
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from api import auth, problems
from api.context import Context
from api.runs import Final, Run
from core.errors import IntramurosError, Unauthenticated
from core.records import Event, Failed, Principal


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


async def following(
    run: Run, principal: Principal, request: Request, context: Context
) -> AsyncIterator[Event] | Response:
    """The events of a run, the last one Answered, Refused or Failed; or, where it failed before anything could be sent,
    the response that says so by its status.
    """
    try:
        first = await run.next()
    except BaseException:
        await run.stop()
        raise
    if isinstance(first, Failed):
        await run.stop()
        return problems.by_code(first.code, first.message)
    return _followed(run, first, principal, request, context)


async def _followed(
    run: Run, first: Event | None, principal: Principal, request: Request, context: Context
) -> AsyncIterator[Event]:
    """Every `recheck` seconds the user must still be allowed to read on."""
    clock = asyncio.get_running_loop().time
    due = clock() + context.recheck
    event = first
    try:
        while True:
            if clock() >= due:
                if await auth.user(request, context) != principal:
                    raise Unauthenticated
                due = clock() + context.recheck
            if event is not None:
                yield event
                if isinstance(event, Final):
                    return
            event = await run.next(max(0.0, due - clock()))
    except IntramurosError as error:
        yield Failed(error.code, error.message)
    except Exception as error:  # noqa: BLE001 the status is sent: all that is left is to say so in the stream
        problems.log_defect(error)
        yield Failed(IntramurosError.code, IntramurosError().message)
