"""PowerPoint files made fit to read: what no audience sees goes, from hidden slides to white letters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lxml import etree

from ingest.colours import FAINT, WHITE, Colour, unseen
from ingest.ooxml import A, Package, R, Theme, drawn_colour, opacity, parse_xml, remove, to_bytes

_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"

# Hundredths of a point: letters of two points and less are specks.
_SMALLEST = 200
_SLIDE = (9_144_000, 6_858_000)
_SHAPES = tuple(_P + name for name in ("sp", "pic", "graphicFrame", "cxnSp", "grpSp"))
_FILLS = tuple(A + name for name in ("solidFill", "gradFill", "blipFill", "pattFill", "grpFill"))
_OFF = ("0", "false")
_ON = ("1", "true")
# Table styles that colour no cell.
_PLAIN_TABLES = {"{2D5ABB26-0587-4C30-8999-92F81FD0307C}", "{5940675A-B579-460E-94D1-54222C63F5DA}"}


@dataclass(frozen=True, slots=True)
class Deck:
    """A deck as its audience sees it.

    `slides` counts all; `hidden_slides` numbers, from 1, those that a show leaves out; `hidden` says on which others
    text went, and from how many places.
    """

    data: bytes
    slides: int
    hidden_slides: frozenset[int]
    hidden: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Frame:
    """A rectangle on the slide in EMU."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "_Frame") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True, slots=True)
class _Scale:
    """How coordinates inside a group become those of the slide."""

    across: float = 1.0
    down: float = 1.0
    left: float = 0.0
    top: float = 0.0

    def frame(self, x: int, y: int, width: int, height: int) -> _Frame:
        left, top = self.left + x * self.across, self.top + y * self.down
        return _Frame(left, top, left + width * self.across, top + height * self.down)


def readable_pptx(data: bytes) -> Deck:
    """The deck without text that a show leaves out, places off the slide, or writes too small or in white on white."""
    package = Package(data)
    main = package.main()
    presentation = parse_xml(package.read(main))
    targets = {relation.id: relation.target for relation in package.relations(main)}
    size = presentation.find(_P + "sldSz")
    whole = _pair(size, "cx", "cy") or _SLIDE
    hidden_slides: set[int] = set()
    hidden: dict[int, int] = {}
    number = 0
    for number, entry in enumerate(presentation.iter(_P + "sldId"), start=1):
        name = targets.get(entry.get(R + "id", ""), "")
        root = package.root(name)
        if root is None:
            continue
        if root.get("show") in _OFF:
            hidden_slides.add(number)
            continue
        found = _Slide(package, name, root, whole).make_readable()
        if found:
            hidden[number] = found
        package.put(name, to_bytes(root))
    return Deck(package.to_bytes(), number, frozenset(hidden_slides), hidden)


