"""What a request must pass before a route sees it, and what every response carries."""

import json
from collections.abc import Iterable
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from api.security import JSON_LIMIT, UPLOAD_MARGIN, BodyGuard, Edge, check_json
from core.errors import InvalidRequest

UPLOAD_LIMIT = 10_000


async def _echo(request: Request) -> Response:
    return JSONResponse({"size": len(await request.body())})


async def _broken(_: Request) -> Response:
    raise RuntimeError("SELECT secret FROM users -- hunter2")


async def _plain(_: Request) -> Response:
    return PlainTextResponse("ok")


def _client() -> httpx.AsyncClient:
    app = Starlette(
        routes=[
            Route("/v1/echo", _echo, methods=["POST"]),
            Route("/v1/documents", _echo, methods=["POST"]),
            Route("/v1/broken", _broken),
            Route("/plain", _plain),
        ],
        middleware=[Middleware(Edge), Middleware(BodyGuard, upload_limit=UPLOAD_LIMIT)],
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


async def _post(body: bytes, kind: str = "application/json", path: str = "/v1/echo") -> httpx.Response:
    async with _client() as client:
        return await client.post(path, content=body, headers={"content-type": kind})


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": "\\u0000"}',
        b'{"a\\u0000": 1}',
        b'{"a": "\\ud800"}',
        b'{"a": "\\udc00\\ud800"}',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1e999}',
        b'{"a": 1, "a": 2}',
        b'{"a": "\x00"}',
        b'{"a": "\xff"}',
        '{"a": 1}'.encode("utf-16"),
        b"\xef\xbb\xbf{}",
        b"{",
        b"nothing",
        b"[" * 17 + b"]" * 17,
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
    ids=range(18),
)
async def test_json_that_no_honest_client_sends_is_refused(body: bytes) -> None:
    reply = await _post(body)
    assert reply.status_code == 422
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["code"] == "invalid_request"


@pytest.mark.parametrize("value", [{}, {"a": ["年假\U0001f600", 1.5, None, True]}, [[[[1]]]]])
def test_ordinary_json_passes(value: Any) -> None:
    check_json(json.dumps(value).encode())
    check_json(json.dumps(value, ensure_ascii=False).encode())


def test_nesting_is_counted_exactly() -> None:
    check_json(b"[" * 15 + b"1" + b"]" * 15)
    with pytest.raises(InvalidRequest, match="nested"):
        check_json(b"[" * 16 + b"1" + b"]" * 16)


async def test_the_limit_counts_what_comes_not_what_is_announced() -> None:
    async def chunks(total: int) -> Any:
        for _ in range(total // 1000):
            yield b" " * 1000

    async with _client() as client:
        within = await client.post("/v1/echo", content=chunks(JSON_LIMIT), headers={"content-type": "text/plain"})
        beyond = await client.post("/v1/echo", content=chunks(JSON_LIMIT + 1000))
    assert within.json() == {"size": JSON_LIMIT}
    assert (beyond.status_code, beyond.json()["code"]) == (413, "request_too_large")


@pytest.mark.parametrize("announced", [str(JSON_LIMIT + 1), "9" * 5000, "-1", "1e3", "²"])
async def test_an_announced_length_is_judged_before_reading(announced: str) -> None:
    def never() -> Iterable[bytes]:
        raise AssertionError("the body was read")
        yield b""

    scope = {
        "type": "http",
        "path": "/v1/echo",
        "method": "POST",
        "query_string": b"",
        "headers": [(b"content-length", announced.encode("latin-1"))],
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return next(iter(never()))

    async def send(message: Any) -> None:
        sent.append(message)

    async def app(*_: Any) -> None:
        raise AssertionError("the route was reached")

    await Edge(BodyGuard(app, upload_limit=1))(scope, receive, send)
    assert sent[0]["status"] == 413


async def test_uploads_have_a_limit_of_their_own() -> None:
    kind = "multipart/form-data; boundary=x"
    within = await _post(b"x" * (UPLOAD_LIMIT + UPLOAD_MARGIN), kind, "/v1/documents")
    beyond = await _post(b"x" * (UPLOAD_LIMIT + UPLOAD_MARGIN + 1), kind, "/v1/documents")
    assert within.status_code == 200
    assert (beyond.status_code, beyond.json()["code"]) == (413, "file_too_large")


@pytest.mark.parametrize("path", ["/v1/echo?q=%00", "/v1/echo%00", "/v1/echo?q=%00%00x"])
async def test_nul_in_an_address_is_refused(path: str) -> None:
    reply = await _post(b"{}", path=path)
    assert reply.status_code == 422


@pytest.mark.threat(35)
async def test_every_response_carries_the_security_headers() -> None:
    async with _client() as client:
        replies = [await client.get(path) for path in ("/plain", "/v1/broken", "/nowhere")]
    for reply in replies:
        policy = reply.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert len(reply.headers["x-request-id"]) == 16


async def test_a_defect_is_told_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    async with _client() as client:
        reply = await client.get("/v1/broken")
    body = reply.json()
    assert (reply.status_code, body["code"], body["trace"]) == (500, "internal", reply.headers["x-request-id"])
    assert "secret" not in reply.text
    (record,) = [record for record in caplog.records if record.name == "api.problems"]
    assert vars(record)["kinds"] == ["RuntimeError"]
    assert "hunter2" not in str(vars(record))


async def test_a_client_that_leaves_in_its_body_reaches_no_route() -> None:
    messages = iter(
        [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}],
    )

    async def receive() -> Any:
        return next(messages)

    async def unreachable(*_: Any) -> None:
        raise AssertionError("reached")

    scope = {"type": "http", "path": "/v1/echo", "method": "POST", "query_string": b"", "headers": []}
    await BodyGuard(unreachable, upload_limit=1)(scope, receive, unreachable)
