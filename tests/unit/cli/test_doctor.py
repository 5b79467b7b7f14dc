"""What `doctor` says of the jail and of the converters."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from api.cli import doctor
from core.errors import ReaderUnavailable
from core.settings import Settings
from ingest import programs
from ingest.jail import WALLS


class FakeJail:
    """Says which walls hold, or cannot be started."""

    held: Mapping[str, bool] | None = None
    closed = 0

    def __init__(self, settings: Settings) -> None: ...

    async def walls(self) -> Mapping[str, bool]:
        if self.held is None:
            raise ReaderUnavailable("It did not start.")
        return self.held

    async def close(self) -> None:
        type(self).closed += 1


@pytest.fixture
def jail(monkeypatch: pytest.MonkeyPatch) -> type[FakeJail]:
    fresh = type("Fresh", (FakeJail,), {})
    monkeypatch.setattr(doctor, "Jail", fresh)
    return fresh


async def test_a_whole_jail_is_in_order(jail: type[FakeJail], tmp_path: Path) -> None:
    jail.held = dict.fromkeys(WALLS, True)
    found = await doctor._reader(Settings(home=tmp_path))
    assert (found.state, jail.closed) == ("ok", 1)
    assert all(words in found.detail for words in doctor.WALLS.values())


@pytest.mark.parametrize("wall", WALLS)
async def test_a_wall_that_does_not_hold_is_named(jail: type[FakeJail], tmp_path: Path, wall: str) -> None:
    jail.held = dict.fromkeys(WALLS, True) | {wall: False}
    found = await doctor._reader(Settings(home=tmp_path))
    assert (found.state, jail.closed) == ("warn", 1)
    assert found.detail.endswith(f": {doctor.WALLS[wall]}")
    assert found.remedy


async def test_a_reader_that_does_not_start_is_a_fault(jail: type[FakeJail], tmp_path: Path) -> None:
    found = await doctor._reader(Settings(home=tmp_path))
    assert (found.state, found.remedy, jail.closed) == ("fail", "It did not start.", 1)


def test_missing_converters_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find", lambda name: None if name == "pandoc" else Path("/usr/bin") / name)
    found = doctor._converters()
    assert (found.state, found.remedy) == ("warn", "Run: apt install pandoc")
    assert programs.PACKAGES["pandoc"][1] in found.detail


def test_all_converters_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find", lambda name: Path("/usr/bin") / name)
    assert doctor._converters().state == "ok"
