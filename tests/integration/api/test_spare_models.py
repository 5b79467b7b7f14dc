"""Models beside the chat model: one that grades, and one that takes over."""

from collections.abc import Callable
from typing import Any

import pytest

from api.runtime import Runtime
from core.errors import ModelUnavailable
from core.settings import Settings
from inference.interfaces import ChatModel
from tests.fakes.chat import ScriptedChat

Opener = Callable[..., Any]


def opening(*broken: str) -> Opener:
    """Opens a scripted model named after what settings ask for; those named here are not to be had."""

    async def open_chat(settings: Settings, _: Any) -> ChatModel:
        name = settings.chat_model or settings.chat_provider
        if name in broken:
            raise ModelUnavailable
        return ScriptedChat(name=name)

    return open_chat


def with_spares(runtime: Runtime, *broken: str) -> Runtime:
    values = {"chat_model": "big", "grader_model": "ollama:small", "fallback_model": "embedded"}
    runtime.settings = runtime.settings.model_copy(update=values)
    runtime.open_chat = opening(*broken)
    return runtime


async def names(runtime: Runtime) -> tuple[str, str, str | None]:
    models = await runtime.models()
    return models.chat.name, models.grader.name, models.fallback.name if models.fallback else None


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        ((), ("big", "small", "embedded")),
        (("small",), ("big", "big", "embedded")),
        (("embedded",), ("big", "small", None)),
        (("big",), ("embedded", "small", "embedded")),
        (("big", "small"), ("embedded", "embedded", "embedded")),
    ],
    ids=str,
)
async def test_what_stands_in_for_what(runtime: Runtime, broken: tuple[str, ...], found: tuple[str, ...]) -> None:
    assert await names(with_spares(runtime, *broken)) == found


async def test_the_chat_model_is_taken_again_once_it_is_there(runtime: Runtime) -> None:
    opened = with_spares(runtime, "big")
    assert (await names(opened))[0] == "embedded"
    opened.open_chat = opening()
    assert (await names(opened))[0] == "big"


async def test_without_a_fallback_its_fault_is_said(runtime: Runtime) -> None:
    with pytest.raises(ModelUnavailable):
        await with_spares(runtime, "big", "embedded").models()
