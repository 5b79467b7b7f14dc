"""What is asked: three classes of queries, and filters with the chunks that each leaves."""

import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np

from core.records import Filters
from tests.bench.search import pool as pools
from tests.bench.search.corpus import COLLECTIONS, SEED, SIMILAR_COLLECTION, Corpus
from tests.bench.search.loading import MINE, OTHERS
from tests.bench.search.pool import Floats, Pool
from tests.bench.search.reference import Mask

COUNT: Final = 100
_BEFORE_LATE: Final = date(2024, 6, 1)


@dataclass(frozen=True, slots=True)
class Asked:
    """Queries of one kind and their vectors, (len(texts), dimension)."""

    texts: Sequence[str]
    vectors: Floats


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A filter, and which chunks of the corpus a reader may see through it."""

    filters: Filters
    allowed: Callable[[Corpus], Mask]


async def queries(pool: Pool, corpus: Corpus, cache: Path) -> dict[str, Asked]:
    """By class: real questions and phrases, common words alone, a rare number with or without a common word; and such
    as ask for the documents alike. Embedded once, then taken from the cache."""
    kept = cache / f"asked-{len(corpus)}.pickle"
    if not kept.exists():
        texts = _texts(pool, corpus)
        vectors = await pools.embed([text for part in texts.values() for text in part], queries=True)
        parts = np.split(vectors, np.cumsum([len(part) for part in texts.values()])[:-1])
        kept.write_bytes(pickle.dumps({name: (texts[name], part) for name, part in zip(texts, parts, strict=True)}))
    return {name: Asked(*found) for name, found in pickle.loads(kept.read_bytes()).items()}


def _texts(pool: Pool, corpus: Corpus) -> dict[str, list[str]]:
    random = np.random.default_rng(SEED)
    common = pools.common_words(pool, 200)
    chinese = COUNT // 8
    questions = [
        *random.choice(pool.questions["en"], COUNT // 2 - chinese),
        *random.choice(pool.questions["zh"], chinese),
    ]
    phrases = [_phrase(random, corpus.text(pool, chunk)) for chunk in random.integers(0, len(corpus), COUNT // 2)]
    codes = random.choice(np.array(corpus.codes), COUNT)
    alike = np.flatnonzero(corpus.doc_collection[corpus.document] == SIMILAR_COLLECTION)
    return {
        "mixed": [str(text) for text in (*questions, *phrases)],
        "common": [" ".join(random.choice(common, 3, replace=False)) for _ in range(COUNT)],
        "rare": [
            code[5:-1] if i % 2 else f"{random.choice(common)} {code[5:-1]}" for i, code in enumerate(codes.tolist())
        ],
        "alike": [_phrase(random, corpus.text(pool, chunk)) for chunk in random.choice(alike, COUNT)],
    }


def _phrase(random: np.random.Generator, text: str) -> str:
    """Some words in a row of one of the lines; of a Chinese one, some characters."""
    line = str(random.choice(text.splitlines()))
    words = line.split() if len(line.split()) > 3 else re.findall(r"\w", line)
    start = int(random.integers(0, max(1, len(words) - 6)))
    return ("" if words and len(words[0]) == 1 else " ").join(words[start : start + 8])


def readable(corpus: Corpus) -> Mask:
    """What the reader sees today, without a filter: of the documents alike only one, and nothing that has ended."""
    ended = corpus.doc_ended & ~corpus.doc_late
    return np.asarray((_granted(corpus) & ~ended)[corpus.document])


def filters() -> Mapping[str, Narrowed]:
    """Each by itself; that of the rights leaves one of the documents alike."""
    return {
        "collection, 10 %": Narrowed(Filters(collections=("finance",)), lambda corpus: _collection(corpus, "finance")),
        "collection, 1 %": Narrowed(Filters(collections=("legal",)), lambda corpus: _collection(corpus, "legal")),
        "Chinese": Narrowed(
            Filters(languages=("zh",)), lambda corpus: readable(corpus) & corpus.doc_chinese[corpus.document]
        ),
        "PDF": Narrowed(
            Filters(media_types=("application/pdf",)),
            lambda corpus: readable(corpus) & (corpus.doc_media == 1)[corpus.document],
        ),
        "as of a date": Narrowed(
            Filters(as_of=_BEFORE_LATE), lambda corpus: (_granted(corpus) & ~corpus.doc_late)[corpus.document]
        ),
        "1 of 1,000 alike": Narrowed(
            Filters(collections=(OTHERS, MINE)),
            lambda corpus: readable(corpus) & (corpus.doc_collection == SIMILAR_COLLECTION)[corpus.document],
        ),
    }


def _granted(corpus: Corpus) -> Mask:
    alike = corpus.doc_collection == SIMILAR_COLLECTION
    mine = np.zeros(len(alike), bool)
    mine[np.argmax(alike)] = alike.any()
    return np.asarray(~alike | mine)


def _collection(corpus: Corpus, name: str) -> Mask:
    return np.asarray(readable(corpus) & (corpus.doc_collection == COLLECTIONS.index(name))[corpus.document])
