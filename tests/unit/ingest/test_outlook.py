"""Outlook messages become mail: headers, bodies, files, and messages inside."""

import struct

import pytest

from core.errors import EncryptedFile
from ingest import outlook, rich_text
from ingest.mail import Mail, read_mail
from ingest.options import ParseOptions
from tests.unit.ingest import compound_file as old


def read(data: bytes) -> Mail:
    return read_mail(outlook.to_mail(data), ParseOptions())


def test_headers_and_the_better_body_are_read() -> None:
    message = read(
        old.message_bytes(
            subject="关于差旅 receipts",
            body="plain",
            html="<p>Grüße</p>".encode(),
            recipients=(("Daniel", "daniel@example.org", 1), ("Ada", "ada@example.org", 2), ("Eve", "e@x.org", 3)),
        )
    )
    assert message.subject == "关于差旅 receipts"
    assert message.bodies[0].text.splitlines() == [
        "From: Priya Nair <priya@example.org>",
        "To: Daniel <daniel@example.org>",
        "Cc: Ada <ada@example.org>",
        "Subject: 关于差旅 receipts",
    ]
    assert [(body.form, body.text) for body in message.bodies[1:]] == [("html", "<p>Grüße</p>")]


def test_addresses_inside_an_exchange_organisation_are_left_out() -> None:
    message = read(old.message_bytes(subject="x", body="y", sender=("Myriam", "/O=EXCHANGELABS/CN=RECIPIENTS")))
    assert message.bodies[0].text.splitlines()[0] == "From: Myriam"


def test_files_and_messages_inside_are_attachments() -> None:
    inner = old.message_folder(subject="Inner", body="inner text", attachments=(old.attached_file("b.txt", b"b"),))
    message = read(
        old.message_bytes(
            subject="Outer",
            body="outer text",
            attachments=(old.attached_file("休假.txt", b"x" * 5000), old.attached_message(inner)),
        )
    )
    assert [attachment.name for attachment in message.attachments] == ["休假.txt", "Inner.eml"]
    assert message.attachments[0].data == b"x" * 5000
    within = read_mail(message.attachments[1].data, ParseOptions())
    assert within.bodies[-1].text.strip() == "inner text"
    assert [attachment.data for attachment in within.attachments] == [b"b"]


def test_the_same_message_gives_the_same_bytes() -> None:
    data = old.message_bytes(subject="x", body="y", attachments=(old.attached_message(old.message_folder(body="z")),))
    assert outlook.to_mail(data) == outlook.to_mail(data)


@pytest.mark.parametrize(
    "data",
    [
        old.message_bytes(subject="x", kind="IPM.Note.SMIME"),
        old.message_bytes(subject="x", attachments=(old.attached_file("message.rpmsg", b"x"),)),
    ],
)
def test_encrypted_messages_are_told(data: bytes) -> None:
    with pytest.raises(EncryptedFile):
        read(data)


def test_a_body_that_is_only_rich_text_becomes_a_file() -> None:
    packed = struct.pack("<II4sI", 30, 18, b"MELA", 0) + rb"{\rtf1 only this}X"
    folder = old.message_folder(32, subject="x")
    data = old.compound_file(dict(folder) | {"__substg1.0_10090102": packed})
    (attachment,) = read(data).attachments
    assert (attachment.name, attachment.data) == ("message.rtf", rb"{\rtf1 only this}X")


def test_rich_text_is_unpacked() -> None:
    # Flags: two letters, then a reference to the fixed beginning of the window, then its end.
    start = rich_text._START
    reference = struct.pack(">H", start.index(rb"\ansi") << 4 | 3)
    end = struct.pack(">H", (len(start) + 7) << 4)
    packed = struct.pack("<II4sI", 0, 7, b"LZFu", 0) + b"\x0c" + b"ab" + reference + end
    assert rich_text.decompressed(packed) == rb"ab\ansi"


@pytest.mark.parametrize("data", [b"", b"x" * 15, struct.pack("<II4sI", 0, 7, b"None", 0)])
def test_what_is_no_rich_text_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no "):
        rich_text.decompressed(data)


def test_rich_text_that_is_cut_short_ends() -> None:
    packed = struct.pack("<II4sI", 0, 100, b"LZFu", 0) + b"\x00ab"
    assert rich_text.decompressed(packed) == b"ab"
