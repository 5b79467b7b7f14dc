"""A client that goes away before it is answered."""

import asyncio
from typing import Any

from tests.integration.api.conftest import Site


async def leave(
    site: Site, method: str, path: str, *, token: str, begun: asyncio.Event, body: bytes = b"", **headers: str
) -> list[Any]:
    """Send a request, close the connection once `begun`, and wait for the end; what was sent back all the same."""
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    messages.put_nowait({"type": "http.request", "body": body, "more_body": False})
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    named = {"authorization": f"Bearer {token}", "content-type": "application/json", **headers}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    async with asyncio.timeout(30):
        request = asyncio.create_task(site.app(scope, messages.get, send))
        await begun.wait()
        messages.put_nowait({"type": "http.disconnect"})
        await request
    return sent
