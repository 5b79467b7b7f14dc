"""The intranet search that an operator may list as one more source: asked once, before a question is given up.

It answers as OpenSearch and its relatives do: `POST URL/_search` with a query, hits with a `_source` that holds title,
text and address. What it gives is cited as what it is: a passage of another system at that address, whose rights are
that system's. Nothing of it is stored but what an answer quotes.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

import httpx

from core.errors import IntramurosError, PeerUnavailable
from core.records import Hit, Scores
from core.settings import Settings
from core.text import visible
from inference.openai import NO_KEY, Client
from policy.egress import Policy

# Passages of one answer of the peer that are looked at, and characters of each that are kept.
MOST_HITS: Final = 4
MOST_CHARACTERS: Final = 4000
# Under which of these a hit's text and its address stand, the first that is there.
_TEXT: Final = ("text", "content", "body")
_ADDRESS: Final = ("url", "address", "path")


class SearchPeer:
    """One intranet search. `name` is what answers call it."""

    def __init__(self, settings: Settings, policy: Policy) -> None:
        """Connects to nothing yet. Raises PeerUnavailable when settings name no peer."""
        if not settings.search_peer_url:
            raise PeerUnavailable
        self.name = settings.search_peer_name
        self._url = settings.search_peer_url.rstrip("/")
        self._key = settings.search_peer_key.get_secret_value() if settings.search_peer_key else NO_KEY
        self._policy, self._timeout = policy, settings.search_peer_timeout

    async def find(self, query: str) -> list[Hit]:
        """The peer's best passages, best first. Errors: PeerUnavailable, EgressDenied."""
        fields = ["title^2", *_TEXT]
        body = {"size": MOST_HITS, "query": {"multi_match": {"query": query, "fields": fields}}}
        # One call for a question at most: no connection is kept for the next.
        client = Client(self._url, self._key, self._policy, "search_peer", self._timeout)
        try:
            found = (await client.post("/_search", body))["hits"]["hits"]
            return [hit for rank, row in enumerate(found[:MOST_HITS], start=1) if (hit := self._hit(rank, row))]
        except IntramurosError:
            raise
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise PeerUnavailable from error
        finally:
            await client.close()

    def _hit(self, rank: int, row: dict[str, Any]) -> Hit | None:
        source = row["_source"]
        text, address = _first(source, _TEXT)[:MOST_CHARACTERS], _first(source, _ADDRESS)
        if not text:
            return None
        return Hit(
            rank=rank,
            chunk_id=rank,
            document_id=uuid5(NAMESPACE_URL, address or str(row["_id"])),
            title=_first(source, ("title",)) or address or self.name,
            path=address,
            collection=self.name,
            heading_path=(),
            page=None,
            text=text,
            section_text=text,
            kind="text",
            effective_from=None,
            effective_to=None,
            updated_at=datetime.now(UTC),
            scores=Scores(None, None, 0.0),
            origin="peer",
        )


def _first(source: dict[str, Any], names: Sequence[str]) -> str:
    values = (source.get(name) for name in names)
    return next((visible(value).strip() for value in values if isinstance(value, str) and value.strip()), "")
