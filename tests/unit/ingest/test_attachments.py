"""Files inside files: names from strangers, limits, and what is told of the rest."""

import pytest

from ingest.attachments import Takings, safe_name
from ingest.options import ParseOptions


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("leave.pdf", "leave.pdf"),
        ("hr/leave.pdf", "hr/leave.pdf"),
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("C:\\Users\\me\\leave.pdf", "Users/me/leave.pdf"),
        ("\\\\server\\share\\a.txt", "server/share/a.txt"),
        ("a/./b/../c.txt", "a/b/c.txt"),
        ("nul\0l.txt", "null.txt"),
        ("fdp.\u202eexe.txt", "fdp.exe.txt"),
        ('a<b>:"|?*.txt', "a_b______.txt"),
        ("休假规定.docx", "休假规定.docx"),
        ("...", "unnamed"),
        ("", "unnamed"),
        ("x" * 300 + ".pdf", "x" * 116 + ".pdf"),
    ],
)
def test_names_stay_below_where_they_are_put(given: str, safe: str) -> None:
    assert safe_name(given) == safe


def test_a_deep_name_keeps_its_end() -> None:
    name = safe_name("d/" * 50 + "leave.pdf")
    assert name.endswith("/leave.pdf")
    assert name.count("/") < 10


def test_what_is_not_taken_is_told_with_its_reason() -> None:
    takings = Takings(ParseOptions(max_bytes=4, max_attachments=2))
    for name, data in [("a.txt", b"x"), ("b.exe", b"x"), ("c.txt", b""), ("d.txt", b"large"), ("e.txt", b"x")]:
        takings.take(name, data)
    takings.take("f.txt", b"x")
    assert [attachment.name for attachment in takings.kept] == ["a.txt", "e.txt"]
    (warning,) = takings.warnings
    assert (warning.code, warning.count) == ("attachments_refused", 4)
    assert warning.text == (
        "Files inside it that were not taken: b.exe (not a supported format), c.txt (empty), "
        "d.txt (larger than the limit), f.txt (beyond the limit for one file)."
    )


def test_a_long_list_is_counted() -> None:
    takings = Takings(ParseOptions())
    for number in range(30):
        takings.refuse(f"{number}.exe", "not a supported format")
    assert takings.warnings[0].text.endswith("and 10 more.")


def test_two_of_one_name_get_different_ones() -> None:
    takings = Takings(ParseOptions())
    for name in ("a.txt", "A.txt", "x/../a.txt", "a.txt"):
        takings.take(name, b"x")
    assert [attachment.name for attachment in takings.kept] == ["a.txt", "A (2).txt", "x/a.txt", "a (3).txt"]


def test_nothing_refused_is_nothing_to_tell() -> None:
    assert Takings(ParseOptions()).warnings == []
