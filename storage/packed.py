"""Long arrays to and from the server in its own binary form: as Python numbers they cost more than the work on them."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncCursor
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.rows import DictRow

from storage.database import Connection

_INT4: Final = 23
_INT4_ARRAY: Final = 1007
# Dimension, number of entries, unused; then the places from 0, then the weights.
_HEADER: Final = 12


class Vector(bytes):
    """A sparsevec as it travels."""


class _VectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> Vector:
        return Vector(data)


class _VectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Vector) -> Buffer:
        return obj


class _IntegersDumper(Dumper):
    """A numpy array of shape (n,) as int4[]."""

    format = Format.BINARY
    oid = _INT4_ARRAY

    def dump(self, obj: NDArray[np.int32]) -> Buffer:
        if not len(obj):
            return np.array([0, 0, _INT4], dtype=">i4").tobytes()
        head = np.array([1, 0, _INT4, len(obj), 1], dtype=">i4").tobytes()
        return head + np.stack([np.full(len(obj), 4), obj], axis=1).astype(">i4").tobytes()


def cursor(connection: Connection) -> AsyncCursor[DictRow]:
    """One that takes and gives `Vector` for sparsevec, and takes numpy arrays for int4[] (as %(name)b)."""
    made = connection.cursor(binary=True)
    info = connection.adapters.types["sparsevec"]
    made.adapters.register_loader(info.oid, _VectorLoader)
    made.adapters.register_dumper(Vector, type("", (_VectorDumper,), {"oid": info.oid}))
    made.adapters.register_dumper(np.ndarray, _IntegersDumper)
    return made


def entries(vectors: Sequence[Vector]) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """How many entries each has; all their places, from 0; all their weights."""
    counts = np.array([(len(vector) - _HEADER) // 8 for vector in vectors], dtype=np.int64)
    ends = (_HEADER + 4 * counts).tolist()
    places = b"".join([vector[_HEADER:end] for vector, end in zip(vectors, ends, strict=True)])
    weights = b"".join([vector[end:] for vector, end in zip(vectors, ends, strict=True)])
    return counts, _native(places, ">i4"), _native(weights, ">f4")


def vectors(
    dimension: int, counts: NDArray[np.int64], places: NDArray[np.int32], weights: NDArray[np.float32]
) -> list[Vector]:
    """The reverse of `entries`."""
    packed_places, packed_weights = places.astype(">i4").tobytes(), weights.astype(">f4").tobytes()
    heads = np.stack([np.full(len(counts), dimension), counts, np.zeros(len(counts))], axis=1).astype(">i4").tobytes()
    ends = (4 * np.cumsum(counts)).tolist()
    return [
        Vector(heads[12 * at : 12 * at + 12] + packed_places[first:last] + packed_weights[first:last])
        for at, (first, last) in enumerate(zip([0, *ends], ends, strict=False))
    ]


def _native(data: bytes, kind: str) -> NDArray[Any]:
    packed = np.frombuffer(data, dtype=kind)
    return packed.astype(packed.dtype.newbyteorder("="))
