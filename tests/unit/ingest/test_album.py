"""The pictures that are kept: the latest ones, up to a size, until their file is gone."""

from dataclasses import replace
from uuid import UUID

from ingest.album import Album, Place

ONE = Place(UUID(int=1), "a" * 64, 1, 1200)


def test_a_picture_is_found_by_all_that_makes_it() -> None:
    album = Album()
    album.put(ONE, b"one")
    assert album.get(ONE) == b"one"
    others = ({"tenant_id": UUID(int=2)}, {"sha256": "b" * 64}, {"page": 2}, {"width_px": 600})
    assert [album.get(replace(ONE, **other)) for other in others] == [None] * 4


def test_those_that_nobody_asked_for_go_first() -> None:
    album = Album(room=6)
    places = [replace(ONE, page=page) for page in (1, 2, 3)]
    album.put(places[0], b"111")
    album.put(places[1], b"222")
    album.get(places[0])
    album.put(places[2], b"333")
    assert [album.get(place) for place in places] == [b"111", None, b"333"]
    album.put(ONE, b"too large")
    assert [album.get(place) for place in places] == [None] * 3


def test_a_file_that_is_gone_is_forgotten() -> None:
    album = Album()
    kept = (replace(ONE, tenant_id=UUID(int=2)), replace(ONE, sha256="b" * 64))
    for place in (ONE, replace(ONE, page=2), *kept):
        album.put(place, b"x")
    album.forget(ONE.tenant_id, ONE.sha256)
    assert [album.get(place) for place in (ONE, replace(ONE, page=2), *kept)] == [None, None, b"x", b"x"]
