"""A short run over each target: files, URLs, marks and bodies that are nearly right, changed at random places.

The long run, which looks where the code branches, is `make fuzz`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz.targets import EXTENSIONS, TARGETS
from tests.unit.ingest import samples

hypothesis = pytest.importorskip("hypothesis", reason="the development extra is not installed")
strategies = pytest.importorskip("hypothesis.strategies")

EXAMPLES = 300
MARKS = "[chunk:abc234] [ chunk :: abc234 ] ［1］ 【来源 1、2】 chunk：：x [[chunk:a] chunk:b]"
TEXTS = {
    "citation": [MARKS, "[1][2]", "chunk\u200b:", "[\u2460]", "ＣＨＵＮＫ：abc234", "[chunk:" * 9],
    "url": ["http://127.0.0.1:11434/v1", "https://[fd00::5]:443/a", "http://models.internal", "http://[::1%1]/", "http://①.1"],
    "body": ['{"a": [1, 2.5e10, null, "\\ud83d\\ude00"]}', "[" * 70 + "]" * 70, '{"a":1,"a":2}', "1e999", '"\\ud800"'],
}  # fmt: skip


def seeds(name: str, folder: Path) -> list[bytes]:
    """Well-formed and nearly well-formed inputs of a target."""
    if name != "upload":
        return [text.encode() for text in TEXTS[name]]
    endings = sorted(EXTENSIONS)
    files = samples.write_all(folder)
    return [bytes([endings.index(path.suffix)]) + path.read_bytes() for path in files]


@pytest.mark.threat(27, 29)
@pytest.mark.parametrize("name", TARGETS)
def test_whatever_comes_is_taken_or_refused(name: str, tmp_path: Path) -> None:
    known, target = seeds(name, tmp_path), TARGETS[name]
    place = strategies.integers(0, max(map(len, known)))
    change = strategies.tuples(place, place, strategies.binary(max_size=12))
    changes = strategies.lists(change, max_size=6)

    @hypothesis.settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True)
    @hypothesis.given(strategies.sampled_from(known), changes)
    def nearly(seed: bytes, made: list[tuple[int, int, bytes]]) -> None:
        for start, length, piece in made:
            seed = seed[:start] + piece + seed[start + length % 64 :]
        target(seed)

    @hypothesis.settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True)
    @hypothesis.given(strategies.binary(max_size=400))
    def anything(data: bytes) -> None:
        target(data)

    runs: tuple[Callable[[], None], ...] = (nearly, anything)
    for run in runs:
        run()
