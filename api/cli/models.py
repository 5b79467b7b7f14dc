"""`models`: the language model and the embedder on this machine."""

import asyncio

import typer

from api.cli import console
from api.cli.commands import command
from core.errors import ModelMissing
from core.settings import Settings
from policy.egress import Policy

app = typer.Typer(help="Fetch the embedded models, or list what is there.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    command(app, "pull", settings=("cache",), common=("home",))(pull)
    command(app, "list", settings=("cache", "chat_provider", "embed_provider"), common=("home",))(listing)
    root.add_typer(app, name="models")


async def pull(settings: Settings) -> None:
    """Fetch the embedded chat model and embedder: about 1.2 GB once, shared by all clones. Goes on where it stopped."""
    fetched = await fetch(settings)
    for name in fetched:
        console.say(name)
    console.say(f"the embedded models are ready in {settings.cache / 'models'}")


async def fetch(settings: Settings) -> list[str]:
    """Fetch with a bar of bytes; names what was fetched. Errors: DownloadFailed, ChecksumMismatch."""
    from inference.fetch import pull as pull_models

    with console.progress("Fetching models", counted=False) as advance:

        def report(what: str, done: int, total: int) -> None:
            advance(done, total, what)

        return await asyncio.to_thread(pull_models, settings, report)


async def ensure(settings: Settings) -> None:
    """Fetch the embedded models where they are the ones to use and are not here yet. Errors: as `fetch`."""
    from inference import select

    chosen = await select.report(settings, Policy.of(settings))
    if any(choice.provider == "embedded" and isinstance(choice.fault, ModelMissing) for choice in chosen):
        console.note("Fetching the models: about 1.2 GB, once for all clones")
        await fetch(settings)


async def listing(settings: Settings) -> None:
    """Say which chat model and which embedder are used, and why."""
    from inference import select

    chosen = await select.report(settings, Policy.of(settings))
    rows = [(choice.part, choice.model, choice.provider, choice.why) for choice in chosen]
    console.table(("Part", "Model", "Runs on", "Because"), rows)
    for choice in chosen:
        if choice.fault is not None:
            console.note(choice.fault.message)
