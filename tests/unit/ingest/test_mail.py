"""Mail: bodies and headers of odd messages."""

import pytest

from core.errors import EncryptedFile
from ingest.mail import read_mail


def test_html_is_preferred_to_the_same_text_in_plain() -> None:
    message = read_mail(
        b"Subject: x\nContent-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\nplain\n"
        b"--b\nContent-Type: text/html\n\n<p>rich</p>\n--b--\n"
    )
    assert [body.form for body in message.bodies] == ["headers", "html"]


def test_quote_marks_go() -> None:
    message = read_mail(b"Subject: x\n\n> earlier\n>> first\nmine\n")
    assert message.bodies[-1].text == "earlier\nfirst\nmine\n"


def test_a_forwarded_message_is_read_with_its_headers() -> None:
    message = read_mail(
        b"Subject: Fwd\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nsee below\n"
        b"--b\nContent-Type: message/rfc822\n\nSubject: Inner\nFrom: a@example.org\n\ninner text\n--b--\n"
    )
    assert [body.text.strip() for body in message.bodies] == [
        "Subject: Fwd",
        "see below",
        "From: a@example.org\nSubject: Inner",
        "inner text",
    ]


def test_attachments_are_named_not_read() -> None:
    message = read_mail(
        b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nhi\n"
        b'--b\nContent-Type: text/plain; name="../../evil.txt"\nContent-Disposition: attachment\n\nsecret\n--b--\n'
    )
    assert message.attachments == ("../../evil.txt",)
    assert all("secret" not in body.text for body in message.bodies)


@pytest.mark.parametrize("codec", ["utf-8", "gb18030"])
def test_headers_written_as_they_are_can_be_read(codec: str) -> None:
    message = read_mail("Subject: 关于差旅费报销标准的通知\nFrom: 财务部门通知 <a@example.org>\n\nbody".encode(codec))
    assert message.subject == "关于差旅费报销标准的通知"
    assert message.bodies[0].text.startswith("From: 财务部门通知 <a@example.org>")


@pytest.mark.parametrize("kind", ["multipart/encrypted; boundary=b", "application/pkcs7-mime"])
def test_encrypted_mail_is_told(kind: str) -> None:
    with pytest.raises(EncryptedFile):
        read_mail(f"Subject: x\nContent-Type: {kind}\n\nAAAA\n".encode())


@pytest.mark.parametrize(
    "data",
    [
        b"Subject: =?bogus?Q?x?=\nFrom: \xff\xfe\n\nbody",
        b"Content-Type: text/plain; charset=no-such\n\nbody",
        b"Content-Type: multipart/mixed\n\nno boundary",
        b"Content-Transfer-Encoding: base64\n\n%%%not base64",
        b": :\n\n",
        b"",
    ],
)
def test_malformed_mail_does_not_fail(data: bytes) -> None:
    assert read_mail(data).attachments == ()


def test_nesting_ends() -> None:
    deep = b"Content-Type: message/rfc822\n\n" * 60 + b"Subject: x\n\nbody"
    assert len(read_mail(deep).bodies) < 30
