import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from core.errors import EgressDenied
from policy import ledger, transport
from policy.egress import Policy

Answer = Callable[[httpx.Request], httpx.Response]


class Sink:
    """A real server on loopback that remembers what reached it and answers with one status."""

    def __init__(self, status: int = 200, location: str = "") -> None:
        self.seen: list[tuple[str, str]] = []
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                sink.seen.append((self.path, self.headers["Host"]))
                self.send_response(status)
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def sink() -> Iterator[Sink]:
    server = Sink()
    yield server
    server.close()


def policy_for(*ports: int, names: tuple[str, ...] = (), peers: tuple[tuple[str, int], ...] = ()) -> Policy:
    return Policy(scope="strict", ports=frozenset(ports), names=frozenset(names), peers=frozenset(peers))


def fetch(policy: Policy, url: str, resolver: transport.Resolver | None = None) -> list[httpx.Response | EgressDenied]:
    """What the synchronous and the asynchronous client do with one GET."""
    options = {"resolver": resolver} if resolver else {}

    async def asynchronous() -> httpx.Response:
        inner = transport.async_transport(policy, "model", **options)
        async with httpx.AsyncClient(transport=inner, trust_env=False) as client:
            return await client.get(url)

    def synchronous() -> httpx.Response:
        inner = transport.transport(policy, "model", **options)
        with httpx.Client(transport=inner, trust_env=False) as client:
            return client.get(url)

    results: list[httpx.Response | EgressDenied] = []
    for run in (synchronous, lambda: asyncio.run(asynchronous())):
        try:
            results.append(run())
        except EgressDenied as denied:
            results.append(denied)
    return results


