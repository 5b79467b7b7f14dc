"""A small writer of OLE compound files [MS-CFB], for tests: old Office files and Outlook messages."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Folder: TypeAlias = Mapping[str, "bytes | Folder"]

_SECTOR, _SMALL_SECTOR, _SMALL = 512, 64, 4096
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@dataclass
class _Entry:
    """A stream (2), folder (1) or the root (5), and where the directory and the sectors go on from it."""

    name: str
    kind: int
    data: bytes = b""
    sibling: int = _FREE
    child: int = _FREE
    start: int = 0

    def packed(self) -> bytes:
        raw = self.name.encode("utf-16-le")
        head = raw.ljust(64, b"\0") + struct.pack(
            "<HBBIII", len(raw) + 2, self.kind, 1, _FREE, self.sibling, self.child
        )
        return head + b"\0" * 36 + struct.pack("<IQ", self.start, len(self.data))


def compound_file(tree: Folder) -> bytes:
    """The bytes of a compound file that holds these streams (bytes) and folders (mappings)."""
    entries: list[_Entry] = []
    _add(tree, "Root Entry", 5, entries)
    root, streams = entries[0], [entry for entry in entries if entry.kind == 2]
    # Small streams share one stream, the root's, in sectors of their own.
    small = _Sectors(_SMALL_SECTOR)
    for entry in streams:
        if len(entry.data) < _SMALL:
            entry.start = small.add(entry.data)
    root.data = small.body
    large = _Sectors(_SECTOR, [_FAT])
    for entry in (root, *streams):
        if entry is root or len(entry.data) >= _SMALL:
            entry.start = large.add(entry.data)
    small_table = large.add(struct.pack(f"<{len(small.table)}I", *small.table).ljust(_SECTOR, b"\xff"))
    directory = large.add(b"".join(entry.packed() for entry in entries))
    # One sector holds 128 places of either table: enough for what tests make.
    assert max(len(large.table), len(small.table)) <= 128
    table = large.table + [_FREE] * (128 - len(large.table))
    header = _MAGIC + b"\0" * 16 + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + b"\0" * 10
    header += struct.pack("<8I", 1, directory, 0, _SMALL, small_table, 1, _END, 0)
    return header + struct.pack("<109I", 0, *[_FREE] * 108) + struct.pack("<128I", *table) + large.body


class _Sectors:
    """Chains of sectors: their bytes, and for each sector the next one."""

    def __init__(self, size: int, table: Sequence[int] = ()) -> None:
        self.size, self.table, self.body = size, list(table), b""

    def add(self, data: bytes) -> int:
        """Where the chain begins."""
        count = -(-len(data) // self.size)
        if not count:
            return _END
        start = len(self.table)
        self.table += [*range(start + 1, start + count), _END]
        self.body += data.ljust(count * self.size, b"\0")
        return start


def _add(content: "bytes | Folder", name: str, kind: int, entries: list[_Entry]) -> _Entry:
    """Append an entry and all below it."""
    if isinstance(content, bytes):
        entries.append(_Entry(name, 2, content))
        return entries[-1]
    folder = _Entry(name, kind)
    entries.append(folder)
    before = None
    for child, value in content.items():
        number = len(entries)
        added = _add(value, child, 1, entries)
        if before is None:
            folder.child = number
        else:
            before.sibling = number
        before = added
    return folder


# --- old Office files -------------------------------------------------------------------------------------------------


def word_bytes(text: bytes = b"Leave is thirty days.", *, flags: int = 0, extra: Folder | None = None) -> bytes:
    """What the gate looks at of a Word document: its flags and its text."""
    head = struct.pack("<HHHHHH", 0xA5EC, 0xC1, 0, 0x409, 0, flags)
    return compound_file({"WordDocument": head.ljust(1536, b"\0") + text, "1Table": b"\0"} | dict(extra or {}))


def workbook_bytes(*records: tuple[int, bytes]) -> bytes:
    """A workbook of these records."""
    packed = b"".join(struct.pack("<HH", kind, len(body)) + body for kind, body in ((0x809, b"\0" * 16), *records))
    return compound_file({"Workbook": packed})


def slides_bytes(*records: tuple[int, bytes], token: int = 0xE391C05F) -> bytes:
    """A presentation whose one container holds these records."""
    inner = b"".join(struct.pack("<HHI", 0, kind, len(body)) + body for kind, body in records)
    document = struct.pack("<HHI", 0xF, 0x3E8, len(inner)) + inner
    user = struct.pack("<HHIII", 0, 0xFF6, 20, 20, token).ljust(28, b"\0")
    return compound_file({"PowerPoint Document": document, "Current User": user})


# --- Outlook messages -------------------------------------------------------------------------------------------------


def message_bytes(**parts: object) -> bytes:
    """An Outlook message; parts as `message_folder` takes them."""
    return compound_file({"__nameid_version1.0": {}} | dict(message_folder(32, **parts)))  # type: ignore[arg-type]


def message_folder(
    header: int = 24,
    *,
    subject: str = "",
    body: str = "",
    html: bytes = b"",
    kind: str = "IPM.Note",
    sender: tuple[str, str] = ("Priya Nair", "priya@example.org"),
    recipients: tuple[tuple[str, str, int], ...] = (),
    attachments: tuple[Folder, ...] = (),
) -> Folder:
    """The streams and folders of a message; `html` is in UTF-8."""
    values: dict[tuple[int, int], bytes | int] = {(0x3FDE, 3): 65001}
    texts = {0x1A: kind, 0x37: subject, 0x1000: body, 0xC1A: sender[0], 0x5D01: sender[1]}
    values |= {(number, 0x1F): text.encode("utf-16-le") for number, text in texts.items() if text}
    if html:
        values[0x1013, 0x102] = html
    folder = _properties(header, values)
    for at, (name, address, line) in enumerate(recipients):
        person = {(0x3001, 0x1F): name.encode("utf-16-le"), (0x39FE, 0x1F): address.encode("utf-16-le")}
        folder[f"__recip_version1.0_#{at:08X}"] = _properties(8, {**person, (0xC15, 3): line})
    for at, attachment in enumerate(attachments):
        folder[f"__attach_version1.0_#{at:08X}"] = attachment
    return folder


def attached_file(name: str, data: bytes) -> Folder:
    """A file in a message."""
    return _properties(8, {(0x3707, 0x1F): name.encode("utf-16-le"), (0x3701, 0x102): data, (0x3705, 3): 1})


def attached_message(message: Folder) -> Folder:
    """A message in a message."""
    return _properties(8, {(0x3705, 3): 5}) | {"__substg1.0_3701000D": message}


def _properties(header: int, values: Mapping[tuple[int, int], bytes | int]) -> dict[str, "bytes | Folder"]:
    folder: dict[str, bytes | Folder] = {}
    listed = b"\0" * header
    for (number, kind), value in values.items():
        size = value if isinstance(value, int) else len(value)
        listed += struct.pack("<HHIQ", kind, number, 6, size)
        if isinstance(value, bytes):
            folder[f"__substg1.0_{number:04X}{kind:04X}"] = value
    return {"__properties_version1.0": listed} | folder
