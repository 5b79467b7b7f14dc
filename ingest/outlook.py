"""Outlook messages (MSG) as mail, so that one reader reads both.

Property numbers are those of [MS-OXPROPS]; how they are stored is [MS-OXMSG] 2.
"""

import hashlib
import io
from datetime import datetime
from email.generator import BytesGenerator
from email.header import Header
from email.message import Message
from email.mime.application import MIMEApplication
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.parser import HeaderParser
from email.utils import format_datetime
from typing import Any

from core.errors import EncryptedFile
from ingest.encoding import decode, decode_markup
from ingest.rich_text import decompressed

MAX_DEPTH = 8

_CLASS, _SUBJECT, _BODY, _HTML, _RTF = 0x001A, 0x0037, 0x1000, 0x1013, 0x1009
_HEADERS, _SUBMITTED, _DELIVERED = 0x007D, 0x0039, 0x0E06
_SENDER, _SENDER_ADDRESS, _SENDER_SMTP = 0x0C1A, 0x0C1F, 0x5D01
_NAME, _SMTP, _ADDRESS, _RECIPIENT_TYPE = 0x3001, 0x39FE, 0x3003, 0x0C15
_METHOD, _DATA, _LONG_NAME, _SHORT_NAME = 0x3705, 0x3701, 0x3707, 0x3704
_BY_MESSAGE = 5
_INNER_HEADER, _OUTER_HEADER, _PART_HEADER = 24, 32, 8
# Strings in UTF-16, in a code page, and bytes.
_STORED = ("001F", "001E", "0102")
_LINES = {1: "To", 2: "Cc"}
_PROTECTED_CLASSES = ("ipm.note.smime", "ipm.note.rpmsg", "ipm.note.secure")
_PROTECTED_FILES = ("message.rpmsg", "smime.p7m")


def to_mail(data: bytes) -> bytes:
    """An Outlook message in the form of Internet mail, attachments and inner messages included.

    A body that is only there as rich text becomes an attachment. Raises EncryptedFile; whatever olefile and oxmsg
    raise on damage.
    """
    from olefile import OleFileIO
    from oxmsg.storage import Storage

    with OleFileIO(io.BytesIO(data)) as ole:
        root = Storage.from_ole(ole)
    written = io.BytesIO()
    # The same message always gives the same bytes, and its text cannot know where its parts will be divided.
    seed = hashlib.sha256(data).hexdigest()[:40]
    BytesGenerator(written, mangle_from_=False).flatten(_message(_Properties(root, _OUTER_HEADER), seed, 0))
    return written.getvalue()


class _Properties:
    """The properties of a message, recipient or attachment, read leniently."""

    def __init__(self, storage: Any, header: int) -> None:
        from oxmsg.properties import Properties

        self.storage = storage
        self._known = Properties(storage, properties_header_offset=header)
        self._streams: dict[str, bytes] = {stream.name.upper(): stream.bytes_ for stream in storage.streams}

    def text(self, number: int) -> str:
        """A string, whichever of the two ways it is stored; empty when there is none."""
        wide = self._streams.get(f"__SUBSTG1.0_{number:04X}001F")
        if wide is not None:
            return wide.decode("utf-16-le", "replace").rstrip("\0")
        narrow = self._streams.get(f"__SUBSTG1.0_{number:04X}001E", b"")
        return decode(narrow, self._code_page()).rstrip("\0")

    def has(self, *numbers: int) -> bool:
        """Whether one of these is stored, even if it is blank."""
        return any(f"__SUBSTG1.0_{number:04X}{kind}" in self._streams for number in numbers for kind in _STORED)

    def data(self, number: int) -> bytes:
        """Bytes; empty when there are none."""
        return self._streams.get(f"__SUBSTG1.0_{number:04X}0102", b"")

    def number(self, number: int) -> int | None:
        """A whole number."""
        value = self._known.int_prop_value(number)
        return value if isinstance(value, int) else None

    def date(self, number: int) -> datetime | None:
        """A point in time."""
        try:
            value = self._known.date_prop_value(number)
        except OverflowError:
            return None
        return value if isinstance(value, datetime) else None

    def inner(self, number: int) -> Any:
        """The folder that holds an inner message, None when there is none."""
        name = f"__SUBSTG1.0_{number:04X}000D"
        return next((folder for folder in self.storage.storages if folder.name.upper() == name), None)

    def html(self) -> str:
        """The body as HTML, stored as bytes or as a string."""
        raw = self.data(_HTML)
        if not raw:
            return self.text(_HTML)
        page = self._code_page()
        return decode(raw, page) if page else decode_markup(raw)

    def _code_page(self) -> str | None:
        try:
            return str(self._known.body_encoding)
        except (LookupError, ValueError):
            return None