def reasons(results: list[httpx.Response | EgressDenied]) -> list[object]:
    return [result.reason if isinstance(result, EgressDenied) else result.status_code for result in results]


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> list[httpx.Request]:
    """Requests as they would go to the wire, which is replaced."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200)

    for name in ("HTTPTransport", "AsyncHTTPTransport"):
        monkeypatch.setattr(httpx, name, lambda **_: httpx.MockTransport(answer))
    return requests


def test_a_configured_server_on_loopback_is_reached(sink: Sink) -> None:
    url = f"http://localhost:{sink.port}/api/tags?x=1"
    assert reasons(fetch(policy_for(sink.port), url)) == [200, 200]
    assert sink.seen == [("/api/tags?x=1", f"localhost:{sink.port}")] * 2


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:1/", "port_not_listed"),
        ("http://1.1.1.1/", "public"),
        ("https://ollama.com/api/tags", "name_not_listed"),
        ("http://10.0.0.9:11434/", "peer_not_listed"),
        ("http://169.254.169.254/latest/meta-data/", "metadata"),
        ("http://[::ffff:127.0.0.1]:11434/", "malformed_host"),
        ("http://127.1:11434/", "malformed_host"),
        ("http://2130706433:11434/", "malformed_host"),
        ("http://user:hunter2@127.0.0.1:11434/", "credentials"),
        ("ftp://127.0.0.1:11434/", "scheme"),
        ("http://localhost.:11434/", "malformed_host"),
    ],
)
def test_everything_else_is_denied_before_a_look_up(
    url: str, reason: str, captured: list[httpx.Request], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "policy")
    before = ledger.denials().get(reason, 0)

    def no_look_up(host: str, port: int) -> tuple[str, ...]:
        pytest.fail("a look-up was made")

    results = fetch(policy_for(11434), url, no_look_up)
    if reason == "malformed_host" and "ffff" in url:
        # Which of the two it is depends on how this Python writes mapped addresses.
        assert set(reasons(results)) <= {"malformed_host", "translated"}
        return
    assert reasons(results) == [reason, reason]
    assert captured == []
    assert ledger.denials()[reason] == before + 2
    assert "hunter2" not in "".join(str(vars(record)) + str(result) for record in caplog.records for result in results)


def test_a_host_that_the_client_folds_is_judged_as_it_would_be_dialled(sink: Sink) -> None:
    # httpx reads the ideographic full stop as a dot: what is judged is the result, and that is connected to.
    assert reasons(fetch(policy_for(sink.port), f"http://127。0。0。1:{sink.port}/")) == [200, 200]
    assert reasons(fetch(policy_for(1), f"http://127。0。0。1:{sink.port}/")) == ["port_not_listed"] * 2
    assert len(sink.seen) == 2


@pytest.mark.threat(32)
@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_a_redirect_is_an_error_and_nothing_is_sent_on(status: int, sink: Sink) -> None:
    first = Sink(status, f"http://127.0.0.1:{sink.port}/stolen")
    try:
        results = fetch(policy_for(first.port, sink.port), f"http://127.0.0.1:{first.port}/api/chat")
    finally:
        first.close()
    assert reasons(results) == ["redirect", "redirect"]
    assert len(first.seen) == 2
    assert sink.seen == []


@pytest.mark.threat(10)
def test_proxies_and_netrc_of_the_environment_are_not_used(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Sink()
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    policy = policy_for(sink.port)
    try:
        with httpx.Client(**transport.client_options(policy, "model")) as client:
            assert client.get(f"http://127.0.0.1:{sink.port}/").status_code == 200

        async def asynchronous() -> int:
            async with httpx.AsyncClient(**transport.async_client_options(policy, "model")) as client:
                return (await client.get(f"http://127.0.0.1:{sink.port}/")).status_code

        assert asyncio.run(asynchronous()) == 200
    finally:
        proxy.close()
    assert (len(sink.seen), proxy.seen) == (2, [])


def test_the_connection_goes_to_the_judged_address_under_the_name(captured: list[httpx.Request]) -> None:
    asked: list[str] = []

    def resolver(host: str, port: int) -> tuple[str, ...]:
        asked.append(host)
        return ("10.0.0.5",)

    policy = policy_for(names=("models",), peers=(("10.0.0.5", 8443),))
    assert reasons(fetch(policy, "https://models:8443/v1/models?a=b", resolver)) == [200, 200]
    assert asked == ["models", "models"]
    for request in captured:
        assert str(request.url) == "https://10.0.0.5:8443/v1/models?a=b"
        assert request.headers["Host"] == "models:8443"
        assert request.extensions["sni_hostname"] == "models"
        assert "timeout" in request.extensions


def test_an_ipv6_peer_is_pinned_with_brackets(captured: list[httpx.Request]) -> None:
    policy = policy_for(names=("models",), peers=(("fd00::5", 80),))
    assert reasons(fetch(policy, "http://models/", lambda host, port: ("fd00::5",))) == [200, 200]
    assert {str(request.url) for request in captured} == {"http://[fd00::5]/"}


@pytest.mark.threat(30)
def test_a_name_that_moves_is_judged_again_each_time(captured: list[httpx.Request]) -> None:
    moving = iter([("10.0.0.5",), ("1.1.1.1",), ("10.0.0.5", "127.0.0.1"), ("10.0.0.5",)])
    policy = policy_for(names=("models",), peers=(("10.0.0.5", 80),))

    def resolver(host: str, port: int) -> tuple[str, ...]:
        return next(moving)

    assert reasons(fetch(policy, "http://models/", resolver)) == [200, "public"]
    assert reasons(fetch(policy, "http://models/", resolver)) == ["mixed_answers", 200]
    assert {request.url.host for request in captured} == {"10.0.0.5"}


def test_a_name_without_an_address_is_denied(captured: list[httpx.Request]) -> None:
    assert reasons(fetch(policy_for(80, names=("models",)), "http://models/", lambda *_: ())) == ["unresolved"] * 2
    assert captured == []


def test_a_failed_look_up_has_no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror("no such host")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert transport.look_up("models", 80) == ()


def test_a_look_up_gives_each_address_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [(socket.AF_INET, 1, 6, "", (address, 80)) for address in ("10.0.0.5", "10.0.0.6", "10.0.0.5")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: entries)
    assert transport.look_up("models", 80) == ("10.0.0.5", "10.0.0.6")


def test_the_policy_that_denies_everything_sends_nothing(sink: Sink) -> None:
    assert reasons(fetch(Policy(), f"http://127.0.0.1:{sink.port}/")) == ["no_policy", "no_policy"]
    assert sink.seen == []


async def test_a_client_of_the_openai_package_goes_through_it() -> None:
    openai = pytest.importorskip("openai")
    http_client = httpx.AsyncClient(**transport.async_client_options(policy_for(11434), "model"))
    async with openai.AsyncOpenAI(base_url="http://1.1.1.1/v1", api_key="k", http_client=http_client) as client:
        with pytest.raises(EgressDenied, match="public"):
            await client.models.list()
