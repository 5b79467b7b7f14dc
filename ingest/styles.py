"""The few parts of CSS that decide whether text is seen: rules by simple selectors, and lengths.

What is not understood never hides: a selector with pseudo-classes or siblings can only show what another rule hid,
as menus, tabs and accordions do.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from lxml.html import HtmlElement

from core.errors import FileTooLarge

Declarations = Mapping[str, str]

# Rules of one page that are looked at: an honest page has a few thousand.
_MOST_RULES = 20_000
# Rules looked at for all elements of a page together: an honest one has some hundred thousand.
_MOST_LOOKED_AT = 1_000_000
# How many steps of a selector, and elements around an element, are looked at.
_MOST_STEPS, _MOST_AROUND = 4, 50

# How deep blocks stand in blocks.
_DEEPEST = 8

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.S)
_DECLARATION = re.compile(r"([\w-]+)\s*:((?:[^;()]|\([^()]*\))*)")
_COMPOUND = re.compile(r"(?P<tag>\*|[a-z][\w-]*)?(?P<rest>(?:[.#][\w-]+|\[[\w-]+(?:=\"?[^\"\[\]]*\"?)?\])*)", re.I)
_PART = re.compile(r"([.#])([\w-]+)|\[([\w-]+)(?:=\"?([^\"\[\]]*)\"?)?\]")
_PSEUDO = re.compile(r":{1,2}[\w-]+(?:\([^()]*\))?")
_ELEMENTS_OF_THEIR_OWN = re.compile(r"::?(?:before|after|placeholder|selection|marker|first-l\w+|-webkit[\w-]*)", re.I)
_COMBINATOR = re.compile(r"\s*([>+~])\s*|\s+")
_LENGTH = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(px|pt|pc|in|cm|mm|r?em|ex|ch|%|vw|vh)?")
_PIXELS = {"px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "rem": 16.0, "vw": 12.8, "vh": 8.0}
_SIZES = {"xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0, "x-large": 24.0}

# What a rule must say to matter here.
_MATTERS = re.compile(
    r"display|visibility|opacity|font|colou?r|background|position|left|right|top|bottom|indent|clip|transform|"
    r"width|height|overflow|shadow|content-visibility|zoom|filter"
)


@dataclass(frozen=True, slots=True)
class _Compound:
    """One step of a selector: a tag, names and attributes that an element must all have."""

    tag: str | None
    ids: tuple[str, ...]
    classes: tuple[str, ...]
    attributes: tuple[tuple[str, str | None], ...]

    def matches(self, element: HtmlElement, classes: frozenset[str]) -> bool:
        return (
            (self.tag is None or element.tag == self.tag)
            and all(element.get("id") == name for name in self.ids)
            and classes.issuperset(self.classes)
            and all(_has(element, name, value) for name, value in self.attributes)
        )

    @property
    def key(self) -> str:
        """Under what the rule is looked up: every element that matches has it."""
        if self.ids:
            return "#" + self.ids[0]
        return "." + self.classes[0] if self.classes else self.tag or "*"


def _has(element: HtmlElement, name: str, value: str | None) -> bool:
    found = element.get(name)
    return found is not None and (value is None or found == value)


@dataclass(frozen=True, slots=True)
class _Rule:
    """`steps` from the element itself outwards, each with whether it must be the very parent of the one before.

    A rule that is not `exact` has conditions left out that we cannot judge.
    """

    steps: tuple[tuple[_Compound, bool], ...]
    exact: bool
    weight: tuple[int, int, int, int]
    declared: Declarations

    def matches(self, element: HtmlElement, classes: frozenset[str], around: frozenset[str]) -> bool:
        """`around`: under what rules for the elements around this one are looked up."""
        if not all(step.key in around for step, _ in self.steps[1:]):
            return False
        return self.steps[0][0].matches(element, classes) and _matches_around(element, self.steps[1:])


def _matches_around(element: HtmlElement, steps: tuple[tuple[_Compound, bool], ...]) -> bool:
    """Each step at the nearest element around that fits: looking further could take for ever, and is seldom needed."""
    around = element
    for compound, is_parent in steps:
        outer = islice(around.iterancestors(), 1 if is_parent else _MOST_AROUND)
        fitting = (one for one in outer if compound.matches(one, classes_of(one)))
        around = next(fitting, None)
        if around is None:
            return False
    return True


def classes_of(element: HtmlElement) -> frozenset[str]:
    """The class names of an element."""
    return frozenset(element.get("class", "").split())


def _keys(element: HtmlElement, classes: frozenset[str]) -> tuple[str, ...]:
    return ("*", str(element.tag), "#" + element.get("id", ""), *("." + name for name in classes))


@dataclass(slots=True)
class Sheet:
    """All rules of a page's own style sheets."""

    _rules: dict[str, list[_Rule]] = field(default_factory=lambda: defaultdict(list))
    _count: int = 0
    _looked_at: int = 0

    def add(self, text: str) -> None:
        """Take in one style sheet. Never fails: what cannot be read is passed over."""
        for selectors, body in _blocks(_COMMENT.sub(" ", text)):
            declared = declarations(body)
            if not any(_MATTERS.search(name) for name in declared):
                continue
            for selector in selectors.split(","):
                if self._count < _MOST_RULES:
                    self._add_rule(selector.strip(), declared)

    def _add_rule(self, selector: str, declared: Declarations) -> None:
        self._count += 1
        rule = _rule(selector, declared, self._count)
        if rule is not None:
            self._rules[rule.steps[0][0].key].append(rule)

    def of(self, element: HtmlElement) -> tuple[dict[str, str], list[Declarations]]:
        """What is declared for an element, its own style attribute last, and what else may hold at times.

        Raises FileTooLarge for a page that asks for endless looking up.
        """
        classes = classes_of(element)
        candidates = [rule for key in _keys(element, classes) for rule in self._rules.get(key, ())]
        self._looked_at += len(candidates)
        if self._looked_at > _MOST_LOOKED_AT:
            raise FileTooLarge("The page's style sheets have too many rules for its length. Save it as PDF or text.")
        outer = islice(element.iterancestors(), _MOST_AROUND) if candidates else ()
        around = frozenset(key for one in outer for key in _keys(one, classes_of(one)))
        rules = [rule for rule in candidates if rule.matches(element, classes, around)]
        rules.sort(key=lambda rule: rule.weight)
        inline = declarations(element.get("style", ""))
        cascade = [rule.declared for rule in rules if rule.exact] + [inline]
        return _cascaded(cascade), [rule.declared for rule in rules if not rule.exact]


