"""Certificates: kept by the model's weights, and what they change."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from inference import certificates, select
from inference.certificates import CAPABLE, Certificate, Check, CheckName
from inference.interfaces import Traits
from policy.egress import Policy
from tests.fakes.ollama import FakeOllama, model
from tests.unit.conftest import MakeSettings

TRAITS = Traits(tools=True, logprobs=True, capable=False, context_tokens=4096)
NAMES: tuple[CheckName, ...] = (*sorted(CAPABLE), "quick", "tools", "context")


def made(*failed: CheckName, identity: str = "ollama:chat:abc", context: int = 4096) -> Certificate:
    checks = tuple(Check(name, name not in failed, 3, 3) for name in NAMES)
    return Certificate(identity, "chat", "ollama", "2026-01-01T00:00:00+00:00", 4096, checks, 55.0, 8.0, context, 2)


def test_it_comes_back_as_it_was_and_replaces_the_one_before(tmp_path: Path) -> None:
    assert certificates.read(tmp_path, "ollama:chat:abc") is None
    certificates.write(tmp_path, made("quick"))
    path = certificates.write(tmp_path, made())
    assert certificates.read(tmp_path, "ollama:chat:abc") == made()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_other_weights_under_the_same_name_have_none(tmp_path: Path) -> None:
    certificates.write(tmp_path, made())
    assert certificates.read(tmp_path, "ollama:chat:def") is None


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"checks": 3}', '{"checks": [], "another": 1}'])
def test_a_damaged_one_is_none(tmp_path: Path, text: str) -> None:
    path = certificates.write(tmp_path, made())
    path.write_text(text)
    assert certificates.read(tmp_path, "ollama:chat:abc") is None


def test_one_of_another_model_in_its_place_is_none(tmp_path: Path) -> None:
    path = certificates.write(tmp_path, made())
    path.write_text(json.dumps(json.loads(path.read_text()) | {"identity": "ollama:chat:evil"}))
    assert certificates.read(tmp_path, "ollama:chat:abc") is None


@pytest.mark.parametrize(
    ("failed", "context", "fit"),
    [
        ((), 4096, "capable"),
        (("tools",), 4096, "capable"),
        (("injection",), 4096, "small"),
        (("refusal", "citation"), 4096, "small"),
        (("quick", "citation"), 4096, "unfit"),
        ((), 0, "unfit"),
    ],
)
def test_what_a_model_is_fit_for(failed: tuple[CheckName, ...], context: int, fit: str) -> None:
    assert made(*failed, context=context).fit == fit


def test_it_overrides_what_name_and_size_speak_for() -> None:
    assert made().applied(TRAITS) == replace(TRAITS, capable=True)
    capable = replace(TRAITS, capable=True, context_tokens=8192)
    assert made("injection", "tools", context=2048).applied(capable) == Traits(False, True, False, 2048)
    assert made().applied(replace(TRAITS, tools=False)).tools is False  # its server takes none


async def test_it_is_used_where_the_model_is_opened(make_settings: MakeSettings) -> None:
    with FakeOllama(models={"chat:latest": model("completion", "tools", size="1.5B")}) as server:
        settings = make_settings(ollama_url=server.url)
        policy = Policy.of(settings)
        assert await select.certificate(settings, policy) is None
        plain = await select.open_chat(settings, policy)
        certificates.write(settings.home, made("tools", identity=plain.identity, context=2048))
        certified = await select.open_chat(settings, policy)
        examined = await select.open_uncertified(settings, policy)
        found = await select.certificate(settings, policy)
        for chat in (plain, certified, examined):
            await chat.close()
    assert plain.traits == examined.traits
    assert (certified.traits.capable, certified.traits.tools, certified.traits.context_tokens) == (True, False, 2048)
    assert found is not None
    assert "2048 tokens" in certificates.summary(found)
