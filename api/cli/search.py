"""`search`: what the answering step would be handed, without a language model; and why just that."""

from collections.abc import Sequence
from typing import Annotated

import typer

from api.cli import console, explaining, printing
from api.cli.commands import Json, command, day
from api.cli.opened import Opened, chosen_collections, chosen_document, opened
from core.errors import InvalidRequest
from core.records import Filters, Language
from core.settings import Settings
from storage import users

AsOf = Annotated[str | None, typer.Option("--as-of", help="From what was in force on this day, as 2026-01-31; today.")]
Collections = Annotated[
    list[str] | None,
    typer.Option("--collection", "-c", help="Only this collection; may be given several times.", show_default=False),
]
Documents = Annotated[
    list[str] | None,
    typer.Option("--document", help="Only this document, by id or end of path; several times.", show_default=False),
]
Languages = Annotated[
    list[str] | None,
    typer.Option("--language", help="Only documents in this language, en or zh.", show_default=False),
]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", help="Only files of this kind, as pdf or docx; several times.", show_default=False),
]


def register(app: typer.Typer) -> None:
    command(app, "search")(search)


async def search(
    settings: Settings,
    query: Annotated[str, typer.Argument(help="What to look for, in English or Chinese.")],
    collection: Collections = None,
    document: Documents = None,
    language: Languages = None,
    kind: Types = None,
    as_of: AsOf = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="Most hits shown.")] = 10,
    rerank: Annotated[
        bool | None, typer.Option("--rerank/--no-rerank", help="Score the best hits anew, as answers have it.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show how the search came to its hits.")] = False,
    as_group: Annotated[
        str | None, typer.Option("--as-group", help="Find what somebody finds who has this group's rights only.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Search the documents by meaning and by words."""
    from api import explained, views

    if not query.strip():
        raise InvalidRequest("The query is empty. Write what to look for between quotation marks")
    async with opened(settings) as at:
        filters = await _filters(at, collection, document, language, kind, as_of)
        asker = at.principal if as_group is None else users.member(at.tenant.id, as_group)
        retrieval = await at.runtime.retrieval(at.tenant.id)
        anew = settings.rerank_search if rerank is None else rerank
        how = await retrieval.explain(asker, query, filters=filters, limit=limit, rerank=anew) if explain else None
        if how is None:
            hits = await retrieval.find(asker, query, filters=filters, limit=limit, rerank=anew)
    if how is not None:
        shown = explained.ExplanationView.of(query, filters, how)
        console.print_json(shown.model_dump(mode="json")) if as_json else explaining.show(console.out(), shown)
    elif as_json:
        console.print_json(views.search_json(query, hits))
    elif hits:
        printing.show_hits(console.out(), hits)
    else:
        console.note("Nothing found. `intramuros documents` lists what there is to search")


async def _filters(
    at: Opened,
    collections: Sequence[str] | None,
    documents: Sequence[str] | None,
    languages: Sequence[str] | None,
    kinds: Sequence[str] | None,
    as_of: str | None,
) -> Filters:
    """Errors: NotFound, InvalidRequest."""
    named = await chosen_collections(at, collections)
    return Filters(
        collections=None if named is None else tuple(named),
        documents=tuple([(await chosen_document(at, one)).id for one in documents]) if documents else None,
        languages=tuple(map(_language, languages)) if languages else None,
        media_types=tuple(map(_media_type, kinds)) if kinds else None,
        as_of=day(as_of),
    )


def _language(text: str) -> Language:
    match text.strip().lower():
        case "en":
            return "en"
        case "zh":
            return "zh"
    raise InvalidRequest(f"'{text}' is no language that is searched in. Write en or zh")


def _media_type(text: str) -> str:
    from ingest.kinds import EXTENSIONS

    kind = EXTENSIONS.get("." + text.strip().lower().lstrip("."))
    if kind is None:
        raise InvalidRequest(f"'{text}' is no kind of file that is read. Give the ending of its name, as pdf")
    return kind.value
