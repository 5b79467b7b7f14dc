"""Mail: the headers that a reader needs, and the bodies to read. Attachments are named, not read."""

import email
import email.policy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from typing import Literal

from core.errors import EncryptedFile
from ingest.encoding import decode

MAX_DEPTH = 8
# Marks of quoted lines: the words of earlier messages are read like all others.
_QUOTE = re.compile(r"^(?:>[ \t]?)+", re.M)
_SHOWN = ("From", "To", "Cc", "Date", "Subject")


@dataclass(frozen=True, slots=True)
class Body:
    """One readable part: HTML or plain text, or the headers of a message."""

    form: Literal["html", "plain", "headers"]
    text: str


@dataclass(frozen=True, slots=True)
class Mail:
    """A message as a reader sees it."""

    subject: str | None
    bodies: tuple[Body, ...]
    attachments: tuple[str, ...]


def read_mail(data: bytes) -> Mail:
    """Read a message, forwarded ones inside included. Raises EncryptedFile."""
    # The older policy does not fail on broken headers; they are decoded below.
    message = email.message_from_bytes(data, policy=email.policy.compat32)
    attachments: list[str] = []
    bodies = tuple(_message(message, attachments, 0))
    return Mail(_header(message, "Subject"), bodies, tuple(attachments))


def _message(message: Message, attachments: list[str], depth: int) -> Iterator[Body]:
    lines = [f"{name}: {value}" for name in _SHOWN if (value := _header(message, name))]
    if lines:
        yield Body("headers", "\n".join(lines))
    yield from _bodies(message, attachments, depth)


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


def _bodies(part: Message, attachments: list[str], depth: int) -> Iterator[Body]:
    kind = part.get_content_type()
    if kind in ("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"):
        raise EncryptedFile("The message is encrypted. Save it decrypted and upload it again.")
    if depth > MAX_DEPTH:
        return
    if part.is_multipart():
        yield from _parts(part, kind, attachments, depth)
    elif kind in ("text/plain", "text/html") and part.get_content_disposition() != "attachment":
        text = _text(part)
        if text.strip():
            yield Body("html", text) if kind == "text/html" else Body("plain", _QUOTE.sub("", text))
    elif part.get_filename():
        attachments.append(_file_name(part))


def _parts(part: Message, kind: str, attachments: list[str], depth: int) -> Iterator[Body]:
    children = [child for child in part.get_payload() if isinstance(child, Message)]
    if kind == "multipart/alternative":
        # The same text in several forms: HTML keeps headings and tables.
        forms = [list(_bodies(child, attachments, depth + 1)) for child in children]
        rich = [form for form in forms if any(body.form == "html" for body in form)]
        yield from next(iter(rich + [form for form in forms if form]), [])
    elif kind == "message/rfc822":
        for child in children:
            yield from _message(child, attachments, depth + 1)
    else:
        for child in children:
            yield from _bodies(child, attachments, depth + 1)


def _text(part: Message) -> str:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    charset = part.get_param("charset")
    return decode(payload, charset if isinstance(charset, str) else None)


def _file_name(part: Message) -> str:
    return _decoded(part.get_filename() or "")[:200]
