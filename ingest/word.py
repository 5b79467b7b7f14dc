"""Word files made fit to read: hidden and deleted text out; insertions, content controls and text boxes opened."""

from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from ingest.colours import FAINT, WHITE, Colour, from_css, from_hex, unseen
from ingest.ooxml import (
    MC,
    A,
    Package,
    Theme,
    drawn_colour,
    opacity,
    parse_xml,
    remove,
    shaded,
    tinted,
    to_bytes,
)
from ingest.styles import declarations, pixels

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_W14 = "{http://schemas.microsoft.com/office/word/2010/wordml}"
_WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_WPS = "{http://schemas.microsoft.com/office/word/2010/wordprocessingShape}"
_V = "{urn:schemas-microsoft-com:vml}"

# Tracked insertions, smart tags, fields and content controls hold ordinary text that python-docx passes over.
_OPENED = tuple(_W + name for name in ("ins", "moveTo", "smartTag", "customXml", "fldSimple"))
_REMOVED = tuple(_W + name for name in ("del", "moveFrom"))
_VML_SHAPES = tuple(_V + name for name in ("shape", "rect", "roundrect", "oval"))

# Half-points, and percent of a letter's width: less is not meant to be read.
_SMALLEST = 4
_NARROWEST = 5
# Length units: a twip is 635 EMU.
_TWIP = 635
_PAGE = (12_240 * _TWIP, 15_840 * _TWIP)
# A box lower or narrower than two points shows nothing.
_LEAST_SIDE = 2 * 12_700
_BASED_ON_DEPTH = 10


def readable_docx(data: bytes) -> tuple[bytes, int]:
    """The same file with only the text that a reader of the final version sees, and from how many places text went."""
    package = Package(data)
    name = package.main()
    body = _Body(package, name)
    hidden = body.make_readable()
    package.put(name, to_bytes(body.root))
    return package.to_bytes(), hidden


# --- styles -----------------------------------------------------------------------------------------------------------


class _Styles:
    """The styles of a file: what they say of text, and which ones act as headings."""

    def __init__(self, root: etree._Element | None) -> None:
        found = root.iter(_W + "style") if root is not None else ()
        self._styles = {style.get(_W + "styleId", ""): style for style in found}
        self._defaults = root.find(f"{_W}docDefaults/{_W}rPrDefault/{_W}rPr") if root is not None else None
        self._default_paragraph = next(
            (
                style_id
                for style_id, style in self._styles.items()
                if style.get(_W + "type") == "paragraph" and style.get(_W + "default") in ("1", "true", "on")
            ),
            "",
        )

    def chain(self, style_id: str) -> Iterator[etree._Element]:
        """A style and those it is based on."""
        for _ in range(_BASED_ON_DEPTH):
            style = self._styles.get(style_id)
            if style is None:
                return
            yield style
            style_id = _value(style, "basedOn") or ""

    def find(self, style_id: str, path: str) -> etree._Element | None:
        """The nearest element at a path in a style or those it is based on."""
        return next((found for style in self.chain(style_id) if (found := style.find(path)) is not None), None)

    def of_paragraph(self, paragraph: etree._Element | None) -> str:
        """The id of a paragraph's style."""
        looks = paragraph.find(_W + "pPr") if paragraph is not None else None
        return (_value(looks, "pStyle") if looks is not None else None) or self._default_paragraph

    def default(self, tag: str) -> etree._Element | None:
        """What the file says of all text."""
        return self._defaults.find(_W + tag) if self._defaults is not None else None

    def shades(self, style_id: str) -> bool:
        """Whether a table style colours any of its cells."""
        return any(_fill(shade) for style in self.chain(style_id) for shade in style.iter(_W + "shd"))

    def headings(self, used: set[str]) -> dict[str, str]:
        """Those of the styles used that are the author's own and act as headings, each with the built-in heading style
        of its depth.
        """
        named = {_style_name(style): style_id for style_id, style in self._styles.items()}
        found: dict[str, str] = {}
        for style_id in used & self._styles.keys():
            style = self._styles[style_id]
            level = self.find(style_id, f"{_W}pPr/{_W}outlineLvl")
            depth = _number(level, "val")
            builtin = named.get(f"heading {depth + 1}") if depth is not None and depth < 9 else None
            if builtin and not _style_name(style).startswith(("heading ", "title")):
                found[style_id] = builtin
        return found


def _style_name(style: etree._Element) -> str:
    return (_value(style, "name") or "").lower()


def _value(element: etree._Element, tag: str) -> str | None:
    found = element.find(_W + tag)
    return found.get(_W + "val") if found is not None else None


def _number(element: etree._Element | None, name: str) -> int | None:
    """A whole number in an attribute, None where there is none."""
    value = element.get(_W + name, element.get(name, "")) if element is not None else ""
    return int(value) if value.lstrip("-").isascii() and value.lstrip("-").isdigit() and len(value) < 12 else None


