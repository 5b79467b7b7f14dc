"""Formats that other programs read for us: soffice turns old Office files into new ones, pandoc text into HTML.

Both get a folder of their own that is removed afterwards. soffice runs with a fresh profile in which macros are
switched off and links are never followed; pandoc runs in its sandbox, in which it reads no other file.
"""

import re
import shutil
import tempfile
from pathlib import Path

from core.errors import DamagedFile
from core.records import ParseWarning
from ingest import containers, programs
from ingest.kinds import Kind, ending

TIMEOUT = 120.0

OFFICE = {
    Kind.DOC: Kind.DOCX,
    Kind.ODT: Kind.DOCX,
    Kind.RTF: Kind.DOCX,
    Kind.PPT: Kind.PPTX,
    Kind.ODP: Kind.PPTX,
    Kind.XLS: Kind.XLSX,
    Kind.ODS: Kind.XLSX,
}
# Standalone where the title is no heading; a lone second heading of reStructuredText would become a subtitle.
MARKUP = {Kind.RST: ("--from", "rst"), Kind.ORG: ("--from", "org", "--standalone")}

_FILTERS = {
    Kind.DOCX: "MS Word 2007 XML",
    Kind.PPTX: "Impress MS PowerPoint 2007 XML",
    Kind.XLSX: "Calc MS Excel 2007 XML",
}
_OPTIONS = ("--headless", "--norestore", "--nolockcheck", "--nodefault", "--nologo", "--nofirststartwizard")
# Node, name and value of the settings that differ from the program's own: macros are never run (3 is the highest
# security level), pages outside trusted places cannot be linked, links are never updated (Writer 0, Calc 1).
_PROFILE = (
    ("Common/Security/Scripting", "DisableMacrosExecution", "true"),
    ("Common/Security/Scripting", "MacroSecurityLevel", "3"),
    ("Common/Security/Scripting", "BlockUntrustedRefererLinks", "true"),
    ("Writer/Content/Update", "Link", "0"),
    ("Calc/Content/Update", "Link", "1"),
)
# Lines by which a text takes in another file, in reStructuredText and Org.
_INCLUDES = {
    Kind.RST: re.compile(rb"^[ \t]*\.\.[ \t]+(?:include|literalinclude|raw)::[ \t]*\S|^[ \t]+:(?:file|url):", re.M),
    Kind.ORG: re.compile(rb"^[ \t]*#\+(?:include|setupfile):", re.M | re.I),
}


def to_office(path: Path, kind: Kind) -> bytes:
    """The content of a file as DOCX, PPTX or XLSX (see OFFICE), judged by the gate's rules for those.

    Raises MissingConverter, ParserStopped, DamagedFile, ActiveContent, ArchiveBomb.
    """
    target = OFFICE[kind]
    with tempfile.TemporaryDirectory(prefix="convert-") as name:
        folder = Path(name)
        source = folder / f"source{ending(kind)}"
        shutil.copyfile(path, source)
        _write_profile(folder / "profile")
        arguments = (f"-env:UserInstallation={(folder / 'profile').as_uri()}", *_OPTIONS)
        output = f"{ending(target)[1:]}:{_FILTERS[target]}"
        conversion = ("--convert-to", output, "--outdir", str(folder / "out"), str(source))
        programs.run(("soffice", *arguments, *conversion), timeout=TIMEOUT, cwd=folder)
        result = folder / "out" / f"source{ending(target)}"
        if not result.is_file():
            raise DamagedFile()
        containers.check(result, target)
        return result.read_bytes()


def to_html(path: Path, kind: Kind) -> tuple[str, list[ParseWarning]]:
    """The content of a file as HTML, and what it would have taken in from other files.

    Raises MissingConverter, ParserStopped, DamagedFile.
    """
    with tempfile.TemporaryDirectory(prefix="convert-") as name:
        folder = Path(name)
        source = folder / f"source{ending(kind)}"
        shutil.copyfile(path, source)
        arguments = ("--sandbox", *MARKUP[kind], "--to", "html5", "--wrap", "none", str(source))
        html = programs.run(("pandoc", *arguments), timeout=TIMEOUT, cwd=folder)
    return html.decode("utf-8", "replace"), _includes(path, kind)


def _includes(path: Path, kind: Kind) -> list[ParseWarning]:
    pattern = _INCLUDES.get(kind)
    count = len(pattern.findall(path.read_bytes())) if pattern else 0
    if not count:
        return []
    text = f"Other files that it takes in were not read ({count}). Upload them as files."
    return [ParseWarning("external_links", text, count)]


def _write_profile(profile: Path) -> None:
    items = "".join(
        f'<item oor:path="/org.openoffice.Office.{node}"><prop oor:name="{name}" oor:op="fuse">'
        f"<value>{value}</value></prop></item>"
        for node, name, value in _PROFILE
    )
    (profile / "user").mkdir(parents=True)
    (profile / "user" / "registrymodifications.xcu").write_text(
        '<?xml version="1.0" encoding="UTF-8"?><oor:items xmlns:oor="http://openoffice.org/2001/registry" '
        f'xmlns:xs="http://www.w3.org/2001/XMLSchema">{items}</oor:items>',
        encoding="utf-8",
    )
