"""Picture files: formats, frames, sizes, and pictures that cannot be read."""

import io

import pytest
from PIL import Image, ImageDraw

from core.errors import DamagedFile, FileTooLarge, NoText
from ingest import pictures, programs
from ingest.options import ParseOptions
from tests.unit.ingest.test_ocr import PARAGRAPH, Tesseract, table

OPTIONS = ParseOptions()


def drawn(size: tuple[int, int] = (600, 400), mode: str = "L") -> Image.Image:
    picture = Image.new(mode, size, "white")
    ImageDraw.Draw(picture).rectangle((50, 50, 300, 100), fill="black")
    return picture


def saved(picture: Image.Image, form: str, **options: object) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, form, **options)
    return stream.getvalue()


@pytest.fixture
def tesseract(monkeypatch: pytest.MonkeyPatch) -> Tesseract:
    fake = Tesseract()
    monkeypatch.setattr(programs, "run", fake.run)
    return fake


@pytest.mark.parametrize(
    ("form", "mode"),
    [("PNG", "L"), ("PNG", "RGB"), ("PNG", "1"), ("JPEG", "RGB"), ("JPEG", "CMYK"), ("TIFF", "RGB"), ("BMP", "RGB"),
     ("WEBP", "RGB")],
)  # fmt: skip
def test_formats_and_modes(tesseract: Tesseract, form: str, mode: str) -> None:
    tesseract.tables = [table(*PARAGRAPH)]
    found = pictures.read_image(saved(drawn(mode="RGB").convert(mode), form), OPTIONS)
    assert (found.pages, found.confidence) == (1, {1: 0.95})
    assert found.elements[0].text.startswith("Hotels are booked")
    # Small pictures are enlarged.
    assert tesseract.sizes == [(1800, 1200)]


def test_every_frame_of_a_tiff_is_a_page(tesseract: Tesseract) -> None:
    tesseract.tables = [table(*PARAGRAPH), table(*PARAGRAPH, conf=60.0), b""]
    frames = [drawn(), Image.new("L", (600, 400), 255), drawn()]
    found = pictures.read_image(saved(frames[0], "TIFF", save_all=True, append_images=frames[1:]), OPTIONS)
    assert found.pages == 3
    assert [element.page for element in found.elements] == [1, 3]
    assert [(w.code, w.pages) for w in found.warnings] == [("ocr_used", (1, 3)), ("ocr_low_confidence", (3,))]


def test_of_a_moving_picture_the_first_frame_counts(tesseract: Tesseract) -> None:
    tesseract.tables = [table(*PARAGRAPH)]
    data = saved(drawn(), "WEBP", save_all=True, append_images=[drawn((600, 400))], duration=100)
    assert pictures.read_image(data, OPTIONS).pages == 1


def test_a_photograph_is_read_as_its_camera_was_held(tesseract: Tesseract) -> None:
    tesseract.tables = [table(*PARAGRAPH)]
    exif = Image.Exif()
    exif[0x0112] = 6
    pictures.read_image(saved(drawn((3000, 2500)), "JPEG", exif=exif), OPTIONS)
    assert tesseract.sizes == [(2500, 3000)]


def test_what_is_transparent_is_white(tesseract: Tesseract) -> None:
    picture = Image.new("RGBA", (600, 400), (0, 0, 0, 0))
    with pytest.raises(NoText, match="blank"):
        pictures.read_image(saved(picture, "PNG"), OPTIONS)
    assert not tesseract.asked


def test_large_pictures_are_read_smaller_and_larger_ones_refused(
    tesseract: Tesseract, monkeypatch: pytest.MonkeyPatch
) -> None:
    tesseract.tables = [table(*PARAGRAPH)]
    data = saved(drawn((6000, 5000)), "PNG")
    pictures.read_image(data, OPTIONS)
    ((width, height),) = tesseract.sizes
    assert width * height == pytest.approx(24_000_000, rel=0.01)
    monkeypatch.setattr(pictures, "MAX_MEGAPIXELS", 25)
    with pytest.raises(FileTooLarge):
        pictures.read_image(data, OPTIONS)


def test_too_many_frames_are_refused(tesseract: Tesseract, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_FRAMES", 1)
    with pytest.raises(FileTooLarge):
        pictures.read_image(saved(drawn(), "TIFF", save_all=True, append_images=[drawn()]), OPTIONS)
    assert not tesseract.asked


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\nrubbish", saved(drawn(), "PNG")[:120], b"II*\0rubbish"])
def test_damage_is_told(tesseract: Tesseract, data: bytes) -> None:
    with pytest.raises(DamagedFile):
        pictures.read_image(data, OPTIONS)
    assert not tesseract.asked


def test_formats_that_are_not_asked_for_are_not_opened(tesseract: Tesseract) -> None:
    with pytest.raises(DamagedFile):
        pictures.read_image(saved(drawn(), "GIF"), OPTIONS)
    assert not tesseract.asked


def test_a_picture_without_text_says_so(tesseract: Tesseract) -> None:
    tesseract.tables = [b"", b"Rotate: 0\n"]
    with pytest.raises(NoText, match="Nothing could be read in it"):
        pictures.read_image(saved(drawn(), "PNG"), OPTIONS)
