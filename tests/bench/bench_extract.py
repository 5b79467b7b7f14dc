"""How fast each format becomes elements, beside unstructured's own partitioners on the same files.

python -m tests.bench.bench_extract [--plot FILE] [FOLDER ...]

Both read each file in turn, in one process on one core, timed by CPU; what they import is loaded before. PDF is read
by unstructured's `fast` strategy. That needs packages which Intramuros does without:

    pip install pdfminer.six pi-heif pikepdf opencv-python-headless scipy huggingface_hub
    pip install --no-deps unstructured-inference

Without them its column for PDF stays empty. Its sentence splitter is the blank spaCy pipeline that Intramuros gives it,
for both sides: its own would be downloaded, and is slower.
"""

import argparse
import json
import logging
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ingest import office
from ingest.options import ParseOptions
from ingest.parse import parse
from tests.paths import PROJECT, shared_data

HANDBOOK = PROJECT / "deploy" / "demo" / "handbook"
SHARED = ("files-unstructured", "policies-basecamp", "handbook-zh", "handbook-gsa-tts")
FORMATS = {
    "pdf": {".pdf"}, "docx": {".docx"}, "pptx": {".pptx"}, "xlsx": {".xlsx"}, "csv": {".csv"}, "html": {".html"},
    "md": {".md"}, "eml": {".eml"}, "txt": {".txt"},
}  # fmt: skip
# Enough of each to be measured within minutes; a format's files are taken evenly from all that there are.
MOST_FILES, MOST_BYTES = 60, 3_000_000
OPTIONS = ParseOptions(ocr=False)


@dataclass
class Side:
    """What one of the two made of a format's files. Pages of PDFs, documents of everything else."""

    seconds: float = 0.0
    units: int = 0
    characters: int = 0
    failed: int = 0

    @property
    def rate(self) -> float | None:
        return round(self.units / self.seconds, 1) if self.units else None


@dataclass
class Row:
    ours: Side = field(default_factory=Side)
    theirs: Side = field(default_factory=Side)
    files: int = 0


def partitioners() -> dict[str, Callable[[str], list[Any]]]:
    """unstructured's own entry points by format; `pdf` only where its dependencies are installed."""
    office._library()
    from unstructured.partition.csv import partition_csv
    from unstructured.partition.docx import partition_docx
    from unstructured.partition.email import partition_email
    from unstructured.partition.html import partition_html
    from unstructured.partition.md import partition_md
    from unstructured.partition.pptx import partition_pptx
    from unstructured.partition.text import partition_text
    from unstructured.partition.xlsx import partition_xlsx

    found: dict[str, Callable[[str], list[Any]]] = {
        "docx": partition_docx, "pptx": partition_pptx, "xlsx": partition_xlsx, "csv": partition_csv,
        "html": partition_html, "md": partition_md, "eml": partition_email, "txt": partition_text,
    }  # fmt: skip
    try:
        from unstructured.partition.pdf import partition_pdf
    except ImportError:
        return found
    return found | {"pdf": partial(partition_pdf, strategy="fast")}


