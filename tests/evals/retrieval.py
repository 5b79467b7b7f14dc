"""Retrieval on public questions, per language and across; results go to docs/benchmarks/.

Each set (tests/evals/corpora.py) is ingested into a tenant of its own in a database that is thrown away afterwards.
Vectors are kept between runs under the cache folder, so that only the first run embeds; speeds are measured elsewhere.
"""

import argparse
import asyncio
import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
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
from storage import documents, lexical, synonyms, tenants, users
from tests.evals.corpora import CORPORA, Corpus
from tests.evals.kept import KeptEmbedder
from tests.paths import BENCHMARKS, PROJECT

# Below so many questions a difference is chance, and no reason to fail.
ENOUGH = 100
# Reciprocal ranks, summed over the questions, that fusion may lose to the better of its halves: one question that falls
# from the first place to the second. Near a ceiling it can win nothing.
CHANCE = 0.5
# Questions of a set that are asked, unless said otherwise.
MOST = 300

# What the recipe is without one of its elements: what is measured, and how the element is taken out.
Without = tuple[Mode, Callable[[], AbstractContextManager[Any]]]
WITHOUT: dict[str, Without] = {
    "more weight for the surer list": ("hybrid", lambda: mock.patch("storage.fusing.SURENESS", 0.0)),
    "language guard": ("hybrid", lambda: mock.patch("storage.fusing.ACROSS", 1.0)),
    "weights of tokens": ("reranked", lambda: mock.patch.object(KeptEmbedder, "query_tokens", KeptEmbedder.unweighted)),
    "cap on near-duplicates": ("reranked", lambda: mock.patch("agent.sources.retrieval.capped", list)),
}
# The same for what is made of the words of a query; documents stay as they were indexed.
OF_WORDS: Sequence[Mode] = ("bm25", "hybrid")
WORDS_WITHOUT: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "pairs of words": lambda: mock.patch("storage.lexical._join", _codes),
    "pairs of Chinese characters": lambda: mock.patch("storage.lexical._grams", iter),
    "single Chinese characters": lambda: mock.patch("storage.lexical._grams", _pairs),
    "numbers and codes twice": lambda: mock.patch("storage.lexical._query", _once),
    "function words dropped": lambda: mock.patch.multiple("storage.lexical", ENGLISH=frozenset(), _content=_whole),
}
# What a synonym's term may count beside a typed one's 1; the program's own is among them.
WEIGHTS = (0.4, lexical.SYNONYM, 1.0)
BY_SYNONYMS: Sequence[Mode] = ("bm25", "hybrid", "reranked")
_join, _query = lexical._join, lexical._query


def _codes(*neighbours: Any) -> tuple[str, bool] | None:
    joined = _join(*neighbours)
    return joined if joined is not None and joined[1] else None


def _pairs(run: str) -> Iterator[str]:
    yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))


def _once(*query: Any) -> Iterator[tuple[str, bool]]:
    return ((term, False) for term, _ in _query(*query))


def _whole(run: str) -> list[str]:
    return [run]


async def measure(runtime: Runtime, corpus: Corpus) -> dict[str, Any]:
    """Ingest and ask. One JSON object: sizes, scores, and scores without one element of the recipe at a time."""
    tenant = await tenants.create(owner(runtime), f"eval-{corpus.name}", corpus.name)
    summary = Summary()
    await read(runtime, tenant.id, corpus.name, corpus.folder, summary)
    principal = users.operator(tenant.id)
    stored = await documents.listing(runtime.db, principal)
    retrieval = await runtime.retrieval()
    with console.progress(f"Asking {corpus.name}") as advance:
        report = await evaluation.evaluate(retrieval, principal, corpus.questions, advance=advance)
    console.say(f"\n{corpus.name}")
    show(report)
    return {
        "set": corpus.name,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version()},
        "documents": len(stored),
        "documents_of": corpus.documents_of or len(stored),
        "failed": [{"path": path, "reason": reason} for path, reason in summary.failed],
        "chunks": sum(document.chunks for document in stored),
        "asked_of": corpus.asked_of,
        **report.as_json(),
        "gain_over_better_half": gain(report),
        "without": await without(retrieval, principal, corpus.questions),
        "words_without": await words_without(retrieval, principal, report),
        "synonyms": await with_synonyms(runtime, principal, corpus.synonyms, report) if corpus.synonyms else None,
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


