"""Which text of an HTML page nobody sees: not shown, transparent, too small, in the colour of its ground, elsewhere.

A page is judged as it looks at first. What a visitor opens (details, tabs, a panel that a button controls) is seen.
`aria-hidden` is no sign: it hides from screen readers what everybody else sees.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lxml import etree
from lxml.html import HtmlElement

from core.text import is_cjk
from ingest.colours import BLACK, FAINT, WHITE, Colour, from_css, unseen
from ingest.styles import Sheet, font_size, pixels

# Pixels: letters of this size and less are specks.
SMALLEST = 2.0
# Pixels from where on a thing is off any screen; menus that slide in wait nearer.
_FAR = 999.0

_NEVER_HIDDEN = ("html", "body")
_NOT_TEXT = ("script", "style", "head", "title", "template", "noscript", "textarea", "option", "svg", "math")
_PICTURES = ("img", "picture", "svg", "video", "canvas")
_ZERO_CLIP = re.compile(
    r"rect\((?:\s*,?\s*[01](?:px)?){4}\s*\)|inset\(\s*(?:[5-9]\d|100)%|circle\(0|polygon\((?:\s*,?\s*0(?:px|%)?)+\s*\)"
)
_SHIFT = re.compile(r"translate(?:x|y|3d)?\(([^()]*)\)")
_SCALE = re.compile(r"scale(?:x|y|3d)?\(\s*0?(?:\.0\d*)?\s*[,)]")
_CODE = re.compile(r"[{}<>;=]|\[if|\[endif|https?:|javascript", re.I)
_WORD = re.compile(r"\S*[^\W\d_]{2}\S*")
# A comment of so many words, or Chinese characters, is prose; shorter ones name parts of the page.
_PROSE_WORDS, _PROSE_HAN = 6, 8


@dataclass(frozen=True, slots=True)
class _Look:
    """How the text directly inside an element looks. A colour that is None is not known."""

    size: float = 16.0
    colour: Colour | None = BLACK
    strength: float = 1.0
    ground: Colour | None = WHITE
    opacity: float = 1.0
    shown: bool = True
    # The outermost element since which the text is not seen, with everything in it when `whole`.
    hidden_by: HtmlElement | None = None
    whole: bool = False


def remove_hidden(root: HtmlElement) -> int:
    """Take the text that nobody sees out of a parsed page; from how many places it went."""
    page = _Page(root)
    looks: dict[HtmlElement, _Look] = {}
    places: set[HtmlElement] = set()
    doomed: list[HtmlElement] = []
    for element in root.iter(etree.Element):
        parent = element.getparent()
        around = looks[parent] if parent is not None else _Look()
        look = looks[element] = around if around.whole else page.look(element, around)
        if look.hidden_by is None or element.tag in _NOT_TEXT:
            continue
        if look.whole:
            if look.hidden_by is element:
                doomed.append(element)
        elif _cut_text(element):
            places.add(look.hidden_by)
    places.update(element for element in doomed if _has_words(element))
    for element in doomed:
        _remove(element)
    return len(places) + _remove_unseen_kinds(root)


def _cut_text(element: HtmlElement) -> bool:
    """Remove the text of an element itself, not that of elements in it."""
    texts = [element.text, *(child.tail for child in element)]
    element.text = " " if element.text else element.text
    for child in element:
        child.tail = " " if child.tail else child.tail
    return any(text and text.strip() for text in texts)


def _has_words(element: HtmlElement) -> bool:
    texts = [part.text for part in element.iter(etree.Element) if part.tag not in _NOT_TEXT]
    texts += [part.tail for part in element.iterdescendants()]
    return any(text and text.strip() for text in texts)


def _remove(element: HtmlElement) -> None:
    if element.getparent() is not None:
        element.drop_tree()


def _remove_unseen_kinds(root: HtmlElement) -> int:
    """Comments, templates and what is for browsers without scripts: never shown, counted where they hold prose."""
    prose = 0
    around = (*root.itersiblings(etree.Comment), *root.itersiblings(etree.Comment, preceding=True))
    for comment in (*root.iter(etree.Comment), *around):
        prose += is_prose(comment.text or "")
        if comment.getparent() is not None:
            comment.drop_tree()
    for element in list(root.iter("template", "noscript")):
        prose += is_prose("".join(element.itertext()))
        _remove(element)
    return prose


def is_prose(text: str) -> bool:
    """Whether a comment holds sentences rather than code or the name of a part of the page."""
    if _CODE.search(text):
        return False
    return len(_WORD.findall(text)) >= _PROSE_WORDS or sum(map(is_cjk, text)) >= _PROSE_HAN


class _Page:
    """The style sheets of one page, and what its elements look like by them."""

    def __init__(self, root: HtmlElement) -> None:
        self._sheet = Sheet()
        for style in root.iter("style"):
            self._sheet.add("".join(style.itertext()))
        self._styled_elsewhere = any("stylesheet" in link.get("rel", "").lower() for link in root.iter("link"))
        self._pictures = next(root.iter(*_PICTURES), None) is not None
        self._opened = frozenset(_opened(root))

    def look(self, element: HtmlElement, around: _Look) -> _Look:
        """How an element's text looks inside text that looks like `around`."""
        declared, at_times = self._sheet.of(element)
        look = replace(
            around,
            size=_size(declared, around.size),
            ground=self._ground(element, declared, at_times, around.ground),
            opacity=around.opacity * _opacity(declared),
            shown=_shown(declared, around.shown),
        )
        look = _coloured(element, declared, look)
        if element.tag in _NEVER_HIDDEN:
            return replace(look, opacity=1.0, shown=True, size=max(look.size, SMALLEST + 1))
        return _judged(element, look, whole=self._gone(element, declared, at_times, look))

    def _gone(
        self, element: HtmlElement, declared: Mapping[str, str], at_times: list[Mapping[str, str]], look: _Look
    ) -> bool:
        if element.get("id") in self._opened:
            return False
        if element.get("hidden", "until-found").lower() != "until-found" and declared.get("display", "none") == "none":
            return True
        if look.opacity < FAINT and not any("opacity" in other for other in at_times):
            return True
        hiding = [name for name, hides in _HIDING.items() if hides(declared, look.size)]
        # A rule for another state of the page, such as an open tab, shows it.
        return any(not any(_says_more(name, other, look.size) for other in at_times) for name in hiding)

    def _ground(
        self,
        element: HtmlElement,
        declared: Mapping[str, str],
        at_times: list[Mapping[str, str]],
        around: Colour | None,
    ) -> Colour | None:
        values = [declared.get(name, "") for name in ("background-color", "background", "background-image")]
        if not any(values):
            values = [element.get("bgcolor", ""), "url()" if element.get("background") else ""]
        ground = around
        for value in filter(None, values):
            ground = _ground_of(value, ground)
        unknown = any(name.startswith("background") for other in at_times for name in other)
        if self._pictures and declared.get("position") in ("absolute", "fixed"):
            # Text laid over a picture.
            unknown = True
        named = element.tag not in _NEVER_HIDDEN and (element.get("class") or element.get("id"))
        if self._styled_elsewhere and named and not any(values):
            # A style sheet that did not come with the page may colour it.
            unknown = True
        return None if unknown else ground


