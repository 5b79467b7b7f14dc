"""How public files of every kind and oddity end: ready, ready with a warning, or failed with a reason.

Every file is read in the jail, like an upload; what comes inside mails and archives too. A reason that is none, or a
document without text, fails the run. Results go to docs/benchmarks/formats.json.
"""

import asyncio
import json
import logging
import platform
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from time import perf_counter
from typing import Any, Literal

from core.errors import IngestError
from core.settings import Settings
from ingest.jail import Jail
from ingest.reading import Reading
from tests.paths import BENCHMARKS, shared_data

FOLDERS = (
    "files-unstructured",
    "files-mail",
    "files-pdfjs",
    "handbook-gsa-tts",
    "handbook-zh",
    "policies-basecamp",
    "policies-github",
    "policies-strongdm-comply",
)
# Mails in archives in mails: deeper ones are counted as their parent's only.
_DEEPEST = 4
# Not part of the sets: where they come from.
_NOTES = "SOURCE.txt"

State = Literal["ready", "warned", "failed", "broken"]
_WORDS = {"ready": "ready", "warned": "ready with warnings", "failed": "failed with a reason", "broken": "neither"}


@dataclass(frozen=True, slots=True)
class Ending:
    """How one file ended. `inside` is true of files that came in another one."""

    folder: str
    path: str
    state: State
    codes: tuple[str, ...]
    reason: str
    chunks: int
    seconds: float
    inside: bool

    @property
    def extension(self) -> str:
        return PurePath(self.path).suffix.lower() or "(none)"


def run(names: Sequence[str]) -> int:
    """Read the folders of these names, all when there are none; 1 when a file ended in no known state."""
    # What parsers say of broken files is theirs; the outcome is looked at here.
    logging.disable(logging.CRITICAL)
    data = shared_data()
    folders = [data / name for name in names or FOLDERS if (data / name).is_dir()] if data else []
    if not folders:
        print("The public data sets are not beside the project.")
        return 1
    started = perf_counter()
    endings = asyncio.run(_read_all(folders))
    seconds = perf_counter() - started
    _show(endings)
    if not names:
        target = BENCHMARKS / "formats.json"
        target.write_text(json.dumps(_report(endings, seconds), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"\nWritten to {target.relative_to(BENCHMARKS.parents[1])}.")
    return int(any(ending.state == "broken" for ending in endings))


async def _read_all(folders: Sequence[Path]) -> list[Ending]:
    jail = Jail(Settings.load())
    endings = []
    try:
        for folder in folders:
            files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != _NOTES)
            for number, path in enumerate(files, start=1):
                print(f"\r{folder.name}: {number} of {len(files)}   ", end="", flush=True)
                name = path.relative_to(folder).as_posix()
                endings += [ending async for ending in _read(jail, folder.name, path, name, 0)]
            print()
    finally:
        await jail.close()
    return endings


async def _read(jail: Jail, folder: str, path: Path, name: str, depth: int) -> AsyncIterator[Ending]:
    started = perf_counter()
    try:
        reading = await jail.read(path, name)
    except IngestError as error:
        state: State = "failed" if error.message else "broken"
        yield Ending(folder, name, state, (error.code,), error.message, 0, perf_counter() - started, depth > 0)
        return
    except Exception as error:  # noqa: BLE001 whatever else comes out is what this looks for
        code = type(error).__name__
        yield Ending(folder, name, "broken", (code,), str(error), 0, perf_counter() - started, depth > 0)
        return
    yield _ending(folder, name, reading, perf_counter() - started, depth)
    if depth < _DEEPEST:
        for attachment in reading.parsed.attachments:
            with tempfile.NamedTemporaryFile() as file:
                file.write(attachment.data)
                file.flush()
                async for ending in _read(jail, folder, Path(file.name), f"{name}/{attachment.name}", depth + 1):
                    yield ending


def _ending(folder: str, name: str, reading: Reading, seconds: float, depth: int) -> Ending:
    warnings = reading.parsed.warnings
    codes = {warning.code for warning in warnings} | ({"instruction_like"} if _held(reading) else set())
    state: State = "warned" if codes else "ready"
    if not reading.chunks:
        state = "broken"
    reason = " ".join(warning.text for warning in warnings)
    return Ending(folder, name, state, tuple(sorted(codes)), reason, len(reading.chunks), seconds, depth > 0)


def _held(reading: Reading) -> bool:
    return any(chunk.suspicion for chunk in reading.chunks)


def _rows(endings: Sequence[Ending]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[Ending]] = {}
    for ending in endings:
        groups.setdefault((ending.folder, ending.extension), []).append(ending)
    return [
        {
            "folder": folder,
            "extension": extension,
            "files": len(group),
            **{
                state: sum(ending.state == state for ending in group)
                for state in ("ready", "warned", "failed", "broken")
            },
            "why": dict(Counter(code for ending in group for code in ending.codes).most_common()),
        }
        for (folder, extension), group in sorted(groups.items())
    ]


def _show(endings: Sequence[Ending]) -> None:
    print(f"\n{'folder':<26}{'kind':<11}{'files':>6}{'ready':>7}{'warned':>8}{'failed':>8}  why")
    for row in _rows(endings):
        why = ", ".join(f"{code} {count}" for code, count in row["why"].items())
        counts = f"{row['files']:>6}{row['ready']:>7}{row['warned']:>8}{row['failed']:>8}"
        print(f"{row['folder']:<26}{row['extension']:<11}{counts}  {why}")
    total = Counter(ending.state for ending in endings)
    print(f"\n{len(endings)} files: {', '.join(f'{count} {state}' for state, count in total.most_common())}")
    for ending in endings:
        if ending.state == "broken":
            print(f"  {ending.folder}/{ending.path}: {', '.join(ending.codes)} {ending.reason}")


def section(found: dict[str, Any]) -> str:
    """The part of docs/benchmarks.md."""
    head = "| folder | kind | files | ready | with warnings | failed | why |\n|---|---|---|---|---|---|---|\n"
    rows = []
    for row in found["rows"]:
        why = ", ".join(f"`{code}` {count}" for code, count in row["why"].items())
        cells = [row["folder"], row["extension"], row["files"], row["ready"], row["warned"], row["failed"], why]
        rows.append("| " + " | ".join(map(str, cells)) + " |")
    states = found["states"]
    total = ", ".join(f"{states.get(state, 0)} {words}" for state, words in _WORDS.items())
    return (
        f"## How public files end\n\n{found['files']} files, those inside mails and archives included, each read in "
        f"the jail: {total}. Measured {found['date']} on {found['machine']}. The codes are those of "
        f"[ingestion](reference/ingestion.md); every file that is not plainly ready is listed with its reason in "
        f"`benchmarks/formats.json`.\n\n{head}" + "\n".join(rows)
    )


def _report(endings: Sequence[Ending], seconds: float) -> dict[str, object]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}, one file at a time",
        "seconds": round(seconds),
        "files": len(endings),
        "states": dict(Counter(ending.state for ending in endings)),
        "rows": _rows(endings),
        "not_ready": [
            {**asdict(ending), "seconds": round(ending.seconds, 2)} for ending in endings if ending.state != "ready"
        ],
    }
