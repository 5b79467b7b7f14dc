"""Sidecars: over the file, under the admin, for every later revision, and never across a tenant's wall."""

from datetime import date

import pytest

from core.errors import NotFound
from core.records import Document, DocumentState, Filters, ParsedDocument, ParseWarning, Principal, Sidecar, Tenant
from storage import collections, documents, search, sidecars, tending
from storage.database import Database
from tests.integration.storage.filling import EMBEDDER, chunks_of, fill, register

JANUARY, JUNE = date(2026, 1, 1), date(2026, 6, 1)
FAULT = ParseWarning("bad_metadata", "The sidecar a.md.meta.yaml could not be used in full.")


def dates(document: Document) -> tuple[date | None, date | None, str | None]:
    return document.effective_from, document.effective_to, document.supersedes


async def store(db: Database, tenant: Tenant, content: str, **said: object) -> Document:
    """Read the next bytes of `a.md`, which say this of themselves."""
    home = await collections.ensure(db, tenant.id, "handbook")
    document, _ = await register(db, tenant.id, home.id, "a.md", content)
    parsed = ParsedDocument(**{"title": "Own title", "elements": (), **said})  # type: ignore[arg-type]
    return await documents.store_revision(
        db, tenant.id, document.id, parsed, chunks_of([content]), sha256=document.sha256
    )


async def test_what_is_known_is_told_by_its_digest(database: Database, tenant: Tenant) -> None:
    document = await store(database, tenant, "Hats are off.")
    assert await sidecars.known(database, tenant.id, document.collection_id) == {}
    await sidecars.describe(database, tenant.id, document.id, Sidecar("s1"))
    assert await sidecars.known(database, tenant.id, document.collection_id) == {document.id: "s1"}
    await sidecars.describe(database, tenant.id, document.id, None)
    assert await sidecars.known(database, tenant.id, document.collection_id) == {}


async def test_a_sidecar_that_comes_first_waits_for_the_file(database: Database, tenant: Tenant) -> None:
    home = await collections.ensure(database, tenant.id, "handbook")
    document, _ = await register(database, tenant.id, home.id, "a.md", "Hats are off.")
    described = await sidecars.describe(
        database, tenant.id, document.id, Sidecar("s1", title="Hats", effective_from=JUNE, warnings=(FAULT,))
    )
    assert (described.state, described.title, described.effective_from) == (DocumentState.QUEUED, "a.md", None)
    read = await store(database, tenant, "Hats are off.", effective_from=JANUARY, supersedes="HR-1")
    assert (read.title, dates(read), read.warnings) == ("Hats", (JUNE, None, "HR-1"), (FAULT,))


async def test_newer_bytes_that_wait_are_described_when_they_are_read(database: Database, tenant: Tenant) -> None:
    first = await store(database, tenant, "Hats are off.", effective_from=JANUARY)
    home = await collections.ensure(database, tenant.id, "handbook")
    await register(database, tenant.id, home.id, "a.md", "Hats are on.")
    described = await sidecars.describe(database, tenant.id, first.id, Sidecar("s1", title="Hats", effective_to=JUNE))
    assert (described.title, described.revision, dates(described)) == ("a.md", 1, (JANUARY, None, None))
    second = await store(database, tenant, "Hats are on.")
    assert (second.title, second.revision, dates(second)) == ("Hats", 2, (None, JUNE, None))


async def test_search_follows_the_sidecars_dates(database: Database, tenant: Tenant, admin: Principal) -> None:
    document = await fill(database, tenant.id, "a.md", ["Hats are off."])

    async def found(day: date) -> int:
        return len(await search.search(database, admin, "hats", None, embedder_id=EMBEDDER, filters=Filters(as_of=day)))

    assert (await found(JANUARY), await found(JUNE)) == (1, 1)
    described = await sidecars.describe(database, tenant.id, document.id, Sidecar("s1", effective_from=JUNE))
    assert described.state is DocumentState.READY
    assert (await found(JANUARY), await found(JUNE)) == (0, 1)
    await sidecars.describe(database, tenant.id, document.id, None)
    assert (await found(JANUARY), await found(JUNE)) == (1, 1)


async def test_a_title_asks_for_vectors_and_keeps_the_revision(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    document = await fill(database, tenant.id, "a.md", ["Off at dinner."], title="Dress")
    described = await sidecars.describe(database, tenant.id, document.id, Sidecar("s1", title="Hats"))
    assert (described.state, described.title, described.revision) == (DocumentState.PROCESSING, "Hats", 1)
    missing = await documents.missing_vectors(database, tenant.id, document.id, embedder_id=EMBEDDER, limit=10)
    assert [each.text for each in missing] == ["Hats\nOff at dinner."]
    (hit,) = await search.search(database, admin, "hats", None, embedder_id=EMBEDDER)
    assert hit.title == "Hats"
    # The same title again changes nothing.
    ready = await fill(database, tenant.id, "b.md", ["On at lunch."], title="Lunch")
    described = await sidecars.describe(database, tenant.id, ready.id, Sidecar("s2", title="Lunch"))
    assert described.state is DocumentState.READY


async def test_the_admin_comes_first_until_the_file_says_its_own(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    document = await store(database, tenant, "One.", effective_to=JUNE)
    await sidecars.describe(database, tenant.id, document.id, Sidecar("s1", supersedes="HR-2"))
    await tending.set_dates(database, admin, document.id, effective_from=JANUARY, effective_to=None, supersedes="HR-3")
    described = await sidecars.describe(database, tenant.id, document.id, Sidecar("s2", supersedes="HR-4"))
    assert dates(described) == (JANUARY, None, "HR-3")
    # A sidecar is not the file: that it goes on saying something does not take the admin's word back.
    assert dates(await store(database, tenant, "Two.")) == (JANUARY, None, "HR-3")
    assert dates(await store(database, tenant, "Three.", effective_to=JUNE)) == (None, JUNE, "HR-4")


async def test_warnings_of_the_file_stay_when_the_sidecars_go(database: Database, tenant: Tenant) -> None:
    own = ParseWarning("hidden_text", "Hidden text was removed.")
    document = await store(database, tenant, "One.", warnings=(own,))
    described = await sidecars.describe(database, tenant.id, document.id, Sidecar("s1", warnings=(FAULT,)))
    assert described.warnings == (own, FAULT)
    described = await sidecars.describe(database, tenant.id, document.id, Sidecar("s2", title="One", warnings=(FAULT,)))
    assert described.warnings == (own, FAULT)
    described = await sidecars.describe(database, tenant.id, document.id, None)
    assert (described.title, described.warnings) == ("Own title", (own,))


async def test_nobody_describes_a_document_of_another_tenant(
    database: Database, tenant: Tenant, other_tenant: Tenant
) -> None:
    document = await store(database, tenant, "One.")
    with pytest.raises(NotFound):
        await sidecars.describe(database, other_tenant.id, document.id, Sidecar("s1", title="Theirs"))
    assert await sidecars.known(database, tenant.id, document.collection_id) == {}
    await sidecars.describe(database, tenant.id, document.id, Sidecar("s1"))
    assert await sidecars.known(database, other_tenant.id, document.collection_id) == {}
