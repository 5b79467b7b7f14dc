"""Compressed rich text, as Outlook keeps the bodies of messages: [MS-OXRTFCP]."""

import struct

_COMPRESSED, _PLAIN = b"LZFu", b"MELA"
_WINDOW = 4096
# Rich text packs well, but not like this.
_LARGEST = 64 * 1024 * 1024
# What the window holds before the first byte, [MS-OXRTFCP] 2.2.1.
_START = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans Serif"
    rb"SymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0" + b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)


def decompressed(data: bytes) -> bytes:
    """The rich text in the value of PidTagRtfCompressed. Raises ValueError when it is none."""
    if len(data) < 16:
        raise ValueError("no header")
    size, kind = struct.unpack_from("<I", data, 4)[0], data[8:12]
    if kind == _PLAIN:
        return data[16 : 16 + size]
    if kind != _COMPRESSED or size > _LARGEST:
        raise ValueError("no compressed rich text")
    return _unpacked(data[16:], size)


def _unpacked(packed: bytes, size: int) -> bytes:
    window = bytearray(_START.ljust(_WINDOW, b" "))
    at, position = len(_START), 0
    out = bytearray()
    while position < len(packed) and len(out) < size:
        control, position = packed[position], position + 1
        for bit in range(8):
            if control >> bit & 1:
                if position + 2 > len(packed):
                    return bytes(out)
                (pair,) = struct.unpack_from(">H", packed, position)
                position += 2
                source, count = pair >> 4, (pair & 15) + 2
                if source == at:
                    return bytes(out)
            else:
                source, count = -1, 1
            for step in range(count):
                if source < 0 and position >= len(packed):
                    return bytes(out)
                byte = packed[position] if source < 0 else window[(source + step) % _WINDOW]
                position += source < 0
                out.append(byte)
                window[at] = byte
                at = (at + 1) % _WINDOW
    return bytes(out)
