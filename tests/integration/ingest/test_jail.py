"""The jail with real processes: whatever a document does to its reader, that document is refused and nothing is left.

`hostile` stands for the parsers: what it does is what a parser might that a document has taken over.
"""

import asyncio
import io
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from PIL import Image

from core.errors import EncryptedFile, NotFound, ParserStopped, ReaderUnavailable
from core.records import Attachment, ParseWarning
from core.settings import Settings
from ingest import programs, reading
from ingest.chunking import chunk
from ingest.jail import Jail
from ingest.kinds import DRAWN, kind_of
from ingest.options import ParseOptions
from ingest.parse import parse
from policy import ledger
from tests.integration.ingest import hostile
from tests.integration.ingest.hostile import running
from tests.unit.ingest import samples

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the jails of these tests make their folders."""
    folder = tmp_path_factory.mktemp("jails")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        yield folder


def small(home: Path, **others: Any) -> Settings:
    return Settings(home=home / "home", parse_memory_mb=256, max_file_mb=1, **others)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def jail(home: Path) -> AsyncIterator[Jail]:
    jail = Jail(small(home), module=hostile.__name__)
    yield jail
    await jail.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def walls(jail: Jail) -> dict[str, bool]:
    return dict(await jail.walls())


@pytest_asyncio.fixture(loop_scope="module")
async def hasty(home: Path) -> AsyncIterator[Jail]:
    """A jail with a short time limit."""
    jail = Jail(small(home, parse_timeout=1), module=hostile.__name__)
    await jail.walls()
    yield jail
    await jail.close()


async def read(jail: Jail, tmp_path: Path, text: str) -> str:
    """What the hostile reader answers to a document of this text."""
    document = tmp_path / "document"
    document.write_text(text)
    return (await jail.read(document, "a name")).chunks[0].text


def documents(home: Path) -> list[Path]:
    """The folders of documents that are being read."""
    return [path for path in home.glob("intramuros-*/*") if path.is_dir()]


async def test_a_document_comes_out_whole(jail: Jail, tmp_path: Path, home: Path) -> None:
    document = tmp_path / "document"
    document.write_text("document of words")
    found = await jail.read(document, "报告.pdf")
    assert found.parsed.title == "报告.pdf"
    assert found.parsed.elements == ()
    assert found.parsed.warnings == (ParseWarning("hidden_text", "Two places.", 2, (1, 3)),)
    assert found.parsed.attachments == (Attachment("a/b.txt", b"\0\xff"), Attachment("附件.pdf", b""))
    assert (found.parsed.pages, found.parsed.confidence) == (3, {2: 0.5})
    assert [(piece.text, piece.heading_path) for piece in found.chunks] == [("of words", ("Heading",))]
    assert documents(home) == []


async def test_documents_are_read_at_the_same_time(jail: Jail, tmp_path: Path) -> None:
    async def one(number: int) -> str:
        folder = tmp_path / str(number)
        folder.mkdir()
        return await read(jail, folder, f"document {number}")

    assert await asyncio.gather(*map(one, range(5))) == [str(number) for number in range(5)]


async def test_an_error_of_the_reader_comes_out_as_itself(jail: Jail, tmp_path: Path) -> None:
    with pytest.raises(EncryptedFile, match=r"^Locked\.$"):
        await read(jail, tmp_path, "refuse")


REFUSED = {
    "eat": reading.MEMORY,
    "eat_wrapped": reading.MEMORY,
    "die": ParserStopped().message,
    "leave": ParserStopped().message,
    "fault": ParserStopped().message,
    "fill": ParserStopped().message,
    "fork": reading.REACHED_OUT,
    "start ls": reading.REACHED_OUT,
    "start /bin/true": reading.REACHED_OUT,
    "connect 203.0.113.1 9": reading.REACHED_OUT,
    "connect 127.0.0.1 9": reading.REACHED_OUT,
    "look_up intramuros.example": reading.REACHED_OUT,
    "look_up localhost": reading.REACHED_OUT,
    "talk /run/nobody.sock": reading.REACHED_OUT,
    "forge_outcome {}": ParserStopped().message,
    "forge_outcome [": ParserStopped().message,
    'forge_outcome {"refusal":{"error":"SystemExit","message":"x"}}': ParserStopped().message,
}


@pytest.mark.parametrize("attack", REFUSED)
async def test_an_attack_ends_one_document_only(jail: Jail, tmp_path: Path, home: Path, attack: str) -> None:
    with pytest.raises(ParserStopped) as refusal:
        await read(jail, tmp_path, attack)
    assert refusal.value.message == REFUSED[attack]
    assert documents(home) == []
    assert await read(jail, tmp_path, "document read well") == "read well"


@pytest.mark.usefixtures("own_ledger")
async def test_what_the_hook_refused_to_a_reader_is_told_outside(jail: Jail, tmp_path: Path) -> None:
    for attack in ("look_up intramuros.example", "start ls"):
        with pytest.raises(ParserStopped):
            await read(jail, tmp_path, attack)
    assert sorted(map(str, ledger.unwritten())) == ["reader no_network", "reader program"]


async def test_no_socket_leads_out_even_from_c(jail: Jail, tmp_path: Path, walls: dict[str, bool]) -> None:
    if not walls["network"]:
        pytest.skip("this system gives neither namespaces nor system call filters")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert await read(jail, tmp_path, f"connect_in_c 127.0.0.1 {port}") in ("no socket", "no connection")
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


async def test_no_unix_socket_is_reached_even_from_c(jail: Jail, tmp_path: Path, walls: dict[str, bool]) -> None:
    if not walls["system_calls"]:
        pytest.skip("this system gives no system call filters")
    with socket.socket(socket.AF_UNIX) as server, tempfile.TemporaryDirectory(dir="/tmp") as folder:
        server.bind(f"{folder}/s")
        server.listen()
        assert await read(jail, tmp_path, f"talk_in_c {folder}/s") == "no connection"


async def test_nothing_is_written_or_read_outside(jail: Jail, tmp_path: Path, walls: dict[str, bool]) -> None:
    if not walls["files"]:
        pytest.skip("this system gives no Landlock")
    outside = tmp_path / "outside"
    assert "Error" in await read(jail, tmp_path, f"write {outside}")
    assert not outside.exists()
    outside.write_text("a secret")
    assert "secret" not in await read(jail, tmp_path, f"look {outside}")
    assert "secret" not in await read(jail, tmp_path, "look /etc/passwd-")


async def test_no_other_process_is_signalled(jail: Jail, tmp_path: Path, walls: dict[str, bool]) -> None:
    if not (walls["processes"] or walls["files"]):
        pytest.skip("this system gives neither process trees nor Landlock")
    assert "Error" in await read(jail, tmp_path, f"kill {os.getppid()}")
    assert "Error" in await read(jail, tmp_path, f"kill {os.getpid()}")


@pytest.mark.parametrize("attack", ["point_outcome_at", "attach"])
async def test_a_planted_link_is_not_followed(jail: Jail, tmp_path: Path, attack: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("{}")
    with pytest.raises(ParserStopped):
        await read(jail, tmp_path, f"{attack} {secret}")


async def test_nothing_of_our_environment_is_inside(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTRAMUROS_DATABASE_URL", "postgresql://u:secret@127.0.0.1/d")
    jail = Jail(small(home), module=hostile.__name__)
    found = json.loads(await read(jail, tmp_path, "surroundings"))
    await jail.close()
    assert "secret" not in str(found)
    assert "PYTHONPATH" not in found


@pytest.mark.parametrize("attack", ["hang", "burn", "multiply"])
async def test_time_ends_a_reading_with_all_its_processes(hasty: Jail, tmp_path: Path, home: Path, attack: str) -> None:
    idle = set(running(home))
    with pytest.raises(ParserStopped) as refusal:
        await read(hasty, tmp_path, attack)
    assert refusal.value.message == reading.TIME
    assert set(running(home)) == idle
    assert documents(home) == []
    assert await read(hasty, tmp_path, "document read well") == "read well"


# --- pictures of pages ------------------------------------------------------------------------------------------------


async def drawn(jail: Jail, tmp_path: Path, text: str) -> tuple[int, int]:
    """Width and height of the picture that the hostile reader makes of page 7 of a document of this text."""
    document = tmp_path / "document"
    document.write_text(text)
    return size_of(await jail.picture(document, "a name", 7, 120))


def size_of(png: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(png), formats=("PNG",)) as image:
        image.load()
        return image.size


async def test_a_picture_comes_out(jail: Jail, tmp_path: Path, home: Path) -> None:
    assert await drawn(jail, tmp_path, "document") == (120, 7)
    assert documents(home) == []


async def test_an_error_of_drawing_comes_out_as_itself(jail: Jail, tmp_path: Path) -> None:
    with pytest.raises(EncryptedFile, match=r"^Locked\.$"):
        await drawn(jail, tmp_path, "refuse")


NOT_DRAWN = (
    *("eat", "die", "leave", "fault", "fill", "fork", "start ls", "connect 127.0.0.1 9"),
    *("forge_outcome {}", 'forge_outcome {"picture":[1,1]}', 'forge_outcome {"picture":[0,0]}'),
    'forge_outcome {"reading":{"parsed":{"title":"t","elements":[]},"chunks":[]}}',
)


@pytest.mark.parametrize("attack", NOT_DRAWN)
async def test_an_attack_ends_one_picture_only(jail: Jail, tmp_path: Path, home: Path, attack: str) -> None:
    with pytest.raises(ParserStopped):
        await drawn(jail, tmp_path, attack)
    assert documents(home) == []
    assert await drawn(jail, tmp_path, "document") == (120, 7)


async def test_pixels_are_not_read_through_a_link(jail: Jail, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("abc")
    with pytest.raises(ParserStopped):
        await drawn(jail, tmp_path, f"forge_picture {secret}")


async def test_a_picture_has_less_time_than_a_reading(
    jail: Jail, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await jail.walls()
    idle = set(running(home))
    monkeypatch.setattr("ingest.jail.PICTURE_SECONDS", 1.0)
    with pytest.raises(ParserStopped) as refusal:
        await drawn(jail, tmp_path, "multiply")
    assert refusal.value.message == reading.TIME_OF_PICTURE
    assert set(running(home)) == idle
    assert documents(home) == []


# --- the life of the process ------------------------------------------------------------------------------------------


def hanging(home: Path) -> bool:
    """Whether a hanging document has come to hang."""
    # A folder may go while it is looked through.
    with suppress(FileNotFoundError):
        return any(home.glob("intramuros-*/*/started"))
    return False


def kill(processes: Iterable[int]) -> None:
    """Kill them all; the end of one may be the end of the next."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 another process does what is waited for
        await asyncio.sleep(0)


