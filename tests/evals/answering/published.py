"""What docs/benchmarks.md says of answering: a table of systems and models, one by language and kind, and a plot."""

import json
from pathlib import Path
from typing import Any, Final

from tests.evals.answering.run import RESULTS
from tests.paths import BENCHMARKS

_PLOT: Final = "answering.png"
_MEASURES: Final = {
    "accuracy": "right",
    "citation_precision": "citations right",
    "citation_recall": "facts cited",
    "false_refusals": "refused wrongly",
    "refusals": "refused rightly",
}
_ABOUT: Final = """From `make eval-answers`: 120 questions of our own (`tests/evals/answering/questions.jsonl`), half of
them Chinese, on the sample handbook and the GSA's: 60 that ask for one fact, 20 for several, 10 on a policy with two
versions, 30 that nothing answers. *Right*: of the answerable, those whose answer states every fact and nothing of the
other version. *Citations right*: those whose passage states a fact; *facts cited*: those that a cited passage states.
`embedded` is the 1.5 B model of the demo, `perfect` a scripted one that makes no mistake: what is missing there is lost
by the program around it. `bare` is LangChain's `create_agent` with a search and a read tool and nothing else;
`retries-0` to `-2` are the quick path with so many rewritings of the query; `quick` allows two, one with a small model.
Where fewer questions are named, every n-th was asked. Seconds are wall time."""


def section() -> str:
    """The part of docs/benchmarks.md, empty when nothing was measured; draws the plot."""
    if not RESULTS.exists():
        return ""
    found = sorted(json.loads(RESULTS.read_text(encoding="utf-8")), key=lambda one: (one["model"], one["system"]))
    plot(found, BENCHMARKS / _PLOT)
    parts = ["## Answering", _ABOUT, _table(found), _parts(found), f"![Answering](benchmarks/{_PLOT})"]
    return "\n\n".join(parts)


def _table(found: list[dict[str, Any]]) -> str:
    head = ["model", "system", "questions", *_MEASURES.values(), "model calls", "median s", "measured"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for one in found:
        row = one["parts"]["all"]
        on = f"{one['measured_at'][:10]}, load {one['machine']['load']}"
        cells = [one["model"], one["system"], row["questions"], *(_cell(row[key]) for key in _MEASURES)]
        lines.append(f"| {' | '.join(map(str, [*cells, row['model_calls'], row['seconds_median'], on]))} |")
    return "\n".join(lines)


def _parts(found: list[dict[str, Any]]) -> str:
    """Right answers (refusals, for the unanswerable) of each language and kind."""
    parts = [part for part in found[0]["parts"] if part != "all"]
    lines = [f"| model | system | {' | '.join(parts)} |", "|---" * (len(parts) + 2) + "|"]
    for one in found:
        cells = [
            _cell(
                row["refusals" if part == "unanswerable" else "accuracy"] if (row := one["parts"].get(part)) else None
            )
            for part in parts
        ]
        lines.append(f"| {one['model']} | {one['system']} | {' | '.join(cells)} |")
    return "Right by language and kind (refused, where nothing answers):\n\n" + "\n".join(lines)


def _cell(share: float | None) -> str:
    return "" if share is None else f"{share:.3f}"


def plot(found: list[dict[str, Any]], path: Path) -> None:
    """The shares of each system with each model side by side."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 3.8), layout="constrained")
    width = 0.8 / len(_MEASURES)
    for shift, (key, name) in enumerate(_MEASURES.items()):
        places = [place + (shift - (len(_MEASURES) - 1) / 2) * width for place in range(len(found))]
        axes.bar(places, [one["parts"]["all"][key] or 0 for one in found], width, label=name)
    axes.set_xticks(range(len(found)), [f"{one['system']}\n{one['model']}" for one in found], fontsize=8)
    axes.set_ylabel("share")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=8)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
