"""The one HTTP transport: every client in the program is built on it.

It judges each request, connects to the very address that it judged, and follows no redirect. It reads no proxy from
the environment; Host header and TLS server name stay those of the URL. TLS trusts the operating system's authorities,
where an organisation installs its own.
"""

import asyncio
import ssl
from functools import lru_cache
from typing import Any

import httpx

from policy import ledger
from policy.egress import UNRESOLVED, Policy, Resolver, judged, look_up

_DEFAULT_PORT = {"http": 80, "https": 443}


@lru_cache(maxsize=1)
def _authorities() -> ssl.SSLContext:
    return ssl.create_default_context()


class GuardedTransport(httpx.BaseTransport):
    """Synchronous. Raises EgressDenied; otherwise what `httpx.HTTPTransport` raises."""

    def __init__(self, policy: Policy, purpose: str, resolver: Resolver = look_up) -> None:
        self._policy, self._purpose, self._resolver = policy, purpose, resolver
        self._inner = httpx.HTTPTransport(verify=_authorities(), trust_env=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        host, port = _target(request, self._purpose)
        address = judged(self._policy, host, port, self._purpose, self._resolver)
        response = self._inner.handle_request(_pinned(request, host, address))
        if _redirects(response):
            response.close()
            raise ledger.deny("redirect", purpose=self._purpose, port=port, target=ledger.told(host, port))
        return response

    def close(self) -> None:
        self._inner.close()


class AsyncGuardedTransport(httpx.AsyncBaseTransport):
    """Asynchronous twin: a look-up, where one is needed, runs in a thread."""

    def __init__(self, policy: Policy, purpose: str, resolver: Resolver = look_up) -> None:
        self._policy, self._purpose, self._resolver = policy, purpose, resolver
        self._inner = httpx.AsyncHTTPTransport(verify=_authorities(), trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host, port = _target(request, self._purpose)
        answers: tuple[str, ...] = ()
        if self._policy.decide(host, port, self._purpose).reason == UNRESOLVED:
            answers = tuple(await asyncio.to_thread(self._resolver, host, port))
        address = judged(self._policy, host, port, self._purpose, lambda _host, _port: answers)
        response = await self._inner.handle_async_request(_pinned(request, host, address))
        if _redirects(response):
            await response.aclose()
            raise ledger.deny("redirect", purpose=self._purpose, port=port, target=ledger.told(host, port))
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


def transport(policy: Policy, purpose: str, *, resolver: Resolver = look_up) -> httpx.BaseTransport:
    """The transport for `httpx.Client`."""
    return GuardedTransport(policy, purpose, resolver)


def async_transport(policy: Policy, purpose: str, *, resolver: Resolver = look_up) -> httpx.AsyncBaseTransport:
    """The transport for `httpx.AsyncClient`."""
    return AsyncGuardedTransport(policy, purpose, resolver)


def client_options(policy: Policy, purpose: str) -> dict[str, Any]:
    """Keyword arguments for `httpx.Client`: `httpx.Client(**client_options(policy, "model"), timeout=...)`."""
    return {"transport": transport(policy, purpose), "trust_env": False, "follow_redirects": False}


def async_client_options(policy: Policy, purpose: str) -> dict[str, Any]:
    """Keyword arguments for `httpx.AsyncClient`."""
    return {"transport": async_transport(policy, purpose), "trust_env": False, "follow_redirects": False}


def _target(request: httpx.Request, purpose: str) -> tuple[str, int]:
    default = _DEFAULT_PORT.get(request.url.scheme)
    if default is None or request.url.userinfo:
        raise ledger.deny("scheme" if default is None else "credentials", purpose=purpose)
    # The encoded host is what the connection would use: there is no second reading of it.
    return request.url.raw_host.decode("ascii"), request.url.port or default


def _pinned(request: httpx.Request, host: str, address: str) -> httpx.Request:
    """The same request, sent to `address`. Its Host header was set from the URL when it was made."""
    if host == address:
        return request
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )


def _redirects(response: httpx.Response) -> bool:
    return 300 <= response.status_code < 400
