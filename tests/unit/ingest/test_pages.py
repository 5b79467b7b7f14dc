"""Pages as pixels: of PDFs and of picture files, in any shape, and pages that cannot be drawn."""

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from core.errors import DamagedFile, EncryptedFile, FileTooLarge, NotFound
from ingest import pages, pictures, pixels
from ingest.kinds import Kind, kind_of
from ingest.pages import draw
from ingest.pixels import Pixels
from tests.unit.ingest.samples import Ink, pdf_bytes, policy_pdf

RED, WHITE, BLACK = (255, 0, 0), (255, 255, 255), (0, 0, 0)


def write(tmp_path: Path, data: bytes, name: str = "a.pdf") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def drawn(path: Path, page: int = 1, width: int = 300) -> Image.Image:
    """The picture that comes out in the end."""
    image = Image.open(io.BytesIO(draw(path, kind_of(path), page, width).png()), formats=("PNG",))
    assert image.mode == "RGB"
    return image


# --- PDF --------------------------------------------------------------------------------------------------------------


def test_a_page_is_as_wide_as_asked_within_limits(tmp_path: Path) -> None:
    path = write(tmp_path, policy_pdf())
    assert drawn(path, 2, 300).size == (300, 425)
    assert drawn(path, 1, 1).width == pages.MIN_WIDTH
    assert drawn(path, 1, 10**9).width == pixels.MAX_WIDTH


def test_a_page_shows_what_is_on_it(tmp_path: Path) -> None:
    image = drawn(write(tmp_path, pdf_bytes([[]], picture=(0, 0, 595, 421), shade=0)))
    assert image.getpixel((150, 100)) == WHITE
    assert image.getpixel((150, 400)) == BLACK


def test_a_long_page_is_not_longer_than_allowed(tmp_path: Path) -> None:
    long = policy_pdf().replace(b"/MediaBox[0 0 595 842]", b"/MediaBox[0 0 60 9999]")
    assert drawn(write(tmp_path, long), 1, 1000).height == pixels.MAX_HEIGHT


@pytest.mark.parametrize("page", [0, 3, -1])
def test_a_page_that_is_not_there(tmp_path: Path, page: int) -> None:
    with pytest.raises(NotFound):
        drawn(write(tmp_path, policy_pdf()), page)


