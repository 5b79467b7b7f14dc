"""Mail: bodies and headers of odd messages, attachments and messages inside."""

import base64

import pytest

from core.errors import EncryptedFile
from ingest import mail
from ingest.mail import Mail
from ingest.options import ParseOptions


def read_mail(data: bytes) -> Mail:
    return mail.read_mail(data, ParseOptions())


def mixed(*parts: bytes, head: bytes = b"Subject: x\n") -> bytes:
    body = b"".join(b"--b\n" + part + b"\n" for part in parts)
    return head + b"Content-Type: multipart/mixed; boundary=b\n\n" + body + b"--b--\n"


def attached(name: str, data: bytes, *, kind: str = "application/octet-stream", more: str = "") -> bytes:
    head = f'Content-Type: {kind}\nContent-Disposition: attachment; filename="{name}"\n{more}'
    return head.encode() + b"Content-Transfer-Encoding: base64\n\n" + base64.b64encode(data)


def names(message: Mail) -> list[str]:
    return [attachment.name for attachment in message.attachments]


def test_html_is_preferred_to_the_same_text_in_plain() -> None:
    message = read_mail(
        b"Subject: x\nContent-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\nplain\n"
        b"--b\nContent-Type: text/html\n\n<p>rich</p>\n--b--\n"
    )
    assert [body.form for body in message.bodies] == ["headers", "html"]


def test_quote_marks_go() -> None:
    message = read_mail(b"Subject: x\n\n> earlier\n>> first\nmine\n")
    assert message.bodies[-1].text == "earlier\nfirst\nmine\n"


def test_a_message_inside_becomes_a_file_of_its_own() -> None:
    inner = b"Subject: Re: Travel\nFrom: a@example.org\n\ninner text\n"
    message = read_mail(mixed(b"Content-Type: text/plain\n\nsee below", b"Content-Type: message/rfc822\n\n" + inner))
    assert [body.text.strip() for body in message.bodies] == ["Subject: x", "see below"]
    assert names(message) == ["Re_ Travel.eml"]
    again = read_mail(message.attachments[0].data)
    assert (again.subject, again.bodies[-1].text.strip()) == ("Re: Travel", "inner text")


def test_a_message_inside_that_was_encoded_against_the_rules_is_read() -> None:
    inner = base64.b64encode(b"Subject: Inner\n\ninner text\n")
    message = read_mail(
        mixed(b"Content-Type: message/rfc822; name=m.eml\nContent-Transfer-Encoding: base64\n\n" + inner)
    )
    assert read_mail(message.attachments[0].data).subject == "Inner"


def test_text_that_is_only_called_a_message_is_text() -> None:
    message = read_mail(
        mixed(
            b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n" + base64.b64encode(b"just words"),
            b"Content-Type: message/rfc822\n\n",
        )
    )
    assert [(a.name, a.data) for a in message.attachments] == [("message.txt", b"just words")]
    assert "message.txt (empty)" in message.warnings[0].text


def test_an_unnamed_form_of_the_same_text_is_no_attachment() -> None:
    message = read_mail(
        b"Subject: x\nContent-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\nplain\n"
        b"--b\nContent-Type: text/watch-html\n\n<b>small</b>\n"
        b"--b\nContent-Type: text/csv; name=a.csv\n\na,b\n--b--\n"
    )
    assert [body.form for body in message.bodies] == ["headers", "plain"]
    assert (names(message), message.warnings) == (["a.csv"], ())


def test_a_digest_is_messages() -> None:
    digest = (
        b"Subject: Digest\nContent-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: One\n\n1\n"
        b"--b\n\nSubject: Two\n\n2\n--b--\n"
    )
    assert names(read_mail(digest)) == ["One.eml", "Two.eml"]


def test_attachments_are_taken_under_safe_names() -> None:
    message = read_mail(mixed(b"Content-Type: text/plain\n\nhi", attached("../../evil.txt", b"secret")))
    assert [(a.name, a.data) for a in message.attachments] == [("evil.txt", b"secret")]
    assert all("secret" not in body.text for body in message.bodies)


def test_attachments_that_cannot_be_read_are_told() -> None:
    message = read_mail(mixed(b"Content-Type: text/plain\n\nhi", attached("tool.exe", b"MZ")))
    assert names(message) == []
    assert [(w.code, w.text) for w in message.warnings] == [
        ("attachments_refused", "Files inside it that were not taken: tool.exe (not a supported format).")
    ]


def test_a_signature_is_not_told() -> None:
    signature = attached("smime.p7s", b"x", kind="application/pkcs7-signature")
    message = read_mail(mixed(b"Content-Type: text/plain\n\nhi", signature))
    assert (message.attachments, message.warnings) == ((), ())


def test_an_unnamed_part_gets_the_ending_of_its_kind() -> None:
    part = b"Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\nJVBERi0="
    assert names(read_mail(mixed(part))) == ["attachment-1.pdf"]


def test_small_pictures_in_the_text_are_left_out_and_counted() -> None:
    html = b"Content-Type: text/html\n\n<p>hi <img src='cid:logo'> <img src='cid:plan'></p>"
    logo = attached("logo.png", b"x", kind="image/png", more="Content-ID: <logo>\n")
    plan = attached("plan.png", b"x" * mail.LARGEST_DECORATION, kind="image/png", more="Content-ID: <plan>\n")
    other = attached("scan.png", b"x", kind="image/png", more="Content-ID: <scan>\n")
    message = read_mail(mixed(html, logo, plan, other))
    assert names(message) == ["plan.png", "scan.png"]
    assert [(w.code, w.count) for w in message.warnings] == [("small_pictures", 1)]


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


def test_a_message_that_cannot_be_written_as_it_was_read_is_still_a_file() -> None:
    inner = "Subject: Grüße\nContent-Type: text/plain; charset=no-such\n\nGrüße\n".encode("latin-1")
    message = read_mail(mixed(b"Content-Type: message/rfc822\n\n" + inner))
    assert "Gr" in read_mail(message.attachments[0].data).bodies[-1].text


def test_what_lies_too_deep_is_told() -> None:
    part = attached("deep.txt", b"x")
    for level in range(mail.MAX_DEPTH + 1):
        edge = f"b{level}".encode()
        part = b"Content-Type: multipart/mixed; boundary=" + edge + b"\n\n--" + edge + b"\n" + part
        part += b"\n--" + edge + b"--\n"
    message = read_mail(b"Subject: x\n" + part)
    assert names(message) == []
    assert message.warnings[0].code == "attachments_refused"