def folders(home: Path) -> set[Path]:
    return set(home.iterdir())


@pytest.mark.parametrize("work", [read, drawn])
async def test_cancelling_kills_what_works_on_the_document(
    jail: Jail, tmp_path: Path, home: Path, work: Callable[[Jail, Path, str], Coroutine[None, None, object]]
) -> None:
    await jail.walls()
    idle = set(running(home))
    task = asyncio.create_task(work(jail, tmp_path, "hang"))
    await until(lambda: hanging(home))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert set(running(home)) == idle
    assert documents(home) == []
    assert await read(jail, tmp_path, "document read well") == "read well"


async def test_a_dead_helper_is_replaced(home: Path, tmp_path: Path) -> None:
    before = set(running(home))
    jail = Jail(small(home), module=hostile.__name__)
    await jail.walls()
    kill(set(running(home)) - before)
    assert await read(jail, tmp_path, "document read well") == "read well"
    await jail.close()
    assert set(running(home)) == before


async def test_a_document_that_ends_the_helper_twice_is_refused(home: Path, tmp_path: Path) -> None:
    before, roots = set(running(home)), folders(home)
    jail = Jail(small(home), module=hostile.__name__)
    task = asyncio.create_task(read(jail, tmp_path, "hang"))
    for _ in range(2):
        await until(lambda: hanging(home))
        kill(set(running(home)) - before)
        await until(lambda: not hanging(home))
    with pytest.raises(ParserStopped):
        await task
    await jail.close()
    assert folders(home) == roots


