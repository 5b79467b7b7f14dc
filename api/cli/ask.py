"""`ask`: a question, its streamed answer, its sources."""

from collections.abc import AsyncIterator
from typing import Annotated
from uuid import UUID

import typer
from rich.console import Console
from rich.status import Status as Spinner

from api.cli import console, printing
from api.cli.commands import Json, command, day
from api.cli.opened import chosen_collections, opened
from api.cli.search import AsOf, Collections
from core.errors import IntramurosError, InvalidRequest, NotFound
from core.records import Answer, Answered, Event, Failed, Mode, Principal, Refused, Session, Status, Token
from core.settings import Settings
from storage import sessions
from storage.database import Database


def register(app: typer.Typer) -> None:
    command(app, "ask", settings=("chat_provider", "chat_model"))(ask)


async def ask(
    settings: Settings,
    question: Annotated[str, typer.Argument(help="The question, in English or Chinese.")],
    session: Annotated[
        str | None,
        typer.Option("--session", "-s", help="Go on with this session, by title or id; a new title begins one."),
    ] = None,
    collection: Collections = None,
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode",
            "-m",
            help="quick: search and answer; agent: the model searches on by itself; brief: a report in sections.",
        ),
    ] = "auto",
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Ask a question; the answer comes with its numbered sources."""
    from api import views

    if not question.strip():
        raise InvalidRequest("The question is empty. Write it between quotation marks")
    async with opened(settings) as at:
        wanted = await chosen_collections(at, collection)
        chosen = await find_session(at.runtime.db, at.principal, session) if session else None
        agent = await at.runtime.agent(at.tenant.id)
        events = agent.ask(
            at.principal,
            question,
            session_id=chosen.id if chosen else None,
            collections=wanted,
            mode=mode,
            as_of=day(as_of),
        )
        answer = await finish(events) if as_json else await show(events)
    if as_json:
        console.print_json(views.answer_json(answer))


async def find_session(db: Database, principal: Principal, name: str) -> Session:
    """The session of that id or title (the one used last where several share it), begun where there is none."""
    try:
        wanted = UUID(name)
    except ValueError:
        for session in await sessions.listing(db, principal):
            if session.title == name:
                return session
        return await sessions.create(db, principal, name)
    try:
        return await sessions.get(db, principal, wanted)
    except NotFound as error:
        raise NotFound(f"There is no session {wanted}. Give a title to begin a new one") from error


async def finish(events: AsyncIterator[Event]) -> Answer:
    """Wait for the end of a turn without showing anything of it. Raises IntramurosError when the turn failed."""
    answer: Answer | None = None
    async for event in events:
        answer = _ended(event) or answer
    return _present(answer)


async def show(events: AsyncIterator[Event]) -> Answer:
    """Show a turn as it comes: what is going on, the answer, its sources. Raises as `finish`."""
    out, answer, streamed = console.out(), None, printing.Stream(console.out())
    with _Doing(console.err()) as doing:
        async for event in events:
            if isinstance(event, Status):
                doing.now(event.text)
            elif isinstance(event, Token):
                doing.done()
                streamed.write(event.text)
            answer = _ended(event) or answer
    final = _present(answer)
    streamed.end(final.answer)
    printing.show_evidence(out, final)
    return final


class _Doing:
    """What is going on: one changing line on a terminal, a line each elsewhere; silent once the answer begins."""

    def __init__(self, where: Console) -> None:
        self._where = where
        self._spinner = Spinner("", console=where) if where.is_terminal else None
        self._over = False

    def __enter__(self) -> "_Doing":
        return self

    def __exit__(self, *_: object) -> None:
        self.done()

    def now(self, text: str) -> None:
        if self._over:
            return
        if self._spinner is None:
            console.note(text)
        else:
            self._spinner.update(console.one_line(text))
            self._spinner.start()

    def done(self) -> None:
        self._over = True
        if self._spinner is not None:
            self._spinner.stop()


def _ended(event: Event) -> Answer | None:
    if isinstance(event, Failed):
        raise IntramurosError(event.message, code=event.code)
    return event.answer if isinstance(event, (Answered, Refused)) else None


def _present(answer: Answer | None) -> Answer:
    if answer is None:
        raise IntramurosError("The answer ended without a result. This is a defect: please report it")
    return answer