class _Slide:
    """One slide with what lies under its shapes: its layout, its master, their theme."""

    def __init__(self, package: Package, name: str, root: etree._Element, size: tuple[int, int]) -> None:
        self._root = root
        self._whole = _Frame(0, 0, *size)
        layout = package.related(name, "slideLayout")
        master = package.related(layout, "slideMaster") if layout else None
        self._under = [part for part in (package.root(layout), package.root(master)) if part is not None]
        self._theme = Theme(package.root(package.related(master, "theme") if master else None))
        mapping = self._under[-1].find(_P + "clrMap") if self._under else None
        self._mapped = dict(mapping.attrib) if mapping is not None else {}
        own = root.find(f"{_P}clrMapOvr/{A}overrideClrMapping")
        self._mapped |= dict(own.attrib) if own is not None else {}

    def make_readable(self) -> int:
        """Change the slide in place; from how many places text went."""
        hidden = 0
        for shape, frame in list(_shapes(self._root)):
            if next(shape.iterancestors(_P + "spTree"), None) is None:
                # Gone with its group.
                continue
            if self._left_out(shape, frame):
                hidden += _has_text(shape)
                remove(shape)
            else:
                _bring_in(shape)
        for shape, frame in list(_shapes(self._root)):
            if shape.tag != _P + "grpSp":
                hidden += self._remove_runs(shape, frame)
        return hidden

    def _left_out(self, shape: etree._Element, frame: _Frame | None) -> bool:
        described = next(shape.iter(_P + "cNvPr"), None)
        if described is not None and described.get("hidden") in _ON:
            return True
        return frame is not None and not frame.meets(self._whole)

    def _remove_runs(self, shape: etree._Element, frame: _Frame | None) -> int:
        hidden = 0
        before: tuple[etree._Element | None, bool] = (None, False)
        for run in list(shape.iter(A + "r", A + "fld")):
            unseen_run = self._unseen(run, shape, frame)
            place = (run.getparent(), unseen_run)
            if unseen_run:
                hidden += _has_text(run) and place != before
                remove(run)
            before = place
        return hidden

    def _unseen(self, run: etree._Element, shape: etree._Element, frame: _Frame | None) -> bool:
        looks = _looks(run, shape)
        sizes = [int(look.get("sz", "")) for look in looks if look.get("sz", "").isdigit()]
        if sizes and sizes[0] <= _SMALLEST:
            return True
        fills = [fill for look in looks for fill in look if fill.tag in (*_FILLS, A + "noFill")]
        marked = any(look.find(A + name) is not None for look in looks for name in ("ln", "highlight"))
        if not fills or marked:
            return False
        if fills[0].tag == A + "noFill":
            return True
        if fills[0].tag != A + "solidFill":
            return False
        if opacity(fills[0]) < FAINT:
            return True
        colour = drawn_colour(fills[0], self._theme, self._mapped)
        if colour is None:
            return False
        ground = self._ground(run, shape, frame)
        return ground is not None and unseen(colour, ground)

    # --- what text stands on; None: it cannot be told

    def _ground(self, run: etree._Element, shape: etree._Element, frame: _Frame | None) -> Colour | None:
        cell = next(run.iterancestors(A + "tc"), None)
        if cell is not None:
            fill = _fill_in(cell.find(A + "tcPr"))
            if fill is not None:
                return self._filled(fill)
            style = shape.findtext(f".//{A}tblPr/{A}tableStyleId", "").strip().upper()
            if style and style not in _PLAIN_TABLES:
                return None
        properties = shape.find(_P + "spPr")
        fill = _fill_in(properties)
        if fill is not None:
            return self._filled(fill)
        if _styled_fill(shape) and (properties is None or properties.find(A + "noFill") is None):
            return None
        if shape.find(f".//{_P}nvPr/{_P}ph") is not None and self._placeholders_filled():
            return None
        return None if self._covered(shape, frame) else self._background()

    def _filled(self, fill: etree._Element) -> Colour | None:
        if fill.tag != A + "solidFill" or opacity(fill) < 0.5:
            return None
        return drawn_colour(fill, self._theme, self._mapped)

    def _placeholders_filled(self) -> bool:
        """Whether the layout or the master colours any of the places that a slide's text takes."""
        shapes = (shape for part in self._under for shape in part.iter(_P + "sp"))
        return any(
            shape.find(f".//{_P}nvPr/{_P}ph") is not None
            and (_fill_in(shape.find(_P + "spPr")) is not None or _styled_fill(shape))
            for shape in shapes
        )

    def _covered(self, shape: etree._Element, frame: _Frame | None) -> bool:
        """Whether a picture or a filled shape lies under this one: drawn before it, or in the layout or master."""
        for other, place in _shapes(self._root):
            if other is shape:
                break
            if _paints(other) and (frame is None or place is None or place.meets(frame)):
                return True
        below = (found for part in self._under for found in _shapes(part))
        return any(
            _paints(other)
            and other.find(f".//{_P}nvPr/{_P}ph") is None
            and (frame is None or place is None or place.meets(frame))
            for other, place in below
        )

    def _background(self) -> Colour | None:
        for part in (self._root, *self._under):
            ground = part.find(f"{_P}cSld/{_P}bg")
            if ground is None:
                continue
            properties, reference = ground.find(_P + "bgPr"), ground.find(_P + "bgRef")
            fill = _fill_in(properties)
            if fill is not None:
                return self._filled(fill)
            # Plain fills of the theme have the numbers 1 and 1001; others may be gradients or pictures.
            if reference is not None and reference.get("idx") in ("1", "1001"):
                return drawn_colour(reference, self._theme, self._mapped)
            return None
        return WHITE


