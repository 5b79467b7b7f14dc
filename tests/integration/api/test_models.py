"""The models in use, as an administrator is told of them."""

from inference import certificates
from inference.certificates import Certificate, Check
from tests.integration.api.conftest import Site


async def test_the_models_and_their_certificate(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as client:
        before = (await client.get("/v1/models-in-use")).json()
        made = Certificate(
            site.chat.identity,
            "scripted",
            "embedded",
            "2026-01-01",
            4096,
            (Check("quick", True, 4, 4),),
            55,
            8,
            4096,
            2,
        )
        certificates.write(site.runtime.settings.home, made)
        after = (await client.get("/v1/models-in-use")).json()
    assert (before["chat"], before["grader"], before["fallback"]) == ("scripted", "scripted", None)
    assert (before["capable"], before["tools"], before["certificate"]) == (False, True, None)
    assert after["certificate"]["fit"] == "small"
    assert after["certificate"]["checks"] == [{"name": "quick", "passed": True, "right": 4, "of": 4}]
