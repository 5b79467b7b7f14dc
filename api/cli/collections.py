"""`collections`: what one can ask, and whom where the documents do not answer."""

from typing import Annotated

import typer

from api.cli import console
from api.cli.commands import Json, command
from api.cli.opened import chosen_collections, opened
from core.settings import Settings
from storage import collections as stored

app = typer.Typer(help="List the collections, and say whom to ask about one.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    command(app, "list")(listing)
    command(app, "owner")(owner)
    command(app, "approval")(approval)
    root.add_typer(app, name="collections")


async def listing(settings: Settings, as_json: Json = False) -> None:
    """List the collections with whom to ask about each."""
    from api.views import CollectionsView, CollectionView

    async with opened(settings) as at:
        found = await stored.list_visible(at.runtime.db, at.principal)
    if as_json:
        console.print_json(CollectionsView(collections=tuple(map(CollectionView.of, found))).model_dump(mode="json"))
    elif not found:
        console.note("No collections yet. `intramuros ingest PATH` makes one")
    else:
        rows = [(one.name, str(one.documents), one.owner_contact or "") for one in found]
        console.table(("Collection", "Documents", "Whom to ask"), rows, right=("Documents",))


async def owner(
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="COLLECTION", help="The collection's name.")],
    contact: Annotated[
        str | None, typer.Argument(metavar="[CONTACT]", help="A name, an address, a number; left out: nobody any more.")
    ] = None,
) -> None:
    """Say whom to ask where a collection's documents do not answer. Answers that lack something name them."""
    whom = (contact or "").strip() or None
    async with opened(settings) as at:
        await chosen_collections(at, [name])
        collection = await stored.by_name(at.runtime.db, at.tenant.id, name)
        await stored.set_owner(at.runtime.db, at.tenant.id, collection.id, whom)
    console.say(f"about {name}, ask {whom}" if whom else f"nobody is named for {name}")


async def approval(
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="COLLECTION", help="The collection's name.")],
    by: Annotated[
        list[str] | None, typer.Option("--by", help="Who approves, beside admins: group:NAME or user:ID; repeatable.")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Show answers at once again.")] = False,
) -> None:
    """Let answers that cite a collection be shown only once an admin, or somebody named here, approved them."""
    async with opened(settings) as at:
        await chosen_collections(at, [name])
        collection = await stored.by_name(at.runtime.db, at.tenant.id, name)
        await stored.set_approvers(at.runtime.db, at.tenant.id, collection.id, None if off else by or [])
    told = "are shown at once" if off else f"wait for approval by {', '.join([*(by or []), 'admins'])}"
    console.say(f"answers that cite {name} {told}")
