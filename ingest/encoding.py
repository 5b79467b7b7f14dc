"""Bytes to text without guessing models: marks, declarations, then the few encodings that offices use."""

import codecs
import re

from core.text import is_cjk

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.I)
_SAMPLE = 65536


def decode(data: bytes, declared: str | None = None) -> str:
    """The text of a file. A byte order mark wins, then UTF-8 if it fits, then `declared`, then the likeliest.

    Never fails: bytes that no encoding explains become U+FFFD.
    """
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return data.decode(codec, errors="replace")
    wide = _without_mark(data[:_SAMPLE])
    if wide:
        return data.decode(wide, errors="replace")
    for codec in filter(None, ("utf-8", _known(declared))):
        try:
            return data.decode(codec)
        except UnicodeDecodeError:
            continue
    return data.decode(_likeliest(data), errors="replace")


def decode_markup(data: bytes) -> str:
    """The same for HTML, whose `charset` declaration is heard."""
    match = _DECLARED.search(data[:2048])
    return decode(data, match[1].decode("ascii") if match else None)


def _known(name: str | None) -> str | None:
    if not name:
        return None
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    # The registry also holds codecs that are no text encodings (rot13, zip). What is labelled Latin-1 or GB2312
    # is in practice the larger Windows or national set.
    wider = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
    return wider.get(codec.name, codec.name) if getattr(codec, "_is_text_encoding", True) else None


def _without_mark(sample: bytes) -> str | None:
    """UTF-16 or UTF-32 without its mark shows in where the NUL bytes of common letters stand."""
    if sample.count(0) * 5 <= len(sample):
        return None
    columns = [sample[offset::4].count(0) * 4 > len(sample) // 2 for offset in range(4)]
    if columns[0] and columns[1] and columns[2]:
        return "utf-32-be"
    if columns[1] and columns[2] and columns[3]:
        return "utf-32-le"
    return "utf-16-be" if sample[::2].count(0) > sample[1::2].count(0) else "utf-16-le"


def _likeliest(data: bytes) -> str:
    # A sample may end inside a character: leave its last bytes out.
    sample = data[:_SAMPLE]
    for codec in ("gb18030", "big5"):
        text = sample.decode(codec, errors="replace")
        wide = [char for char in text if ord(char) > 127]
        if sum(map(is_cjk, wide)) > 0.7 * len(wide) and text.count("\ufffd") <= 1 and len(wide) > 3:
            return codec
    return "cp1252"
