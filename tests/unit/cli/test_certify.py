"""`intramuros certify`: which model, what is printed and kept; and how `doctor` shows it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer

from api.cli import certify, doctor
from core.errors import InvalidRequest
from core.settings import Settings
from inference import certificates
from inference.certificates import CAPABLE, Certificate, Check, CheckName
from inference.chat import LangChat
from policy.egress import Policy
from tests.fakes.ollama import FakeOllama


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    with FakeOllama() as server:
        yield Settings.load(home=tmp_path / "home", cache=tmp_path / "cache", ollama_url=server.url)


@dataclass
class Examiner:
    """Lets a model pass or fail everything; `models` lists those that were examined."""

    passes: bool = True
    models: list[str] = field(default_factory=list)


@pytest.fixture
def examiner(monkeypatch: pytest.MonkeyPatch) -> Examiner:
    made = Examiner()

    async def examine(chat: LangChat, settings: Settings, report: Callable[[Check], None]) -> Certificate:
        made.models.append(chat.name)
        names: tuple[CheckName, ...] = (*sorted(CAPABLE), "quick")
        checks = tuple(Check(name, made.passes, 3, 3) for name in names)
        for check in checks:
            report(check)
        return Certificate(chat.identity, chat.name, chat.provider, "2026-01-01", 4096, checks, 55.0, 8.0, 4096, 2)

    monkeypatch.setattr("agent.certifying.certify", examine)
    return made


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        (None, "auto", None),
        ("embedded", "embedded", None),
        ("ollama:qwen2.5:7b", "ollama", "qwen2.5:7b"),
        ("qwen2.5:7b", "auto", "qwen2.5:7b"),
    ],
)
def test_which_model_is_meant(settings: Settings, model: str | None, provider: str, name: str | None) -> None:
    found = certify.named(settings, model)
    assert (found.chat_provider, found.chat_model) == (provider, name)


def test_a_provider_without_a_name_is_refused(settings: Settings) -> None:
    with pytest.raises(InvalidRequest):
        certify.named(settings, "ollama:")


async def test_a_model_that_passes_is_kept_and_shown(
    settings: Settings, examiner: Examiner, capsys: pytest.CaptureFixture[str]
) -> None:
    await certify.certify(settings, "ollama:chat", as_json=True)
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (printed["model"], printed["fit"], printed["reads"]) == ("chat:latest", "capable", 55.0)
    assert examiner.models == ["chat:latest"]
    assert certificates.read(settings.home, printed["identity"]) is not None
    shown = {check.name: check for check in await doctor._models(settings, Policy.of(settings))}
    assert shown["certificate"].state == "ok"
    assert "chat:latest is capable: reads 55" in shown["certificate"].detail


async def test_a_model_that_is_fit_for_nothing_is_kept_too_and_fails(
    settings: Settings, examiner: Examiner, capsys: pytest.CaptureFixture[str]
) -> None:
    examiner.passes = False
    with pytest.raises(typer.Exit) as ended:
        await certify.certify(settings, None)
    assert ended.value.exit_code == 1
    assert "fail: quick, 3 of 3" in capsys.readouterr().out
    shown = {check.name: check for check in await doctor._models(settings, Policy.of(settings))}
    assert (shown["certificate"].state, shown["chat"].state) == ("warn", "ok")


async def test_a_model_that_was_not_examined_is_said(settings: Settings) -> None:
    shown = {check.name: check for check in await doctor._models(settings, Policy.of(settings))}
    assert shown["certificate"].remedy == "Run: intramuros certify"
