"""Mail: the headers that a reader needs, the bodies to read, and the files and messages inside."""

import base64
import binascii
import email
import email.policy
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesHeaderParser
from typing import Literal

from core.errors import EncryptedFile
from core.records import Attachment, ParseWarning
from ingest.attachments import Takings
from ingest.encoding import decode
from ingest.kinds import Kind, ending
from ingest.options import ParseOptions

MAX_DEPTH = 8
# Pictures that a message shows inside its text are logos and lines below this many bytes.
LARGEST_DECORATION = 32 * 1024

# Marks of quoted lines: the words of earlier messages are read like all others.
_QUOTE = re.compile(r"^(?:>[ \t]?)+", re.M)
_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_ENCRYPTED = ("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime")
_SIGNATURES = ("application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature")
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Body:
    """One readable part: HTML or plain text, or the headers of a message."""

    form: Literal["html", "plain", "headers"]
    text: str


@dataclass(frozen=True, slots=True)
class Mail:
    """A message as a reader sees it. Messages attached to it are among the attachments, ending in `.eml`."""

    subject: str | None
    bodies: tuple[Body, ...]
    attachments: tuple[Attachment, ...]
    warnings: tuple[ParseWarning, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """A file in a message; `name` is empty when it has none. `shown_as` is how the text refers to it, if it does."""

    kind: str
    name: str
    data: bytes
    shown_as: str | None = None


def read_mail(data: bytes, options: ParseOptions) -> Mail:
    """Read a message. Raises EncryptedFile."""
    # The older policy does not fail on broken headers; they are decoded below.
    message = email.message_from_bytes(data, policy=email.policy.compat32)
    takings = Takings(options)
    parts: list[_Part] = []
    bodies = tuple(_bodies(message, parts, takings, 0))
    shown = "".join(body.text for body in bodies if body.form == "html")
    decorations = 0
    for number, part in enumerate(parts, start=1):
        if part.shown_as and len(part.data) < LARGEST_DECORATION and f"cid:{part.shown_as}" in shown:
            decorations += 1
        else:
            takings.take(part.name or _made_up_name(part.kind, number), part.data)
    lines = [f"{name}: {value}" for name in _SHOWN if (value := _header(message, name))]
    headers = (Body("headers", "\n".join(lines)),) if lines else ()
    warnings = (*takings.warnings, *_decorations(decorations))
    return Mail(_header(message, "Subject"), headers + bodies, tuple(takings.kept), warnings)


def _decorations(count: int) -> list[ParseWarning]:
    if not count:
        return []
    return [ParseWarning("small_pictures", f"{count} small pictures in the text were left out.", count)]


def _header(message: Message, name: str) -> str | None:
    raw = next((value for key, value in message.raw_items() if key.lower() == name.lower()), None)
    if raw is None:
        return None
    # Some programs write other letters as they are; the parser keeps their bytes as lone surrogates.
    return _decoded(decode(raw.encode("utf-8", "surrogateescape"))) or None


def _decoded(raw: str) -> str:
    """A header's value in one line, encoded words decoded where they can be."""
    try:
        value = str(make_header(decode_header(raw)))
    except (MessageError, LookupError, ValueError):
        value = raw
    return " ".join(value.split())


def _bodies(part: Message, found: list[_Part], takings: Takings, depth: int) -> Iterator[Body]:
    kind = part.get_content_type()
    if kind in _ENCRYPTED:
        raise EncryptedFile("The message is encrypted. Save it decrypted and upload it again.")
    if depth > MAX_DEPTH:
        takings.refuse(_file_name(part) or "a part", "too deep inside")
    elif kind == "message/rfc822":
        found.append(_inner_message(part))
    elif part.is_multipart():
        yield from _parts(part, kind, found, takings, depth)
    elif kind in ("text/plain", "text/html") and part.get_content_disposition() != "attachment":
        text = _text(part)
        if text.strip():
            yield Body("html", text) if kind == "text/html" else Body("plain", _QUOTE.sub("", text))
    elif kind not in _SIGNATURES:
        found.append(_Part(kind, _file_name(part), _payload(part), _shown_as(part)))


def _parts(part: Message, kind: str, found: list[_Part], takings: Takings, depth: int) -> Iterator[Body]:
    children = [child for child in part.get_payload() if isinstance(child, Message)]
    if kind == "multipart/alternative":
        # The same text in several forms: HTML keeps headings and tables. What has no name is one form more.
        inside: list[_Part] = []
        forms = [list(_bodies(child, inside, takings, depth + 1)) for child in children]
        found += [part for part in inside if part.name or part.shown_as]
        rich = [form for form in forms if any(body.form == "html" for body in form)]
        yield from next(iter(rich + [form for form in forms if form]), [])
    else:
        for child in children:
            yield from _bodies(child, found, takings, depth + 1)


def _inner_message(part: Message) -> _Part:
    """A message inside a message, as a file."""
    payload = part.get_payload()
    first = payload[0] if isinstance(payload, list) and payload else part
    inner = first if isinstance(first, Message) else part
    data = _serialised(inner)
    if (part.get("Content-Transfer-Encoding") or "").strip().lower() == "base64":
        # Against the rules, but written by some: the parser took the encoded message for one without headers.
        with suppress(binascii.Error):
            data = base64.b64decode(data, validate=False)
    name = _file_name(part) or _header(inner, "Subject") or "message"
    # Some call any text a message.
    kind = Kind.EML if BytesHeaderParser(policy=email.policy.compat32).parsebytes(data).keys() else Kind.TEXT
    suffix = ending(kind)
    named = name if name.lower().endswith(suffix) else name.replace("/", "_")[:_LONGEST_NAME] + suffix
    return _Part(kind.value, named, data if data.strip() else b"")


def _serialised(message: Message) -> bytes:
    try:
        return message.as_bytes(policy=email.policy.compat32)
    except (LookupError, UnicodeError, ValueError):
        # A header or charset that cannot be written as it was read.
        return message.as_string(policy=email.policy.compat32).encode("utf-8", "replace")


def _payload(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _text(part: Message) -> str:
    charset = part.get_param("charset")
    return decode(_payload(part), charset if isinstance(charset, str) else None)


def _shown_as(part: Message) -> str | None:
    if part.get_content_maintype() != "image":
        return None
    return (part.get("Content-ID") or "").strip().strip("<>") or None


def _file_name(part: Message) -> str:
    # The last piece only: a path says where a file lay on the sender's machine.
    return re.split(r"[/\\]", _decoded(part.get_filename() or ""))[-1][:_LONGEST_NAME]


def _made_up_name(kind: str, number: int) -> str:
    known = next((ending(other) for other in Kind if other.value == kind), "")
    return f"attachment-{number}{known}"
