"""Requests made up from the description of the interface, fitting and breaking it: none is a fault of the server."""

import asyncio
import os
from typing import Any

import httpx
import pytest

from core.records import Answered
from tests.integration.api.conftest import Site, scripted
from tests.integration.api.samples import answer_about
from tests.integration.api.table import ENDLESS

hypothesis = pytest.importorskip("hypothesis", reason="the development extra is not installed")
schemathesis = pytest.importorskip("schemathesis", reason="the development extra is not installed")

# Requests of an operation, half of which fit what it says of itself. `make fuzz` makes more.
EXAMPLES = int(os.environ.get("INTRAMUROS_FUZZ", "4"))
# Logging out would end the token that all of them use.
LEFT_OUT = ENDLESS | {"POST /v1/logout"}


def made_up(schema: Any, examples: int) -> Any:
    """(name, function that hands requests of one operation to a sender) of each operation."""
    modes = schemathesis.GenerationMode
    for result in schema.get_all_operations():
        operation = result.ok()
        name = f"{operation.method.upper()} {operation.path}"
        for mode in (modes.POSITIVE, modes.NEGATIVE):

            def run(send: Any, operation: Any = operation, mode: Any = mode) -> None:
                try:
                    strategy = operation.as_strategy(generation_mode=mode)
                    checked = hypothesis.given(strategy)(lambda case: send(case))
                    hypothesis.settings(
                        max_examples=examples, deadline=None, database=None, derandomize=True,
                        suppress_health_check=list(hypothesis.HealthCheck),
                    )(checked)()  # fmt: skip
                except hypothesis.errors.Unsatisfiable:
                    return  # nothing of it can be broken

            yield name, run


def request(case: Any, base: str) -> httpx.Request:
    """A made-up request as the client's own."""
    prepared = case.as_transport_kwargs(base_url=base)
    known = {
        key: prepared[key] for key in ("params", "json", "data", "headers", "cookies", "files") if prepared.get(key)
    }
    if "files" in known:
        known["files"] = [(name, _part(value)) for name, value in dict(known["files"]).items()]
    if isinstance(known.get("data"), bytes | str):
        known["content"] = known.pop("data")
    return httpx.Request(prepared["method"], prepared["url"], **known)


def _part(value: Any) -> Any:
    if isinstance(value, tuple):
        return value[0], _part(value[1]), *value[2:]
    return value if isinstance(value, bytes | str) else str(value)


async def test_no_request_is_a_fault_of_the_server(site: Site) -> None:
    assert site.demo.open
    site.agent.script = scripted(Answered(answer_about(site.demo.open, site.demo.chunk_id)))
    loop, seen = asyncio.get_running_loop(), dict[str, set[int]]()
    schema = schemathesis.openapi.from_dict(site.app.openapi())
    async with site.client(site.demo.tokens["admin"]) as client:

        def fuzz() -> None:
            for name, run in made_up(schema, EXAMPLES):
                if name not in LEFT_OUT:
                    run(lambda case, name=name: send(name, case))

        def send(name: str, case: Any) -> None:
            made = request(case, "http://site")
            made.headers["authorization"] = client.headers["authorization"]
            reply = asyncio.run_coroutine_threadsafe(client.send(made), loop).result()
            seen.setdefault(name, set()).add(reply.status_code)
            assert reply.status_code < 500, (name, made.url, case.body, reply.text)
            if reply.status_code >= 400:
                assert reply.headers["content-type"] == "application/problem+json", (name, made.url)

        await asyncio.to_thread(fuzz)
    assert len(seen) > 25
    assert all(status & {200, 201, 202, 204, 401, 403, 404, 409, 410, 422} for status in seen.values())
