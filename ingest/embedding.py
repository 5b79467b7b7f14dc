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
BATCH: Final = 16
# Batches that the embedder has at once: while one ends, its workers go on with the other.
AT_ONCE: Final = 2
# Chunks of one document, or of one stock, that are handed to the embedder ahead of what is stored.
AHEAD: Final = 16 * BATCH
# Texts whose vectors are remembered until surely somebody has stored them: another document may hold the same.
RECENT: Final = 64 * BATCH
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
        self._taken: dict[Wanted, Vector] = {}
        self._recent: dict[Wanted, Vector] = {}
        self._running: set[asyncio.Task[None]] = set()

    def put(self, embedder: Embedder, texts: Iterable[str]) -> list[Vector]:
        """Have texts embedded, for `collected`. One that waits, or was embedded just now, is not taken twice."""
        futures = [self._future((embedder, text)) for text in texts]
        for _ in range(min(AT_ONCE - len(self._running), -(-len(self._waiting) // BATCH))):
            running = asyncio.create_task(self._run(), name="embed")
            self._running.add(running)
            running.add_done_callback(self._running.discard)
        return futures

    async def made(self, embedder: Embedder, chunks: Sequence[Chunk]) -> AsyncIterator[tuple[Sequence[Chunk], Vectors]]:
        """Chunks part by part, as their vectors come, of shape (len(part), dimension). Errors: as `collected`."""
        coming = self.put(embedder, (one.text for one in chunks))
        for at in range(0, len(chunks), BATCH):
            yield chunks[at : at + BATCH], await collected(coming[at : at + BATCH])

    def _future(self, wanted: Wanted) -> Vector:
        for known in (self._recent, self._taken, self._waiting):
            if wanted in known:
                return known[wanted]
        future = self._waiting[wanted] = asyncio.get_running_loop().create_future()
        # Whoever asked may have given up: then its error is nobody's.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return future

    async def _run(self) -> None:
        while self._waiting:
            await self._let_questions_pass()
            if batch := self._take():
                await self._embed(batch)

    def _take(self) -> list[Wanted]:
        """The next batch, of one embedder; [] where another run was quicker."""
        embedder = next((one[0] for one in self._waiting), None)
        batch = list(itertools.islice((one for one in self._waiting if one[0] is embedder), BATCH))
        self._taken.update((one, self._waiting.pop(one)) for one in batch)
        return batch

    async def _embed(self, batch: list[Wanted]) -> None:
        embedder = batch[0][0]
        try:
            vectors = await embedder.embed_passages([text for _, text in batch])
        except Exception as error:  # noqa: BLE001 not handled here: each document that waits for it gets it
            for one in batch:
                self._taken.pop(one).set_exception(error)
            return
        for one, vector in zip(batch, vectors, strict=True):
            future = self._recent[one] = self._taken.pop(one)
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
