"""What became of that which was cited: a citation is pinned, its document goes on."""

from collections.abc import Iterable, Mapping
from typing import Literal
from uuid import UUID

from psycopg.rows import DictRow

from core.records import Citation, Principal
from storage.collections import grantees
from storage.database import Database

Standing = Literal["present", "changed", "gone", "deleted", "withheld"]
"""`present`: as it was cited, in the newest revision. `changed`: in an older one that is kept. `gone`: in none that is
kept. `deleted`: the document is not there any more. `withheld`: the reader may not read it any more, or might not if it
were still there; nothing else is said of it, its quote included."""

Place = tuple[UUID, int]


async def standings(db: Database, principal: Principal, citations: Iterable[Citation]) -> Mapping[Place, Standing]:
    """By document and chunk, for one reader. What a peer said has no standing here, and is left out."""
    cited = {(one.document_id, one.chunk_id): one.collection for one in citations if one.origin == "library"}
    if not cited:
        return {}
    async with db.transaction(principal.tenant_id) as tx:
        rows = await tx.rows(
            "pinning.standings",
            documents=[document_id for document_id, _ in cited],
            chunks=[chunk_id for _, chunk_id in cited],
            collections=list(cited.values()),
            admin=principal.is_admin,
            grantees=grantees(principal),
        )
    return {(row["document_id"], row["chunk_id"]): _standing(row) for row in rows}


def _standing(row: DictRow) -> Standing:
    if not row["readable"]:
        return "withheld"
    if row["deleted"]:
        return "deleted"
    if row["held"] is None:
        return "gone"
    return "present" if row["held"] == row["revision"] else "changed"
