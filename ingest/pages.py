"""Pictures of pages, for showing a passage where it stands. Drawn inside the jail."""

from pathlib import Path
from typing import Any

from core.errors import DamagedFile, NotFound
from ingest import pdf, pictures
from ingest.kinds import PICTURES, Kind
from ingest.pixels import MAX_HEIGHT, MAX_WIDTH, Pixels

MIN_WIDTH = 100


def draw(path: Path, kind: Kind, page: int, width_px: int) -> Pixels:
    """A page (from 1), `width_px` wide where its shape allows; picture files are not enlarged. Blocking.

    Raises NotFound for a page that is not there and for formats whose pages cannot be drawn; DamagedFile,
    EncryptedFile, FileTooLarge.
    """
    width = min(max(width_px, MIN_WIDTH), MAX_WIDTH)
    if kind in PICTURES:
        return Pixels.of(pictures.show(path.read_bytes(), page, width, MAX_HEIGHT))
    if kind is Kind.PDF:
        return Pixels.of(_pdf_page(path, page, width))
    raise NotFound("There are no pictures of the pages of such a document.")


def _pdf_page(path: Path, page: int, width: int) -> Any:
    import pypdfium2

    with pdf.LOCK:
        document = pdf.open_pdf(path)
        try:
            if not 1 <= page <= len(document):
                raise NotFound(f"The document has {len(document)} pages; there is no page {page}.")
            opened = document[page - 1]
            shown_width, shown_height = opened.get_size()
            scale = min(width / max(shown_width, 1.0), MAX_HEIGHT / max(shown_height, 1.0))
            # Sizes are rounded up: without the hair less, 100.0000001 would become 101. A copy, as the bitmap goes with
            # the document.
            return opened.render(scale=scale * (1 - 1e-9)).to_pil().copy()
        except pypdfium2.PdfiumError as error:
            raise DamagedFile() from error
        finally:
            document.close()
