"""Colours by name, and once Pillow has looked one up itself."""

from PIL import ImageColor

from ingest import colours


def test_a_name_is_known_each_time() -> None:
    # Pillow replaces a name's value by what it made of it.
    ImageColor.getrgb("white")
    assert colours.from_css("White") == colours.from_css(" white ") == (colours.WHITE, 1.0)
    assert colours.from_css("no such colour") is None