async def test_closing_leaves_nothing(home: Path, tmp_path: Path) -> None:
    before, roots = set(running(home)), folders(home)
    jail = Jail(small(home), module=hostile.__name__)
    await read(jail, tmp_path, "document")
    await jail.close()
    assert set(running(home)) == before
    assert folders(home) == roots


async def test_closing_ends_what_is_being_read(home: Path, tmp_path: Path) -> None:
    before, roots = set(running(home)), folders(home)
    jail = Jail(small(home), module=hostile.__name__)
    task = asyncio.create_task(read(jail, tmp_path, "hang"))
    await until(lambda: hanging(home))
    await jail.close()
    with pytest.raises(ReaderUnavailable):
        await task
    await jail.close()
    assert set(running(home)) == before
    assert folders(home) == roots


async def cancelled_while_starting(jail: Jail, tmp_path: Path, home: Path) -> Path:
    """Ask for a document and go away at once: the folder of the process that starts."""
    roots = folders(home)
    task = asyncio.create_task(read(jail, tmp_path, "document"))
    await until(lambda: folders(home) > roots)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (root,) = folders(home) - roots
    return root


async def test_who_goes_away_while_it_starts_leaves_it_to_the_next(home: Path, tmp_path: Path) -> None:
    roots = folders(home)
    jail = Jail(small(home), module=hostile.__name__)
    root = await cancelled_while_starting(jail, tmp_path, home)
    assert await read(jail, tmp_path, "document read well") == "read well"
    assert folders(home) == {*roots, root}
    await jail.close()
    assert folders(home) == roots