def corpus(folders: Iterable[Path], suffixes: set[str]) -> list[Path]:
    paths = [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix.lower() in suffixes]
    paths = [path for path in paths if path.is_file() and 0 < path.stat().st_size < MOST_BYTES]
    return paths[:: max(len(paths) // MOST_FILES, 1)][:MOST_FILES]


def born_digital(paths: list[Path]) -> tuple[list[Path], dict[Path, int]]:
    """The PDFs that every page of has text, which is all that both can read, and their numbers of pages."""
    import pypdfium2

    kept: dict[Path, int] = {}
    for path in paths:
        try:
            with pypdfium2.PdfDocument(path) as document:
                if document and all(page.get_textpage().count_chars() > 20 for page in document):
                    kept[path] = len(document)
        except pypdfium2.PdfiumError:
            continue
    return list(kept), kept


def timed(side: Side, units: int, read: Callable[[], int]) -> None:
    """Add one reading; a file that was refused, failed or gave nothing costs nothing and counts as failed."""
    before = time.process_time()
    try:
        characters = read()
    except Exception:  # noqa: BLE001 partitioners raise anything at all, and one file is no reason to measure none
        characters = 0
    if not characters:
        side.failed += 1
        return
    side.seconds += time.process_time() - before
    side.characters += characters
    side.units += units


def measure(paths: list[Path], pages: dict[Path, int], theirs: Callable[[str], list[Any]] | None) -> Row:
    row = Row(files=len(paths))

    def ours(path: Path) -> int:
        return sum(len(element.text) for element in parse(path, options=OPTIONS).elements)

    def other(path: Path) -> int:
        assert theirs is not None
        return sum(len(element.text) for element in theirs(str(path)))

    for path in paths[:1]:
        timed(Side(), 0, partial(ours, path))
        if theirs:
            timed(Side(), 0, partial(other, path))
    for path in paths:
        timed(row.ours, pages.get(path, 1), partial(ours, path))
        if theirs:
            timed(row.theirs, pages.get(path, 1), partial(other, path))
    return row


def figures(folders: list[Path]) -> dict[str, Any]:
    """Rates by format."""
    known = partitioners()
    found: dict[str, Any] = {}
    for form, suffixes in FORMATS.items():
        paths, pages = corpus(folders, suffixes), dict[Path, int]()
        if form == "pdf":
            paths, pages = born_digital(paths)
        if not paths:
            continue
        row = measure(paths, pages, known.get(form))
        ours, theirs = row.ours.rate, row.theirs.rate
        found[form] = {
            "files": row.files,
            "unit": "pages" if form == "pdf" else "documents",
            "units": row.ours.units,
            "per_second": ours,
            "unstructured_per_second": theirs,
            "times": round(ours / theirs, 1) if ours and theirs else None,
            "characters": row.ours.characters,
            "unstructured_characters": row.theirs.characters,
            "failed": row.ours.failed,
            "unstructured_failed": row.theirs.failed,
        }
    return found


def section(found: dict[str, Any], where: str) -> str:
    """The part of docs/benchmarks.md."""
    rows = []
    for form, row in found.items():
        theirs = [row["unstructured_per_second"] or "-", row["times"] or "-"]
        cells = [form, row["files"], f"{row['units']} {row['unit']}", row["per_second"], *theirs]
        rows.append("| " + " | ".join(map(str, [*cells, row["failed"], row["unstructured_failed"]])) + " |")
    head = (
        "| format | files | read | a second | unstructured's own | times | refused | unstructured's failures |\n"
        "|---|---|---|---|---|---|---|---|\n"
    )
    return (
        f"## Extraction\n\nText, headings, tables and boxes, on one core by CPU time; each file read by both in turn. "
        f"{where} PDFs with a text layer on every page; unstructured reads them by its `fast` strategy, the other "
        "formats by its partitioner of that name, which Intramuros builds on. OCR is off.\n\n"
        f"{head}" + "\n".join(rows) + "\n\n![Extraction by format](benchmarks/extract.png)"
    )


def plot(found: dict[str, Any], path: Path) -> None:
    """Both rates of each format, on a logarithmic scale."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 3.6), layout="constrained")
    places = range(len(found))
    for shift, key, label in ((-0.2, "per_second", "Intramuros"), (0.2, "unstructured_per_second", "unstructured")):
        bars = axes.bar(
            [place + shift for place in places], [row[key] or 0 for row in found.values()], 0.4, label=label
        )
        axes.bar_label(bars, fmt="{:.0f}", fontsize=8)
    axes.set_yscale("log")
    axes.set_xticks(list(places), [f"{form}, pages" if row["unit"] == "pages" else form for form, row in found.items()])
    axes.set_ylabel("pages or documents a second, one core")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Measure extraction by format, beside unstructured.")
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--plot", type=Path, help="draw the rates into this PNG file")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    shared = shared_data()
    standing = [HANDBOOK, *(shared / name for name in SHARED)] if shared else [HANDBOOK]
    found = figures(arguments.folders or standing)
    print(json.dumps(found, indent=2))
    if arguments.plot:
        plot(found, arguments.plot)


if __name__ == "__main__":
    main()
