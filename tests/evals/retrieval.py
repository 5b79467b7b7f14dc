"""Retrieval on public questions, per language and across; results go to docs/benchmarks/.

Each set (tests/evals/corpora.py) is ingested into a tenant of its own in a database that is thrown away afterwards.
Vectors are kept between runs under the cache folder, so that only the first run embeds; speeds are measured elsewhere.
"""

import asyncio
import json
import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

from agent.sources.retrieval import Retrieval
from api import evaluation
from api.cli import console
from api.cli.evaluate import show
from api.cli.ingest import Summary, read
from api.cli.opened import owner
from api.evaluation import Mode
from api.runtime import Runtime
from core.records import Principal
from core.settings import Settings
from inference.interfaces import Embedder, TokenEmbedder
from inference.select import open_embedder
from policy.egress import Policy
from storage import documents, tenants, users
from tests.evals.corpora import CORPORA, Corpus
from tests.evals.kept import KeptEmbedder
from tests.paths import BENCHMARKS, PROJECT

# Below so many questions a difference is chance, and no reason to fail.
ENOUGH = 100
# Of a set with more questions every n-th is asked, so that about this many are.
MOST = 300

# What the recipe is without one of its elements: what is measured, and how the element is taken out.
Without = tuple[Mode, Callable[[], AbstractContextManager[Any]]]
WITHOUT: dict[str, Without] = {
    "more weight for the surer list": ("hybrid", lambda: mock.patch("storage.fusing.SURENESS", 0.0)),
    "language guard": ("hybrid", lambda: mock.patch("storage.fusing.ACROSS", 1.0)),
    "weights of tokens": ("reranked", lambda: mock.patch.object(KeptEmbedder, "query_tokens", KeptEmbedder.unweighted)),
    "cap on near-duplicates": ("reranked", lambda: mock.patch("agent.sources.retrieval.capped", list)),
}


async def measure(runtime: Runtime, corpus: Corpus) -> dict[str, Any]:
    """Ingest and ask. One JSON object: sizes, scores, and scores without one element of the recipe at a time."""
    tenant = await tenants.create(owner(runtime), f"eval-{corpus.name}", corpus.name)
    summary = Summary()
    await read(runtime, tenant.id, corpus.name, corpus.folder, summary)
    principal = users.operator(tenant.id)
    stored = await documents.listing(runtime.db, principal)
    retrieval = await runtime.retrieval()
    questions = corpus.questions[:: max(1, -(-len(corpus.questions) // MOST))]
    with console.progress(f"Asking {corpus.name}") as advance:
        report = await evaluation.evaluate(retrieval, principal, questions, advance=advance)
    console.say(f"\n{corpus.name}")
    show(report)
    return {
        "set": corpus.name,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version()},
        "documents": len(stored),
        "failed": [{"path": path, "reason": reason} for path, reason in summary.failed],
        "chunks": sum(document.chunks for document in stored),
        "asked_of": len(corpus.questions),
        **report.as_json(),
        "gain_over_better_half": gain(report),
        "without": await without(retrieval, principal, questions),
    }


async def without(
    retrieval: Retrieval, principal: Principal, questions: Sequence[evaluation.Question]
) -> dict[str, dict[str, Any]]:
    """Scores of the recipe without each of its elements, by the element."""
    found = {}
    for element, (mode, taken_out) in WITHOUT.items():
        with taken_out():
            report = await evaluation.evaluate(retrieval, principal, questions, modes=[mode])
        found[element] = {"mode": mode, **report.as_json()["modes"][mode]}
    return found


def gain(report: evaluation.Report) -> dict[str, float]:
    """How much the fused list does better than the better of its halves, by measure; below 0: worse."""
    vector, words, fused = (report.scores[mode].as_json() for mode in ("vector", "bm25", "hybrid"))
    return {measure: round(fused[measure] - max(vector[measure], words[measure]), 4) for measure in fused}


async def kept_embedder(settings: Settings, policy: Policy) -> Embedder:
    """The embedder that settings name; its vectors of passages are kept where it gives those of tokens too."""
    embedder = await open_embedder(settings, policy)
    return KeptEmbedder(embedder, settings.cache / "evals") if isinstance(embedder, TokenEmbedder) else embedder


def run(names: Sequence[str]) -> int:
    """Measure the sets of these names, all when none is given; the exit code."""
    return asyncio.run(_run(names or tuple(CORPORA)))


async def _run(names: Sequence[str]) -> int:
    """Measure each set that is there; 1 when fusion loses to one of its halves on any of them."""
    worse = []
    with tempfile.TemporaryDirectory(prefix="intramuros-evals-") as work:
        settings = Settings.load(home=Path(work) / "home", database_url=None)
        async with Runtime.open(settings) as runtime:
            runtime.open_embedder = kept_embedder
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
