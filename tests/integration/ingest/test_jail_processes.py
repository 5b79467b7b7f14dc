"""The jail of a program with its audit hook armed, on a system without namespaces, and after a sudden death."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.errors import ParserStopped
from ingest import reading
from ingest.jail import WALLS
from tests.integration.ingest import hostile
from tests.integration.ingest.hostile import running

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's")

SCRIPT = """
import asyncio, json, sys, tempfile
from pathlib import Path
from core.errors import ParserStopped
from core.settings import Settings
from ingest.jail import Jail
from policy import hook
from policy.egress import Policy

tempfile.tempdir = sys.argv[1]
document = Path(sys.argv[1], "document")
hook.arm(Policy(scope="strict"), programs=[Path(sys.executable)])

async def answer(jail, text):
    document.write_text(text)
    try:
        return (await jail.read(document, "a name")).chunks[0].text
    except ParserStopped as error:
        return error.message

async def main():
    jail = Jail(Settings(home=sys.argv[1] + "/home", parse_timeout=float(sys.argv[2])), module=sys.argv[3])
    print(json.dumps(dict(await jail.walls())), flush=True)
    print(json.dumps([await answer(jail, text) for text in sys.argv[4:]]))
    await jail.close()

asyncio.run(main())
"""
# A user namespace in which no other may be made, and no capability to make namespaces with.
WITHOUT_NAMESPACES = (
    *("unshare", "--user", "--map-root-user", "sh", "-c"),
    'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"',
    "sh",
)


def command(folder: Path, timeout: float, *texts: str) -> list[str]:
    return [sys.executable, "-c", SCRIPT, str(folder), str(timeout), hostile.__name__, *texts]


def test_without_namespaces_the_other_walls_stand(tmp_path: Path) -> None:
    if subprocess.run([*WITHOUT_NAMESPACES, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("a user namespace cannot be had to try this in")
    texts = ("document read well", "multiply", "die", "connect_in_c 127.0.0.1 9", "document read well")
    done = subprocess.run(
        [*WITHOUT_NAMESPACES, *command(tmp_path, 1, *texts)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    walls, answers = map(json.loads, done.stdout.splitlines())
    assert set(walls) == set(WALLS)
    assert not walls["processes"]
    assert answers[:3] == ["read well", reading.TIME, ParserStopped().message]
    assert answers[3] == ("no socket" if walls["system_calls"] else "no connection")
    assert answers[4] == "read well"
    assert running(tmp_path) == []


def test_nothing_outlives_a_killed_program(tmp_path: Path) -> None:
    with subprocess.Popen(command(tmp_path, 100, "hang"), stdout=subprocess.PIPE, text=True, cwd=ROOT) as program:
        assert program.stdout is not None
        json.loads(program.stdout.readline())
        while not list(tmp_path.glob("intramuros-*/*/started")):
            os.sched_yield()
        program.kill()
        deadline = time.monotonic() + 30
        while (running(tmp_path) or list(tmp_path.glob("intramuros-*"))) and time.monotonic() < deadline:
            os.sched_yield()
    assert running(tmp_path) == []
    assert list(tmp_path.glob("intramuros-*")) == []
