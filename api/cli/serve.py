"""`serve`: the web page and the API."""

import typer

from api.cli import console
from api.cli.commands import command
from core.settings import Settings


def register(app: typer.Typer) -> None:
    command(app, "serve", settings=("host", "port", "secure_cookies", "log_format", "log_level"))(serve)


def serve(settings: Settings) -> None:
    """Serve the web page and the API."""
    from api.server import serve as run_server

    console.note(f"Open http://{settings.host}:{settings.port}/ in a browser. Ctrl-C stops.")
    run_server(settings)
