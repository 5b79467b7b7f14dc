"""The formats that are read, by the endings of names; and a reason in words for endings that are not."""

from enum import StrEnum
from pathlib import PurePath

from core.errors import ActiveContent, UnsupportedFormat


class Kind(StrEnum):
    """The formats that are read. The value is the media type."""

    PDF = "application/pdf"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    DOC = "application/msword"
    PPT = "application/vnd.ms-powerpoint"
    XLS = "application/vnd.ms-excel"
    ODT = "application/vnd.oasis.opendocument.text"
    ODP = "application/vnd.oasis.opendocument.presentation"
    ODS = "application/vnd.oasis.opendocument.spreadsheet"
    RTF = "application/rtf"
    EPUB = "application/epub+zip"
    CSV = "text/csv"
    HTML = "text/html"
    EML = "message/rfc822"
    MSG = "application/vnd.ms-outlook"
    MARKDOWN = "text/markdown"
    RST = "text/x-rst"
    ORG = "text/x-org"
    TEXT = "text/plain"
    ZIP = "application/zip"
    PNG = "image/png"
    JPEG = "image/jpeg"
    TIFF = "image/tiff"
    BMP = "image/bmp"
    WEBP = "image/webp"


EXTENSIONS = {
    ".pdf": Kind.PDF,
    ".docx": Kind.DOCX,
    ".pptx": Kind.PPTX,
    ".xlsx": Kind.XLSX,
    ".doc": Kind.DOC,
    ".ppt": Kind.PPT,
    ".xls": Kind.XLS,
    ".odt": Kind.ODT,
    ".odp": Kind.ODP,
    ".ods": Kind.ODS,
    ".rtf": Kind.RTF,
    ".epub": Kind.EPUB,
    ".csv": Kind.CSV,
    ".tsv": Kind.CSV,
    ".html": Kind.HTML,
    ".htm": Kind.HTML,
    ".eml": Kind.EML,
    ".msg": Kind.MSG,
    ".md": Kind.MARKDOWN,
    ".markdown": Kind.MARKDOWN,
    ".rst": Kind.RST,
    ".org": Kind.ORG,
    ".txt": Kind.TEXT,
    ".zip": Kind.ZIP,
    ".png": Kind.PNG,
    ".jpg": Kind.JPEG,
    ".jpeg": Kind.JPEG,
    ".tif": Kind.TIFF,
    ".tiff": Kind.TIFF,
    ".bmp": Kind.BMP,
    ".webp": Kind.WEBP,
}

PICTURES = frozenset({Kind.PNG, Kind.JPEG, Kind.TIFF, Kind.BMP, Kind.WEBP})
# Whose pages can be drawn.
DRAWN = PICTURES | {Kind.PDF}
# Packed by any program, in any way: no document of ours may hold one.
ARCHIVES = (".zip", ".7z", ".rar", ".gz", ".bz2", ".xz", ".zst", ".tar", ".tgz", ".cab", ".iso", ".jar")

_MACROS = (".docm", ".dotm", ".pptm", ".potm", ".ppsm", ".xlsm", ".xltm", ".xlsb")
_OTHER_PICTURES = (".heic", ".heif", ".avif", ".gif", ".svg", ".psd", ".ico")
_DATA = (".xml", ".xsl", ".xsd", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".ini", ".sql", ".log")


def kind_of(name: str | PurePath) -> Kind:
    """The format that a file's name promises. Raises UnsupportedFormat, ActiveContent."""
    suffix = PurePath(name).suffix.lower()
    if suffix in EXTENSIONS:
        return EXTENSIONS[suffix]
    if suffix in _MACROS:
        raise ActiveContent(f"Files ending in {suffix} may hold macros. Save it without them (.docx, .pptx, .xlsx).")
    raise UnsupportedFormat(_reason(suffix))


def supported(name: str | PurePath) -> bool:
    """Whether a file's name promises a format that is read."""
    return PurePath(name).suffix.lower() in EXTENSIONS


def word(kind: Kind) -> str:
    """A format's short name in a sentence."""
    plain = {Kind.EML: "mail", Kind.MARKDOWN: "Markdown", Kind.TEXT: "plain text", Kind.MSG: "Outlook mail"}
    return plain.get(kind, kind.name)


def ending(kind: Kind) -> str:
    """The usual ending of a format's names."""
    return next(suffix for suffix, other in EXTENSIONS.items() if other is kind)


def _reason(suffix: str) -> str:
    if not suffix:
        return "The file's name has no ending that says what it is. Add the right one (.pdf, .docx, .eml ...)."
    if suffix in ARCHIVES:
        return f"Archives ending in {suffix} are not opened. Pack the documents into a ZIP file, or upload each."
    if suffix in _OTHER_PICTURES:
        return f"Pictures ending in {suffix} are not read. Save it as PNG or JPEG and upload it again."
    if suffix in _DATA:
        return (
            f"Files ending in {suffix} are data for programs, not text for readers. Upload the document made from it."
        )
    return f"Files ending in {suffix} are not read. Save it as PDF, DOCX, HTML, Markdown or plain text."