def _on(switch: etree._Element | None) -> bool | None:
    """A switch of a style or run: None when it says nothing."""
    return None if switch is None else switch.get(_W + "val", "true").lower() not in ("0", "false", "off")


def _fill(shade: etree._Element) -> str:
    """The colour of a shading: hexadecimal digits or another word; empty for none."""
    fill = shade.get(_W + "fill", "auto")
    pattern = shade.get(_W + "val", "clear")
    if pattern == "solid":
        fill = shade.get(_W + "color", "auto")
    elif pattern not in ("clear", "nil"):
        return "pattern"
    if shade.get(_W + "themeFill"):
        return "theme"
    return "" if fill == "auto" else fill


# --- the text ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ground:
    """What text stands on; a colour of None cannot be told (a picture, a pattern)."""

    colour: Colour | None


class _Body:
    """The main part of a file on its way to the reader."""

    def __init__(self, package: Package, name: str) -> None:
        self.root = parse_xml(package.read(name))
        self._styles = _Styles(package.root(package.related(name, "styles")))
        self._theme = Theme(package.root(package.related(name, "theme")))
        self._page = self._page_size()
        ground = self.root.find(_W + "background")
        self._ground = self._coloured(ground, "color") if ground is not None else None
        self._pictures = next(self.root.iter(A + "blip", _V + "imagedata"), None) is not None

    def make_readable(self) -> int:
        """Change the part in place; from how many places text went."""
        self._open()
        hidden = self._remove_boxes() + self._remove_blocks() + self._remove_runs()
        self._lift_boxes()
        styles = [(style, style.get(_W + "val", "")) for style in self.root.iter(_W + "pStyle")]
        headings = self._styles.headings({style_id for _, style_id in styles})
        for style, style_id in styles:
            style.set(_W + "val", headings.get(style_id, style_id))
        return hidden

    def _open(self) -> None:
        for element in list(self.root.iter(*_REMOVED)):
            remove(element)
        for fallback in list(self.root.iter(MC + "Fallback")):
            # The same drawing once more, for older programs.
            around = fallback.getparent()
            if around is not None and around.find(MC + "Choice") is not None:
                around.remove(fallback)
        for control in list(self.root.iter(_W + "sdt")):
            _open_control(control)
        for element in list(self.root.iter(*_OPENED)):
            _unwrap(element, list(element))

    def _remove_boxes(self) -> int:
        hidden = 0
        for shape in list(self.root.iter(_WP + "anchor", _WP + "inline", *_VML_SHAPES)):
            if self._box_unseen(shape):
                hidden += _has_text(shape)
                remove(shape)
        return hidden

    def _remove_blocks(self) -> int:
        """Rows that are not shown, and paragraphs placed beside the page."""
        hidden = 0
        for row in list(self.root.iter(_W + "tr")):
            looks = row.find(_W + "trPr")
            if looks is not None and _on(looks.find(_W + "hidden")):
                hidden += _has_text(row)
                remove(row)
        for paragraph in list(self.root.iter(_W + "p")):
            if self._placed_away(paragraph):
                hidden += _has_text(paragraph)
                for part in list(paragraph.iter(_W + "r")):
                    remove(part)
        return hidden

    def _remove_runs(self) -> int:
        hidden = 0
        before: tuple[etree._Element | None, str | None] = (None, None)
        for run in list(self.root.iter(_W + "r")):
            why = self._unseen(run)
            place = (run.getparent(), why)
            if why and _has_text(run) and place != before:
                # Programs cut one passage into many runs.
                hidden += 1
            before = place
            if why == "vanish" or (why and run.find(".//" + _W + "txbxContent") is None):
                remove(run)
        return hidden

    # --- one run

    def _unseen(self, run: etree._Element) -> str | None:
        """Why nobody sees a run: vanish, tiny or colour; None when it is seen."""
        looks = run.find(_W + "rPr")
        paragraph = next(run.iterancestors(_W + "p"), None)
        character = (_value(looks, "rStyle") if looks is not None else None) or ""
        of_paragraph = self._styles.of_paragraph(paragraph)
        if self._vanishes(looks, character, of_paragraph):
            return "vanish"

        def found(tag: str) -> etree._Element | None:
            direct = looks.find(_W + tag) if looks is not None else None
            if direct is not None:
                return direct
            styled = (self._styles.find(style, f"{_W}rPr/{_W}{tag}") for style in (character, of_paragraph))
            return next((one for one in styled if one is not None), self._styles.default(tag))

        size, width = _number(found("sz"), "val"), _number(found("w"), "val")
        if (size is not None and size <= _SMALLEST) or (width is not None and width <= _NARROWEST):
            return "tiny"
        effect = looks.find(_W14 + "textFill") if looks is not None else None
        colour = self._text_colour(found("color"), effect)
        if isinstance(colour, bool):
            return "colour" if colour else None
        if colour is None:
            return None
        ground = self._ground_of(run, looks, character, of_paragraph)
        return "colour" if ground.colour is not None and unseen(colour, ground.colour) else None

    def _vanishes(self, looks: etree._Element | None, character: str, of_paragraph: str) -> bool:
        direct = _on(looks.find(_W + "vanish")) if looks is not None else None
        if direct is not None:
            return direct
        styled = [bool(_on(self._styles.find(s, f"{_W}rPr/{_W}vanish"))) for s in (character, of_paragraph)]
        # A switch in both styles turns itself off again.
        return (styled[0] != styled[1]) or bool(_on(self._styles.default("vanish")))

    def _text_colour(self, element: etree._Element | None, effect: etree._Element | None) -> Colour | bool | None:
        """The colour of letters; True for none at all, None for one that is seen anyway or cannot be told."""
        if effect is not None:
            if effect.find(_W14 + "noFill") is not None:
                return next(effect.itersiblings(_W14 + "textOutline"), None) is None
            solid = effect.find(_W14 + "solidFill")
            value = solid[0] if solid is not None and len(solid) else None
            if value is None:
                return None
            alpha = value.find(_W14 + "alpha")
            # Here alpha says how transparent it is.
            if alpha is not None and (_w14_number(alpha) or 0) >= 100_000 * (1 - FAINT):
                return True
            return from_hex(value.get(_W14 + "val", "")) or self._theme.colour(value.get(_W14 + "val", ""))
        return self._coloured(element, "val") if element is not None else None

    def _coloured(self, element: etree._Element, plain: str) -> Colour | None:
        """The colour that an element names, by the theme where it does, with its shade or tint."""
        name = element.get(_W + ("themeFill" if plain == "fill" else "themeColor"))
        if name is None:
            return from_hex(element.get(_W + plain, ""))
        colour = self._theme.colour(name)
        prefix = "themeFill" if plain == "fill" else "theme"
        for change, apply in (("Shade", shaded), ("Tint", tinted)):
            share = element.get(_W + prefix + change)
            if colour is not None and share:
                try:
                    colour = apply(colour, int(share, 16) / 255)
                except ValueError:
                    return None
        return colour

    # --- what it stands on

    def _ground_of(self, run: etree._Element, looks: etree._Element | None, character: str, para: str) -> _Ground:
        if looks is not None:
            mark = looks.find(_W + "highlight")
            if mark is not None and mark.get(_W + "val") not in ("none", None):
                return _Ground(WHITE if mark.get(_W + "val") == "white" else None)
            if ground := self._shading(looks.find(_W + "shd")):
                return ground
        for path, style in ((f"{_W}rPr/{_W}shd", character), (f"{_W}rPr/{_W}shd", para)):
            if ground := self._shading(self._styles.find(style, path)):
                return ground
        for around in run.iterancestors():
            if ground := self._ground_inside(around):
                return ground
        return _Ground(self._ground or WHITE)

    def _ground_inside(self, around: etree._Element) -> _Ground | None:
        if around.tag == _W + "p":
            styled = self._styles.find(self._styles.of_paragraph(around), f"{_W}pPr/{_W}shd")
            direct = around.find(f"{_W}pPr/{_W}shd")
            return self._shading(styled if direct is None else direct)
        if around.tag == _W + "tc":
            return self._shading(around.find(f"{_W}tcPr/{_W}shd"))
        if around.tag == _W + "tbl":
            looks = around.find(_W + "tblPr")
            style = (_value(looks, "tblStyle") if looks is not None else None) or ""
            # A table style shades some cells without saying so in them.
            shades = self._styles.shades(style)
            return _Ground(None) if shades else self._shading(around.find(f"{_W}tblPr/{_W}shd"))
        if around.tag == _WPS + "wsp":
            return self._shape_ground(around)
        if around.tag in _VML_SHAPES:
            return self._vml_ground(around)
        return None

    def _shading(self, shade: etree._Element | None) -> _Ground | None:
        if shade is None or not _fill(shade):
            return None
        if shade.get(_W + "val") in ("clear", None):
            return _Ground(self._coloured(shade, "fill"))
        return _Ground(from_hex(_fill(shade)) if shade.get(_W + "val") == "solid" else None)

    def _shape_ground(self, shape: etree._Element) -> _Ground:
        solid = shape.find(f"{_WPS}spPr/{A}solidFill")
        if solid is not None and opacity(solid) > 0.5:
            return _Ground(drawn_colour(solid, self._theme))
        properties = shape.find(_WPS + "spPr")
        if properties is not None and any(properties.find(A + kind) is not None for kind in _FILLS):
            return _Ground(None)
        reference = shape.find(f"{_WPS}style/{A}fillRef")
        empty = properties is not None and properties.find(A + "noFill") is not None
        if reference is not None and reference.get("idx") != "0" and not empty:
            return _Ground(None)
        # Without a colour of its own it may lie on a picture.
        return _Ground(None if self._pictures else self._ground or WHITE)

    def _vml_ground(self, shape: etree._Element) -> _Ground:
        if shape.get("filled", "t") in ("f", "false"):
            return _Ground(None if self._pictures else self._ground or WHITE)
        colour = from_css(shape.get("fillcolor", "white").partition(" ")[0])
        fill = shape.find(_V + "fill")
        plain = fill is None or fill.get("type", "solid") == "solid"
        return _Ground(colour[0] if colour and plain else None)

    # --- places

    def _page_size(self) -> tuple[int, int]:
        """Width and height of the largest page in EMU."""
        sizes = [(_number(size, "w") or 0, _number(size, "h") or 0) for size in self.root.iter(_W + "pgSz")]
        width = max((size[0] for size in sizes), default=0) * _TWIP
        height = max((size[1] for size in sizes), default=0) * _TWIP
        return width or _PAGE[0], height or _PAGE[1]

    def _box_unseen(self, shape: etree._Element) -> bool:
        if shape.tag in _VML_SHAPES:
            return _vml_unseen(shape)
        extent = shape.find(_WP + "extent")
        sides = [_number(extent, side) for side in ("cx", "cy")]
        described = shape.find(_WP + "docPr")
        if described is not None and described.get("hidden") in ("1", "true"):
            return True
        if any(side is not None and side < _LEAST_SIDE for side in sides):
            return True
        placed = zip(("positionH", "positionV"), sides, self._page, strict=True)
        return any(_off(shape.find(_WP + name), side or 0, whole) for name, side, whole in placed)

    def _placed_away(self, paragraph: etree._Element) -> bool:
        """A frame off the page, or an indent wider than the page."""
        looks = paragraph.find(_W + "pPr")
        if looks is None:
            return False
        frame, indent = looks.find(_W + "framePr"), looks.find(_W + "ind")
        places = [(_number(frame, "x"), self._page[0]), (_number(frame, "y"), self._page[1])]
        places += [(_number(indent, side), self._page[0]) for side in ("left", "start")]
        return any(at is not None and abs(at) * _TWIP >= whole for at, whole in places)

    def _lift_boxes(self) -> None:
        """Text boxes after the paragraph that they are fastened to: python-docx does not look inside."""
        for content in list(self.root.iter(_W + "txbxContent")):
            paragraph = next(content.iterancestors(_W + "p"), None)
            parent = paragraph.getparent() if paragraph is not None else None
            if paragraph is None or parent is None:
                continue
            at = parent.index(paragraph) + 1
            for block in reversed(list(content)):
                parent.insert(at, block)


