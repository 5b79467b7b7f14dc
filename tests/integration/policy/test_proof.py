"""`policy prove` and `doctor --walls` on a machine with the wall that is shipped, and on one without."""

import json
import sys
from pathlib import Path

import pytest

from tests.airgap import namespace
from tests.paths import PROJECT

pytestmark = namespace.needed

SHIPPED = PROJECT / "deploy" / "nftables" / "intramuros.nft"
SYSTEMCTL = Path("/usr/bin/systemctl")
INTRAMUROS = Path(sys.executable).parent / "intramuros"


def report(done: namespace.Run) -> dict[str, object]:
    found: dict[str, object] = json.loads(done.out[done.out.index("{") :])
    return found


@pytest.mark.threat(3, 36)
def test_behind_the_shipped_rules_nothing_gets_out_and_the_proof_can_be_verified(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "home"))
    done = namespace.run([INTRAMUROS, "policy", "prove", "--json", *home], SHIPPED)
    found = report(done)
    assert (done.code, found["verdict"]) == (0, "closed"), done.out
    assert done.counters["refused"] > 0
    kept = tmp_path / "proof.json"
    kept.write_text(json.dumps(found))
    assert namespace.run([INTRAMUROS, "policy", "verify", kept, *home]).code == 0
    kept.write_text(json.dumps({**found, "verdict": "broken"}))
    assert namespace.run([INTRAMUROS, "policy", "verify", kept, *home]).code == 1
    kept.write_text(json.dumps(found))
    other = namespace.run([INTRAMUROS, "policy", "verify", kept, "--home", str(tmp_path / "other")])
    assert (other.code, "another key" in other.out) == (1, True)


@pytest.mark.threat(1, 2, 3, 9, 10)
def test_without_a_wall_of_the_system_only_what_no_program_sees_is_open(tmp_path: Path) -> None:
    done = namespace.run([INTRAMUROS, "policy", "prove", "--json", "--home", str(tmp_path)], None)
    found = report(done)
    assert (done.code, found["verdict"]) == (2, "open"), done.out
    attempts = found["attempts"]
    assert isinstance(attempts, list)
    assert {attempt["layer"] for attempt in attempts if attempt["result"] == "open"} == {"system"}
    assert [attempt["name"] for attempt in attempts if attempt["result"] == "passed"] == []


@pytest.mark.threat(37)
@pytest.mark.skipif(not SYSTEMCTL.exists(), reason="systemctl not installed")
@pytest.mark.parametrize(("wall", "code"), [(None, 1), (SHIPPED, 0)], ids=["in words only", "in force"])
def test_an_address_filter_that_systemd_says_it_has_is_tried(tmp_path: Path, wall: Path | None, code: int) -> None:
    """A unit with the shipped filter, as systemd shows it, on a system that does not filter; and on one that does."""
    told = tmp_path / "systemctl"
    told.write_text("#!/bin/sh\necho 'IPAddressDeny=0.0.0.0/0 ::/0'\n")
    told.chmod(0o755)
    told_so = ["unshare", "--mount", "sh", "-c", f'mount --bind "$0" {SYSTEMCTL} && exec "$@"', told]
    done = namespace.run([*told_so, INTRAMUROS, "doctor", "--walls", "--json", "--home", str(tmp_path / "home")], wall)
    checks = report(done)["checks"]
    assert isinstance(checks, list)
    found = {check["name"]: check for check in checks}
    assert (done.code, found["systemd"]["state"], found["TCP, port 443"]["state"]) == (
        code,
        "ok",
        "fail" if code else "ok",
    )
    assert ("not in force" in str(found["TCP, port 443"]["remedy"])) is bool(code)


@pytest.mark.threat(36)
def test_the_host_is_checked(tmp_path: Path) -> None:
    walled = namespace.run([INTRAMUROS, "doctor", "--walls", "--json", "--home", str(tmp_path)], SHIPPED)
    assert (walled.code, report(walled)["healthy"]) == (0, True), walled.out
    open_ = namespace.run([INTRAMUROS, "doctor", "--walls", "--json", "--home", str(tmp_path)], None)
    checks = report(open_)["checks"]
    assert isinstance(checks, list)
    assert open_.code == 1
    states = {check["name"]: check["state"] for check in checks}
    assert (states["TCP, port 443"], states["UDP, port 53"], states["nftables"]) == ("fail", "fail", "warn"), checks
