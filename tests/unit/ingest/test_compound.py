"""Old Office files: protection, macros and embedded objects, told from small files of their own format."""

from pathlib import Path

import pytest

from core.errors import ActiveContent, DamagedFile, EncryptedFile, IngestError, MismatchedFormat
from ingest import compound
from ingest.kinds import Kind
from tests.unit.ingest import compound_file as old

VBA = (0x0400, b"\0\0\0\0\1\0\0\0\2\0\0\0")
NO_VBA = (0x0400, b"\0\0\0\0\0\0\0\0\2\0\0\0")
SHEET = b"\0\0\0\0\0\0\5\0Leave"
MACRO_SHEET = b"\0\0\0\0\0\1\5\0Macro"


def check(tmp_path: Path, data: bytes, kind: Kind) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    compound.check(path, kind)


@pytest.mark.parametrize(
    ("data", "kind", "error"),
    [
        (old.word_bytes(flags=0x0100), Kind.DOC, EncryptedFile),
        (old.word_bytes(extra={"Macros": {"VBA": {"dir": b"x"}}}), Kind.DOC, ActiveContent),
        (old.word_bytes(extra={"ObjectPool": {"_1": {"\x01Ole": b"x"}}}), Kind.DOC, ActiveContent),
        (old.word_bytes(b"\x13 INCLUDETEXT c:\\secret.txt \x15"), Kind.DOC, ActiveContent),
        (old.word_bytes("\x13 DDEAUTO c:\\x.exe \x15".encode("utf-16-le")), Kind.DOC, ActiveContent),
        (old.compound_file({"WordDocument": b"short"}), Kind.DOC, DamagedFile),
        (old.compound_file({"EncryptedPackage": b"x"}), Kind.DOC, EncryptedFile),
        (old.compound_file({"Contents": b"x"}), Kind.DOC, MismatchedFormat),
        (old.workbook_bytes(), Kind.DOC, MismatchedFormat),
        (old.workbook_bytes((0x2F, b"\0" * 6)), Kind.XLS, EncryptedFile),
        (old.workbook_bytes((0x85, MACRO_SHEET)), Kind.XLS, ActiveContent),
        (old.compound_file({"Workbook": b"", "_VBA_PROJECT_CUR": {"PROJECT": b"x"}}), Kind.XLS, ActiveContent),
        (old.compound_file({"Workbook": b"", "MBD0001": {"\x01Ole": b"x"}}), Kind.XLS, ActiveContent),
        (old.slides_bytes(token=0xF3D1C4DF), Kind.PPT, EncryptedFile),
        (old.slides_bytes(VBA), Kind.PPT, ActiveContent),
        (old.slides_bytes((0x0FCC, b"")), Kind.PPT, ActiveContent),
    ],
)
def test_refusals(tmp_path: Path, data: bytes, kind: Kind, error: type[IngestError]) -> None:
    with pytest.raises(error):
        check(tmp_path, data, kind)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (old.word_bytes(extra={"ObjectPool": {}}), Kind.DOC),
        (old.word_bytes(b"\x13 HYPERLINK https://example.org/ \x15"), Kind.DOC),
        (old.workbook_bytes((0x85, SHEET)), Kind.XLS),
        (old.slides_bytes(NO_VBA), Kind.PPT),
    ],
)
def test_ordinary_files_pass(tmp_path: Path, data: bytes, kind: Kind) -> None:
    check(tmp_path, data, kind)


def test_a_broken_file_is_damaged_and_unknown(tmp_path: Path) -> None:
    data = old.word_bytes()[:600]
    with pytest.raises(DamagedFile):
        check(tmp_path, data, Kind.DOC)
    assert compound.identify(tmp_path / "file") is None
    assert not compound.is_encrypted_package(tmp_path / "file")