_FILLS = ("gradFill", "blipFill", "pattFill", "grpFill", "solidFill")


def _w14_number(element: etree._Element) -> int | None:
    value = element.get(_W14 + "val", "")
    return int(value) if value.isascii() and value.isdigit() else None


def _off(position: etree._Element | None, side: int, whole: int) -> bool:
    offset = position.find(_WP + "posOffset") if position is not None else None
    text = (offset.text or "").strip() if offset is not None else ""
    if position is None or not text.lstrip("-").isdigit():
        return False
    at = int(text)
    if position.get("relativeFrom") == "page":
        return at + side <= 0 or at >= whole
    # From a margin, column or paragraph, of which we do not know the place on the page.
    return at + side <= -whole or at >= whole


def _vml_unseen(shape: etree._Element) -> bool:
    style = declarations(shape.get("style", ""))
    if style.get("visibility") == "hidden" or style.get("display") == "none":
        return True
    lengths = [pixels(style.get(name, "0")) or 0.0 for name in ("margin-left", "margin-top", "left", "top")]
    sides = [pixels(style.get(name, "100")) for name in ("width", "height")]
    return any(abs(length) >= 2_000 for length in lengths) or any(side is not None and side < 2.7 for side in sides)


def _has_text(element: etree._Element) -> bool:
    return any((text.text or "").strip() for text in element.iter(_W + "t"))


def _unwrap(element: etree._Element, children: list[etree._Element]) -> None:
    parent = element.getparent()
    if parent is None:
        return
    at = parent.index(element)
    for child in reversed(children):
        if child.tag != _W + "customXmlPr":
            parent.insert(at, child)
    parent.remove(element)


def _open_control(control: etree._Element) -> None:
    gallery = control.find(f"{_W}sdtPr/{_W}docPartObj/{_W}docPartGallery")
    content = control.find(_W + "sdtContent")
    table_of_contents = gallery is not None and gallery.get(_W + "val") == "Table of Contents"
    _unwrap(control, [] if content is None or table_of_contents else list(content))
