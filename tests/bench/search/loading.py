"""A corpus into the product's own tables, by COPY: what ingest would have written, without its hours."""

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql

from storage import collections, lexical
from storage.database import Database
from tests.bench.search.corpus import COLLECTIONS, ENDED, LATE, MEDIA_TYPES, SIMILAR_COLLECTION, Corpus
from tests.bench.search.pool import Pool

EMBEDDER: Final = "bench:resampled:1"
# Collections of the documents alike: all but the first are in one that administrators alone read.
OTHERS: Final = "others"
MINE: Final = "mine"
_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END: Final = b"\xff\xff"
_BLOCK: Final = 5_000

Copied = Iterable[bytes]


@dataclass(frozen=True, slots=True)
class Tenant:
    """Where a corpus goes. `collections`: the four, then those of the documents alike (others', mine)."""

    id: UUID
    collections: Sequence[UUID]


async def furnish(db: Database, tenant_id: UUID, reader: str | None = None) -> Tenant:
    """The tenant's collections; `reader` (a grantee) may read one of the documents alike."""
    made = [(await collections.ensure(db, tenant_id, name)).id for name in COLLECTIONS]
    if reader is not None:
        made.append((await collections.create(db, tenant_id, OTHERS)).id)
        made.append((await collections.create(db, tenant_id, MINE, [reader])).id)
    return Tenant(tenant_id, made)


async def load(db: Database, owner_dsn: str, tenant: Tenant, pool: Pool, corpus: Corpus) -> None:
    """Write everything; row security does not let the app role copy, so that the owner's address does."""
    async with db.transaction(tenant.id) as tx:
        await tx.row("index.add_set", embedder=EMBEDDER, dimension=corpus.vectors.shape[1])
    _documents(owner_dsn, tenant, pool, corpus)
    leaf = tenant.id.hex
    vectors = f"embeddings_{leaf}_{hashlib.md5(EMBEDDER.encode(), usedforsecurity=False).hexdigest()[:8]}"
    parts: list[tuple[str, str, Callable[[], Copied]]] = [
        (f"chunks_{leaf}", _CHUNKS, lambda: _chunks(tenant, pool, corpus)),
        (vectors, _VECTORS, lambda: _vectors(tenant, corpus)),
        (f"lex_doc_{leaf}", _WORDS, lambda: _words(tenant, corpus)),
        (f"placements_{leaf}", _PLACEMENTS, lambda: _placements(tenant, corpus)),
    ]
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(_copy, owner_dsn, table, columns, rows) for table, columns, rows in parts]:
            done.result()
    _statistics(owner_dsn, tenant, corpus)


def document_id(number: int) -> UUID:
    return UUID(int=number + 1)


# --- rows as COPY takes them ------------------------------------------------------------------------------------------

_CHUNKS: Final = "tenant_id, chunk_id, document_id, kind, language, heading_path, text, title, digest"
_VECTORS: Final = "tenant_id, embedder_id, chunk_id, document_id, v"
_WORDS: Final = "tenant_id, chunk_id, document_id, text_length, title_length, headings_length, w"
_PLACEMENTS: Final = "tenant_id, document_id, revision, ordinal, chunk_id, section, start_at, end_at"


