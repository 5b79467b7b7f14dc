"""What docs/benchmarks.md says of retrieval: a table and a plot over all sets that were measured."""

import json
from pathlib import Path
from typing import Any

from tests.evals.corpora import CORPORA
from tests.paths import BENCHMARKS

_MODES = {"vector": "vectors", "bm25": "BM25", "hybrid": "fused", "reranked": "fused, reranked"}
_PLOT = "retrieval.png"
_ABOUT = """By document, from `make eval-retrieval`: each question has one right document, and a rank counts documents.
`xquad-en-zh` and `dify-en-zh` ask in English for Chinese documents, `xquad-zh-en` and `dify-zh-en` the other way round;
what the sets are stands in `tests/evals/corpora.py`. `dify-en-zh` and its reverse ask with the titles that one page
alone has, `dify-all` with every title, "Overview" and "Settings" among them: any page of that title is right. The
weights and the depth of reranking were chosen on these sets. Reranked: late interaction on the best 30."""


def found() -> list[dict[str, Any]]:
    """What was measured, in the order of the sets."""
    paths = [BENCHMARKS / f"retrieval-{name}.json" for name in CORPORA]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def section() -> str:
    """The part of docs/benchmarks.md, empty when nothing was measured; draws the plot."""
    sets = found()
    if not sets:
        return ""
    plot(sets, BENCHMARKS / _PLOT)
    parts = ["## Retrieval", _ABOUT, _scores(sets), _without(sets), f"![MRR by set](benchmarks/{_PLOT})"]
    return "\n\n".join(parts)


def _scores(sets: list[dict[str, Any]]) -> str:
    lines = [
        "| set | questions | documents, chunks | measured | search | hit@1 | hit@5 | hit@10 | MRR |",
        "|---" * 9 + "|",
    ]
    for one in sets:
        head = f"{one['set']} | {one['questions']} | {one['documents']}, {one['chunks']} | {one['measured_at'][:10]}"
        for mode, name in _MODES.items():
            if mode in one["modes"]:
                lines.append(f"| {head} | {name} | {_cells(one['modes'][mode])} |")
                head = " | | | "
    return "\n".join(lines)


def _without(sets: list[dict[str, Any]]) -> str:
    """What each element of the recipe adds to hit@5 and MRR, in points (hundredths)."""
    elements = list(dict.fromkeys(element for one in sets for element in one.get("without", {})))
    lines = [
        "What each element adds, in points of hit@5 / MRR (0.01); reranking against the fused list:",
        "| set | reranking | " + " | ".join(elements) + " |\n|---" + "|---" * (len(elements) + 1) + "|",
    ]
    rows = []
    for one in sets:
        modes, cells = one["modes"], []
        if "reranked" in modes:
            cells.append(_points(modes["reranked"], modes["hybrid"]))
        for element in elements:
            less = one.get("without", {}).get(element)
            cells.append(_points(modes[less["mode"]], less) if less else "")
        rows.append(f"| {one['set']} | " + " | ".join(cells) + " |")
    return "\n\n".join(lines) + "\n" + "\n".join(rows)


def _points(with_it: dict[str, Any], without_it: dict[str, Any]) -> str:
    return " / ".join(f"{100 * (with_it[key] - without_it[key]):+.1f}" for key in ("hit@5", "mrr"))


def _cells(row: dict[str, float]) -> str:
    return " | ".join(f"{row[key]:.3f}" for key in ("hit@1", "hit@5", "hit@10", "mrr"))


def plot(sets: list[dict[str, Any]], path: Path) -> None:
    """MRR of each way to search, by set."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 3.6), layout="constrained")
    for shift, (mode, name) in enumerate(_MODES.items()):
        places = [place + (shift - 1.5) * 0.2 for place in range(len(sets))]
        axes.bar(places, [one["modes"].get(mode, {}).get("mrr", 0) for one in sets], 0.2, label=name)
    axes.set_xticks(range(len(sets)), [one["set"] for one in sets], rotation=20, ha="right", fontsize=8)
    axes.set_ylabel("mean reciprocal rank")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
