"""How alike made vectors are to real ones as questions find them: how far the nearest are, how fast more come."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tests.bench.search import corpus, pool
from tests.bench.search.corpus import Corpus
from tests.bench.search.pool import Floats, Pool

# As many made from one of so many passages are compared with all passages.
SHARE: Final = 9
_NEAREST: Final = (1, 10, 100)
_BLOCK: Final = 100_000


def compared(found: Pool, made: Corpus, asked: Floats) -> dict[str, Mapping[str, float]]:
    """For these questions' vectors, (n, dimension): among all passages; among as many made from a few of them; among
    the corpus."""
    few = found.centres[::SHARE]
    random = np.random.default_rng(corpus.SEED)
    near = random.integers(0, len(few), len(found.centres))
    return {
        "passages": _seen(found.centres, asked),
        "made of a share": _seen(corpus.surroundings(random, few, pool.nearest(few), near), asked),
        "corpus": _seen(made.vectors, asked),
    }


def _seen(vectors: Floats | NDArray[np.float16], asked: Floats) -> dict[str, float]:
    """Medians: distances of the nearest, and the local intrinsic dimension (Levina and Bickel, 2004): its power of the
    distance is how many are found."""
    last = _NEAREST[-1]
    best = np.full((len(asked), last), -1, np.float32)
    for at in range(0, len(vectors), _BLOCK):
        alike = asked @ vectors[at : at + _BLOCK].astype(np.float32).T
        best = -np.partition(-np.concatenate([best, alike], axis=1), last - 1, axis=1)[:, :last]
    distances = np.sqrt(np.maximum(2 + 2 * np.sort(-best, axis=1), 1e-9))
    dimension = -1 / np.log(distances[:, :-1] / distances[:, -1:]).mean(axis=1)
    return {
        "dimension": round(float(np.median(dimension)), 1),
        **{f"distance_{n}": round(float(np.median(distances[:, n - 1])), 3) for n in _NEAREST},
    }