def _field(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def _texts(values: Sequence[str]) -> bytes:
    """A text[] in PostgreSQL's binary form."""
    if not values:
        return struct.pack(">iii", 0, 0, 25)
    return struct.pack(">iiiii", 1, 0, 25, len(values), 1) + b"".join(_field(value.encode()) for value in values)


def _chunks(tenant: Tenant, pool: Pool, corpus: Corpus) -> Copied:
    titles = [_field(title.encode()) for title in pool.titles]
    headings = [_field(_texts(path)) for path in pool.headings]
    kind, own = _field(b"text"), _field(tenant.id.bytes)
    documents = corpus.document.tolist()
    pages = corpus.doc_page[corpus.document].tolist()
    for at in range(0, len(corpus), _BLOCK):
        rows: list[bytes] = []
        for chunk in range(at, min(at + _BLOCK, len(corpus))):
            text = corpus.text(pool, chunk).encode()
            rows += (
                b"\0\x09", own, struct.pack(">ii", 4, chunk + 1), _field(document_id(documents[chunk]).bytes), kind,
                _field(corpus.language(chunk).encode()), headings[corpus.heading[chunk]], _field(text),
                titles[pages[chunk]], _field(hashlib.sha256(text).digest()),
            )  # fmt: skip
        yield b"".join(rows)


def _words(tenant: Tenant, corpus: Corpus) -> Copied:
    for at in range(0, len(corpus), _BLOCK):
        end = min(at + _BLOCK, len(corpus))
        base = int(corpus.term_starts[at])
        starts = (corpus.term_starts[at : end + 1] - base).tolist()
        span = slice(base, int(corpus.term_starts[end]))
        places = (corpus.terms[span] - 1).astype(">i4").tobytes()
        weights = corpus.weights[span].astype(">f4").tobytes()
        lengths = corpus.lengths[at:end].tolist()
        documents = corpus.document[at:end].tolist()
        rows: list[bytes] = []
        for row, (first, last) in enumerate(pairwise(starts)):
            held = last - first
            rows += (
                struct.pack(">hi16siii", 7, 16, tenant.id.bytes, 4, at + row + 1, 16),
                document_id(documents[row]).bytes,
                struct.pack(">iiiiii", 4, lengths[row][0], 4, lengths[row][1], 4, lengths[row][2]),
                struct.pack(">iiii", 12 + 8 * held, lexical.DIMENSION, held, 0),
                places[4 * first : 4 * last],
                weights[4 * first : 4 * last],
            )
        yield b"".join(rows)


def _vectors(tenant: Tenant, corpus: Corpus) -> Copied:
    dimension = corpus.vectors.shape[1]
    name = EMBEDDER.encode()
    layout = np.dtype([
        ("fields", ">i2"), ("l0", ">i4"), ("tenant", "V16"), ("l1", ">i4"), ("embedder", f"V{len(name)}"),
        ("l2", ">i4"), ("chunk", ">i4"), ("l3", ">i4"), ("document", "V16"), ("l4", ">i4"), ("dimension", ">i2"),
        ("unused", ">i2"), ("v", ">f2", (dimension,)),
    ])  # fmt: skip
    fixed = {"fields": 5, "l0": 16, "l1": len(name), "l2": 4, "l3": 16, "l4": 4 + 2 * dimension, "dimension": dimension}
    for at in range(0, len(corpus), _BLOCK):
        end = min(at + _BLOCK, len(corpus))
        rows: NDArray[Any] = np.zeros(end - at, layout)
        for key, value in fixed.items():
            rows[key] = value
        rows["tenant"], rows["embedder"] = np.void(tenant.id.bytes), np.void(name)
        rows["chunk"] = np.arange(at + 1, end + 1)
        rows["document"] = _identities(corpus.document[at:end])
        rows["v"] = corpus.vectors[at:end]
        yield rows.tobytes()


def _placements(tenant: Tenant, corpus: Corpus) -> Copied:
    """Sections of five chunks, offsets as if every text had 500 characters."""
    names = ("revision", "ordinal", "chunk", "section", "start", "end")
    layout = np.dtype([
        ("fields", ">i2"), ("l0", ">i4"), ("tenant", "V16"), ("l1", ">i4"), ("document", "V16"),
        *(pair for name in names for pair in ((f"l{name}", ">i4"), (name, ">i4"))),
    ])  # fmt: skip
    ordinal = np.arange(len(corpus)) - np.searchsorted(corpus.document, corpus.document)
    for at in range(0, len(corpus), _BLOCK):
        place = ordinal[at : at + _BLOCK]
        rows: NDArray[Any] = np.zeros(len(place), layout)
        rows["fields"], rows["l0"], rows["l1"], rows["revision"] = 8, 16, 16, 1
        for name in names:
            rows[f"l{name}"] = 4
        rows["tenant"] = np.void(tenant.id.bytes)
        rows["document"] = _identities(corpus.document[at : at + _BLOCK])
        rows["ordinal"], rows["section"] = place, place // 5
        rows["chunk"] = np.arange(at + 1, at + 1 + len(place))
        rows["start"], rows["end"] = place * 500, place * 500 + 499
        yield rows.tobytes()


def _identities(documents: NDArray[np.int64]) -> NDArray[Any]:
    """Sixteen bytes each, as `document_id`."""
    both = np.zeros((len(documents), 2), ">i8")
    both[:, 1] = documents + 1
    return both.view("V16").ravel()


def _copy(dsn: str, table: str, columns: str, rows: Callable[[], Copied]) -> None:
    statement = sql.SQL("COPY intramuros.{} ({}) FROM STDIN (FORMAT binary)").format(
        sql.Identifier(table), sql.SQL(columns)
    )
    with _connected(dsn) as connection, connection.cursor().copy(statement) as copy:
        copy.write(_HEADER)
        for block in rows():
            copy.write(block)
        copy.write(_END)


# --- documents and counts ---------------------------------------------------------------------------------------------

_DOCUMENTS: Final = (
    "tenant_id, id, collection_id, path, sha256, media_type, size, title, state, chunks, language, effective_from, "
    "effective_to, revision, read_sha256, searchable, newest_from"
)
_REVISIONS: Final = (
    "tenant_id, document_id, number, sha256, title, size, chunks, language, effective_from, effective_to, in_force_from"
)


def _documents(dsn: str, tenant: Tenant, pool: Pool, corpus: Corpus) -> None:
    rows = list(_document_rows(tenant, pool, corpus))
    with _connected(dsn) as connection, connection.cursor() as cursor:
        with cursor.copy(f"COPY intramuros.documents ({_DOCUMENTS}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        with cursor.copy(f"COPY intramuros.revisions ({_REVISIONS}) FROM STDIN") as copy:
            for own, number, _, _, sha256, _, size, title, _, chunks, language, start, end, *_ in rows:
                copy.write_row((own, number, 1, sha256, title, size, chunks, language, start, end, start))


def _document_rows(tenant: Tenant, pool: Pool, corpus: Corpus) -> Iterator[tuple[Any, ...]]:
    sizes = np.bincount(corpus.document).tolist()
    mine = int(np.argmax(corpus.doc_collection == SIMILAR_COLLECTION))
    for number, (page, place) in enumerate(zip(corpus.doc_page.tolist(), corpus.doc_collection.tolist(), strict=True)):
        start = LATE if corpus.doc_late[number] else None
        end = ENDED if corpus.doc_ended[number] and start is None else None
        sha256 = hashlib.sha256(str(number).encode()).hexdigest()
        collection = tenant.collections[place + (place == SIMILAR_COLLECTION and number == mine)]
        yield (
            tenant.id, document_id(number), collection, f"{number}.md", sha256, MEDIA_TYPES[corpus.doc_media[number]],
            10_000, pool.titles[page], "ready", sizes[number], "zh" if corpus.doc_chinese[number] else "en", start, end,
            1, sha256, "meaning", start,
        )  # fmt: skip


def _statistics(dsn: str, tenant: Tenant, corpus: Corpus) -> None:
    terms, frequencies = np.unique(corpus.terms, return_counts=True)
    layout = np.dtype([
        ("fields", ">i2"), ("l0", ">i4"), ("tenant", "V16"), ("l1", ">i4"), ("term", ">i4"), ("l2", ">i4"),
        ("df", ">i4"),
    ])  # fmt: skip
    rows: NDArray[Any] = np.zeros(len(terms), layout)
    rows["fields"], rows["l0"], rows["l1"], rows["l2"] = 3, 16, 4, 4
    rows["tenant"], rows["term"], rows["df"] = np.void(tenant.id.bytes), terms, frequencies
    _copy(dsn, "lex_term", "tenant_id, term, df", lambda: [rows.tobytes()])
    sums = corpus.lengths.sum(axis=0).tolist()
    with _connected(dsn) as connection:
        connection.execute(
            "UPDATE intramuros.lex_stat SET n = %s, next_chunk = %s, text_sum = %s, title_sum = %s, headings_sum = %s,"
            " text_average = %s, title_average = %s, headings_average = %s WHERE tenant_id = %s",
            (len(corpus), len(corpus) + 1, *sums, corpus.averages.text, corpus.averages.title, corpus.averages.headings,
             tenant.id),
        )  # fmt: skip


def hurry(dsn: str, quick: bool) -> None:
    """While everything is loaded nothing waits for the disk: what a crash would cost here is another run."""
    settings = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "16GB"}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name, value in settings.items():
            change = sql.SQL("SET {} = {}") if quick else sql.SQL("RESET {}")
            connection.execute(sql.SQL("ALTER SYSTEM ") + change.format(sql.SQL(name), value))
        connection.execute("CHECKPOINT")
        connection.execute("SELECT pg_reload_conf()")


def tidy(dsn: str) -> None:
    """What autovacuum would have done by and by."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")


def _connected(dsn: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Without a look at every foreign key: all rows come from one place."""
    return psycopg.connect(dsn, options="-c session_replication_role=replica -c synchronous_commit=off")
