"""One embedder for all documents that are being read in: full batches, each text once, questions first."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import numpy as np

from core.errors import IntramurosError
from inference.interfaces import Embedder, Vectors
from storage import answering
from storage.database import Database

log = logging.getLogger(__name__)

# Enough for the embedder to keep its workers busy, little enough to show progress and to let a question go first.
BATCH: Final = 32
# Texts whose vectors are remembered until surely somebody has stored them: another document may hold the same.
RECENT: Final = 32 * BATCH
# Seconds that a batch waits for questions in all, and between two looks.
PATIENCE: Final = 60.0
LOOK: Final = 0.25

OpenEmbedder = Callable[[], Awaitable[Embedder]]
Vector = asyncio.Future[Vectors]


class Batches:
    """Texts of several documents go to the embedder together, in the order in which they came.

    While a question is being answered on this machine they wait, but no batch longer than `patience` seconds.
    """

    def __init__(self, db: Database, open_embedder: OpenEmbedder, *, patience: float = PATIENCE) -> None:
        self._db = db
        self._open = open_embedder
        self._patience = patience
        self._waiting: dict[str, Vector] = {}
        self._recent: dict[str, Vector] = {}
        self._running: asyncio.Task[None] | None = None

    async def embedder(self) -> Embedder:
        """The embedder. Errors: those of choosing it."""
        return await self._open()

    def put(self, texts: Iterable[str]) -> list[Vector]:
        """Have texts embedded, for `collected`. One that waits, or was embedded just now, is not taken twice."""
        futures = [self._future(text) for text in texts]
        if self._waiting and (self._running is None or self._running.done()):
            self._running = asyncio.create_task(self._run(), name="embed")
        return futures

    def _future(self, text: str) -> Vector:
        if text in self._recent:
            return self._recent[text]
        if text not in self._waiting:
            future = self._waiting[text] = asyncio.get_running_loop().create_future()
            # Whoever asked may have given up: then its error is nobody's.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return self._waiting[text]

    async def _run(self) -> None:
        while self._waiting:
            await self._let_questions_pass()
            texts = list(itertools.islice(self._waiting, BATCH))
            try:
                vectors = await (await self._open()).embed_passages(texts)
            except Exception as error:  # noqa: BLE001 not handled here: each document that waits for it gets it
                for text in texts:
                    self._waiting.pop(text).set_exception(error)
            else:
                for text, vector in zip(texts, vectors, strict=True):
                    future = self._recent[text] = self._waiting.pop(text)
                    future.set_result(vector)
                for text in list(itertools.islice(self._recent, max(len(self._recent) - RECENT, 0))):
                    del self._recent[text]

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