async def words_without(
    retrieval: Retrieval, principal: Principal, report: evaluation.Report
) -> dict[str, dict[str, Any]]:
    """Scores without each element of what is made of a query's words, by the element, and how many queries have it."""
    found = {}
    terms = [lexical.query_weights(asked.question) for asked in report.questions]
    for element, taken_out in WORDS_WITHOUT.items():
        with taken_out():
            left = [lexical.query_weights(asked.question) for asked in report.questions]
            having = [at for at, (all_of_them, rest) in enumerate(zip(terms, left, strict=True)) if all_of_them != rest]
            found[element] = await asked_anew(retrieval, principal, report, having, OF_WORDS)
    return found


async def with_synonyms(
    runtime: Runtime, principal: Principal, groups: Sequence[Sequence[str]], report: evaluation.Report
) -> dict[str, Any]:
    """Scores with these synonyms, by what a synonym's term counts, and how many queries have one."""
    db, tenant_id = runtime.db, principal.tenant_id
    await synonyms.add_all(db, tenant_id, groups)
    retrieval = await runtime.retrieval()
    asked = enumerate(report.questions)
    having = [at for at, one in asked if await synonyms.expansions(db, tenant_id, one.question)]
    by_weight = {}
    for weight in WEIGHTS:
        with mock.patch("storage.lexical.SYNONYM", weight):
            by_weight[str(weight)] = await asked_anew(retrieval, principal, report, having, BY_SYNONYMS)
    return {"groups": len(groups), "by_weight": by_weight}


async def asked_anew(
    retrieval: Retrieval, principal: Principal, report: evaluation.Report, places: Sequence[int], modes: Sequence[Mode]
) -> dict[str, Any]:
    """How many questions of a report, given by their places, are asked anew; and the scores with what that finds."""
    again = await evaluation.evaluate(
        retrieval,
        principal,
        [report.questions[at] for at in places],
        modes=[mode for mode in modes if mode in report.ranks],
    )
    ranks = {}
    for mode, found in again.ranks.items():
        anew = dict(zip(places, found, strict=True))
        ranks[mode] = tuple(anew.get(at, rank) for at, rank in enumerate(report.ranks[mode]))
    return {"questions": len(places), "modes": replace(report, ranks=ranks).as_json()["modes"]}


def gain(report: evaluation.Report) -> dict[str, float]:
    """How much the fused list does better than the better of its halves, by measure; below 0: worse."""
    vector, words, fused = (report.scores[mode].as_json() for mode in ("vector", "bm25", "hybrid"))
    return {measure: round(fused[measure] - max(vector[measure], words[measure]), 4) for measure in fused}


async def kept_embedder(settings: Settings, policy: Policy) -> Embedder:
    """The embedder that settings name; its vectors of passages are kept where it gives those of tokens too."""
    embedder = await open_embedder(settings, policy)
    return KeptEmbedder(embedder, settings.cache / "evals") if isinstance(embedder, TokenEmbedder) else embedder


def run(arguments: Sequence[str]) -> int:
    """Measure the sets that are named, all when none is; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.evals", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help="a set; all of them")
    parser.add_argument(
        "--most", type=int, default=MOST, help="ask every n-th question, so that no more than these are"
    )
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.names) - CORPORA.keys():
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(CORPORA)}")
    return asyncio.run(_run(chosen.names or tuple(CORPORA), chosen.most))


async def _run(names: Sequence[str], most: int) -> int:
    """Measure each set that is there; 1 when fusion loses to one of its halves on any of them."""
    worse = []
    with tempfile.TemporaryDirectory(prefix="intramuros-evals-") as work:
        settings = Settings.load(home=Path(work) / "home", database_url=None)
        async with Runtime.open(settings) as runtime:
            runtime.open_embedder = kept_embedder
            for name in names:
                corpus = CORPORA[name](Path(work), most)
                if corpus is None:
                    console.note(f"{name}: skipped, its data is not beside the project (see tests/paths.py)")
                    continue
                result = await measure(runtime, corpus)
                BENCHMARKS.mkdir(parents=True, exist_ok=True)
                target = BENCHMARKS / f"retrieval-{name}.json"
                target.write_text(json.dumps(result, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
                console.note(f"written to {target.relative_to(PROJECT)}")
                lost = -result["gain_over_better_half"]["mrr"] * result["questions"]
                if lost > CHANCE and result["questions"] >= ENOUGH:
                    worse.append(name)
    for name in worse:
        console.fail(f"{name}: fusion loses to the better of its halves. Look at the weights in storage.fusing")
    return 1 if worse else 0
