"""Readers without a process of their own: the jail has tests of its own, and takes a second to start."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from core.errors import NotFound
from core.records import Attachment, Chunk, ParsedDocument
from core.settings import Settings
from ingest import reading
from ingest.options import ParseOptions
from ingest.reading import Reading


class DirectReader:
    """Implements `ingest.processing.Reader` by reading in this process. `names` are those read so far."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.names: list[str] = []

    async def read(self, path: Path, name: str) -> Reading:
        self.names.append(name)
        options = ParseOptions.of(self._settings)
        return await asyncio.to_thread(reading.read, path, name, options, quarantine=self._settings.quarantine)

    async def picture(self, path: Path, name: str, page: int, width_px: int) -> bytes:
        options = ParseOptions.of(self._settings)
        return (await asyncio.to_thread(reading.picture, path, name, page, width_px, options)).png()

    async def close(self) -> None:
        pass


class LineReader:
    """Implements `ingest.processing.Reader`: each line of a file is a chunk, one made by `inside` a file in it."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def read(self, path: Path, name: str) -> Reading:
        self.names.append(name)
        lines = (await asyncio.to_thread(path.read_text)).splitlines()
        found = [line[1:].split(": ", 1) for line in lines if line.startswith("@")]
        attachments = tuple(Attachment(file, json.loads(text).encode()) for file, text in found)
        chunks = chunks_of([line for line in lines if not line.startswith("@")])
        return Reading(ParsedDocument(Path(name).stem, (), attachments=attachments), chunks)

    async def picture(self, path: Path, name: str, page: int, width_px: int) -> bytes:
        raise NotFound

    async def close(self) -> None:
        pass


def inside(name: str, text: str) -> str:
    """The line of a file that holds another one."""
    return f"@{name}: {json.dumps(text)}"


def chunks_of(texts: Sequence[str]) -> tuple[Chunk, ...]:
    """One chunk for each text, each a section of its own."""
    made, at = [], 0
    for number, text in enumerate(texts):
        made.append(Chunk(number, text, (), number, at, at + len(text)))
        at += len(text) + 1
    return tuple(made)
