"""Sidecars: what they say, and what of them cannot be used."""

import hashlib
from datetime import date
from pathlib import Path

import pytest

from core.records import Sidecar
from ingest import metadata

WHOLE = b"title: Travel policy\neffective_from: 2026-01-01\neffective_to: '2026-12-31'\nsupersedes: HR-12\n"


def said(data: bytes) -> dict[str, object]:
    """What is said, without what is not."""
    found = metadata.understand(data, "a.md.meta.yaml")
    return {name: value for name in metadata.NAMES if (value := getattr(found, name)) is not None}


def faults(data: bytes) -> list[str]:
    found = metadata.understand(data, "a.md.meta.yaml")
    assert {warning.code for warning in found.warnings} <= {"bad_metadata"}
    return [
        warning.text.removeprefix("The sidecar a.md.meta.yaml could not be used in full: ")
        for warning in found.warnings
    ]


def test_a_whole_sidecar(tmp_path: Path) -> None:
    path = tmp_path / "a.md.meta.yaml"
    path.write_bytes(WHOLE)
    sha256 = hashlib.sha256(WHOLE).hexdigest()
    assert metadata.read(path) == Sidecar(sha256, "Travel policy", date(2026, 1, 1), date(2026, 12, 31), "HR-12")
    assert metadata.digest(path) == sha256


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", {}),
        (b"# nothing yet\n", {}),
        ("\ufefftitle: 差旅制度\n".encode(), {"title": "差旅制度"}),
        (b"title: 2026\nsupersedes: 2025-01-01\n", {"title": "2026", "supersedes": "2025-01-01"}),
        (b"title: ' a \\n b '\n", {"title": "a \\n b"}),
        (b'title: "a\\u202eb\\u0000c"\n', {"title": "a b c"}),
        (b"effective_from: 2026-01-01 10:00:00\n", {"effective_from": date(2026, 1, 1)}),
        (b"title: " + b"x" * 2000, {"title": "x" * 500}),
        (b"title: ''\n", {}),
    ],
)
def test_what_is_said(data: bytes, expected: dict[str, object]) -> None:
    assert said(data) == expected
    assert faults(data) == []


@pytest.mark.parametrize(
    ("data", "expected", "fault"),
    [
        (b"title: [a\n", {}, "it is not valid YAML in UTF-8."),
        (b"title: \xff\n", {}, "it is not valid YAML in UTF-8."),
        (b"!!python/object/apply:os.system ['true']\n", {}, "it is not valid YAML in UTF-8."),
        (b"[" * 5000, {}, "it is not valid YAML in UTF-8."),
        (b"effective_from: 2026-02-30\n", {}, "it is not valid YAML in UTF-8."),
        (b"- title\n", {}, "it holds no names with values."),
        (b"title: " + b"x" * 20_000, {}, "it is larger than 16 KB."),
        (b"title: [1]\nsupersedes: a\n", {"supersedes": "a"}, "title is not a text."),
        (b"title: true\n", {}, "title is not a text."),
        (b"effective_from: soon\n", {}, "effective_from is not a date like 2026-01-31."),
        (b"effective_to: 20\n", {}, "effective_to is not a date like 2026-01-31."),
        (
            b"effective_from: 2026-02-01\neffective_to: 2026-01-01\ntitle: a\n",
            {"title": "a"},
            "effective_to comes before effective_from, and neither was used.",
        ),
        (
            b"owner: me\ntitle: a\n",
            {"title": "a"},
            "'owner' is not known (title, effective_from, effective_to, supersedes are).",
        ),
    ],
)
def test_what_cannot_be_used_is_told(data: bytes, expected: dict[str, object], fault: str) -> None:
    assert said(data) == expected
    assert faults(data) == [fault]


def test_a_sidecar_is_beside_its_file() -> None:
    assert metadata.sidecar_of(Path("share/leave.md")) == Path("share/leave.md.meta.yaml")
    assert metadata.is_sidecar(Path("share/leave.md.meta.yaml"))
    assert metadata.is_sidecar(Path("share/leave.md.META.YAML"))
    assert not metadata.is_sidecar(Path("share/leave.meta.yaml.md"))
