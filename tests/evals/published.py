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
weights and the depth of reranking were chosen on these sets. Reranked: late interaction on the best 30. "150 of 1659":
every n-th question was asked, or a part of the documents read, which holds what answers these questions."""
_ABOUT_WORDS = """What is made of a query's words, in the same points, and in brackets how many queries have it; for
others nothing changes. Documents stay as they were indexed:"""
_ABOUT_SYNONYMS = """What a tenant's synonyms add, in the same points, by what a synonym's term counts beside a typed
one's 1. They are the groups of office words, or of words about software, of `tests/evals/synonyms.jsonl`, written
without a look at the questions:"""


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
    tables = [_scores(sets), _without(sets), _words_without(sets), _synonyms(sets)]
    return "\n\n".join(["## Retrieval", _ABOUT, *filter(None, tables), f"![MRR by set](benchmarks/{_PLOT})"])


def _scores(sets: list[dict[str, Any]]) -> str:
    lines = [
        "| set | questions | documents, chunks | measured | search | hit@1 | hit@5 | hit@10 | MRR |",
        "|---" * 9 + "|",
    ]
    for one in sets:
        documents = _of(one["documents"], one.get("documents_of"))
        head = f"{one['set']} | {_of(one['questions'], one.get('asked_of'))} | {documents}, {one['chunks']} | "
        head += one["measured_at"][:10]
        for mode, name in _MODES.items():
            if mode in one["modes"]:
                lines.append(f"| {head} | {name} | {_cells(one['modes'][mode])} |")
                head = " | | | "
    return "\n".join(lines)


def _of(count: int, total: int | None) -> str:
    return f"{count} of {total}" if total is not None and total > count else str(count)


def _without(sets: list[dict[str, Any]]) -> str:
    """What each element of the recipe adds to hit@5 and MRR, in points (hundredths)."""
    elements = list(dict.fromkeys(element for one in sets for element in one.get("without", {})))
    rows = []
    for one in sets:
        modes, cells = one["modes"], []
        if "without" not in one:
            continue
        cells.append(_points(modes["reranked"], modes["hybrid"]) if "reranked" in modes else "")
        for element in elements:
            less = one["without"].get(element)
            cells.append(_points(modes[less["mode"]], less) if less else "")
        rows.append([one["set"], *cells])
    about = "What each element adds, in points of hit@5 / MRR (0.01); reranking against the fused list:"
    return f"{about}\n\n{_table(['set', 'reranking', *elements], rows)}"


def _words_without(sets: list[dict[str, Any]]) -> str:
    """The same of what is made of a query's words, in both lists that words have a part in."""
    measured = [one for one in sets if one.get("words_without")]
    if not measured:
        return ""
    elements = list(dict.fromkeys(element for one in measured for element in one["words_without"]))
    rows = []
    for one in measured:
        for mode in ("bm25", "hybrid"):
            head = f"{one['set']} ({one['questions']})" if mode == "bm25" else ""
            cells = [_of_words(one, element, mode) for element in elements]
            rows.append([head, _MODES[mode], *cells])
    return f"{_ABOUT_WORDS}\n\n{_table(['set (questions)', 'search', *elements], rows)}"


def _of_words(one: dict[str, Any], element: str, mode: str) -> str:
    less = one["words_without"].get(element)
    if less is None or not less["questions"]:
        return ""
    queries = f" ({less['questions']})" if mode == "bm25" else ""
    return _points(one["modes"][mode], less["modes"][mode]) + queries


def _synonyms(sets: list[dict[str, Any]]) -> str:
    """What synonyms add by what their terms count."""
    measured = [one for one in sets if one.get("synonyms")]
    if not measured:
        return ""
    weights = list(measured[0]["synonyms"]["by_weight"])
    rows = []
    for one in measured:
        by_weight = one["synonyms"]["by_weight"]
        for mode in ("bm25", "hybrid", "reranked"):
            held = f"{by_weight[weights[0]]['questions']} of {one['questions']}"
            head = f"{one['set']} ({held})" if mode == "bm25" else ""
            cells = [_points(by_weight[weight]["modes"][mode], one["modes"][mode]) for weight in weights]
            rows.append([head, _MODES[mode], *cells])
    heads = ["set (questions with one)", "search", *(f"counting {weight}" for weight in weights)]
    return f"{_ABOUT_SYNONYMS}\n\n{_table(heads, rows)}"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


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
