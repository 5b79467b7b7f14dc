"""Public files of every kind and oddity: each ends in a document or in a typed error."""

from pathlib import Path

import pytest

from core.errors import IngestError
from ingest import kinds
from ingest.chunking import CHUNK_WEIGHT, chunk, weigh
from ingest.options import ParseOptions
from ingest.parse import parse
from tests.paths import shared_data

# OCR is measured elsewhere: a page takes seconds.
OPTIONS = ParseOptions(ocr=False)
# Whole sets take minutes: every n-th file keeps the spread.
SETS = {"files-unstructured": 4, "files-mail": 1, "files-pdfjs": 8, "handbook-zh": 1, "handbook-gsa-tts/downloads": 1}


def files(folder: str, step: int) -> list[Path]:
    data = shared_data()
    if data is None or not (data / folder).is_dir():
        pytest.skip(f"the public data set {folder} is not beside the project")
    found = sorted(path for path in (data / folder).rglob("*") if path.is_file() and kinds.supported(path))
    return [path for path in found if path.stat().st_size < 300_000][::step]


@pytest.mark.parametrize(("folder", "step"), SETS.items())
def test_every_file_ends_in_chunks_or_a_typed_error(folder: str, step: int) -> None:
    read = 0
    for path in files(folder, step):
        try:
            chunks = chunk(parse(path, options=OPTIONS))
        except IngestError as error:
            assert error.message, path
            continue
        read += 1
        assert chunks, path
        full = "\n".join(piece.text for piece in chunks)
        assert all(full[piece.start : piece.end] == piece.text for piece in chunks), path
        assert all(weigh(piece.text) <= CHUNK_WEIGHT for piece in chunks), path
    assert read


def test_the_handbook_is_read_without_a_failure() -> None:
    for path in files("handbook-gsa-tts/pages", 3):
        if path.stat().st_size:
            assert chunk(parse(path, options=OPTIONS)), path
