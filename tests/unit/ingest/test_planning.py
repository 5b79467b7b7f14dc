"""Plans: carried out on a model of the store, they end where they should, whatever was there before."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from core.records import Document, DocumentState
from ingest.planning import Copy, Plan, plan, refusal

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def document(number: int, path: str, sha256: str, source: str | None = "share", parent: int | None = None) -> Document:
    return Document(
        id=UUID(int=number),
        collection_id=UUID(int=0),
        collection="handbook",
        path=path,
        title=path,
        media_type="text/markdown",
        sha256=sha256,
        size=1,
        state=DocumentState.READY,
        reason_code=None,
        reason=None,
        pages=None,
        chunks=1,
        language="en",
        effective_from=None,
        effective_to=None,
        supersedes=None,
        created_at=NOW,
        updated_at=NOW,
        source=source,
        parent_id=None if parent is None else UUID(int=parent),
    )


def known(**held: str) -> list[Document]:
    return [document(number, path, sha256) for number, (path, sha256) in enumerate(held.items(), start=1)]


def outline(made: Plan) -> dict[str, object]:
    """A plan in plain words, what is empty left out."""
    whole = {
        "new": list(made.new),
        "changed": list(made.changed),
        "moved": {move.document.path: move.path for move in made.moved},
        "deleted": [each.path for each in made.deleted],
        "unchanged": [each.path for each in made.unchanged],
        "copies": {copy.path: copy.of for copy in made.copies},
        "clashes": list(made.clashes),
    }
    return {name: value for name, value in whole.items() if value}


# --- by example -------------------------------------------------------------------------------------------------------


def test_an_empty_collection_takes_everything() -> None:
    assert outline(plan({"b": "2", "a": "1"}, [])) == {"new": ["a", "b"]}


def test_what_is_there_stays() -> None:
    made = plan({"a": "1"}, known(a="1"))
    assert outline(made) == {"unchanged": ["a"]}
    assert made.empty


def test_new_bytes_at_a_path_are_the_same_document() -> None:
    assert outline(plan({"a": "2"}, known(a="1"))) == {"changed": ["a"]}


def test_the_same_bytes_at_a_new_path_have_moved() -> None:
    assert outline(plan({"sub/b": "1"}, known(a="1"))) == {"moved": {"a": "sub/b"}}


def test_what_is_gone_is_deleted() -> None:
    assert outline(plan({"a": "1"}, known(a="1", b="2"))) == {"unchanged": ["a"], "deleted": ["b"]}


def test_the_second_of_the_same_bytes_is_a_copy() -> None:
    assert outline(plan({"a": "1", "b": "1"}, [])) == {"new": ["a"], "copies": {"b": "a"}}
    assert outline(plan({"a": "1", "b": "1"}, known(b="1"))) == {"unchanged": ["b"], "copies": {"a": "b"}}


def test_a_moved_file_with_a_copy_moves_once() -> None:
    assert outline(plan({"b": "1", "c": "1"}, known(a="1"))) == {"moved": {"a": "b"}, "copies": {"c": "b"}}


def test_when_the_path_of_a_copy_is_freed_its_own_document_goes() -> None:
    made = plan({"a": "2", "b": "2"}, known(a="1", b="2"))
    assert outline(made) == {"unchanged": ["b"], "copies": {"a": "b"}, "deleted": ["a"]}


def test_bytes_pushed_out_of_their_path_are_followed() -> None:
    made = plan({"a": "2", "b": "2", "c": "1"}, known(a="1", b="2"))
    assert outline(made) == {"unchanged": ["b"], "copies": {"a": "b"}, "moved": {"a": "c"}}


def test_one_file_renamed_over_another_is_a_change_of_it() -> None:
    assert outline(plan({"a": "2"}, known(a="1", b="2"))) == {"changed": ["a"], "deleted": ["b"]}


def test_an_archived_old_version_is_new_and_the_path_goes_on() -> None:
    assert outline(plan({"a": "2", "a-2025": "1"}, known(a="1"))) == {"changed": ["a"], "new": ["a-2025"]}


def test_a_path_that_takes_the_bytes_of_another_waits_until_those_are_free() -> None:
    made = plan({"a": "2", "b": "3", "c": "4"}, known(a="1", b="2", c="3"))
    assert outline(made) == {"changed": ["c", "b", "a"]}


def test_files_that_change_places_keep_their_documents() -> None:
    made = plan({"a": "2", "b": "1"}, known(a="1", b="2"))
    assert outline(made) == {"moved": {"b": "a", "a": "b"}}
    made = plan({"a": "2", "b": "3", "c": "1", "d": "9"}, known(a="1", b="2", c="3", d="4"))
    assert outline(made) == {"moved": {"b": "a", "c": "b", "a": "c"}, "changed": ["d"]}


def test_what_cannot_be_seen_is_neither_deleted_nor_moved() -> None:
    made = plan({"x": "1"}, known(a="1", b="2"), unclear=lambda path: path in "ab")
    assert outline(made) == {"copies": {"x": "a"}}


def test_an_upload_of_the_same_bytes_stands_for_the_file() -> None:
    upload = document(9, "leave.md", "1", source=None)
    assert outline(plan({"handbook/leave.md": "1"}, [], [upload])) == {"copies": {"handbook/leave.md": "leave.md"}}


def test_a_document_ingested_from_the_very_path_becomes_the_folders_own() -> None:
    ingested = document(9, "a", "1", source=None)
    assert outline(plan({"a": "1"}, [], [ingested])) == {"unchanged": ["a"]}
    assert outline(plan({"a": "2"}, [], [ingested])) == {"changed": ["a"]}
    # It is not deleted before it was taken over.
    assert plan({}, [], [ingested]).empty


def test_a_path_of_another_source_is_left_alone() -> None:
    theirs = document(9, "a", "1", source="other share")
    assert outline(plan({"a": "2", "b": "3"}, [], [theirs])) == {"new": ["b"], "clashes": ["a"]}


def test_what_came_inside_other_files_is_not_compared_with() -> None:
    inside = document(9, "mail.eml/a.pdf", "1", parent=1)
    assert outline(plan({"a.pdf": "1"}, [], [inside])) == {"new": ["a.pdf"]}


@pytest.mark.parametrize(
    ("had", "gone", "refused"),
    [(0, 0, False), (1, 1, True), (2, 1, False), (19, 18, False), (20, 10, False), (20, 11, True), (500, 500, True)],
)
def test_a_sync_that_would_delete_too_much_is_refused(had: int, gone: int, refused: bool) -> None:
    documents = [document(number + 1, f"{number:03}", f"{number}") for number in range(had)]
    made = plan({each.path: each.sha256 for each in documents[gone:]}, documents)
    assert (refusal(made, had) is not None) is refused


def test_a_folder_under_another_name_is_moved_whole_and_not_refused() -> None:
    documents = [document(number + 1, f"old/{number}", f"{number}") for number in range(30)]
    made = plan({f"new/{number}": f"{number}" for number in range(30)}, documents)
    assert (len(made.moved), made.deleted, refusal(made, 30)) == (30, (), None)


# --- whatever was there -----------------------------------------------------------------------------------------------


class Store:
    """The rules of the database: no two documents at one path or with the same bytes, at any moment."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.held = {each.id: each for each in documents}
        self._next = 1000

    def carry_out(self, made: Plan, found: Mapping[str, str]) -> None:
        for gone in made.deleted:
            del self.held[gone.id]
        for move in made.moved:
            self.put(replace(self.held[move.document.id], path=f"{move.path}~{move.document.id}"))
        for move in made.moved:
            self.put(replace(self.held[move.document.id], path=move.path))
        for path in made.changed:
            before = next(each for each in self.held.values() if each.path == path)
            self.put(replace(before, sha256=found[path], source="share"))
        for path in made.new:
            self._next += 1
            self.put(document(self._next, path, found[path]))

    def put(self, changed: Document) -> None:
        self.held[changed.id] = changed
        for name in ("path", "sha256"):
            values = [getattr(each, name) for each in self.held.values() if each.parent_id is None]
            assert len(values) == len(set(values)), f"two documents with the same {name}"


