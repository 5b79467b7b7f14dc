"""Every format is read on a machine without a network, without starting a program, and without installing anything."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.ingest import samples

ROOT = Path(__file__).resolve().parents[3]

# Runs in a process of its own: an audit hook cannot be taken out again, and the library must be imported fresh.
WATCHED = """
import json, sys
from pathlib import Path

WATCHED = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
           "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "urllib.Request")
seen = []

def hook(event, args):
    if event in WATCHED:
        seen.append(f"{event} {args!r}"[:200])
        raise RuntimeError("denied: " + event)

sys.addaudithook(hook)

from ingest.chunking import chunk
from ingest.options import ParseOptions
from ingest.parse import parse

chunks = {}
for path in sorted(Path(sys.argv[1]).iterdir()):
    chunks[path.suffix] = len(chunk(parse(path, options=ParseOptions())))

import threading
print(json.dumps({"chunks": chunks, "seen": seen, "threads": [t.name for t in threading.enumerate()],
                  "models": [name for name in sys.modules if name.startswith("en_core_web")]}))
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("samples")
    samples.write_all(folder)
    # The machine's own environment, with every switch of the libraries left unset.
    names = ("PATH", "HOME", "LANG", "VIRTUAL_ENV")
    environment = {name: os.environ[name] for name in names if name in os.environ} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # The banner of the document library would come before the report.
    found: dict[str, object] = json.loads(done.stdout)
    found["stderr"] = done.stderr
    return found


def test_every_format_is_read(report: dict[str, object]) -> None:
    chunks = report["chunks"]
    assert isinstance(chunks, dict)
    assert set(chunks) == {".docx", ".pptx", ".xlsx", ".pdf", ".csv", ".txt", ".md", ".html", ".eml"}
    assert all(count > 0 for count in chunks.values())


@pytest.mark.threat(5, 6, 7, 8)
def test_nothing_was_connected_looked_up_or_started(report: dict[str, object]) -> None:
    assert report["seen"] == []


@pytest.mark.threat(5, 6, 8)
def test_no_telemetry_thread_no_model_no_banner(report: dict[str, object]) -> None:
    assert report["threads"] == ["MainThread"]
    assert report["models"] == []
    assert report["stderr"] == ""


def test_the_pipeline_in_place_of_the_model_knows_both_kinds_of_stops() -> None:
    from ingest import office

    office._library()
    from unstructured.nlp import tokenize

    assert tokenize.sent_tokenize("第一句。第二句！Third one. Fourth?") == [
        "第一句。",
        "第二句！",
        "Third one.",
        "Fourth?",
    ]
    with pytest.raises(RuntimeError, match="language model"):
        tokenize._install_spacy_model()
