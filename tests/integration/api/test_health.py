"""Health and readiness: green when all is well, red with the remedy when something is not."""

from typing import Any

import pytest

from core.errors import BootRefused, DatabaseUnavailable, ModelMissing, SchemaOutdated
from policy.egress import Policy
from storage import migrations
from tests.integration.api.conftest import Site


async def _ready(site: Site) -> tuple[int, dict[str, Any]]:
    async with site.client() as client:
        reply = await client.get("/readyz")
        assert (await client.get("/healthz")).json() == {"status": "ok"}
    body = reply.json()
    assert body["ready"] is (reply.status_code == 200)
    return reply.status_code, {check["name"]: check["code"] for check in body["checks"] if not check["ok"]}


async def test_all_is_well(site: Site) -> None:
    assert await _ready(site) == (200, {})


async def test_without_a_model(site: Site) -> None:
    async def missing(*_: Any) -> Any:
        raise ModelMissing

    await site.runtime.close()
    site.runtime.open_chat = missing
    assert await _ready(site) == (503, {"models": "model_missing"})


@pytest.mark.threat(15)
async def test_without_a_policy(site: Site) -> None:
    site.runtime.policy = Policy()
    assert await _ready(site) == (503, {"policy": "policy"})


async def test_with_a_blind_audit_hook(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def blind() -> None:
        raise BootRefused

    monkeypatch.setattr("policy.hook.canary_in_loop", blind)
    assert await _ready(site) == (503, {"policy": "boot_refused"})


async def test_with_another_schema(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def outdated(_: Any) -> None:
        raise SchemaOutdated

    monkeypatch.setattr(migrations, "check", outdated)
    assert await _ready(site) == (503, {"schema": "schema_outdated"})


async def test_without_a_database(site: Site) -> None:
    await site.runtime.db.close()
    status, faults = await _ready(site)
    assert status == 503
    assert faults["database"] == DatabaseUnavailable.code
    async with site.client(site.demo.tokens["admin"]) as client:
        reply = await client.get("/v1/documents")
    assert (reply.status_code, reply.json()["code"]) == (503, "database_unavailable")


async def test_reasons_name_no_path_and_no_address(site: Site) -> None:
    async def missing(*_: Any) -> Any:
        raise ModelMissing("There is no file /home/alice/models/chat.gguf.")

    await site.runtime.close()
    site.runtime.open_chat = missing
    async with site.client() as client:
        reply = await client.get("/readyz")
    assert "alice" not in reply.text
    assert "models pull" in reply.text
