"""What was done and what was refused: chains of entries in which a change shows.

An entry belongs to a tenant, or to the installation as a whole (`INSTALLATION`). It is written in the transaction of
what it tells of, last: either both last or neither. It names ids and words of the program, nothing that a user wrote.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal
from uuid import UUID

from psycopg.rows import DictRow

from core.logs import trace_id, traced
from storage import queries
from storage.database import Connection, Database, Transaction

INSTALLATION: Final = UUID(int=0)
# Entries read at once when a chain is checked.
BATCH: Final = 1000
_UNSPELT: Final = re.compile(r"[^A-Za-z0-9 _./:{}-]")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Fault = Literal["missing", "altered", "moved", "cut_off", "unknown_head"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `actor` None: nobody known; `name` is the actor's as it is now, None for one who is gone."""

    number: int
    at: datetime
    actor: UUID | None
    action: str
    subject: str
    trace: str
    name: str | None


@dataclass(frozen=True, slots=True)
class Head:
    """How many entries a chain has and the hash of the last one, 64 hexadecimal digits. Written `12:ab34...`."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a chain: its head, or the first entry that is wrong and how."""

    head: Head
    bad: int | None = None
    fault: Fault | None = None


async def note(tx: Transaction, actor: UUID | None, action: str, subject: object = "") -> None:
    """Add an entry in the transaction of what it tells of, as its last statement: the chain stays locked till its end.

    StorageError comes at the end of the transaction, whereupon nothing of it lasts.
    """
    tx.later("audit.add", **_entry(actor, action, subject))


async def note_as_owner(connection: Connection, actor: UUID | None, action: str, subject: object = "") -> None:
    """The same in a transaction of the owner, for the tenant that it has entered."""
    await connection.execute(queries.text("audit.add"), _entry(actor, action, subject))


async def record(db: Database, tenant_id: UUID, actor: UUID | None, action: str, subject: object = "") -> None:
    """Add an entry about what changes nothing in the database: a refusal, above all. Raises StorageError."""
    async with db.transaction(tenant_id) as tx:
        await note(tx, actor, action, subject)


async def record_all(db: Database, tenant_id: UUID, action: str, told: Sequence[tuple[str, object]]) -> None:
    """Add an entry for each pair of a trace id and a subject, all or none. Raises StorageError."""
    async with db.transaction(tenant_id) as tx:
        for trace, subject in told:
            with traced(trace):
                await note(tx, None, action, subject)


async def record_change(db: Database, action: str, subject: str) -> None:
    """Add an entry of the installation's unless the last one of this action says the same. Raises StorageError."""
    async with db.transaction(INSTALLATION) as tx:
        row = await tx.row("audit.newest", action=action)
        if row is None or row["subject"] != subject:
            await note(tx, None, action, subject)


async def listing(db: Database, tenant_id: UUID, limit: int) -> list[Entry]:
    """The last entries, newest first."""
    async with db.transaction(tenant_id) as tx:
        return [Entry(**row) for row in await tx.rows("audit.listing", limit=limit)]


async def verify(db: Database, tenant_id: UUID, known: Head | None = None) -> Verdict:
    """Read a chain from its beginning and make every hash anew, here and not in the database.

    `known`: a head noted down earlier, which the chain must still contain; without one, a chain that was written anew
    from some entry on by somebody with the owner's rights looks whole.
    """
    async with db.transaction(tenant_id) as tx:
        row = await tx.row("audit.head")
        head = Head(row["number"], row["hash"].hex()) if row else Head(0, "")
        last, previous = 0, b""
        while entries := await tx.rows("audit.after", number=last, limit=BATCH):
            for entry in entries:
                if fault := _fault(tenant_id, entry, last + 1, previous):
                    return Verdict(head, last + 1, fault)
                last, previous = entry["number"], entry["hash"]
                if known and known.number == last and known.hash != previous.hex():
                    return Verdict(head, last, "unknown_head")
    if not last or (last, previous.hex()) != (head.number, head.hash) or (known and known.number > last):
        return Verdict(head, last + 1, "cut_off")
    return Verdict(head)


def spelled(name: str) -> str:
    """A name that an operator gave to something, such as a model, in the letters that an entry may hold."""
    return _UNSPELT.sub("_", name)[:200]


def _fault(tenant_id: UUID, entry: DictRow, number: int, previous: bytes) -> Fault | None:
    if entry["number"] != number:
        return "missing"
    if entry["previous"] != previous:
        return "moved"
    micros = (entry["at"] - _EPOCH) // timedelta(microseconds=1)
    said = (tenant_id, number, micros, entry["actor"] or "", entry["action"], entry["subject"], entry["trace"])
    made = hashlib.sha256(previous + "\n".join(map(str, said)).encode())
    return None if made.digest() == entry["hash"] else "altered"


def _entry(actor: UUID | None, action: str, subject: object) -> dict[str, object]:
    return {"actor": actor, "action": action, "subject": str(subject), "trace": trace_id()}
