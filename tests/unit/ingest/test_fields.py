"""Fields and links that load or run something, however they are cut up; and the many that do no harm."""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.errors import ActiveContent, DamagedFile
from ingest import containers
from ingest.kinds import Kind
from tests.unit.ingest import samples

DOCX, XLSX = samples.docx_bytes(), samples.xlsx_bytes()
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
COMMAND = r"c:\\windows\\system32\\cmd.exe &quot;/k calc&quot;"


def check(tmp_path: Path, data: bytes, kind: Kind) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    containers.check(path, kind)


def part(body: str, *, prefix: str = "w", space: str = WORD, encoding: str = "utf-8") -> bytes:
    """A footer with this in it, in which `w:` is written so."""
    declared = f'<?xml version="1.0" encoding="{encoding}"?>' if encoding != "utf-8" else ""
    text = f'{declared}<w:ftr xmlns:w="{space}"><w:p>{body}</w:p></w:ftr>'
    return text.replace("xmlns:w=", f"xmlns:{prefix}=").replace("w:", f"{prefix}:").encode(encoding)


def mark(kind: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


def says(*runs: str) -> str:
    return "".join(f"<w:r><w:instrText>{run}</w:instrText></w:r>" for run in runs)


def shows(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def field(*runs: str, result: str | None = "shown") -> str:
    """A field whose instruction is in these runs."""
    end = "" if result is None else mark("separate") + shows(result)
    return mark("begin") + says(*runs) + end + mark("end")


def docx(body: str, name: str = "word/footer9.xml", **options: str) -> bytes:
    return samples.with_part(DOCX, name, part(body, **options))


LOADING = [
    docx(field(f"DDEAUTO {COMMAND}")),
    docx(field(f" ddeauto {COMMAND}")),
    docx(field(f" DDE {COMMAND}", result=None)),
    docx(field("D", "DE", "AU", f"TO {COMMAND}")),
    docx("</w:p><w:p>".join((mark("begin") + says("DDE"), says(f"AUTO {COMMAND}") + mark("end")))),
    docx(mark("begin") + says(f"DDE {COMMAND}")),
    docx(f'<w:fldSimple w:instr=" DDEAUTO {COMMAND}"/>'),
    docx('<w:fldSimple w:instr="&#68;&#x44;E x"/>'),
    docx(field(f"DDE {COMMAND}"), prefix="q"),
    docx(field(f"DDE {COMMAND}"), space=STRICT),
    docx(field(f"DDE {COMMAND}"), encoding="utf-16"),
    docx(field(f"DDE {COMMAND}"), name="word/document.xml"),
    docx(field(f"DDE {COMMAND}"), name="Word/Glossary/Document.XML"),
    # Inside another field, and made of the result of one.
    docx(mark("begin") + says("IF 1 = 1 ") + field(f"DDE {COMMAND}") + mark("end")),
    docx(mark("begin") + field("QUOTE 68 68 69", result="DDE") + says(f" {COMMAND}") + mark("end")),
    docx(f"<w:r><w:fldChar w:fldCharType='begin'/></w:r><w:del>{says('x').replace('instrText', 'delInstrText')}</w:del>"
         .replace(">x<", f">DDE {COMMAND}<") + mark("end")),
    docx(field(r"INCLUDETEXT \\\\server\\share\\x.docx")),
    docx(field("INCLUDEPICTURE http://example.org/x.png")),
    docx(field("LINK Excel.Sheet.8 x.xls")),
]  # fmt: skip


@pytest.mark.parametrize("data", LOADING, ids=range(len(LOADING)))
def test_fields_of_word_that_load_something_are_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ActiveContent, match="fields that load something else"):
        check(tmp_path, data, Kind.DOCX)


HARMLESS: Sequence[bytes] = [
    docx(field(" PAGE ")),
    docx(field(r'TOC \\o "1-3" \\h')),
    docx(field('HYPERLINK "https://example.org/DDE"', result="DDE")),
    docx(field(" REF DDE_mark ") + field("NUMPAGES")),
    docx(field("MERGEFIELD DDE")),
    docx('<w:fldSimple w:instr=" PAGE "/><w:fldSimple w:instr="LINKED x"/>'),
    docx(shows("DDEAUTO c:\\cmd.exe is what is refused") + field("PAGE") + shows("DDE")),
    docx(mark("begin") + says("IF ") + field("MERGEFIELD x", result="DDE") + says(" = 1") + mark("end")),
    docx(mark("end") + mark("separate") + shows("DDE")),
]


@pytest.mark.parametrize("data", HARMLESS, ids=range(len(HARMLESS)))
def test_other_fields_are_no_harm(tmp_path: Path, data: bytes) -> None:
    check(tmp_path, data, Kind.DOCX)


def test_a_part_with_fields_that_is_broken_is_told(tmp_path: Path) -> None:
    with pytest.raises(DamagedFile):
        check(tmp_path, samples.with_part(DOCX, "word/footer9.xml", b"<a><instrText></a>"), Kind.DOCX)


def workbook(link: str, name: str = "xl/externalLinks/externalLink1.xml") -> bytes:
    return samples.with_part(XLSX, name, f'<externalLink xmlns="{SHEET}">{link}</externalLink>'.encode())


@pytest.mark.parametrize("name", ["xl/externalLinks/externalLink1.xml", "XL/externallinks/x.XML"])
def test_a_workbook_linked_to_a_program_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ActiveContent, match="DDE"):
        check(tmp_path, workbook('<ddeLink ddeService="cmd" ddeTopic="/c calc"><ddeItems/></ddeLink>', name), Kind.XLSX)
    check(tmp_path, workbook("<externalBook/>", name), Kind.XLSX)


TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
SOURCE = '<office:dde-source office:dde-application="cmd" office:dde-topic="/c calc" office:dde-item="x"/>'


@pytest.mark.parametrize(
    "body",
    [
        f"<text:section>{SOURCE}</text:section>",
        '<text:p><text:dde-connection text:connection-name="x"/></text:p>',
        '<text:dde-connection-decls><text:dde-connection-decl office:name="x"/></text:dde-connection-decls>',
        f'<t:dde-links xmlns:t="{TABLE}"><t:dde-link>{SOURCE}</t:dde-link></t:dde-links>',
        f'<t:table-cell xmlns:t="{TABLE}" t:formula="of:=DDE(&quot;cmd&quot;;&quot;/c calc&quot;;&quot;x&quot;)"/>',
        f'<t:table-cell xmlns:t="{TABLE}" t:formula="of:=1+dde (&quot;cmd&quot;)"/>',
    ],
)
@pytest.mark.parametrize("where", ["content.xml", "styles.xml"])
def test_opendocument_linked_to_a_program_is_refused(tmp_path: Path, body: str, where: str) -> None:
    data = samples.odt_bytes(body)
    if where == "styles.xml":
        data = samples.with_part(samples.odt_bytes(), where, _content(data))
    with pytest.raises(ActiveContent, match="DDE"):
        check(tmp_path, data, Kind.ODT)


def _content(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read("content.xml")


def test_other_formulas_and_fields_of_opendocument_are_no_harm(tmp_path: Path) -> None:
    sums = f'<t:table-cell xmlns:t="{TABLE}" t:formula="of:=SUM([.A1:.A2])+MYDDE(1)"/>'
    check(
        tmp_path, samples.odt_bytes(f"{sums}<text:p><text:page-number>1</text:page-number> DDE(x)</text:p>"), Kind.ODT
    )
