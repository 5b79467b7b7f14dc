"""What the readers need to know of the settings, small enough to be sent to the process that reads."""

from dataclasses import dataclass
from typing import Self

from core.settings import Settings


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """Limits and choices of one reading. Sizes in bytes; `ocr_languages` as Tesseract writes them, joined by +.

    `seconds` is how long the whole reading may take: OCR stops in time and says which pages it left.
    """

    max_bytes: int = 100 * 1024 * 1024
    max_attachments: int = 500
    ocr: bool = True
    ocr_languages: str = "eng+chi_sim"
    seconds: float = 180.0

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The options that an installation's settings ask for."""
        return cls(
            max_bytes=settings.max_file_bytes,
            max_attachments=settings.max_attachments,
            ocr=settings.ocr,
            ocr_languages=settings.ocr_languages,
            seconds=settings.parse_timeout,
        )
