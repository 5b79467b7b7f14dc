"""Where a page of a list ends, as an opaque text for whoever asks for the next one."""

import base64
import binascii
import json

from core.errors import InvalidRequest
from storage.listing import Place


def written(place: Place) -> str:
    """The text that `read` understands. It says nothing that the page itself did not."""
    data = json.dumps([place.collection, place.path], ensure_ascii=False).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def read(cursor: str) -> Place:
    """Raises InvalidRequest for what `written` never gave."""
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        match json.loads(data.decode()):
            case [str(collection), str(path)]:
                f"{collection}{path}".encode()  # no half of a pair of surrogates
                return Place(collection, path)
            case _:
                raise ValueError("not two texts")
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidRequest("`after` is not what a page gave as its `next`. Leave it out to begin anew.") from error
