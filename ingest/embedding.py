"""Embedding for all documents that are being read in: full batches, each text once, questions first."""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final, Protocol, TypeVar

import numpy as np

from core.errors import IntramurosError
from inference.interfaces import Embedder, Vectors
from storage import answering
from storage.database import Database

log = logging.getLogger(__name__)

# Enough for the embedder to keep its workers busy, little enough to show progress and to let a question go first.
BATCH: Final = 32
# Chunks of one document, or of one stock, that are handed to the embedder ahead of what is stored.
AHEAD: Final = 8 * BATCH
# Texts whose vectors are remembered until surely somebody has stored them: another document may hold the same.
RECENT: Final = 32 * BATCH
# Seconds that a batch waits for questions in all, and between two looks.
PATIENCE: Final = 60.0
LOOK: Final = 0.25

Vector = asyncio.Future[Vectors]
Wanted = tuple[Embedder, str]


class Texted(Protocol):
    """Whatever has a text to embed."""

    @property
    def text(self) -> str: ...


Chunk = TypeVar("Chunk", bound=Texted)


class Batches:
    """Texts of several documents go to their embedder together, in the order in which they came.

    While a question is being answered on this machine they wait, but no batch longer than `patience` seconds.
    """

    def __init__(self, db: Database, *, patience: float = PATIENCE) -> None:
        self._db = db
        self._patience = patience
        self._waiting: dict[Wanted, Vector] = {}
        self._recent: dict[Wanted, Vector] = {}
        self._running: asyncio.Task[None] | None = None

    def put(self, embedder: Embedder, texts: Iterable[str]) -> list[Vector]:
        """Have texts embedded, for `collected`. One that waits, or was embedded just now, is not taken twice."""
        futures = [self._future((embedder, text)) for text in texts]
        if self._waiting and (self._running is None or self._running.done()):
            self._running = asyncio.create_task(self._run(), name="embed")
        return futures

    async def made(self, embedder: Embedder, chunks: Sequence[Chunk]) -> AsyncIterator[tuple[Sequence[Chunk], Vectors]]:
        """Chunks part by part, as their vectors come, of shape (len(part), dimension). Errors: as `collected`."""
        coming = self.put(embedder, (one.text for one in chunks))
        for at in range(0, len(chunks), BATCH):
            yield chunks[at : at + BATCH], await collected(coming[at : at + BATCH])

    def _future(self, wanted: Wanted) -> Vector:
        if wanted in self._recent:
            return self._recent[wanted]
        if wanted not in self._waiting:
            future = self._waiting[wanted] = asyncio.get_running_loop().create_future()
            # Whoever asked may have given up: then its error is nobody's.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return self._waiting[wanted]

    async def _run(self) -> None:
        while self._waiting:
            await self._let_questions_pass()
            embedder, _ = next(iter(self._waiting))
            batch = list(itertools.islice((one for one in self._waiting if one[0] is embedder), BATCH))
            try:
                vectors = await embedder.embed_passages([text for _, text in batch])
            except Exception as error:  # noqa: BLE001 not handled here: each document that waits for it gets it
                for one in batch:
                    self._waiting.pop(one).set_exception(error)
            else:
                for one, vector in zip(batch, vectors, strict=True):
                    future = self._recent[one] = self._waiting.pop(one)
                    future.set_result(vector)
                for one in list(itertools.islice(self._recent, max(len(self._recent) - RECENT, 0))):
                    del self._recent[one]

    async def _let_questions_pass(self) -> None:
        clock = asyncio.get_running_loop().time
        end = clock() + self._patience
        try:
            while await answering.under_way(self._db):
                if clock() >= end:
                    log.info("embedding goes on beside a question")
                    return
                await asyncio.sleep(LOOK)
        except IntramurosError as error:
            # Whether to wait cannot be known without the database; storing the vectors will tell what is wrong.
            log.warning("questions cannot be seen", extra={"code": error.code})


async def collected(futures: Iterable[Vector]) -> Vectors:
    """The vectors of these texts, shape (n, dimension), once all are there. Errors: those of the embedder."""
    # Shielded: others may wait for the same text.
    return np.stack([await asyncio.shield(future) for future in futures])
