"""Answers of this day that are given again: to the same question, of whoever may read the same, while it is the same.

The key is a hash over the question, what else shapes an answer, the collections that the asker may read, and the state
of all that is in them. So nothing has to be removed when a document, a right or a synonym changes: what was kept before
is never asked for again, and goes within a day.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from core.records import Answer, Filters, Principal
from storage.answers import answer_json, answer_of
from storage.database import Database, Transaction
from storage.search import readable_rows


async def find(
    db: Database, principal: Principal, filters: Filters, made_by: Sequence[Any]
) -> tuple[bytes, Answer | None]:
    """The key of an answer by now, and the answer where it was kept; `made_by`: JSON of all else that shapes it."""
    async with db.transaction(principal.tenant_id) as tx:
        key = await _key(tx, principal, filters, made_by)
        row = await tx.row("kept.find", key=key)
    return key, None if row is None else answer_of(row["answer"])


async def keep(
    db: Database, principal: Principal, filters: Filters, made_by: Sequence[Any], key: bytes, answer: Answer
) -> bool:
    """Keep an answer under the key of when it was begun; not where anything changed since."""
    async with db.transaction(principal.tenant_id) as tx:
        if await _key(tx, principal, filters, made_by) != key:
            return False
        await tx.run("kept.prune")
        return bool(await tx.run("kept.keep", key=key, answer=answer_json(answer)))


async def _key(tx: Transaction, principal: Principal, filters: Filters, made_by: Sequence[Any]) -> bytes:
    (state,) = await readable_rows(tx, "kept.state", principal, filters)
    parts = [tx.tenant_id, *made_by, state]
    return hashlib.sha256(json.dumps(parts, default=str, sort_keys=True).encode()).digest()
