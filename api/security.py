"""What every request and every response passes: limits and strict JSON on the way in, headers on the way out."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api import problems
from core.errors import FileTooLarge, IntramurosError, InvalidRequest, RequestTooLarge
from core.logs import traced

JSON_LIMIT: Final = 1_000_000
JSON_DEPTH: Final = 16
UPLOAD_PATH: Final = "/v1/documents"
# What a multipart upload may hold beside the file: boundaries, headers, the collection's name.
UPLOAD_MARGIN: Final = 64_000

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

_BAD_TEXT = re.compile("[\x00\ud800-\udfff]")


class Edge:
    """The outermost layer: a trace id, the security headers, and an answer whatever happens inside."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        with traced() as trace:

            async def stamped(message: Message) -> None:
                nonlocal started
                if message["type"] == "http.response.start":
                    started = True
                    _stamp(MutableHeaders(scope=message), trace, str(scope["path"]))
                await send(message)

            try:
                await self.app(scope, receive, stamped)
            except Exception as error:  # noqa: BLE001 the last layer: nothing may pass it untranslated
                if started:
                    problems.log_defect(error)
                    # Too late for a problem document: break the connection, without the error's text in the log.
                    raise IntramurosError from None
                await problems.of(error)(scope, receive, stamped)


def _stamp(headers: MutableHeaders, trace: str, path: str) -> None:
    for name, value in HEADERS.items():
        headers[name] = value
    headers["X-Request-Id"] = trace
    # The scripts of a page fit each other only when all are of one version: they are asked for again, by their ETag.
    headers.setdefault("Cache-Control", "no-store" if path.startswith("/v1/") else "no-cache")


class BodyGuard:
    """Refuses bodies that are too large, and JSON or addresses that carry what no honest client sends.

    A body is read whole before the route sees it, except an upload, which is counted as it streams.
    """

    def __init__(self, app: ASGIApp, *, upload_limit: int) -> None:
        self.app = app
        self.upload_limit = upload_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if "\x00" in scope["path"] or b"\x00" in scope["query_string"] or b"%00" in scope["query_string"]:
            raise InvalidRequest("The address holds a NUL character.")
        headers = Headers(scope=scope)
        kind = headers.get("content-type", "").lower()
        if scope["path"] == UPLOAD_PATH and kind.startswith("multipart/form-data"):
            await self.app(scope, _counted(receive, headers, self.upload_limit + UPLOAD_MARGIN), send)
            return
        body = await _whole(_counted(receive, headers, JSON_LIMIT))
        if body is None:
            return
        if "json" in kind and body:
            check_json(body)
        await self.app(scope, _replayed(body, receive), send)


def check_json(body: bytes) -> None:
    """Raise InvalidRequest unless `body` is UTF-8 JSON (RFC 8259) that is shallow and free of NUL, lone surrogates,
    NaN, infinities and repeated keys."""
    try:
        value = json.loads(body.decode(), parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise InvalidRequest("The body is not valid JSON.") from None
    _check_value(value, JSON_DEPTH)


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is repeated")
    return value


def _check_value(value: Any, depth: int) -> None:
    if depth == 0:
        raise InvalidRequest("The JSON is nested too deeply.")
    match value:
        case str():
            if _BAD_TEXT.search(value):
                raise InvalidRequest("A text holds a NUL character or half a surrogate pair.")
        case float():
            if not math.isfinite(value):
                raise InvalidRequest("A number is out of range.")
        case list():
            for item in value:
                _check_value(item, depth - 1)
        case dict():
            for key, item in value.items():
                _check_value(key, depth)
                _check_value(item, depth - 1)


def _counted(receive: Receive, headers: Headers, limit: int) -> Receive:
    """`receive` that raises once more than `limit` bytes were announced or came."""
    too_large: type[IntramurosError] = RequestTooLarge if limit == JSON_LIMIT else FileTooLarge
    announced = headers.get("content-length", "0")
    if not announced.isdecimal() or len(announced) > 12 or int(announced) > limit:
        raise too_large
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise too_large
        return message

    return counted


async def _whole(receive: Receive) -> bytes | None:
    """The body, None when the client went away before its end."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    waiting = True

    async def replayed() -> Message:
        nonlocal waiting
        if waiting:
            waiting = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replayed
