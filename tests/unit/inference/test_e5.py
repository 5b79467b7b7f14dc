"""The embedder's parts that need no weights: the file's form, the choice of a graph, windows."""

import json
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.errors import ChecksumMismatch, InferenceError, ModelMissing
from inference import e5, e5_build, e5_weights
from inference.e5_weights import HIDDEN


def weights_file(pieces: list[str], tensors: dict[str, bytes]) -> bytes:
    """A file of the form that `e5_weights` reads."""
    blob = "".join(pieces).encode()
    ends = np.cumsum([0, *(len(piece.encode()) for piece in pieces)]).astype("<u4")
    head = b"E5S1" + bytes(40) + struct.pack("<5iQ", len(pieces), 0, 0, 0, 0, len(blob))
    head += ends.tobytes() + np.arange(len(pieces), dtype="<f4").tobytes() + blob
    head += struct.pack("<iI", 0, 3) + b"abc" + struct.pack("<i", len(tensors))
    table = sum(2 + len(name) + 21 for name in tensors)
    at = len(head) + table
    entries, data = b"", b""
    for name, raw in tensors.items():
        entries += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", 1, 0, at + len(data), len(raw))
        data += raw
    return head + entries + data


def test_pieces_scores_and_tensors_are_read() -> None:
    weights = e5_weights.parse(weights_file(["<s>", "▁leave", "假"], {"bias": np.array([1, 2], np.float32).tobytes()}))
    assert weights.pieces == ("<s>", "▁leave", "假")
    assert weights.scores.tolist() == [0, 1, 2]
    assert weights.floats("bias").tolist() == [1, 2]


def test_four_bit_blocks_are_spread() -> None:
    quants = np.arange(32, dtype=np.uint8) % 16
    block = np.array([0.5], np.float16).tobytes() + (quants[:16] | quants[16:] << 4).tobytes()
    weights = e5_weights.parse(weights_file(["a"], {"w": block * 2}))
    matrix = weights.matrix("w", 32)
    assert matrix.shape == (2, 32)
    assert matrix[1].tolist() == ((quants.astype(np.float32) - 8) * 0.5).tolist()


@pytest.mark.parametrize("data", [b"XXXX" + bytes(100), weights_file(["a"], {})[:60]])
def test_another_file_is_refused(data: bytes) -> None:
    with pytest.raises(ChecksumMismatch, match="models pull"):
        e5_weights.parse(data)


@pytest.mark.parametrize(
    ("int8", "int7", "chosen"),
    [
        ((0.9997, 0.9996), (0.9994, 0.9993), "int8.onnx"),
        ((0.9995, 0.9991), (0.9994, 0.9993), "int7.onnx"),
        ((0.97, 0.61), (0.9994, 0.9993), "int7.onnx"),
        ((0.97, 0.61), (0.9989, 0.9985), "float.onnx"),
        ((0.9995, 0.9979), (0.98, 0.9), "float.onnx"),
    ],
)
def test_the_closest_graph_that_is_close_enough_is_chosen(
    int8: tuple[float, float], int7: tuple[float, float], chosen: str
) -> None:
    assert e5_build.choose({"int8.onnx": int8, "int7.onnx": int7}) == chosen


@pytest.mark.parametrize(
    ("length", "windows"), [(0, [0]), (1, [1]), (510, [510]), (511, [256, 255]), (1021, [340, 341, 340])]
)
def test_windows_are_few_even_and_whole(length: int, windows: list[int]) -> None:
    ids = list(range(length))
    parts = list(e5.split(ids, 510))
    assert sorted(map(len, parts)) == sorted(windows)
    assert [token for part in parts for token in part] == ids


class Tokens:
    """Each letter is a token, its code the number; `a` is common and `z` rare."""

    def encode(self, text: str | list[str]) -> list[int] | list[list[int]]:
        return [ord(letter) for letter in text] if isinstance(text, str) else [[*map(ord, one)] for one in text]

    def get_score(self, token: int) -> float:
        return {ord("a"): -2.0, ord("z"): -12.0}[token]


class Echo:
    """A graph whose vector of a token begins with its number."""

    def run(self, outputs: list[str], inputs: dict[str, np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        assert outputs == ["tokens"]
        vectors = np.zeros((1, inputs["input_ids"].shape[1], HIDDEN), np.float32)
        vectors[0, :, 0] = inputs["input_ids"][0]
        return [vectors]


async def test_vectors_of_tokens_leave_out_prefix_and_ends() -> None:
    embedder = object.__new__(e5.E5Embedder)
    embedder._session, embedder._pool, embedder._tokens = Echo(), ThreadPoolExecutor(2), Tokens()
    embedder._passage, embedder._query = [5, 6], [7]
    long = "az" * 600
    short, windowed, empty = await embedder.passage_tokens([" az ", long, ""])
    assert short[:, 0].tolist() == [ord("a"), ord("z")]
    assert windowed[:, 0].tolist() == [ord(letter) for letter in long]
    assert empty.shape == (0, HIDDEN)
    asked = await embedder.query_tokens(" za")
    assert asked.vectors[:, 0].tolist() == [ord("z"), ord("a")]
    assert asked.weights.tolist() == [7, 0]
    await embedder.close()


async def test_a_failing_runtime_is_our_error() -> None:
    class Fail(Exception):
        """As onnxruntime's: no RuntimeError."""

    class Session:
        def run(self, *_: object) -> None:
            raise Fail

    embedder = object.__new__(e5.E5Embedder)
    embedder._session, embedder._pool = Session(), ThreadPoolExecutor(1)
    embedder._tokens = SimpleNamespace(encode=lambda texts: [[5] for _ in texts])
    embedder._passage = []
    with pytest.raises(InferenceError) as raised:
        await embedder.embed_passages(["words"])
    assert isinstance(raised.value.__cause__, Fail)
    await embedder.close()


def test_a_manifest_is_believed_only_where_it_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert e5_build.Manifest.read(tmp_path) is None
    (tmp_path / "int8.onnx").write_bytes(b"graph")
    digest = "3c2f87ffdb8b4d3d0d55a4c3e1b3c9d5"
    manifest = e5_build.Manifest(
        e5_build.VERSION, e5_build.cpu(), "int8.onnx", {"int8.onnx": (1.0, 1.0)}, {"int8.onnx": digest}
    )
    manifest.write(tmp_path)
    read = e5_build.Manifest.read(tmp_path)
    assert read is not None
    assert read.graph == "int8.onnx"
    assert not read.intact(tmp_path)
    with pytest.raises(ChecksumMismatch):
        e5.E5Embedder(tmp_path, workers=1)
    (tmp_path / e5_build.MANIFEST).write_text(json.dumps({"version": 1}))
    assert e5_build.Manifest.read(tmp_path) is None
    manifest.write(tmp_path)
    monkeypatch.setattr(e5_build, "cpu", lambda: "another")
    assert e5_build.Manifest.read(tmp_path) is None
    with pytest.raises(ModelMissing, match="models pull"):
        e5.E5Embedder(tmp_path, workers=1)
