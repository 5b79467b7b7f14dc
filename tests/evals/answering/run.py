"""`python -m tests.evals answers [SYSTEM ...] [--model NAME] [--most N] [--again]`: how well questions are answered.

Each system is asked every question; rows are kept under the cache folder as they come, so that a run that was stopped
goes on where it was. Figures go to docs/benchmarks/answering.json, by system and model.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from api.cli import console
from api.cli.ingest import Summary, read
from api.cli.opened import owner
from api.runtime import Runtime
from core.settings import Settings
from storage import tenants, users
from tests.evals.answering.questions import Question, load, sample
from tests.evals.answering.scoring import by_part, judged
from tests.evals.answering.systems import MODELS, SYSTEMS, Bench
from tests.evals.retrieval import kept_embedder
from tests.paths import BENCHMARKS, PROJECT, shared_data

RESULTS = BENCHMARKS / "answering.json"
HANDBOOK = PROJECT / "deploy" / "demo" / "handbook"


class Kept:
    """The rows of one system with one model, in a file as they come."""

    def __init__(self, file: Path, *, again: bool) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        if again:
            file.unlink(missing_ok=True)
        self._file = file
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self.rows: dict[str, dict[str, Any]] = {row["id"]: row for row in map(json.loads, lines)}

    def add(self, row: dict[str, Any]) -> None:
        self.rows[row["id"]] = row
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


async def ingest(runtime: Runtime, tenant_id: UUID, work: Path) -> None:
    """Both handbooks, each into a collection of its own."""
    summary = Summary()
    await read(runtime, tenant_id, "handbook", HANDBOOK, summary)
    shared = shared_data()
    if shared is None:
        console.note("the GSA handbook is not beside the project: its questions are skipped")
        return
    shutil.copytree(shared / "handbook-gsa-tts" / "pages", work / "gsa" / "pages")
    await read(runtime, tenant_id, "gsa", work / "gsa", summary)


async def measure(bench: Bench, system: str, model: str, questions: Sequence[Question], kept: Kept) -> dict[str, Any]:
    """Ask what was not asked yet; the figures over all of it."""
    left = [question for question in questions if question.id not in kept.rows]
    for number, question in enumerate(left, start=1):
        row = judged(question, await bench.ask(system, model, question))
        kept.add(row)
        mark = "refused" if row["refused"] else "right" if row["right"] else "answered"
        console.note(f"{system}, {model} {number}/{len(left)} {question.id}: {mark} ({row['seconds']:.1f} s)")
    rows = [kept.rows[question.id] for question in questions]
    return {
        "system": system,
        "model": model,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)},
        "parts": by_part(rows),
    }


def publish(found: dict[str, Any]) -> None:
    """Put the figures of one system with one model among those of the others."""
    BENCHMARKS.mkdir(parents=True, exist_ok=True)
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    key = (found["system"], found["model"])
    others = [one for one in known if (one["system"], one["model"]) != key]
    RESULTS.write_text(json.dumps([*others, found], ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


async def run(arguments: argparse.Namespace) -> int:
    """Ingest once, then measure each system with each model."""
    with tempfile.TemporaryDirectory(prefix="intramuros-answers-") as work:
        settings = Settings.load(home=Path(work) / "home", database_url=None, answer_cache=False)
        async with Runtime.open(settings) as runtime:
            runtime.open_embedder = kept_embedder
            tenant = await tenants.create(owner(runtime), "eval-answers", "Answers")
            await ingest(runtime, tenant.id, Path(work))
            models = await runtime.models()
            bench = Bench(runtime, models, users.operator(tenant.id), settings)
            shared = shared_data() is not None
            asked = [question for question in load() if shared or question.corpus == "handbook"]
            for model in arguments.model or MODELS:
                for system in arguments.system or SYSTEMS:
                    questions = sample(asked, arguments.most)
                    name = f"{system}-{model}" if model == "perfect" else f"{system}-{models.chat.name}"
                    file = settings.cache / "evals" / "answers" / f"{name}.jsonl"
                    found = await measure(bench, system, model, questions, Kept(file, again=arguments.again))
                    publish(found)
                    console.say(f"{system}, {model}: {json.dumps(found['parts']['all'])}")
    return 0


def main(arguments: Sequence[str]) -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.evals answers", description=__doc__)
    parser.add_argument("system", nargs="*", help=f"of {', '.join(SYSTEMS)}; all when none is named")
    parser.add_argument("--model", action="append", choices=MODELS, help="both when none is named")
    parser.add_argument("--most", type=int, default=sys.maxsize, help="ask every n-th question, so many at most")
    parser.add_argument("--again", action="store_true", help="ask everything anew")
    return asyncio.run(run(parser.parse_args(arguments)))
