"""`worker`: processes the queue, beside the server or on another machine."""

import asyncio
import signal

import typer

from api.cli import console
from api.cli.commands import command
from api.runtime import Runtime
from core.settings import Settings


def register(app: typer.Typer) -> None:
    command(app, "worker", settings=("concurrency", "log_format", "log_level"))(worker)


async def worker(settings: Settings) -> None:
    """Process the queue of uploaded and changed documents until stopped.

    Any number of workers may run, on any number of machines that reach the same database and the same files (the folder
    files below the home folder). When one dies the others take over its documents.
    """
    from api.worker import Worker

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    async with Runtime.open(settings) as runtime, Worker(runtime).working():
        console.note("Working on the queue. Ctrl-C stops.")
        await stopping.wait()
