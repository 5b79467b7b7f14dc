"""How fast documents are read: documents, chunks and characters a second on one core, importing the parsers left out.

python -m tests.bench.bench_parsing FOLDER [--json FILE]
"""

import argparse
import json
import time
from collections import Counter
from pathlib import Path

from core.errors import IngestError
from ingest import kinds
from ingest.chunking import chunk
from ingest.options import ParseOptions
from ingest.parse import parse


def measure(folder: Path, max_mb: int) -> dict[str, object]:
    """Parse and chunk every file below the folder that has a known extension and is not empty."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and kinds.supported(path)]
    paths = [path for path in paths if path.stat().st_size]
    outcomes: Counter[str] = Counter()
    chunks = characters = 0
    slowest = (0.0, "")
    started = time.process_time()
    for path in paths:
        before = time.process_time()
        try:
            found = chunk(parse(path, options=ParseOptions(max_bytes=max_mb * 1024 * 1024)))
        except IngestError as error:
            outcomes[error.code] += 1
            continue
        outcomes["ready"] += 1
        chunks += len(found)
        characters += sum(len(piece.text) for piece in found)
        slowest = max(slowest, (time.process_time() - before, path.relative_to(folder).as_posix()))
    seconds = time.process_time() - started
    return {
        "files": len(paths),
        "outcomes": dict(outcomes),
        "chunks": chunks,
        "characters": characters,
        "cpu_seconds": round(seconds, 2),
        "documents_per_second": round(len(paths) / max(seconds, 1e-9), 1),
        "chunks_per_second": round(chunks / max(seconds, 1e-9), 1),
        "slowest": {"path": slowest[1], "cpu_seconds": round(slowest[0], 2)},
    }


def warm_up() -> None:
    """Import every parser: a first file costs seconds that no later one does."""
    from ingest import office

    office.read_html("<p>x</p>")
    office.read_text("x")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Measure parsing and chunking of a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    parser.add_argument("--max-mb", type=int, default=100)
    arguments = parser.parse_args()
    warm_up()
    figures = measure(arguments.folder, arguments.max_mb)
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
