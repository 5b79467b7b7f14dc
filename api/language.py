"""Which of our two languages a browser prefers."""

from typing import Final, cast, get_args

from starlette.requests import Request

from core.records import Language

COOKIE: Final = "lang"
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)


def preferred(request: Request) -> Language:
    """The language chosen on the page (cookie `lang`), else the first of Accept-Language that we have, else English."""
    chosen = request.cookies.get(COOKIE)
    if chosen in LANGUAGES:
        return chosen
    wanted = sorted(map(_weighted, request.headers.get("accept-language", "").split(",")[:20]), reverse=True)
    found = (tag for weight, tag in wanted if weight > 0 and tag in LANGUAGES)
    return cast(Language, next(found, "en"))


def _weighted(item: str) -> tuple[float, str]:
    tag, _, parameter = item.strip().lower().partition(";")
    name, _, value = parameter.strip().partition("=")
    try:
        weight = float(value) if name.strip() == "q" else 1.0
    except ValueError:
        weight = 0.0
    return weight, tag.partition("-")[0].strip()