def _message(properties: _Properties, seed: str, depth: int) -> Message:
    outer = HeaderParser().parsestr(properties.text(_HEADERS))
    folders = properties.storage.iter_attachment_storages()
    attachments = [_Properties(folder, _PART_HEADER) for folder in folders]
    _refuse_encrypted(properties, outer, attachments)
    mail: Message = MIMEMultipart("mixed", boundary=f"{seed}-{depth}-mixed")
    for name, value in _head(properties, outer):
        if value.strip():
            mail[name] = Header(" ".join(value.split()), "utf-8").encode()
    body = MIMEMultipart("alternative", boundary=f"{seed}-{depth}-text")
    for text, form in ((properties.text(_BODY), "plain"), (properties.html(), "html")):
        if text.strip():
            body.attach(MIMEText(text.encode("utf-8", "replace").decode(), form, "utf-8"))
    mail.attach(body)
    # Outlook makes the other forms from the rich one; where it did, that one says nothing more.
    if not properties.has(_BODY, _HTML) and (packed := properties.data(_RTF)):
        mail.attach(_file("message.rtf", decompressed(packed)))
    for attachment in attachments:
        mail.attach(_attached(attachment, seed, depth))
    return mail


def _refuse_encrypted(properties: _Properties, outer: Message, attachments: list[_Properties]) -> None:
    kind = properties.text(_CLASS).lower()
    protected = kind.startswith(_PROTECTED_CLASSES) and "multipartsigned" not in kind
    names = {_file_name(attachment).lower() for attachment in attachments}
    wrapped = outer.get_content_type() == "multipart/encrypted" or any(name in names for name in _PROTECTED_FILES)
    if protected or wrapped:
        raise EncryptedFile("The message is encrypted. Save it decrypted and upload it again.")


def _head(properties: _Properties, outer: Message) -> list[tuple[str, str]]:
    """The headers that a reader needs: as they were sent, else from what Outlook noted."""
    people: dict[str, list[str]] = {"To": [], "Cc": []}
    for folder in properties.storage.iter_recipient_storages():
        person = _Properties(folder, _PART_HEADER)
        line = _LINES.get(person.number(_RECIPIENT_TYPE) or 1)
        if line:
            people[line].append(_person(person.text(_NAME), person.text(_SMTP) or person.text(_ADDRESS)))
    address = properties.text(_SENDER_SMTP) or properties.text(_SENDER_ADDRESS)
    when = properties.date(_SUBMITTED) or properties.date(_DELIVERED)
    return [
        ("From", _person(properties.text(_SENDER), address) or _plain(outer, "From")),
        ("To", ", ".join(people["To"]) or _plain(outer, "To")),
        ("Cc", ", ".join(people["Cc"]) or _plain(outer, "Cc")),
        ("Date", format_datetime(when) if when else _plain(outer, "Date")),
        ("Subject", properties.text(_SUBJECT)),
    ]


def _plain(outer: Message, name: str) -> str:
    return str(outer.get(name) or "")


def _person(name: str, address: str) -> str:
    # Addresses inside an Exchange organisation tell a reader nothing.
    shown = address if "@" in address else ""
    return f"{name} <{shown}>" if name and shown and name != shown else name or shown


def _file_name(attachment: _Properties) -> str:
    return attachment.text(_LONG_NAME) or attachment.text(_SHORT_NAME) or attachment.text(_NAME)


def _attached(attachment: _Properties, seed: str, depth: int) -> Message:
    inner = attachment.inner(_DATA)
    if attachment.number(_METHOD) == _BY_MESSAGE and inner is not None and depth < MAX_DEPTH:
        return MIMEMessage(_message(_Properties(inner, _INNER_HEADER), seed, depth + 1))
    return _file(_file_name(attachment) or "attachment", attachment.data(_DATA))


def _file(name: str, data: bytes) -> Message:
    part = MIMEApplication(data)
    part.add_header("Content-Disposition", "attachment", filename=("utf-8", "", name.replace("\0", "")))
    return part
