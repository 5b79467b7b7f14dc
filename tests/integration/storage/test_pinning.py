"""A citation says what became of its passage, and opens as it was cited for as long as that is kept."""

from dataclasses import replace
from uuid import UUID

import pytest

from core.errors import NotFound
from core.records import Citation, Document, Principal, Tenant
from storage import collections, documents, pinning, tending, users
from storage.database import Database
from tests.integration.storage.filling import fill

TEXTS = ["Leave is 25 days.", "It is asked for in March.", "The head decides."]


async def cited(db: Database, tenant_id: UUID, document: Document, ordinal: int) -> Citation:
    """A citation of the first word of one chunk of the newest revision."""
    stored = (await documents.chunks(db, users.operator(tenant_id), document.id))[ordinal]
    word, start = stored.chunk.text.split()[0], stored.chunk.start
    known = (document.id, document.path, document.title, (), None, word)
    return Citation(1, stored.chunk_id, *known, document.revision, start, start + len(word), collection="handbook")


async def standing(db: Database, reader: Principal, citation: Citation) -> pinning.Standing:
    (only,) = (await pinning.standings(db, reader, [citation])).values()
    return only


async def test_what_was_cited_opens_in_the_revision_it_was_cited_from(
    database: Database, tenant: Tenant, principal: Principal
) -> None:
    first = await fill(database, tenant.id, "a.md", TEXTS)
    stays = await cited(database, tenant.id, first, 1)
    goes = await cited(database, tenant.id, first, 0)
    await fill(database, tenant.id, "a.md", ["Leave is 30 days from now on.", *TEXTS[1:]])
    assert await standing(database, principal, stays) == "present"
    assert await standing(database, principal, goes) == "changed"
    for citation in (stays, goes):
        opened = await documents.passage(
            database, principal, citation.document_id, citation.chunk_id, revision=citation.revision
        )
        at = slice(citation.start - opened.start, citation.end - opened.start)
        assert (opened.revision, opened.text[at]) == (1, citation.quote)
        assert "30 days" not in opened.before
    newest = await documents.passage(database, principal, stays.document_id, stays.chunk_id)
    assert (newest.revision, newest.before) == (2, "Leave is 30 days from now on.")
    assert newest.start > stays.start


async def test_what_is_kept_no_more_is_gone(database: Database, tenant: Tenant, principal: Principal) -> None:
    first = await fill(database, tenant.id, "a.md", TEXTS)
    citation = await cited(database, tenant.id, first, 0)
    await fill(database, tenant.id, "a.md", TEXTS[1:], keep=1)
    assert await standing(database, principal, citation) == "gone"
    with pytest.raises(NotFound):
        await documents.passage(database, principal, first.id, citation.chunk_id, revision=1)


@pytest.mark.threat(53, 54)
async def test_rights_decide_what_is_said_of_a_document_that_is_gone(
    database: Database, tenant: Tenant, principal: Principal, admin: Principal
) -> None:
    document = await fill(database, tenant.id, "a.md", TEXTS)
    citation = await cited(database, tenant.id, document, 0)
    unplaced = replace(citation, collection="")
    home = await collections.by_name(database, tenant.id, "handbook")
    await collections.revoke(database, tenant.id, home.id, "everyone")
    assert await standing(database, principal, citation) == "withheld"
    await tending.delete(database, admin, document.id)
    assert await standing(database, principal, citation) == "withheld"
    await collections.grant(database, tenant.id, home.id, "everyone")
    assert await standing(database, principal, citation) == "deleted"
    # Where it stood is not known of citations of earlier versions: only admins, who read all, are told.
    assert await standing(database, principal, unplaced) == "withheld"
    assert await standing(database, admin, unplaced) == "deleted"


async def test_what_a_peer_said_has_no_standing(database: Database, principal: Principal) -> None:
    outside = Citation(1, 0, UUID(int=0), "http://search/1", "t", (), None, "q", origin="peer")
    assert await pinning.standings(database, principal, [outside]) == {}
