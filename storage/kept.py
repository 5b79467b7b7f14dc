"""Answers of this day that are given again: to the same question, of whoever may read the same, while it is the same.

The key is a hash over the question, what else shapes an answer, the collections that the asker may read, and how often
what can be found in them was changed. So nothing has to be removed when a document, a right or a synonym changes: what
was kept before is never asked for again, and goes within a day.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from core.records import Answer, Filters, Principal
from storage.answers import answer_json, answer_of
from storage.collections import grantees
from storage.database import Database, Transaction, typed_row


@dataclass(frozen=True, slots=True)
class Moment:
    """What an answer is known by, and how often until now it was changed who may read what.

    The key says what is so: a right that is given and taken back leaves it as it was, but not the count.
    """

    key: bytes
    rights: int


async def find(
    db: Database, principal: Principal, filters: Filters, made_by: Sequence[Any]
) -> tuple[Moment, Answer | None]:
    """What an answer is known by now, and the answer where it was kept; `made_by`: JSON of all else that shapes it."""
    async with db.transaction(principal.tenant_id) as tx:
        moment = await _moment(tx, principal, filters, made_by)
        row = await tx.row("kept.find", key=moment.key)
    return moment, None if row is None else answer_of(row["answer"])


async def keep(
    db: Database, principal: Principal, filters: Filters, made_by: Sequence[Any], begun: Moment, answer: Answer
) -> bool:
    """Keep an answer that was begun at that moment, before anything was searched for it; not where anything changed.

    Changes only add up, so that where the moment is the same now, each search in between saw the same.
    """
    async with db.transaction(principal.tenant_id) as tx:
        if await _moment(tx, principal, filters, made_by) != begun:
            return False
        await tx.run("kept.prune")
        return bool(await tx.run("kept.keep", key=begun.key, answer=answer_json(answer)))


async def _moment(tx: Transaction, principal: Principal, filters: Filters, made_by: Sequence[Any]) -> Moment:
    """In one statement: all that it tells is of one instant."""
    names = None if filters.collections is None else list(filters.collections)
    state = typed_row(await tx.row("kept.state", names=names, admin=principal.is_admin, grantees=grantees(principal)))
    rights = state.pop("rights")
    # Of the names only the collections that they stand for matter, and those are in the state.
    narrowed = asdict(replace(filters, collections=None, as_of=filters.as_of or datetime.now(UTC).date()))
    parts = [tx.tenant_id, *made_by, narrowed, state]
    return Moment(hashlib.sha256(json.dumps(parts, default=str, sort_keys=True).encode()).digest(), rights)
