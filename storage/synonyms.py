"""Words that mean the same, by tenant: kept in groups, looked up when a query holds one of them.

A word or phrase is known by its units (storage.lexical), so that "Physical therapies" finds "physical therapy". It
stands in one group only: to say that it means the same as a word of another group makes one group of both.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID, uuid4

from core.errors import InvalidRequest, NotFound
from core.records import Synonym
from core.text import is_cjk
from storage import audit, lexical
from storage.database import Database, Transaction, typed_row
from storage.locks import key_of
from storage.users import OPERATOR

CHARACTERS: Final = 80
UNITS: Final = 12
IN_A_GROUP: Final = 20
IN_A_TENANT: Final = 5000
# Units of a query that are looked at; a question has no more.
LOOKED_AT: Final = 200


async def listing(db: Database, tenant_id: UUID) -> list[Synonym]:
    """Every group, by its first word."""
    async with db.transaction(tenant_id) as tx:
        return [Synonym(row["id"], tuple(row["words"])) for row in await tx.rows("synonyms.listing")]


async def add(db: Database, tenant_id: UUID, words: Sequence[str], *, by: UUID = OPERATOR) -> Synonym:
    """Let these words mean the same; the group they are now in, with whatever meant the same as one of them before.

    Raises InvalidRequest for fewer than two words, a word that cannot be looked for, a group or a tenant that is full.
    """
    (made,) = await add_all(db, tenant_id, [words], by=by)
    return made


async def add_all(
    db: Database, tenant_id: UUID, groups: Sequence[Sequence[str]], *, by: UUID = OPERATOR
) -> list[Synonym]:
    """As `add` for each of these in turn, all or none."""
    keyed = [_keyed(words) for words in groups]
    async with db.transaction(tenant_id) as tx:
        await tx.run("synonyms.lock", key=key_of("synonyms", tenant_id))
        made = [await _join(tx, words) for words in keyed]
        if typed_row(await tx.row("synonyms.count"))["words"] > IN_A_TENANT:
            raise InvalidRequest(f"There can be {IN_A_TENANT} synonyms in all. Remove some that nobody asks with.")
        await audit.note(tx, by, "synonym.added", made[0].id if len(made) == 1 else f"{len(made)} groups")
    return made


def check(words: Sequence[str]) -> None:
    """Raises InvalidRequest where `add` would for these words alone."""
    _keyed(words)


async def group_of(db: Database, tenant_id: UUID, word: str) -> Synonym | None:
    """The group that a word stands in."""
    async with db.transaction(tenant_id) as tx:
        row = await tx.row("synonyms.by_key", key=_key(word))
    return None if row is None else Synonym(row["id"], tuple(row["words"]))


async def remove(
    db: Database, tenant_id: UUID, synonym_id: UUID, word: str | None = None, *, by: UUID = OPERATOR
) -> None:
    """Remove a group, or one word of it; a word left alone goes too. Raises NotFound."""
    async with db.transaction(tenant_id) as tx:
        await tx.run("synonyms.lock", key=key_of("synonyms", tenant_id))
        if not await tx.run("synonyms.remove", id=synonym_id, key=None if word is None else _key(word)):
            raise NotFound
        await tx.run("synonyms.remove_alone", id=synonym_id)
        await audit.note(tx, by, "synonym.removed", synonym_id)


async def expansions(db: Database, tenant_id: UUID, query: str) -> dict[str, tuple[str, ...]]:
    """Words and phrases of a query that have synonyms -> those. Of words that overlap the longest counts.

    One small look-up by key, however many synonyms there are.
    """
    units = lexical.units(query)[:LOOKED_AT]
    spans = {" ".join(units[at:end]) for at, end in _spans(len(units))}
    if not spans:
        return {}
    async with db.transaction(tenant_id) as tx:
        known = {row["key"]: row for row in await tx.rows("synonyms.of", keys=sorted(spans))}
    found: dict[str, tuple[str, ...]] = {}
    covered = 0
    for at, end in _spans(len(units)):
        row = known.get(" ".join(units[at:end])) if at >= covered else None
        if row is not None:
            covered = end
            found[row["word"]] = tuple(row["others"])
    return found


def _spans(count: int) -> list[tuple[int, int]]:
    """Every run of at most UNITS units, from the left, the longest first."""
    return [(at, end) for at in range(count) for end in range(min(at + UNITS, count), at, -1)]


async def _join(tx: Transaction, words: dict[str, str]) -> Synonym:
    group = uuid4()
    await tx.run("synonyms.unite", id=group, keys=list(words))
    await tx.run("synonyms.add", id=group, keys=list(words), words=list(words.values()))
    row = typed_row(await tx.row("synonyms.by_id", id=group))
    if len(row["words"]) > IN_A_GROUP:
        raise InvalidRequest(
            f"'{next(iter(words.values()))}' would mean the same as {len(row['words']) - 1} others. "
            f"A group has at most {IN_A_GROUP} words."
        )
    return Synonym(row["id"], tuple(row["words"]))


def _keyed(words: Sequence[str]) -> dict[str, str]:
    """Key -> the word as it was given first."""
    keyed: dict[str, str] = {}
    for word in words:
        keyed.setdefault(_checked(word), " ".join(word.split()))
    if len(keyed) > IN_A_GROUP:
        raise InvalidRequest(f"A group has at most {IN_A_GROUP} words.")
    if len(keyed) < 2:
        raise InvalidRequest("Give at least two words or phrases that differ by more than their endings.")
    return keyed


def _checked(word: str) -> str:
    """The key of a word. Raises InvalidRequest where it cannot be looked for."""
    if len(word) > CHARACTERS:
        raise InvalidRequest(f"'{word[:CHARACTERS]} ...' is longer than {CHARACTERS} characters.")
    units = lexical.units(word)
    if len(units) > UNITS:
        raise InvalidRequest(f"'{word}' has more than {UNITS} words or Chinese characters.")
    if not lexical.query_terms(word):
        raise InvalidRequest(f"'{word}' is left out of every search: it says nothing of what is looked for.")
    if len(units) == 1 and is_cjk(units[0][0]):
        raise InvalidRequest(f"'{word}' is one character, which stands in too many other words.")
    return " ".join(units)


def _key(word: str) -> str:
    return " ".join(lexical.units(word))
