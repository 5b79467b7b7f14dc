"""The whole product as a newcomer meets it: real processes, real PostgreSQL, real embedded models."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from core.settings import Settings, variable
from inference import fetch

pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(not fetch.is_ready(Settings.load()), reason="run `intramuros models pull` first"),
]


def intramuros(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, variable("home"): str(home), variable("chat_provider"): "embedded"}
    env[variable("embed_provider")] = "embedded"
    program = Path(sys.executable).parent / "intramuros"
    return subprocess.run([program, *arguments], env=env, capture_output=True, text=True, check=False)


def test_the_demo_answers_and_refuses_as_it_must(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = intramuros(home, "demo")
    assert done.returncode == 0, done.stdout + done.stderr
    english, follow_up, chinese, refused = done.stdout.split("\n?   ")[1:]
    assert "140" in english
    assert "550" in follow_up
    assert "30" in chinese
    assert "来源" in chinese
    assert all("\n[1] " in answered for answered in (english, follow_up, chinese))
    assert "\n[1] " not in refused
    assert "make serve" in refused

    login = home / "demo-login.txt"
    assert stat.S_IMODE(login.stat().st_mode) == 0o600
    assert login.read_text().split()[-1] in done.stdout

    # The same state, by the other commands: nothing is read twice, the session can be gone on with.
    handbook = Path(__file__).parents[3] / "deploy" / "demo" / "handbook"
    again = intramuros(home, "ingest", str(handbook))
    assert " 0 new, 0 changed, " in again.stdout
    asked = intramuros(home, "ask", "How much is the meal allowance per day in London?", "--json")
    answer = json.loads(asked.stdout)
    assert (answer["outcome"], answer["language"]) == ("answered", "en")
    assert "45" in answer["answer"]
    assert answer["citations"][0]["document"] == "handbook/en/travel/travel-and-expenses-policy.md"
