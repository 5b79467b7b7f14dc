"""`certify`: examine a chat model on this machine, and use it from then on for what it can do."""

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from api.cli import console
from api.cli.commands import Json, command
from core.settings import Settings, variable
from policy.egress import Policy

PROVIDERS = ("embedded", "ollama:", "openai:")


def register(app: typer.Typer) -> None:
    command(app, "certify", settings=("chat_provider", "num_ctx", "chat_timeout"), common=("home",))(certify)


async def certify(
    settings: Settings,
    model: Annotated[
        str | None,
        typer.Argument(help="embedded, ollama:NAME, openai:NAME or a NAME; without: the chat model in use."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Examine a chat model on this machine: tool calls, citations, refusals, both languages, injected orders, speed.

    The result is kept, and decides from then on whether the model answers over several passages, steers its own search,
    and how much it is given to read. Takes minutes; nothing else should use the model meanwhile.

    Exit code 1 when the model is fit for nothing here.
    """
    from agent.certifying import certify as examine
    from inference import certificates, select
    from inference.certificates import Check

    settings = named(settings, model)
    chat = await select.open_uncertified(settings, Policy.of(settings))

    def show(check: Check) -> None:
        if not as_json:
            console.say(f"{'pass' if check.passed else 'fail'}: {check.name}, {check.right} of {check.of}")

    try:
        console.note(f"Examining {chat.name} ({chat.provider}); this takes minutes")
        certificate = await examine(chat, settings, show)
    finally:
        await chat.close()
    await asyncio.to_thread(certificates.write, settings.home, certificate)
    if as_json:
        console.print_json({**asdict(certificate), "fit": certificate.fit})
    else:
        console.say(certificates.summary(certificate))
    if certificate.fit == "unfit":
        console.note(f"Name another model in {variable('chat_model')}, or give this one more time or a larger context")
        raise typer.Exit(1)


def named(settings: Settings, model: str | None) -> Settings:
    """Settings whose chat model is the one named on the command line."""
    from inference.select import chat_by

    if model is None:
        return settings
    if model.startswith(PROVIDERS):
        return chat_by(settings, model)
    return settings.model_copy(update={"chat_model": model})