def _cascaded(cascade: Iterable[Declarations]) -> dict[str, str]:
    plain: dict[str, str] = {}
    important: dict[str, str] = {}
    for declared in cascade:
        for name, value in declared.items():
            target = important if value.endswith("!important") else plain
            target[name] = value.removesuffix("!important").strip()
    return plain | important


def declarations(body: str) -> dict[str, str]:
    """`name: value` pairs, names and values in lower case, `!important` kept at the value's end."""
    found = {}
    for name, value in _DECLARATION.findall(_COMMENT.sub(" ", body)):
        if value.strip():
            found[name.lower()] = re.sub(r"\s*!\s*important$", "!important", " ".join(value.lower().split()))
    return found


def _blocks(text: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Selectors and bodies of a sheet's rules, those inside @media for screens and @supports included."""
    position = 0
    while (opening := text.find("{", position)) >= 0:
        head = text[position:opening].rpartition(";")[2].strip()
        closing = _closing(text, opening)
        inside = text[opening + 1 : closing]
        if not head.startswith("@"):
            yield head, inside
        elif depth < _DEEPEST and _applies(head):
            yield from _blocks(inside, depth + 1)
        position = closing + 1


def _closing(text: str, opening: int) -> int:
    depth = 0
    for match in re.compile("[{}]").finditer(text, opening):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    return len(text)


def _applies(head: str) -> bool:
    name = head.lower()
    if name.startswith("@media"):
        # Rules for paper or for narrow screens do not say how the page is usually seen.
        return not re.search(r"print|speech|width|height|orientation|prefers", name)
    return name.startswith(("@supports", "@layer"))


def _rule(selector: str, declared: Declarations, order: int) -> _Rule | None:
    if _ELEMENTS_OF_THEIR_OWN.search(selector):
        return None
    bare = _PSEUDO.sub("", selector)
    pieces = _COMBINATOR.split(bare.strip())
    compounds = [_compound(piece) for piece in pieces[::2]]
    if compounds[-1] is None:
        return None
    exact = bare == selector and None not in compounds and not {"+", "~"} & set(pieces[1::2])
    exact = exact and len(compounds) <= _MOST_STEPS
    known = [compound for compound in compounds if compound is not None]
    steps = [(known[-1], False)]
    if exact:
        steps += [(known[at], pieces[2 * at + 1] == ">") for at in range(len(known) - 2, -1, -1)]
    return _Rule(tuple(steps), exact, _weight(known, order), declared)


def _compound(text: str) -> _Compound | None:
    match = _COMPOUND.fullmatch(text)
    if not match or not text:
        return None
    parts = _PART.findall(match["rest"])
    attributes = [(name.lower(), value if f"[{name}=" in text else None) for _, _, name, value in parts if name]
    return _Compound(
        tag=None if match["tag"] in (None, "*") else match["tag"].lower(),
        ids=tuple(name for mark, name, _, _ in parts if mark == "#"),
        classes=tuple(name for mark, name, _, _ in parts if mark == "."),
        attributes=tuple(attributes),
    )


def _weight(steps: list[_Compound], order: int) -> tuple[int, int, int, int]:
    ids = sum(len(step.ids) for step in steps)
    names = sum(len(step.classes) + len(step.attributes) for step in steps)
    return ids, names, sum(step.tag is not None for step in steps), order


def pixels(value: str, *, size: float = 16.0, whole: float | None = None) -> float | None:
    """A length in CSS pixels; `size` is the font's, `whole` what a percentage is of. None: not a plain length."""
    match = _LENGTH.fullmatch(value.strip())
    if not match:
        return None
    number, unit = float(match[1]), match[2]
    if unit is None:
        return number
    if unit == "%":
        return None if whole is None else number * whole / 100
    return number * (_PIXELS.get(unit) or (size if unit == "em" else size / 2))


def font_size(value: str, around: float) -> float:
    """A font-size in pixels inside text of the size `around`; that size for a value that is not understood."""
    if value in _SIZES:
        return _SIZES[value]
    found = pixels(value, size=around, whole=around)
    return around if found is None else found
