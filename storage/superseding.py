"""Documents that take the place of others: what they say is resolved when it is written, so that a search need not.

From the first day of the revision that says so, the older document is not found any more; as of an earlier day it still
is. It is found again when what hides it is deleted or says so no longer.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal
from uuid import UUID

from core.errors import NotFound
from storage.database import Transaction, typed_row

Fault = Literal["unknown", "ambiguous", "circular"]


@dataclass(frozen=True, slots=True)
class Standing:
    """What a document says that it supersedes, since which day, and by which one it is itself superseded now.

    `ready`: nothing of it is under way. `found`: a search can find something of it.
    """

    id: UUID
    supersedes: str | None
    since: date | None
    superseded_by: UUID | None = None
    ready: bool = True
    found: bool = True

    def hides(self, older: "Standing") -> bool:
        """Whether `older`, which it supersedes, is not to be found: while it is read anew that stays as it was."""
        return self.found if self.ready else older.superseded_by == self.id


async def hold(
    tx: Transaction, document_ids: Collection[UUID], *, said: Sequence[str | None] = (), path: str | None = None
) -> list[UUID]:
    """Lock documents together with all that `follow` will have to change once they say `said` or stand at `path`.

    What comes back is for `follow`. All are locked in one order, so that no two writers wait for each other. Raises
    NotFound where one is not there.
    """
    ids, words = list(document_ids), [*filter(None, said)]
    kin: list[UUID] = []
    if words or typed_row(await tx.row("superseding.spoken", ids=ids))["spoken"]:
        kin = [row["id"] for row in await tx.rows("superseding.kin", ids=ids, said=words, path=path)]
    locked = await tx.rows("documents.lock", ids=[*{*ids, *kin}])
    if not {*ids} <= {row["id"] for row in locked}:
        raise NotFound
    return kin


async def follow(tx: Transaction, kin: Collection[UUID]) -> None:
    """Make these documents, which `hold` gave, say which one supersedes which, and hide those that are superseded."""
    if not kin:
        return
    ids = list(kin)
    standings = {row["id"]: Standing(**row) for row in await tx.rows("superseding.standing", ids=ids)}
    named: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for row in await tx.rows("superseding.named", ids=ids):
        named[row["newer"]].append(row["older"])
    links, faults = resolve(standings.values(), named)
    newer = heirs(standings, links)
    await tx.run(
        "superseding.put",
        id=list(standings),
        older=[links.get(each) for each in standings],
        fault=[faults.get(each) for each in standings],
        newer=[newer[each].id if each in newer else None for each in standings],
        since=[newer[each].since if each in newer else None for each in standings],
    )


def resolve(
    standings: Collection[Standing], named: Mapping[UUID, Sequence[UUID]]
) -> tuple[dict[UUID, UUID], dict[UUID, Fault]]:
    """Which one each supersedes, of those that it may mean, and why others supersede none.

    Of a circle the one that has said so for the longest gives way.
    """
    links: dict[UUID, UUID] = {}
    faults: dict[UUID, Fault] = {}
    speaking = [standing for standing in standings if standing.supersedes is not None]
    for one in sorted(speaking, key=lambda each: (each.since or date.min, each.id), reverse=True):
        meant = named.get(one.id, ())
        if len(meant) != 1:
            faults[one.id] = "ambiguous" if meant else "unknown"
        elif _leads_to(one.id, meant[0], links):
            faults[one.id] = "circular"
        else:
            links[one.id] = meant[0]
    return links, faults


def heirs(standings: Mapping[UUID, Standing], links: Mapping[UUID, UUID]) -> dict[UUID, Standing]:
    """By which document each one is superseded: the first of those that say so."""
    found: dict[UUID, Standing] = {}
    for newer, older in links.items():
        one = standings[newer]
        if one.since is not None and one.hides(standings[older]):
            found[older] = min(found.get(older, one), one, key=lambda each: (each.since or date.max, each.id))
    return found


def _leads_to(goal: UUID, at: UUID, links: Mapping[UUID, UUID]) -> bool:
    step: UUID | None = at
    while step is not None and step != goal:
        step = links.get(step)
    return step is not None