@pytest.mark.parametrize(
    ("data", "error"),
    [(policy_pdf()[:200], DamagedFile), (pdf_bytes([[Ink("Secret")]], password="open sesame"), EncryptedFile)],
)
def test_a_pdf_that_cannot_be_opened(tmp_path: Path, data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        drawn(write(tmp_path, data))


# --- picture files ----------------------------------------------------------------------------------------------------


def saved(tmp_path: Path, name: str, image: Image.Image, **options: Any) -> Path:
    image.save(tmp_path / name, **options)
    return tmp_path / name


def halves(size: tuple[int, int] = (800, 400), mode: str = "RGB") -> Image.Image:
    """Red on the left, white on the right."""
    image = Image.new("RGB", size, "white")
    image.paste(RED, (0, 0, size[0] // 2, size[1]))
    return image.convert(mode)


def close(found: object, colour: tuple[int, int, int]) -> bool:
    """JPEG is not exact."""
    assert isinstance(found, tuple)
    return all(abs(one - other) < 12 for one, other in zip(found, colour, strict=True))


@pytest.mark.parametrize(
    ("name", "mode"),
    [("a.png", "RGB"), ("a.png", "P"), ("a.png", "RGBA"), ("a.jpg", "RGB"), ("a.jpg", "CMYK"), ("a.tif", "RGB"),
     ("a.tif", "CMYK"), ("a.bmp", "RGB"), ("a.webp", "RGB")],
)  # fmt: skip
def test_a_picture_of_any_format_in_its_colours(tmp_path: Path, name: str, mode: str) -> None:
    image = drawn(saved(tmp_path, name, halves(mode=mode)))
    assert image.size == (300, 150)
    assert close(image.getpixel((50, 75)), RED)
    assert close(image.getpixel((250, 75)), WHITE)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "I;16"])
def test_a_picture_without_colours(tmp_path: Path, mode: str) -> None:
    image = Image.new(mode, (600, 300), 0)
    image.paste(65535 if mode == "I;16" else 255, (300, 0, 600, 300))
    if mode == "LA":
        image.putalpha(255)
    shown = drawn(saved(tmp_path, "a.png", image))
    assert (shown.getpixel((50, 75)), shown.getpixel((250, 75))) == (BLACK, WHITE)


def test_every_frame_of_a_tiff_is_a_page(tmp_path: Path) -> None:
    red, small = Image.new("RGB", (400, 200), "red"), Image.new("1", (200, 800), 1)
    path = saved(tmp_path, "fax.tiff", red, save_all=True, append_images=[small])
    assert drawn(path, 1).getcolors() == [(300 * 150, RED)]
    assert drawn(path, 2).getcolors() == [(200 * 800, WHITE)]
    for page in (0, 3):
        with pytest.raises(NotFound):
            drawn(path, page)


def test_of_a_moving_picture_there_is_one_page(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.webp", halves(), save_all=True, append_images=[Image.new("RGB", (800, 400))], duration=9)
    assert drawn(path).width == 300
    with pytest.raises(NotFound):
        drawn(path, 2)


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.tif", "a.webp"])
def test_a_photograph_stands_as_its_camera_was_held(tmp_path: Path, name: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    image = drawn(saved(tmp_path, name, halves((2400, 1200)), exif=exif))
    assert image.size == (300, 600)
    # What was left is on top.
    assert close(image.getpixel((150, 100)), RED)
    assert close(image.getpixel((150, 500)), WHITE)


def test_a_small_picture_is_not_enlarged_nor_a_long_one_drawn_whole(tmp_path: Path) -> None:
    assert drawn(saved(tmp_path, "a.png", halves((20, 10)))).size == (20, 10)
    assert drawn(saved(tmp_path, "b.png", halves((100, 8000)))).size == (50, 4000)


def test_what_is_transparent_is_white(tmp_path: Path) -> None:
    image = drawn(saved(tmp_path, "a.png", Image.new("RGBA", (100, 100), (0, 0, 0, 0))))
    assert image.getcolors() == [(100 * 100, WHITE)]


def test_nothing_of_the_file_but_what_it_shows_comes_out(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x010E] = "CANARY-EXIF"
    path = saved(tmp_path, "a.jpg", halves(), exif=exif, comment=b"CANARY-COMMENT")
    path.write_bytes(path.read_bytes() + b"<script>CANARY-TAIL</script>")
    assert b"CANARY" in path.read_bytes()
    assert b"CANARY" not in draw(path, Kind.JPEG, 1, 300).png()


def test_a_picture_of_too_many_pixels_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_MEGAPIXELS", 0)
    with pytest.raises(FileTooLarge):
        drawn(saved(tmp_path, "a.png", halves()))


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.9])
def test_a_damaged_picture(tmp_path: Path, keep: float) -> None:
    whole = saved(tmp_path, "a.png", Image.effect_noise((400, 300), 50)).read_bytes()
    with pytest.raises(DamagedFile):
        drawn(write(tmp_path, whole[: int(keep * len(whole))], "cut.png"))


def test_other_formats_have_no_pages_to_draw(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        drawn(write(tmp_path, b"# Title", "a.md"))


# --- pixels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(0, 0), (1, 2), (-1, -1), (pixels.MAX_WIDTH + 1, 1), (1, pixels.MAX_HEIGHT + 1)])
def test_pixels_must_fit_their_size(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="not a picture"):
        Pixels(*size, bytes(3 * abs(size[0] * size[1]) if size != (1, 2) else 3))
