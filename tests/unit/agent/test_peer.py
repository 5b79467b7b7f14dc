"""The intranet search: what is asked of it, what is made of its replies, and where the policy stands in the way."""

from typing import Any

import pytest

from agent.sources.peer import MOST_CHARACTERS, MOST_HITS, SearchPeer
from core.errors import BootRefused, EgressDenied, PeerUnavailable
from core.settings import Settings
from policy.egress import Policy
from tests.fakes.server import Answer, JsonServer
from tests.unit.conftest import MakeSettings


class Intranet(JsonServer):
    """An intranet search; `peer` is its ADDRESS:PORT."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer, "/intranet")

    @property
    def peer(self) -> str:
        return self.url.removeprefix("http://").removesuffix("/intranet")


def found(*sources: dict[str, Any]) -> Answer:
    rows = [{"_id": str(n), "_score": 1.0, "_source": source} for n, source in enumerate(sources)]
    return lambda _body: (200, {"hits": {"total": {"value": len(rows)}, "hits": rows}})


def opened(intranet: Intranet, make_settings: MakeSettings, **values: Any) -> SearchPeer:
    settings: Settings = make_settings(
        search_peer_url=intranet.url, scope="private", private_peers=(intranet.peer,), **values
    )
    return SearchPeer(settings, Policy.of(settings))


async def test_its_passages_say_where_they_are_from(make_settings: MakeSettings) -> None:
    page = {"title": "Parking", "text": "Spaces cost 80 euros.", "url": "http://wiki.alderway.example/parking"}
    with Intranet(found(page)) as intranet:
        peer = opened(intranet, make_settings, search_peer_name="Wiki", search_peer_key="secret")
        (hit,) = await peer.find("parking costs")
    path, key, body = intranet.requests[0]
    assert (path, key) == ("/intranet/_search", "Bearer secret")
    assert (body["query"]["multi_match"]["query"], body["size"]) == ("parking costs", MOST_HITS)
    assert (hit.origin, hit.title, hit.text, hit.path) == ("peer", "Parking", "Spaces cost 80 euros.", page["url"])
    assert (hit.collection, hit.section_text) == ("Wiki", hit.text)


async def test_other_field_names_are_understood_and_empty_hits_left_out(make_settings: MakeSettings) -> None:
    with Intranet(found({"body": "Text."}, {"title": "No text"}, {"content": 7}, {"content": "Other."})) as intranet:
        hits = await opened(intranet, make_settings).find("q")
    assert [(hit.text, hit.title) for hit in hits] == [("Text.", "Intranet search"), ("Other.", "Intranet search")]
    assert len({hit.document_id for hit in hits}) == 2


async def test_what_it_sends_is_bounded_and_without_hidden_characters(make_settings: MakeSettings) -> None:
    rows = [{"text": "\u202eabc\U000e0041" + "x" * 9000}] * 9
    with Intranet(found(*rows)) as intranet:
        hits = await opened(intranet, make_settings).find("q")
    assert len(hits) == MOST_HITS
    assert all(hit.text.startswith("abcx") and len(hit.text) <= MOST_CHARACTERS for hit in hits)


@pytest.mark.parametrize(
    "answer",
    [
        lambda _body: (500, {}),
        lambda _body: (200, {"hits": {}}),
        lambda _body: (200, []),
        lambda _body: (200, {"hits": {"hits": [{"_source": None}]}}),
    ],
)
async def test_a_peer_that_answers_otherwise_is_unavailable(answer: Answer, make_settings: MakeSettings) -> None:
    with Intranet(answer) as intranet:
        peer = opened(intranet, make_settings)
        with pytest.raises(PeerUnavailable):
            await peer.find("q")


async def test_a_peer_that_is_down_is_unavailable(make_settings: MakeSettings) -> None:
    with Intranet(found()) as intranet:
        peer = opened(intranet, make_settings)
    with pytest.raises(PeerUnavailable):
        await peer.find("q")


def test_without_a_url_there_is_no_peer(make_settings: MakeSettings) -> None:
    settings = make_settings()
    with pytest.raises(PeerUnavailable):
        SearchPeer(settings, Policy.of(settings))


@pytest.mark.parametrize("values", [{}, {"private_peers": ("127.0.0.1:9",)}, {"scope": "private"}])
def test_a_peer_needs_to_be_listed_in_scope_private(make_settings: MakeSettings, values: dict[str, Any]) -> None:
    with pytest.raises(BootRefused, match="INTRAMUROS_SCOPE to private"):
        Policy.of(make_settings(search_peer_url="http://127.0.0.1:9/intranet", **values))


async def test_a_policy_that_does_not_know_the_peer_refuses_it(make_settings: MakeSettings) -> None:
    with Intranet(found()) as intranet:
        settings = make_settings(search_peer_url=intranet.url, scope="private", private_peers=(intranet.peer,))
        peer = SearchPeer(settings, Policy.parse({"scope": "private", "peers": []}))
        with pytest.raises(EgressDenied):
            await peer.find("q")
    assert intranet.requests == []
