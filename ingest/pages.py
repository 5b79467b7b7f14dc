"""Pictures of PDF pages, for showing a passage where it stands."""

import io
from pathlib import Path

from core.errors import DamagedFile, NotFound
from ingest import pdf

MIN_WIDTH, MAX_WIDTH = 100, 2000
# Long thin pages would make pictures of any size.
MAX_HEIGHT = 4000


def render(path: Path, page: int, width_px: int) -> bytes:
    """A page (from 1) as PNG, `width_px` wide where its shape allows. Blocking: call it in a thread.

    Raises NotFound for a page that is not there, DamagedFile, EncryptedFile.
    """
    import pypdfium2

    width = min(max(width_px, MIN_WIDTH), MAX_WIDTH)
    with pdf.LOCK:
        document = pdf.open_pdf(path)
        try:
            if not 1 <= page <= len(document):
                raise NotFound(f"The document has {len(document)} pages; there is no page {page}.")
            opened = document[page - 1]
            shown_width, shown_height = opened.get_size()
            scale = min(width / max(shown_width, 1.0), MAX_HEIGHT / max(shown_height, 1.0))
            picture = opened.render(scale=scale).to_pil()
        except pypdfium2.PdfiumError as error:
            raise DamagedFile() from error
        finally:
            document.close()
    png = io.BytesIO()
    picture.save(png, "PNG")
    return png.getvalue()
