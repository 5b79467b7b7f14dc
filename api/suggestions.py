"""Questions to begin with, made by code from the headings of documents that one may read: no model is asked."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from itertools import chain, islice, zip_longest
from typing import Final
from uuid import UUID

from core.records import Chunk, Language, Principal
from core.text import fold, language_of
from storage import documents, listing
from storage.database import Database

WANTED: Final = 3
# Documents whose titles are looked at, those looked into, and the longest that is worth reading for it.
MOST_TITLES: Final = 100
LOOKED_INTO: Final = 8
MOST_CHUNKS: Final = 400
# Below this a section says too little to answer a question, in characters.
LEAST_TEXT: Final[dict[Language, int]] = {"en": 120, "zh": 40}
TITLE_LENGTH: Final[dict[Language, int]] = {"en": 60, "zh": 30}
HEADING_LENGTH: Final[dict[Language, tuple[int, int]]] = {"en": (5, 45), "zh": (2, 16)}

_PATTERN: Final[dict[Language, str]] = {
    "en": "What does the {title} say about {heading}?",
    "zh": "《{title}》中关于{heading}是怎么规定的？",
}
_NUMBERING = re.compile(
    r"(?:第\s*[〇零一二三四五六七八九十百\d]+\s*[章节条款]"
    r"|[（(]?[一二三四五六七八九十]+[)）、.]"
    r"|[（(]?\d{1,2}(?:(?:\.\d{1,2})+[)）、.]?|[)）、.])"
    r"|[A-Z][.)]\s)\s*"
)
# Sections that every document has and nobody asks about.
_GENERAL: Final = re.compile(
    "appendix|attachments|background|change history|contacts?|definitions|foreword|general|glossary|history"
    "|introduction|overview|purpose|questions|references|scope|summary|table of contents|version history"
    "|附件|附录|附则|目的|目录|总则|定义|范围|适用范围|背景|概述|简介|前言|联系方式|联系人|版本记录|修订记录|参考资料"
)


async def suggest(db: Database, principal: Principal, language: Language, today: date | None = None) -> tuple[str, ...]:
    """At most three questions in `language`, from as many different documents as there are."""
    on = today or datetime.now(UTC).date()
    latest = await listing.latest(db, principal, language, on, chunks=MOST_CHUNKS, limit=MOST_TITLES)
    asked = []
    for document in [document for document in latest if _reads_well(document.title, language)][:LOOKED_INTO]:
        headings = topics(await _chunks(db, principal, document.id), document.title, language)
        asked.append([question(document.title, heading, language) for heading in headings])
    # The best of each document first, then the second best of each.
    rounds = chain.from_iterable(zip_longest(*asked))
    return tuple(islice(filter(None, rounds), WANTED))


async def _chunks(db: Database, principal: Principal, document_id: UUID) -> list[Chunk]:
    """Without those that are kept from search: no question should lead to them."""
    found = await documents.chunks(db, principal, document_id)
    return [stored.chunk for stored in found if not stored.quarantined]


def _reads_well(title: str, language: Language) -> bool:
    # In capitals it is a letterhead.
    return language_of(title) == language and len(title) <= TITLE_LENGTH[language] and not title.isupper()


def question(title: str, heading: str, language: Language) -> str:
    """One question about one section."""
    bare = re.sub(r"(?i)^the\s+", "", title) if language == "en" else title.strip("《》")
    return _PATTERN[language].format(title=bare, heading=heading)


def topics(chunks: Sequence[Chunk], title: str, language: Language) -> list[str]:
    """The headings that promise an answer, best first: with figures in the text, then in reading order."""
    sections: dict[str, str] = {}
    for chunk in chunks:
        if chunk.heading_path and chunk.heading_path[-1] != title:
            heading = _NUMBERING.sub("", chunk.heading_path[-1], count=1).strip(" :：.。")
            sections[heading] = sections.get(heading, "") + chunk.text
    good = [heading for heading, text in sections.items() if _promises(heading, text, language)]
    return sorted(good, key=lambda heading: not any(char.isdigit() for char in sections[heading]))


def _promises(heading: str, text: str, language: Language) -> bool:
    least, most = HEADING_LENGTH[language]
    return (
        least <= len(heading) <= most
        and language_of(heading) == language
        and len(text) >= LEAST_TEXT[language]
        and not _GENERAL.fullmatch(fold(heading))
        and not re.search(r"[?？\[\]<>|`*_#]", heading)
    )
