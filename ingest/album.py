"""The pictures of pages that were shown last, in memory: readers go back and forth."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final
from uuid import UUID

# Bytes: some hundreds of pages of text, some dozens of photographs.
ROOM: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """Which picture it is: a page (from 1) of a tenant's stored file, in one width."""

    tenant_id: UUID
    sha256: str
    page: int
    width_px: int


class Album:
    """Files of pictures, up to `room` bytes in all; those that nobody asked for the longest go first."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._files: OrderedDict[Place, bytes] = OrderedDict()

    def get(self, place: Place) -> bytes | None:
        """The picture, if it is here."""
        if place in self._files:
            self._files.move_to_end(place)
        return self._files.get(place)

    def put(self, place: Place, file: bytes) -> None:
        """Keep a picture, for as long as there is room."""
        self._files[place] = file
        self._files.move_to_end(place)
        while sum(map(len, self._files.values())) > self._room:
            self._files.popitem(last=False)

    def forget(self, tenant_id: UUID, sha256: str) -> None:
        """Drop all pictures of a file."""
        gone = [place for place in self._files if (place.tenant_id, place.sha256) == (tenant_id, sha256)]
        for place in gone:
            del self._files[place]
