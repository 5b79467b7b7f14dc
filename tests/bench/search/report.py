"""The figures of every size as a part of docs/benchmarks.md, and the plots."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.paths import BENCHMARKS

CLASSES: Final = {
    "mixed": "mixed",
    "common": "common words only",
    "rare": "a rare term",
    "alike": "among documents alike",
}
PLOT: Final = BENCHMARKS / "search.png"
_ABSENT: Final = "not measured"

Found = Mapping[str, Any]


def kept() -> list[Found]:
    """What was measured, by size."""
    found = [json.loads(path.read_text()) for path in BENCHMARKS.glob("search-*.json")]
    return sorted(found, key=lambda one: one["figures"]["corpus"]["chunks"])


def section() -> str:
    """The part of the page; empty where nothing was measured."""
    found = [(one["figures"], one["machine"]) for one in kept()]
    if not found:
        return ""
    figures = [one for one, _ in found]
    where = "; ".join(
        f"{one['corpus']['chunks']:,} chunks on {machine['date']}, {machine['cores']} cores of {machine['cpu']}, "
        f"load {machine['load_before']} before and {machine.get('load_after', 'not noted')} after"
        for one, machine in found
    )
    parts = [
        "## Search at scale",
        "From `make bench-search SIZE=...`: one large tenant beside small ones (ten of 200 chunks; from 100,000 on ten "
        "of 5,000 too; at a million ninety of 200 and ten of 5,000). Real sentences resampled (12 % Chinese), vectors "
        "around those of real passages, 100 queries a class. Recall is of the first ten of the fused list, against "
        "exact vectors and exact BM25 fused alike; milliseconds are of a whole search over a real connection, without "
        "embedding the query, median / 95th percentile. The tenants are loaded once and stand in the cache; what "
        f"building them cost was measured then. {where}.",
        _classes(figures),
        _likeness(figures),
        "Under filters, mixed queries, one client:",
        _filters(figures),
        "A small tenant beside the large one, and on a server with the small ones only (one client, each query asked "
        "of both in turn):",
        _small(figures),
        _partitions(figures),
        "Writing:",
        _writing(figures),
        _others(figures),
        "![Search over size](benchmarks/search.png)",
    ]
    return "\n\n".join(part for part in parts if part)


def _classes(figures: Sequence[Found]) -> str:
    rows = [
        (f"{one['corpus']['chunks']:,}", label, f"{got['recall']:.3f}", _ms(got["clients_1"]), _ms(got["clients_4"]))
        for one in figures
        for name, label in CLASSES.items()
        if (got := one.get("classes", {}).get(name))
    ]
    return _table(("chunks", "queries", "recall@10", "one client, ms", "four clients, ms"), rows)


def _filters(figures: Sequence[Found]) -> str:
    rows = [
        (f"{one['corpus']['chunks']:,}", name, f"{got['chunks']:,}", f"{got['recall']:.3f}", _ms(got))
        for one in figures
        for name, got in one.get("filters", {}).items()
    ]
    return _table(("chunks", "filter", "leaves", "recall@10", "ms"), rows)


def _likeness(figures: Sequence[Found]) -> str:
    names = {"passages": "real passages", "made of a share": "as many, made from a ninth of them"}
    rows = [
        (names.get(name, f"the {one['corpus']['chunks']:,} chunks"), got["dimension"],
         *(got[f"distance_{n}"] for n in (1, 10, 100)))
        for at, one in enumerate(figures)
        for name, got in one.get("likeness", {}).items()
        if name == "corpus" or at == len(figures) - 1
    ]  # fmt: skip
    if not rows:
        return ""
    return (
        "How alike the made vectors are to real ones, as mixed queries see them (medians): the local intrinsic "
        "dimension, which an index over vectors finds hard when it is high, and the distances of the 1st, 10th and "
        "100th nearest.\n\n"
        + _table(("among", "dimension", "1st", "10th", "100th"), [[str(cell) for cell in row] for row in rows])
    )


def _small(figures: Sequence[Found]) -> str:
    rows = [
        (f"{one['corpus']['chunks']:,}", f"{int(size):,}", _ms(got["alone"]), _ms(got["beside"]))
        for one in figures
        for size, got in one.get("small", {}).items()
    ]
    return _table(("large tenant", "small tenant", "alone, ms", "beside, ms"), rows)


def _partitions(figures: Sequence[Found]) -> str:
    parts = [
        f"at {one['corpus']['chunks']:,} chunks {got['own']} of its own tenant and {got['of_others']} of others"
        for one in figures
        if (got := one.get("partitions"))
    ]
    return f"Partitions that a search locks, by `pg_locks`: {'; '.join(parts)}." if parts else ""


def _writing(figures: Sequence[Found]) -> str:
    rows = []
    for one in figures:
        built, inserting = one.get("built", {}), one.get("inserting")
        rows.append((
            f"{one['corpus']['chunks']:,}",
            _seconds(inserting and inserting["seconds"]),
            _per_thousand(built.get("merging")),
            _seconds(built.get("index") and built["index"]["seconds"]),
            f"{sum(built['disk'].values()):,.0f}" if "disk" in built else _ABSENT,
            _loads(built),
        ))  # fmt: skip
    head = (
        "chunks", "insert 1,000 chunks, s", "merge words of 1,000, s", "index all vectors, s", "disk, MB",
        "load when merged, indexed",
    )  # fmt: skip
    return _table(head, rows)


def _loads(built: Found) -> str:
    return ", ".join(
        str(built[name]["machine"]["load_before"]) if name in built else "-" for name in ("merging", "index")
    )


def _others(figures: Sequence[Found]) -> str:
    rows = []
    for one in figures:
        size = f"{one['corpus']['chunks']:,}"
        for system, got in _systems(one):
            for name in ("mixed", "common", "rare"):
                if name in got:
                    share = f"{got[name]['recall']:.3f}" if "recall" in got[name] else ""
                    rows.append((size, system, CLASSES[name], share, _ms(got[name])))
    if not rows:
        return ""
    return (
        "Others in the same run, on the same chunks, terms and queries, one client; recall@10 of each against the "
        "exact list of its own kind (vectors, or BM25). They keep no tenants and no rights. LanceDB fuses by rank, so "
        "that its hybrid list has no exact counterpart here. Above 100,000 chunks they were not measured.\n\n"
        + _table(("chunks", "system", "queries", "recall@10", "ms"), rows)
    )


def _systems(one: Found) -> list[tuple[str, Found]]:
    """Every other system that was measured, with its figures by class."""
    others = one.get("others", {})
    found = [("Chroma, vectors", others["chroma"]["vectors"])] if "chroma" in others else []
    found += [
        (f"LanceDB, {kind}", others["lancedb"][kind]) for kind in ("vectors", "words", "hybrid") if "lancedb" in others
    ]
    return [*found, ("`ts_rank` over GIN, words", one["plain"])] if "plain" in one else found


def _per_thousand(merging: Found | None) -> str:
    return _seconds(merging["seconds"] * 1000 / merging["chunks"]) if merging and merging["chunks"] else _ABSENT


def _seconds(value: float | None) -> str:
    return _ABSENT if value is None else f"{value:.2f}"


def _ms(got: Found) -> str:
    return f"{got['p50']} / {got['p95']}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plot(found: Sequence[Found], path: Path) -> None:
    """Median latency of mixed queries over size by system, and recall over size by class."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figures = [one["figures"] for one in found if "classes" in one["figures"]]
    figure, (latency, recall) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    lines: dict[str, list[tuple[int, float]]] = {}
    for one in figures:
        size = one["corpus"]["chunks"]
        lines.setdefault("Intramuros, hybrid", []).append((size, one["classes"]["mixed"]["clients_1"]["p50"]))
        for system, got in _systems(one):
            lines.setdefault(system.replace("`", ""), []).append((size, got["mixed"]["p50"]))
        for name, label in CLASSES.items():
            lines.setdefault(f"recall {label}", []).append((size, one["classes"][name]["recall"]))
    for label, points in lines.items():
        axes = recall if label.startswith("recall ") else latency
        axes.plot(*zip(*points, strict=True), marker="o", label=label.removeprefix("recall "))
    latency.set_yscale("log")
    latency.set_ylabel("mixed queries, one client: median, ms")
    recall.set_ylim(top=1.005)
    recall.set_ylabel("recall@10 of the fused list")
    for axes in (latency, recall):
        axes.set_xscale("log")
        axes.set_xlabel("chunks")
        axes.legend(frameon=False, fontsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
