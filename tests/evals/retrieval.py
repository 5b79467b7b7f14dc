"""Retrieval on public questions; results go to docs/benchmarks/.

Each set is ingested into a tenant of its own in a database that is thrown away afterwards:

- cmrc: passages of CMRC 2018's development set, Chinese, with its questions (CC BY-SA 4.0);
- gsa: the handbook of the US GSA's Technology Transformation Services, English, with our questions;
- handbook: the sample handbook of the demo, both languages, with our questions.
"""

import asyncio
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from api import evaluation
from api.cli import console
from api.cli.evaluate import show
from api.cli.ingest import Summary, read
from api.cli.opened import owner
from api.evaluation import Question
from api.runtime import Runtime
from core.settings import Settings
from storage import documents, tenants, users
from tests.paths import BENCHMARKS, EVALS, PROJECT, shared_data

# Below so many questions a difference is chance, and no reason to fail.
ENOUGH = 100


@dataclass(frozen=True, slots=True)
class Corpus:
    """A folder of documents and the questions about them."""

    name: str
    folder: Path
    questions: Sequence[Question]


def cmrc(work: Path) -> Corpus | None:
    """CMRC 2018: one Markdown file per passage, the title as its heading."""
    data = shared_data()
    source = data / "retrieval-sets" / "cmrc2018" if data else None
    if source is None or not source.is_dir():
        return None
    folder = work / "cmrc2018"
    folder.mkdir()
    for passage in _rows(source / "corpus.jsonl"):
        (folder / f"{passage['_id']}.md").write_text(f"# {passage['title']}\n\n{passage['text']}\n", encoding="utf-8")
    asked = [Question(row["text"], f"{row['doc']}.md") for row in _rows(source / "queries.jsonl")]
    return Corpus("cmrc", folder, asked)


def gsa(work: Path) -> Corpus | None:
    """The GSA handbook: its pages and the forms that they offer."""
    data = shared_data()
    source = data / "handbook-gsa-tts" if data else None
    if source is None or not source.is_dir():
        return None
    folder = work / "gsa"
    for part in ("pages", "downloads"):
        shutil.copytree(source / part, folder / part)
    return Corpus("gsa", folder, evaluation.load(EVALS / "gsa_questions.jsonl"))


def handbook(_work: Path) -> Corpus:
    """The sample handbook."""
    questions = evaluation.load(EVALS / "handbook_retrieval.jsonl")
    return Corpus("handbook", PROJECT / "deploy" / "demo" / "handbook", questions)


CORPORA: dict[str, Callable[[Path], Corpus | None]] = {"cmrc": cmrc, "gsa": gsa, "handbook": handbook}


async def measure(runtime: Runtime, corpus: Corpus) -> dict[str, Any]:
    """Ingest and ask. One JSON object: sizes, speeds, scores."""
    tenant = await tenants.create(owner(runtime), f"eval-{corpus.name}", corpus.name)
    started = perf_counter()
    summary = Summary()
    await read(runtime, tenant.id, corpus.name, corpus.folder, summary)
    seconds = perf_counter() - started
    principal = users.operator(tenant.id)
    stored = await documents.listing(runtime.db, principal)
    chunks = sum(document.chunks for document in stored)
    embedder = await runtime.embedder()
    with console.progress(f"Asking {corpus.name}") as advance:
        report = await evaluation.evaluate(runtime.db, principal, embedder, corpus.questions, advance=advance)
    console.say(f"\n{corpus.name}")
    show(report)
    return {
        "set": corpus.name,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version()},
        "documents": len(stored),
        "failed": [{"path": path, "reason": reason} for path, reason in summary.failed],
        "chunks": chunks,
        "documents_per_second": round(len(stored) / seconds, 1),
        "chunks_per_second": round(chunks / seconds, 1),
        **report.as_json(),
        "gain_over_better_half": gain(report),
    }


def gain(report: evaluation.Report) -> dict[str, float]:
    """How much the fused list does better than the better of its halves, by measure; below 0: worse."""
    vector, words, fused = (report.scores[mode].as_json() for mode in evaluation.MODES)
    return {measure: round(fused[measure] - max(vector[measure], words[measure]), 4) for measure in fused}


def run(names: Sequence[str]) -> int:
    """Measure the sets of these names, all when none is given; the exit code."""
    return asyncio.run(_run(names or tuple(CORPORA)))


async def _run(names: Sequence[str]) -> int:
    """Measure each set that is there; 1 when fusion loses to one of its halves on any of them."""
    worse = []
    with tempfile.TemporaryDirectory(prefix="intramuros-evals-") as work:
        settings = Settings.load(home=Path(work) / "home", database_url=None)
        async with Runtime.open(settings) as runtime:
            for name in names:
                corpus = CORPORA[name](Path(work))
                if corpus is None:
                    console.note(f"{name}: skipped, its data is not beside the project (see tests/paths.py)")
                    continue
                result = await measure(runtime, corpus)
                BENCHMARKS.mkdir(parents=True, exist_ok=True)
                target = BENCHMARKS / f"retrieval-{name}.json"
                target.write_text(json.dumps(result, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
                console.note(f"written to {target.relative_to(PROJECT)}")
                if result["gain_over_better_half"]["mrr"] <= 0 and result["questions"] >= ENOUGH:
                    worse.append(name)
    for name in worse:
        console.fail(f"{name}: fused search has no better MRR than its halves. Look at the weights in storage.search")
    return 1 if worse else 0


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
