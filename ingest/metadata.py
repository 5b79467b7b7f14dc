"""What is said of a document beside its text: a sidecar `NAME.meta.yaml` next to the file `NAME`.

Where several speak, an administrator wins over the sidecar, and the sidecar over the file's own front matter.
"""

import datetime
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from core.records import ParseWarning, Sidecar
from ingest.markdown import as_date

SUFFIX: Final = ".meta.yaml"
# A sidecar holds four short values; more is something else under that name.
MAX_BYTES: Final = 16 * 1024
NAMES: Final = ("title", "effective_from", "effective_to", "supersedes")
_LONGEST: Final = 500


def is_sidecar(path: Path) -> bool:
    """Whether a file only speaks of another one. Such files are never documents themselves."""
    return path.name.lower().endswith(SUFFIX)


def sidecar_of(path: Path) -> Path:
    """Where a file's sidecar lies, whether or not it is there."""
    return path.with_name(path.name + SUFFIX)


def read(path: Path) -> Sidecar:
    """What a sidecar says, with warnings `bad_metadata` for what of it cannot be used. Raises OSError."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    return understand(data, path.name)


def beside(path: Path) -> Sidecar | None:
    """What the sidecar of a file says, where there is one to read. A link may lead anywhere: none is followed."""
    place = sidecar_of(path)
    try:
        return read(place) if place.is_file() and not place.is_symlink() else None
    except OSError:
        return None


def digest(path: Path) -> str:
    """By what a sidecar is known to say something else than before. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.sha256(file.read(MAX_BYTES + 1)).hexdigest()


def understand(data: bytes, name: str) -> Sidecar:
    """As `read`, of bytes that were read already; `name` is for the messages."""
    faults: list[str] = []
    said = _said(_head(data, faults), faults)
    warnings = tuple(_warning(name, fault) for fault in faults)
    return Sidecar(hashlib.sha256(data).hexdigest(), **said, warnings=warnings)


def _head(data: bytes, faults: list[str]) -> Mapping[Any, Any]:
    if len(data) > MAX_BYTES:
        faults.append(f"it is larger than {MAX_BYTES // 1024} KB")
        return {}
    try:
        head = yaml.safe_load(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError):
        faults.append("it is not valid YAML in UTF-8")
        return {}
    if not isinstance(head, Mapping | None):
        faults.append("it holds no names with values")
    return head if isinstance(head, Mapping) else {}


def _said(head: Mapping[Any, Any], faults: list[str]) -> dict[str, Any]:
    unknown = sorted(str(name)[:50] for name in head if name not in NAMES)
    faults += [f"{name!r} is not known ({', '.join(NAMES)} are)" for name in unknown]
    said: dict[str, Any] = {name: _words(head, name, faults) for name in ("title", "supersedes")}
    first, last = (_date(head, name, faults) for name in ("effective_from", "effective_to"))
    if first is not None and last is not None and last < first:
        faults.append("effective_to comes before effective_from, and neither was used")
        first = last = None
    return said | {"effective_from": first, "effective_to": last}


def _words(head: Mapping[Any, Any], name: str, faults: list[str]) -> str | None:
    value = head.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float | datetime.date):
        faults.append(f"{name} is not a text")
        return None
    words = " ".join("".join(char if char.isprintable() else " " for char in str(value)).split())
    return words[:_LONGEST] or None


def _date(head: Mapping[Any, Any], name: str, faults: list[str]) -> datetime.date | None:
    try:
        return as_date(head.get(name))
    except ValueError:
        faults.append(f"{name} is not a date like 2026-01-31")
        return None


def _warning(name: str, fault: str) -> ParseWarning:
    return ParseWarning("bad_metadata", f"The sidecar {name} could not be used in full: {fault}.")
