"""The HTTP server process."""

import asyncio
import signal
from contextlib import nullcontext

import uvicorn
from fastapi import FastAPI

from api.app import create_app
from api.runtime import Runtime
from core.errors import SettingsError
from core.settings import Settings, variable


def serve(settings: Settings) -> None:
    """Serve until told to stop (SIGINT, SIGTERM). Raises the errors of Runtime.open before it listens."""
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    async with Runtime.open(settings) as runtime:
        server = uvicorn.Server(configuration(create_app(settings, lambda _: nullcontext(runtime)), settings))
        for number in (signal.SIGINT, signal.SIGTERM):
            # uvicorn stops at the first signal and sends it again when it has stopped; by then it must do nothing,
            # or the runtime would not be closed.
            signal.signal(number, lambda *_: None)
        try:
            await server.serve()
        except SystemExit:
            # How uvicorn says that it could not bind.
            raise SettingsError(
                f"Cannot listen on {settings.host}:{settings.port}; another program may. Choose another "
                f"{variable('port')} or {variable('host')}."
            ) from None


def configuration(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """uvicorn on the event loop that the audit hook can watch, with our logging, believing no proxy's headers."""
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )
