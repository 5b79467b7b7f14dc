"""Text of a PDF page that no reader sees, and where pictures lie: the text layer of a scan is invisible too."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.pdf_characters import Characters, Frame

# The share of a page that pictures cover when the page is a scan.
COVERED = 0.5
# Points: smaller print is not meant to be read.
_SMALLEST = 1.5
# Shades of grey (of 256) by which text differs from what is behind it at least.
_LEAST_CONTRAST = 20
# Squares into which a page is divided, each way, to say where pictures are.
_SQUARES = 24


class Pictures:
    """Where pictures lie on a page, looked up only when asked."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._squares: NDArray[np.bool_] | None = None

    @property
    def share(self) -> float:
        """The part of the page that pictures cover, 0 to 1."""
        return float(self._grid().mean())

    def under(self, points: NDArray[np.float64]) -> float:
        """The part of the points (x and y in the page's own space) that lies on pictures, 0 to 1."""
        left, bottom, right, top = self._page.get_bbox()
        x = (points[:, 0] - left) / max(right - left, 1.0)
        y = (points[:, 1] - bottom) / max(top - bottom, 1.0)
        column, row = (np.clip(axis * _SQUARES, 0, _SQUARES - 1).astype(int) for axis in (x, y))
        return float(self._grid()[row, column].mean())

    def _grid(self) -> NDArray[np.bool_]:
        if self._squares is None:
            self._squares = self._painted()
        return self._squares

    def _painted(self) -> NDArray[np.bool_]:
        import pypdfium2
        import pypdfium2.raw as raw

        squares = np.zeros((_SQUARES, _SQUARES), dtype=bool)
        left, bottom, right, top = self._page.get_bbox()
        across, up = _SQUARES / max(right - left, 1.0), _SQUARES / max(top - bottom, 1.0)
        try:
            for thing in self._page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=4):
                while thing.container is not None:
                    thing = thing.container
                x0, y0, x1, y1 = thing.get_bounds()
                rows = slice(max(round((y0 - bottom) * up), 0), max(round((y1 - bottom) * up), 0))
                squares[rows, max(round((x0 - left) * across), 0) : max(round((x1 - left) * across), 0)] = True
        except pypdfium2.PdfiumError:
            # A picture that pdfium cannot place covers nothing.
            return squares
        return squares


def hidden_characters(page: Any, found: Characters, frame: Frame, pictures: Pictures) -> NDArray[np.bool_]:
    """Which characters no reader sees: off the page, tiny, invisible, or as pale as what is behind them.

    Invisible text that is nearly all there is on a page and lies on pictures is the text layer of a scan and is kept.
    """
    left, top, right, bottom = found.boxes.T
    extent = np.maximum(bottom - top, right - left)
    hidden = (right < 0) | (bottom < 0) | (left > frame.width) | (top > frame.height)
    hidden |= (extent > 0) & (extent < _SMALLEST)
    if found.invisible.any():
        mostly = found.invisible.sum() * 5 > found.inked.sum() * 4
        if not (mostly and pictures.share > COVERED and pictures.under(found.middles[found.invisible]) > 0.8):
            hidden |= found.invisible
    pale = found.pale & ~found.invisible & ~hidden
    if pale.any():
        hidden |= _lost(page, found.boxes, pale, frame)
    return np.asarray(hidden & found.inked, dtype=bool)


def _lost(page: Any, boxes: NDArray[np.float64], pale: NDArray[np.bool_], frame: Frame) -> NDArray[np.bool_]:
    """The pale words most of whose characters do not stand out in the picture of the page."""
    bitmap = page.render(scale=min(1.0, 2000 / max(frame.width, frame.height)), grayscale=True, rotation=frame.turned)
    try:
        picture = np.array(bitmap.to_numpy(), dtype=np.uint8).reshape(bitmap.height, bitmap.width)
    finally:
        bitmap.close()
    scale = np.array([picture.shape[1] / frame.width, picture.shape[0] / frame.height] * 2)
    places = np.flatnonzero(pale)
    unseen = np.zeros(places.size)
    for at, index in enumerate(places):
        left, top, right, bottom = (max(int(edge), 0) for edge in boxes[index] * scale)
        area = picture[top : bottom + 1, left : right + 1]
        unseen[at] = area.size == 0 or int(area.max()) - int(area.min()) < _LEAST_CONTRAST
    # Thin letters leave little in a small picture: words are judged whole.
    words = np.flatnonzero(np.concatenate(([True], np.diff(places) > 1)))
    lengths = np.diff(np.append(words, places.size))
    lost = np.zeros(len(boxes), dtype=bool)
    lost[places] = np.repeat(np.add.reduceat(unseen, words) * 2 > lengths, lengths)
    return lost


def pieces(hidden: NDArray[np.bool_], inked: NDArray[np.bool_]) -> int:
    """How many pieces of hidden text follow each other, blanks between characters not counted."""
    flags = hidden[inked]
    return int(flags[0]) + int(np.count_nonzero(flags[1:] & ~flags[:-1])) if flags.size else 0