def _opened(root: HtmlElement) -> Iterator[str]:
    """Ids of what something on the page opens."""
    for element in root.iter(etree.Element):
        for name in ("aria-controls", "data-target", "data-bs-target", "for", "popovertarget"):
            yield from element.get(name, "").replace("#", "").split()
        if element.tag == "a" and element.get("href", "").startswith("#") and element.text_content().strip():
            yield element.get("href", "")[1:]


def _judged(element: HtmlElement, look: _Look, *, whole: bool) -> _Look:
    if whole:
        return replace(look, hidden_by=element, whole=True)
    faint = look.strength < FAINT or (
        look.colour is not None and look.ground is not None and unseen(look.colour, look.ground)
    )
    if not look.shown or look.size <= SMALLEST or faint:
        return look if look.hidden_by is not None else replace(look, hidden_by=element)
    return replace(look, hidden_by=None)


def _size(declared: Mapping[str, str], around: float) -> float:
    if "font-size" in declared:
        return font_size(declared["font-size"], around)
    # The shorthand: style and weight, the size with a line height, families.
    parts = [part.partition("/")[0] for part in declared.get("font", "").split()]
    sizes = [found for part in parts if part[-1:].isalpha() and (found := pixels(part, size=around)) is not None]
    return sizes[0] if sizes else around


def _opacity(declared: Mapping[str, str]) -> float:
    values = [declared.get("opacity", "1")]
    values += re.findall(r"opacity\(\s*([\d.]+%?)\s*\)", declared.get("filter", ""))
    opacity = 1.0
    for value in values:
        found = pixels(value, whole=1.0)
        opacity *= 1.0 if found is None else min(max(found, 0.0), 1.0)
    return opacity


