"""Picture files: each frame is a page, read by OCR, or shown."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from core.errors import DamagedFile, FileTooLarge, NotFound
from ingest import ocr
from ingest.ocr import Reader
from ingest.options import ParseOptions
from ingest.paged import PagedText, Sheet, gathered
from ingest.segments import Page

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP")
MAX_FRAMES = 500
MAX_MEGAPIXELS = 150
# Screen shots and small scans are enlarged to this length of their longer side, at most three times.
_READABLE, _MOST = 2400, 3.0


def read_image(data: bytes, options: ParseOptions) -> PagedText:
    """Read a picture; of the formats with many frames only TIFF has pages, of others the first frame counts.

    Raises DamagedFile, FileTooLarge, and NoText where nothing was read, with the reason.
    """
    reader = Reader(options)
    with _opened(data) as image:
        return gathered([_sheet(image, number, reader) for number in range(1, _frames(image) + 1)], reader)


def show(data: bytes, page: int, width: int, height: int) -> Any:
    """A page (from 1) as it is meant to be seen: a PIL image in RGB, in its own shape, no larger than this in pixels.

    Raises NotFound for a page that is not there, DamagedFile, FileTooLarge.
    """
    with _opened(data) as image:
        count = _frames(image)
        if not 1 <= page <= count:
            raise NotFound(f"The picture has {count} pages; there is no page {page}.")
        image.seek(page - 1)
        _check_size(image)
        # JPEG unpacks to a half, a quarter or an eighth in a fraction of the time. Which side is the width, if it was
        # turned, is seen later: neither gets smaller than this.
        image.draft(None, (width, width))
        shown = _flat(image, "RGB")
        shown.thumbnail((width, height))
        return shown


@contextmanager
def _opened(data: bytes) -> Iterator[Any]:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            # Sizes are judged here, from the header, before anything is unpacked.
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                yield image
    except Image.DecompressionBombError as error:
        raise FileTooLarge(f"The picture is larger than {MAX_MEGAPIXELS} megapixels. Save it smaller.") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise DamagedFile() from error


def _frames(image: Any) -> int:
    count = int(getattr(image, "n_frames", 1)) if image.format == "TIFF" else 1
    if count > MAX_FRAMES:
        raise FileTooLarge(f"The picture has {count} pages, the limit is {MAX_FRAMES}. Split it.")
    return count


def _sheet(image: Any, number: int, reader: Reader) -> Sheet:
    try:
        image.seek(number - 1)
        _check_size(image)
        picture = _grey(image)
    except (OSError, SyntaxError, EOFError, ValueError):
        return Sheet(Page(number, 1.0, 1.0, ()), "unreadable")
    nothing = Page(number, float(picture.width), float(picture.height), ())
    if ocr.blank(picture):
        return Sheet(nothing, "blank")
    scan = reader.read(picture, number)
    return Sheet(scan.page, "scanned", scan.confidence) if scan else Sheet(nothing, "empty")


def _check_size(image: Any) -> None:
    if image.width * image.height > MAX_MEGAPIXELS * 1_000_000:
        raise FileTooLarge(f"The picture is larger than {MAX_MEGAPIXELS} megapixels. Save it smaller.")


def _grey(image: Any) -> Any:
    """The frame as it is meant to be seen, in grey, of a size that can be read."""
    frame = _flat(image, "L")
    longest = max(frame.size)
    wanted = min(_READABLE / longest, _MOST) if longest < _READABLE else 1.0
    scale = min(wanted, (ocr.MAX_PIXELS / (frame.width * frame.height)) ** 0.5, ocr.MAX_SIDE / longest)
    if scale == 1.0:
        return frame
    return frame.resize((max(round(frame.width * scale), 1), max(round(frame.height * scale), 1)))


def _flat(image: Any, mode: Literal["L", "RGB"]) -> Any:
    """The frame as it is meant to be seen: upright, on white, in grey or in colour."""
    from PIL import Image, ImageOps

    frame = ImageOps.exif_transpose(image)
    if frame.mode.startswith("I") or frame.mode == "F":
        frame = ImageOps.autocontrast(frame.convert("F").point(lambda value: value / 256).convert("L"))
    elif frame.has_transparency_data:
        layers = frame.convert(f"{mode}A")
        frame = Image.new(mode, frame.size, "white")
        frame.paste(layers.convert(mode), mask=layers.getchannel("A"))
    return frame.convert(mode)
