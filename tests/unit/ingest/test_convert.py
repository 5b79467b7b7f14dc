"""Converters: what they are asked, and on machines that have them, what they give."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.errors import ActiveContent, DamagedFile, MissingConverter
from core.records import ParsedDocument
from ingest import convert, programs
from ingest.kinds import Kind
from ingest.options import ParseOptions
from ingest.parse import parse
from tests.unit.ingest import samples

needs_soffice = pytest.mark.skipif(programs.find("soffice") is None, reason="LibreOffice is not installed here")
needs_pandoc = pytest.mark.skipif(programs.find("pandoc") is None, reason="pandoc is not installed here")


class Office:
    """Stands in for soffice: remembers how it was called, and leaves a result."""

    def __init__(self, result: bytes | None) -> None:
        self.result = result
        self.profile = ""
        self.argv: Sequence[str] = ()

    def run(self, argv: Sequence[str], *, timeout: float, cwd: Path) -> bytes:
        assert timeout == convert.TIMEOUT
        self.argv = argv
        self.profile = (cwd / "profile" / "user" / "registrymodifications.xcu").read_text()
        if self.result is not None:
            (cwd / "out").mkdir()
            (cwd / "out" / "source.docx").write_bytes(self.result)
        return b""


def converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: bytes | None) -> tuple[Office, bytes]:
    office = Office(result)
    monkeypatch.setattr(programs, "run", office.run)
    path = tmp_path / ("0" * 64)
    path.write_bytes(b"old")
    return office, convert.to_office(path, Kind.DOC)


def test_soffice_is_started_with_a_profile_that_runs_and_follows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = samples.docx_bytes()
    office, data = converted(tmp_path, monkeypatch, result)
    assert data == result
    assert office.argv[0] == "soffice"
    assert "--headless" in office.argv
    assert office.argv[-1].endswith("/source.doc")
    for setting in ("DisableMacrosExecution", "MacroSecurityLevel", "BlockUntrustedRefererLinks", "Link"):
        assert f'oor:name="{setting}"' in office.profile


def test_no_result_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DamagedFile):
        converted(tmp_path, monkeypatch, None)


def test_a_result_is_judged_like_an_upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linked = samples.with_link(
        samples.docx_bytes(), "word/_rels/document.xml.rels", "image", "http://example.org/a.png"
    )
    with pytest.raises(ActiveContent):
        converted(tmp_path, monkeypatch, linked)


@pytest.mark.parametrize(("name", "program"), [("a.odt", "soffice"), ("a.rst", "pandoc")])
def test_a_missing_converter_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, program: str
) -> None:
    monkeypatch.setattr(programs, "find", lambda _: None)
    path = tmp_path / name
    path.write_bytes(samples.odt_bytes() if name == "a.odt" else samples.RST.encode())
    with pytest.raises(MissingConverter, match=program):
        parse(path, options=ParseOptions())


def read(tmp_path: Path, name: str, data: bytes) -> ParsedDocument:
    path = tmp_path / name
    path.write_bytes(data)
    return parse(path, options=ParseOptions())


def text(parsed: ParsedDocument) -> str:
    return "\n".join(element.text for element in parsed.elements)


@needs_soffice
def test_opendocument_is_read(tmp_path: Path) -> None:
    parsed = read(tmp_path, "a.odt", samples.odt_bytes())
    assert parsed.title == "Leave"
    assert "Leave is thirty days." in text(parsed)


@needs_soffice
def test_rich_text_is_read_without_what_is_hidden(tmp_path: Path) -> None:
    parsed = read(tmp_path, "a.rtf", samples.RTF.encode())
    assert "Leave is thirty days." in text(parsed)
    assert "CANARY" not in text(parsed)


@needs_soffice
@pytest.mark.parametrize(
    ("suffix", "target", "filter_name"),
    [("doc", samples.docx_bytes(), "MS Word 97"), ("ppt", samples.pptx_bytes(), "MS PowerPoint 97")],
)
def test_old_office_files_are_read(tmp_path: Path, suffix: str, target: bytes, filter_name: str) -> None:
    """An old file is first made of a new one by the same program: nothing else writes them."""
    source = tmp_path / f"new.{suffix}x"
    source.write_bytes(target)
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    arguments = (
        profile,
        "--headless",
        "--convert-to",
        f"{suffix}:{filter_name}",
        "--outdir",
        str(tmp_path),
        str(source),
    )
    programs.run(("soffice", *arguments), timeout=convert.TIMEOUT, cwd=tmp_path)
    parsed = parse(tmp_path / f"new.{suffix}", options=ParseOptions())
    assert "Berlin" in text(parsed)
    assert "CANARY-VANISH" not in text(parsed)
    assert "CANARY-SLIDE" not in text(parsed)


@needs_pandoc
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.rst", samples.RST.encode()),
        ("a.org", samples.ORG.encode()),
    ],
)
def test_markup_is_read(tmp_path: Path, name: str, data: bytes) -> None:
    parsed = read(tmp_path, name, data)
    assert parsed.title == "Staff handbook"
    assert "Leave is thirty days." in text(parsed)
    assert "Leave" in [element.text for element in parsed.elements if element.kind == "title"]


@needs_pandoc
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.rst", samples.RST + "\n.. include:: secret.txt\n"),
        ("a.org", samples.ORG + '\n#+INCLUDE: "secret.txt"\n'),
    ],
)
def test_other_files_are_told_of_and_not_taken_in(tmp_path: Path, name: str, data: str) -> None:
    (tmp_path / "secret.txt").write_text("CANARY-INCLUDED")
    parsed = read(tmp_path, name, data.encode())
    assert "CANARY" not in text(parsed)
    assert [warning.code for warning in parsed.warnings] == ["external_links"]