def _random(seed: int) -> tuple[dict[str, str], list[Document], list[Document], set[str]]:
    draw = random.Random(seed)
    paths, digests = list("abcdefgh"), list("12345678")
    draw.shuffle(digests)
    held = [document(n, path, digests.pop()) for n, path in enumerate(draw.sample(paths, draw.randint(0, 6)), start=1)]
    own = [each for each in held if draw.random() < 0.8]
    others = [replace(each, source=draw.choice((None, "other"))) for each in held if each not in own]
    found = {path: draw.choice("123456789") for path in paths if draw.random() < 0.6}
    unclear = {path for path in paths if path not in found and draw.random() < 0.2}
    return found, own, others, unclear


@pytest.mark.parametrize("seed", range(400))
def test_a_plan_ends_with_one_document_for_each_content(seed: int) -> None:
    found, own, others, unclear = _random(seed)
    made = plan(found, own, others, unclear.__contains__)
    store = Store([*own, *others])
    store.carry_out(made, found)
    after = {each.path: each.sha256 for each in store.held.values()}

    # What the folder holds is there, at one of the paths where it lies, save what is left alone.
    for path, sha256 in found.items():
        if path not in made.clashes:
            assert sha256 in after.values()
    for path, sha256 in after.items():
        before = next((each for each in others if each.path == path), None)
        if path in found and path not in made.clashes:
            assert found[path] == sha256
        else:
            assert before is not None or path in unclear
    # Other people's documents are as they were.
    for other in others:
        if other.source is not None or other.path not in found:
            assert store.held[other.id] == other
    # Nothing that may be there unseen went.
    for mine in own:
        if mine.path in unclear:
            assert store.held[mine.id] == mine
    # Every file is told of once.
    told = [*made.new, *made.changed, *(copy.path for copy in made.copies), *made.clashes]
    told += [each.path for each in made.unchanged] + [move.path for move in made.moved]
    assert sorted(told) == sorted(found)


@pytest.mark.parametrize("seed", range(100))
def test_a_second_plan_has_nothing_to_do(seed: int) -> None:
    found, own, others, unclear = _random(seed)
    first = plan(found, own, others, unclear.__contains__)
    store = Store([*own, *others])
    store.carry_out(first, found)
    mine = {each.id for each in own} | {each.id for each in store.held.values() if each.source == "share"}
    after = list(store.held.values())
    second = plan(
        found, [d for d in after if d.id in mine], [d for d in after if d.id not in mine], unclear.__contains__
    )
    assert second.empty


@pytest.mark.parametrize("seed", range(100))
def test_a_plan_does_not_depend_on_order(seed: int) -> None:
    found, own, others, unclear = _random(seed)
    turned = dict(reversed(list(found.items())))
    first = plan(found, own, others, unclear.__contains__)
    assert outline(plan(turned, own[::-1], others[::-1], unclear.__contains__)) == outline(first)
    assert all(isinstance(copy, Copy) and copy.of != copy.path for copy in first.copies)