def _shapes(root: etree._Element) -> Iterator[tuple[etree._Element, _Frame | None]]:
    """Shapes in the order drawn, groups before what is in them, each with its place where it says one."""
    tree = root.find(f"{_P}cSld/{_P}spTree")
    if tree is not None:
        yield from _shapes_in(tree, _Scale())


def _shapes_in(group: etree._Element, scale: _Scale) -> Iterator[tuple[etree._Element, _Frame | None]]:
    for shape in group:
        if shape.tag not in _SHAPES:
            continue
        place = next(_places(shape), None)
        at, size = (_pair(_child(place, "off"), "x", "y"), _pair(_child(place, "ext"), "cx", "cy"))
        yield shape, scale.frame(*at, *size) if at and size else None
        if shape.tag == _P + "grpSp":
            yield from _shapes_in(shape, _inner(place, scale))


def _places(shape: etree._Element) -> Iterator[etree._Element]:
    for path in (f"{_P}spPr/{A}xfrm", f"{_P}grpSpPr/{A}xfrm", f"{_P}xfrm"):
        yield from shape.iterfind(path)


def _child(place: etree._Element | None, name: str) -> etree._Element | None:
    return place.find(A + name) if place is not None else None


def _pair(element: etree._Element | None, one: str, other: str) -> tuple[int, int] | None:
    values = [element.get(name, "") for name in (one, other)] if element is not None else []
    if not values or not all(value.lstrip("-").isdigit() for value in values):
        return None
    return int(values[0]), int(values[1])


def _inner(place: etree._Element | None, scale: _Scale) -> _Scale:
    at, size = _pair(_child(place, "off"), "x", "y"), _pair(_child(place, "ext"), "cx", "cy")
    inner_at, inner_size = _pair(_child(place, "chOff"), "x", "y"), _pair(_child(place, "chExt"), "cx", "cy")
    if not (at and size and inner_at and inner_size) or not all(inner_size):
        return scale
    across, down = scale.across * size[0] / inner_size[0], scale.down * size[1] / inner_size[1]
    left = scale.left + at[0] * scale.across - inner_at[0] * across
    top = scale.top + at[1] * scale.down - inner_at[1] * down
    return _Scale(across, down, left, top)


def _bring_in(shape: etree._Element) -> None:
    """unstructured leaves out a shape that only begins off the slide; its text is seen."""
    for place in _places(shape):
        offset = place.find(A + "off")
        for name in ("x", "y"):
            if offset is not None and offset.get(name, "").startswith("-"):
                offset.set(name, "0")


def _looks(run: etree._Element, shape: etree._Element) -> list[etree._Element]:
    """What the run, then its paragraph's level in the shape, say of its letters."""
    paragraph = run.getparent()
    properties = paragraph.find(A + "pPr") if paragraph is not None else None
    level = int(properties.get("lvl", "0")) if properties is not None and properties.get("lvl", "0").isdigit() else 0
    listed = next(shape.iter(A + "lstStyle"), None)
    found = [run.find(A + "rPr")]
    found += [listed.find(f"{A}lvl{level + 1}pPr/{A}defRPr") if listed is not None else None]
    return [look for look in found if look is not None]


def _fill_in(properties: etree._Element | None) -> etree._Element | None:
    return next((child for child in properties if child.tag in _FILLS), None) if properties is not None else None


def _styled_fill(shape: etree._Element) -> bool:
    reference = shape.find(f"{_P}style/{A}fillRef")
    return reference is not None and reference.get("idx") != "0"


def _paints(shape: etree._Element) -> bool:
    """Whether a shape colours what lies behind its text."""
    if shape.tag in (_P + "pic", _P + "graphicFrame"):
        return True
    properties = shape.find(_P + "spPr")
    empty = properties is not None and properties.find(A + "noFill") is not None
    return _fill_in(properties) is not None or (_styled_fill(shape) and not empty)


def _has_text(element: etree._Element) -> bool:
    return any((text.text or "").strip() for text in element.iter(A + "t"))
