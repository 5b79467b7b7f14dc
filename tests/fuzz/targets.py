"""What is given bytes that no honest sender makes, and what must hold whatever they are: one function a target."""

import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from agent.grounding.citations import defuse, marks, with_numbers, without_marks
from api.security import check_json
from core.errors import IngestError, InvalidRequest, NotFound
from ingest import gate
from ingest.kinds import EXTENSIONS
from policy.address import read_host
from policy.egress import parse_url

MAX_BYTES: Final = 1_000_000
_OWN_NUMBER: Final = re.compile(r"\[\d+\]")
_ENDINGS: Final = sorted(EXTENSIONS)


# What the first bytes stand for in a URL: few letters in a row make one, and none of these comes by itself.
_PIECES: Final = (
    *(
        b"http://",
        b"https://",
        b"127.0.0.1",
        b"[::1]",
        b"[::ffff:127.0.0.1]",
        b"[fe80::1%251]",
        b"10.0.0.5",
        b"localhost",
    ),
    *(
        b"models.internal",
        b"xn--",
        b"%2e",
        b"@",
        b"\\@",
        b"\t",
        b"\n",
        b"\r",
        b":65535",
        b":65536",
        b":0",
        b":080",
        b"/v1",
    ),
    *("①".encode(), "。".encode(), b"0x7f.1", b"0177.1", b"//", b"?", b"#", b"..", b"[", b"]"),
)


def upload(data: bytes) -> None:
    """The upload gate: any bytes under any name it knows are let in or refused with a reason of ours.

    The first byte chooses the name's ending.
    """
    ending = _ENDINGS[data[0] % len(_ENDINGS)] if data else _ENDINGS[0]
    with tempfile.TemporaryDirectory(prefix="intramuros-fuzz-") as folder:
        path = Path(folder) / f"file{ending}"
        path.write_bytes(data[1:])
        try:
            gate.check(path, max_bytes=MAX_BYTES)
        except (IngestError, NotFound):
            return


def citation(data: bytes) -> None:
    """The parser of citations: no document's text holds a mark, and no number of an answer's is the model's own."""
    text = data.decode("utf-8", errors="replace")
    safe = defuse(text)
    assert marks(safe) == []
    assert defuse(safe) == safe
    plain = without_marks(text)
    assert marks(plain) == []
    assert not _OWN_NUMBER.search(plain)
    assert with_numbers(plain, [1]).count("[1]") == 1


def url(data: bytes) -> None:
    """The judge of URLs: refused, or read so that its host is canonical and nothing can be hidden in it."""
    text = b"".join(_PIECES[byte] if byte < len(_PIECES) else bytes([byte]) for byte in data).decode(errors="replace")
    try:
        endpoint = parse_url(text)
    except ValueError:
        return
    seen = urlsplit(text)
    assert (seen.scheme, seen.hostname, seen.username) == (endpoint.scheme, endpoint.host, None)
    assert (seen.port or {"http": 80, "https": 443}[seen.scheme]) == endpoint.port
    assert str(read_host(endpoint.host)) == endpoint.host
    assert 0 < endpoint.port < 65536
    assert text.isascii()
    assert not set(text) & set("@\\?# \t\r\n")


def body(data: bytes) -> None:
    """The guard of bodies: JSON passes or is refused with a reason of ours."""
    try:
        check_json(data)
    except InvalidRequest:
        return


TARGETS: Final[Mapping[str, Callable[[bytes], None]]] = {
    "upload": upload,
    "citation": citation,
    "url": url,
    "body": body,
}