async def test_closing_while_it_starts_leaves_nothing(home: Path, tmp_path: Path) -> None:
    before, roots = set(running(home)), folders(home)
    jail = Jail(small(home), module=hostile.__name__)
    await cancelled_while_starting(jail, tmp_path, home)
    await jail.close()
    assert set(running(home)) == before
    assert folders(home) == roots


async def test_a_reader_that_does_not_start_says_why(home: Path, tmp_path: Path) -> None:
    roots = folders(home)
    jail = Jail(small(home), module="ingest.there_is_none")
    with pytest.raises(ReaderUnavailable, match="there_is_none"):
        await read(jail, tmp_path, "document")
    assert folders(home) == roots


# --- converters -------------------------------------------------------------------------------------------------------


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(programs.find(name) is None, reason=f"{name} is not installed")


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        pytest.param("use pandoc --version", "pandoc", marks=needs("pandoc")),
        pytest.param("use tesseract --list-langs", "eng", marks=needs("tesseract")),
        pytest.param("convert", "Hello there.", marks=needs("soffice")),
    ],
)
async def test_a_converter_works_inside_the_walls(home: Path, tmp_path: Path, document: str, answer: str) -> None:
    jail = Jail(Settings(home=home / "home"), module=hostile.__name__)
    try:
        assert answer in await read(jail, tmp_path, document)
    finally:
        await jail.close()


# --- the real reader --------------------------------------------------------------------------------------------------


async def test_pages_are_drawn_inside(home: Path, tmp_path: Path) -> None:
    samples.write_all(tmp_path)
    red, white = (Image.new("RGB", (900, 600), colour) for colour in ("red", "white"))
    for name in ("a.png", "a.jpg", "a.bmp", "a.webp"):
        red.save(tmp_path / name)
    red.save(tmp_path / "fax.tif", save_all=True, append_images=[white])
    jail = Jail(Settings(home=home / "home"))
    widths: dict[str, int | None] = {}
    try:
        for path in sorted(folders(tmp_path)):
            try:
                widths[path.name] = size_of(await jail.picture(path, path.name, 1, 300))[0]
            except NotFound:
                widths[path.name] = None
        second = await jail.picture(tmp_path / "fax.tif", "fax.tif", 2, 300)
    finally:
        await jail.close()
    assert widths == {name: 300 if kind_of(name) in DRAWN else None for name in widths}
    assert list(widths.values()).count(300) == 6
    assert Image.open(io.BytesIO(second)).getcolors() == [(300 * 200, (255, 255, 255))]


async def test_every_format_reads_the_same_inside_as_outside(home: Path, tmp_path: Path) -> None:
    samples.write_all(tmp_path)
    settings = Settings(home=home / "home")
    jail = Jail(settings)
    try:
        for path in sorted(folders(tmp_path)):
            outside = parse(path, options=ParseOptions.of(settings))
            inside = await jail.read(path, path.name)
            assert list(inside.chunks) == chunk(outside, quarantine=True)
            assert inside.parsed.attachments == outside.attachments
    finally:
        await jail.close()