def _shown(declared: Mapping[str, str], around: bool) -> bool:
    value = declared.get("visibility")
    return around if value in (None, "inherit") else value not in ("hidden", "collapse")


def _coloured(element: HtmlElement, declared: Mapping[str, str], look: _Look) -> _Look:
    value = declared.get("-webkit-text-fill-color") or declared.get("color")
    if not value and element.tag in ("font", "body"):
        value = element.get("color" if element.tag == "font" else "text", "")
    painted = any("text" in declared.get(name, "") for name in ("background-clip", "-webkit-background-clip"))
    if painted or declared.get("text-shadow", "none") != "none" or "-webkit-text-stroke" in declared:
        # Letters cut out of a background, or seen by their shadow or outline.
        return replace(look, colour=None, strength=1.0)
    if element.tag == "a" and not value and element.get("href") is not None:
        return replace(look, colour=None, strength=1.0)
    if not value or value in ("inherit", "currentcolor", "unset"):
        return look
    found = from_css(value)
    return replace(look, colour=found[0], strength=found[1]) if found else replace(look, colour=None, strength=1.0)


def _ground_of(value: str, around: Colour | None) -> Colour | None:
    """The ground after one background declaration, None when it is a picture or not understood."""
    if value in ("none", "transparent", "inherit", "initial", "unset", "0 0"):
        return around
    if re.search(r"url\(|gradient|var\(", value):
        return None
    colours = [found for part in re.findall(r"[^\s(]+(?:\([^()]*\))?", value) if (found := from_css(part))]
    if not colours:
        return None
    colour, strength = colours[-1]
    if strength < FAINT:
        return around
    return colour if strength > 0.5 or around is None else None


# --- what takes an element away with everything in it -----------------------------------------------------------------


def _not_displayed(declared: Mapping[str, str], size: float) -> bool:
    return declared.get("display") == "none" or declared.get("content-visibility") == "hidden"


def _elsewhere(declared: Mapping[str, str], size: float) -> bool:
    placed = declared.get("position") in ("absolute", "fixed", "relative")
    lengths = [declared.get(f"margin-{side}", "0") for side in ("left", "top")]
    lengths += [declared.get(side, "0") for side in ("left", "top", "right", "bottom") if placed]
    moved = _SHIFT.search(declared.get("transform", ""))
    lengths += moved[1].split(",") if moved else []
    found = [pixels(length, size=size) for length in lengths]
    return any(length is not None and (length <= -_FAR or length >= 5 * _FAR) for length in found)


def _indented_away(declared: Mapping[str, str], size: float) -> bool:
    indent = pixels(declared.get("text-indent", "0"), size=size, whole=1000.0) or 0.0
    cut = declared.get("overflow") in ("hidden", "clip") and declared.get("white-space") == "nowrap"
    return indent <= -500.0 or (cut and indent >= 1000.0)


def _clipped(declared: Mapping[str, str], size: float) -> bool:
    clip = declared.get("clip", "") if declared.get("position") in ("absolute", "fixed") else ""
    return bool(_ZERO_CLIP.match(clip) or _ZERO_CLIP.match(declared.get("clip-path", "")))


def _boxed_away(declared: Mapping[str, str], size: float) -> bool:
    if declared.get("overflow") not in ("hidden", "clip"):
        return False
    sides = [declared.get(name, "auto") for name in ("height", "max-height", "width", "max-width")]
    return any((length := pixels(side, size=size)) is not None and length <= 1 for side in sides)


def _scaled_away(declared: Mapping[str, str], size: float) -> bool:
    return bool(_SCALE.search(declared.get("transform", ""))) or declared.get("zoom") == "0"


_HIDING = {
    "display": _not_displayed,
    "position": _elsewhere,
    "text-indent": _indented_away,
    "clip": _clipped,
    "height": _boxed_away,
    "transform": _scaled_away,
}


def _says_more(name: str, other: Mapping[str, str], size: float) -> bool:
    """Whether a rule that holds at times declares what hid, and does not hide by it too."""
    related = {"position": ("left", "top", "right", "bottom", "position"), "clip": ("clip", "clip-path", "position")}
    related["height"] = ("height", "max-height", "width", "max-width", "overflow")
    names = related.get(name, (name,))
    return any(key in other for key in names) and not _HIDING[name](other, size)
