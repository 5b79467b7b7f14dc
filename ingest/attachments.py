"""Files that come inside others: names made safe, and what is not taken is told."""

from dataclasses import dataclass, field

from core.records import Attachment, ParseWarning
from ingest.clean import clean
from ingest.kinds import supported
from ingest.options import ParseOptions

_MEGABYTE = 1024 * 1024
# Of all files taken out of one: they are in memory together.
MAX_TOTAL = 512 * _MEGABYTE

_LONGEST_PART, _LONGEST_NAME, _MOST_PARTS = 120, 400, 8
_FORBIDDEN = str.maketrans(dict.fromkeys('<>:"|?*\n\t', "_"))
# A warning is read by a person: beyond this many names it counts.
_NAMED = 20


def safe_name(name: str) -> str:
    """A relative path with forward slashes that stays below where it is put, whatever a stranger wrote.

    Roots, drives, `.` and `..`, characters that show nothing and those that some system forbids are left out.
    """
    plain = clean(name).text.replace("\\", "/")
    if plain[1:2] == ":":
        plain = plain[2:]
    parts = [part.translate(_FORBIDDEN).strip(" .") for part in plain.split("/")]
    kept = [_shortened(part) for part in parts if part]
    # What lies too deep is still found by its own name.
    return "/".join(kept[-_MOST_PARTS:])[-_LONGEST_NAME:].strip("/ .") or "unnamed"


def _shortened(part: str) -> str:
    stem, dot, suffix = part.rpartition(".")
    if len(part) <= _LONGEST_PART:
        return part
    return (
        f"{stem[: _LONGEST_PART - len(suffix) - 1]}{dot}{suffix}" if dot and len(suffix) < 10 else part[:_LONGEST_PART]
    )


@dataclass(slots=True)
class Takings:
    """The files taken out of one document, within the limits, each under a name of its own."""

    options: ParseOptions
    kept: list[Attachment] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)
    _total: int = 0

    def take(self, name: str, data: bytes) -> None:
        """Keep a file, or remember why not."""
        safe = safe_name(name)
        reason = self._reason(safe, len(data))
        if reason:
            self.refused.append(f"{safe} ({reason})")
            return
        self._total += len(data)
        self.kept.append(Attachment(self._unique(safe), data))

    def refuse(self, name: str, reason: str) -> None:
        """Remember a file that could not be had at all."""
        self.refused.append(f"{safe_name(name)} ({reason})")

    @property
    def warnings(self) -> list[ParseWarning]:
        """One for all that was refused."""
        if not self.refused:
            return []
        names = ", ".join(self.refused[:_NAMED])
        more = len(self.refused) - _NAMED
        text = f"Files inside it that were not taken: {names}" + (f", and {more} more." if more > 0 else ".")
        return [ParseWarning("attachments_refused", text, len(self.refused))]

    def _reason(self, name: str, size: int) -> str | None:
        if not supported(name):
            return "not a supported format"
        if not size:
            return "empty"
        if size > self.options.max_bytes:
            return "larger than the limit"
        if len(self.kept) >= self.options.max_attachments or self._total + size > MAX_TOTAL:
            return "beyond the limit for one file"
        return None

    def _unique(self, name: str) -> str:
        stem, dot, suffix = name.rpartition(".")
        candidate, number = name, 2
        while candidate.casefold() in self._names:
            candidate, number = f"{stem} ({number}){dot}{suffix}", number + 1
        self._names.add(candidate.casefold())
        return candidate
