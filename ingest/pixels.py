"""A drawn page on its way out of the jail: pixels, of which the file that a browser gets is made outside.

So no byte of a document's own is ever served, nor one that its reader, taken over, might choose.
"""

import io
from dataclasses import dataclass
from typing import Any, Self

MAX_WIDTH = 2000
# Long thin pages would make pictures of any size.
MAX_HEIGHT = 4000

# zlib's: twice as fast as the usual 6, for files a tenth larger.
_COMPRESSION = 3


@dataclass(frozen=True, slots=True)
class Pixels:
    """A picture row by row from the top, three bytes (red, green, blue) a pixel. Raises ValueError for a wrong size."""

    width: int
    height: int
    data: bytes

    def __post_init__(self) -> None:
        fits = 0 < self.width <= MAX_WIDTH and 0 < self.height <= MAX_HEIGHT
        if not fits or len(self.data) != 3 * self.width * self.height:
            raise ValueError("not a picture of a page")

    @classmethod
    def of(cls, image: Any) -> Self:
        """Those of a PIL image."""
        return cls(image.width, image.height, image.convert("RGB").tobytes())

    def png(self) -> bytes:
        """The picture as a file. Blocking: call it in a thread."""
        from PIL import Image

        file = io.BytesIO()
        Image.frombytes("RGB", (self.width, self.height), self.data).save(file, "PNG", compress_level=_COMPRESSION)
        return file.getvalue()
