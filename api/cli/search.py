"""`search`: what the answering step would be handed, without a language model."""

from typing import Annotated

import typer

from api.cli import console, printing
from api.cli.commands import Json, command, day
from api.cli.opened import chosen_collections, opened
from core.errors import InvalidRequest
from core.settings import Settings

AsOf = Annotated[str | None, typer.Option("--as-of", help="From what was in force on this day, as 2026-01-31; today.")]
Collections = Annotated[
    list[str] | None,
    typer.Option("--collection", "-c", help="Only this collection; may be given several times.", show_default=False),
]


def register(app: typer.Typer) -> None:
    command(app, "search")(search)


async def search(
    settings: Settings,
    query: Annotated[str, typer.Argument(help="What to look for, in English or Chinese.")],
    collection: Collections = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="Most hits shown.")] = 10,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Search the documents by meaning and by words."""
    from api import views
    from storage.search import search as find

    if not query.strip():
        raise InvalidRequest("The query is empty. Write what to look for between quotation marks")
    async with opened(settings) as at:
        wanted = await chosen_collections(at, collection)
        embedder = await at.runtime.embedder()
        vector = await embedder.embed_query(query)
        hits = await find(
            at.runtime.db,
            at.principal,
            query,
            vector,
            embedder_id=embedder.id,
            collections=wanted,
            limit=limit,
            as_of=day(as_of),
        )
    if as_json:
        console.print_json(views.search_json(query, hits))
    elif hits:
        printing.show_hits(console.out(), hits)
    else:
        console.note("Nothing found. `intramuros documents` lists what there is to search")
