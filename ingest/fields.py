"""Fields and links that have an office program fetch or run something else when the document is opened or updated."""

import re
import zipfile
from collections.abc import Iterator
from typing import Final

from lxml import etree

from core.errors import ActiveContent, DamagedFile

# Kinds of Word's fields, in whatever format the document is kept.
LOADING: Final = "DDEAUTO|DDE|INCLUDETEXT|INCLUDEPICTURE|IMPORT|LINK"

_LOADS = re.compile(rf"\s*({LOADING})\b", re.I)
# Without one of these a part holds no field; in UTF-16 they would not show.
_SIGNS = (b"instrText", b"InstrText", b"fldSimple", b"\0")
# OpenDocument's links of texts, sections and tables to other programs; cells compute theirs.
_DDE = frozenset({"dde-source", "dde-link", "dde-connection", "dde-connection-decl"})
_DDE_FORMULA = re.compile(r"(?<![\w.])DDE\s*\(", re.I)


def check_word(archive: zipfile.ZipFile) -> None:
    """Raises ActiveContent for a Word file with a field that loads something, DamagedFile for a part that is broken."""
    for name in _parts(archive, "word/"):
        data = archive.read(name)
        if any(sign in data for sign in _SIGNS):
            fields = _Fields()
            for event, element in _events(archive, name):
                fields.hear(event, element)
                if event == "end":
                    element.clear()
            fields.close()


def check_workbook(archive: zipfile.ZipFile) -> None:
    """Raises ActiveContent for an Excel file that is linked to another program, DamagedFile."""
    for name in _parts(archive, "xl/externallinks/"):
        if any(etree.QName(element).localname == "ddeLink" for _, element in _events(archive, name)):
            raise _linked()


def check_open(element: etree._Element) -> None:
    """Raises ActiveContent for an element of OpenDocument that is, or computes, a link to another program."""
    computed = any(key.endswith("}formula") and _DDE_FORMULA.search(str(value)) for key, value in element.items())
    if computed or etree.QName(element).localname in _DDE:
        raise _linked()


class _Fields:
    """Word's fields as a part is read. The instruction of one may be cut into many runs, and hold other fields."""

    def __init__(self) -> None:
        # What the fields that have begun say, innermost last; None once a field's result has begun.
        self._begun: list[list[str] | None] = []

    def hear(self, event: str, element: etree._Element) -> None:
        """One start or end of an element, in order. Raises ActiveContent."""
        name = etree.QName(element).localname
        if event == "start" and name == "fldSimple":
            _judge(_attribute(element, "instr"))
        elif event == "start" and name == "fldChar":
            self._turn(_attribute(element, "fldCharType"))
        elif event == "end" and name in ("instrText", "delInstrText", "t"):
            self._say(element.text or "")

    def close(self) -> None:
        """The part ends, and with it what was left open. Raises ActiveContent."""
        while self._begun:
            self._turn("end")

    def _turn(self, kind: str) -> None:
        if kind == "begin":
            self._begun.append([])
        elif kind in ("separate", "end") and self._begun:
            said = self._begun.pop()
            if said is not None:
                _judge("".join(said))
            if kind == "separate":
                self._begun.append(None)

    def _say(self, text: str) -> None:
        # The result of a field is a part of the instruction that it stands in.
        said = next((said for said in reversed(self._begun) if said is not None), None)
        if said is not None:
            said.append(text)


def _judge(instruction: str) -> None:
    found = _LOADS.match(instruction)
    if found is not None:
        what = f"fields that load something else ({found[1].upper()})"
        raise ActiveContent(f"The file holds {what}. Save it without them and upload it again.")


def _linked() -> ActiveContent:
    return ActiveContent("The file is linked to another program (DDE). Save it without such links and upload it again.")


def _attribute(element: etree._Element, name: str) -> str:
    """An attribute by its local name: the strict form of the format has other namespaces."""
    return next((str(value) for key, value in element.items() if etree.QName(key).localname == name), "")


def _parts(archive: zipfile.ZipFile, folder: str) -> Iterator[str]:
    return (name for name in archive.namelist() if name.lower().startswith(folder) and name.lower().endswith(".xml"))


def _events(archive: zipfile.ZipFile, name: str) -> Iterator[tuple[str, etree._Element]]:
    with archive.open(name) as stream:
        try:
            yield from etree.iterparse(
                stream, ("start", "end"), resolve_entities=False, no_network=True, load_dtd=False
            )
        except etree.XMLSyntaxError as error:
            raise DamagedFile() from error
