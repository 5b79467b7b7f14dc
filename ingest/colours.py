"""Colours as documents write them, and whether text in one is seen on a ground in another."""

import re
from typing import Final

from PIL import ImageColor

Colour = tuple[int, int, int]

WHITE: Final[Colour] = (255, 255, 255)
BLACK: Final[Colour] = (0, 0, 0)

# Text nearer to its ground than this in every channel cannot be made out; the lightest greys in use are 30 away.
_UNSEEN = 12
# Below this share of full strength a colour is not seen.
FAINT = 0.05

_FUNCTION = re.compile(r"(rgba?|hsla?)\(([^()]*)\)")
_HEX = re.compile(r"#([0-9a-f]{3,8})")


def unseen(text: Colour, ground: Colour) -> bool:
    """Whether text of one colour vanishes on a ground of the other."""
    return all(abs(one - other) <= _UNSEEN for one, other in zip(text, ground, strict=True))


def from_hex(value: str) -> Colour | None:
    """Six hexadecimal digits, as Office writes colours; None for anything else (auto, theme names)."""
    if not re.fullmatch(r"[0-9A-Fa-f]{6}", value):
        return None
    return int(value[:2], 16), int(value[2:4], 16), int(value[4:], 16)


def from_css(value: str) -> tuple[Colour, float] | None:
    """A CSS colour and how opaque it is, 0 to 1; None for one that is not understood (a variable, say)."""
    value = value.strip().lower()
    if value == "transparent":
        return BLACK, 0.0
    if match := _HEX.fullmatch(value):
        return _from_digits(match[1])
    if match := _FUNCTION.fullmatch(value):
        return _from_function(match[1], match[2])
    return (ImageColor.getrgb(value)[:3], 1.0) if value in ImageColor.colormap else None


def _from_digits(digits: str) -> tuple[Colour, float] | None:
    if len(digits) in (3, 4):
        digits = "".join(digit * 2 for digit in digits)
    colour = from_hex(digits[:6])
    if colour is None or len(digits) not in (6, 8):
        return None
    return colour, int(digits[6:] or "ff", 16) / 255


def _from_function(name: str, inside: str) -> tuple[Colour, float] | None:
    parts = [part for part in re.split(r"[\s,/]+", inside.strip()) if part]
    if len(parts) not in (3, 4):
        return None
    alpha = _share(parts[3]) if len(parts) == 4 else 1.0
    try:
        if name.startswith("hsl"):
            hue, *rest = (float(re.sub(r"deg$", "", part).rstrip("%")) for part in parts[:3])
            colour = ImageColor.getrgb(f"hsl({hue:.0f},{rest[0]:.0f}%,{rest[1]:.0f}%)")[:3]
        else:
            red, green, blue = (_channel(part) for part in parts[:3])
            colour = (red, green, blue)
    except ValueError:
        return None
    return None if alpha is None else (colour, alpha)


def _channel(part: str) -> int:
    number = float(part[:-1]) * 2.55 if part.endswith("%") else float(part)
    return round(min(max(number, 0), 255))


def _share(part: str) -> float | None:
    try:
        return float(part[:-1]) / 100 if part.endswith("%") else float(part)
    except ValueError:
        return None
