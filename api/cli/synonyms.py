"""`synonyms`: words that mean the same to a tenant, looked for when one of them is asked for."""

import csv
import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from api.cli import console
from api.cli.commands import Json, command
from api.cli.opened import Opened, opened
from core.errors import InvalidRequest, NotFound
from core.records import Synonym
from core.settings import Settings
from storage import synonyms as stored

app = typer.Typer(help="List and change the words that mean the same.", no_args_is_help=True)

# A spreadsheet writes this before a file in UTF-8.
BOM = "\ufeff"


def register(root: typer.Typer) -> None:
    command(app, "list")(listing)
    command(app, "add")(add)
    command(app, "remove")(remove)
    command(app, "import")(import_file)
    command(app, "export")(export)
    root.add_typer(app, name="synonyms")


async def listing(settings: Settings, as_json: Json = False) -> None:
    """List the groups of words that mean the same."""
    from api.explained import SynonymsView, SynonymView

    async with opened(settings) as at:
        found = await stored.listing(at.runtime.db, at.tenant.id)
    if as_json:
        console.print_json(SynonymsView(synonyms=tuple(map(SynonymView.of, found))).model_dump(mode="json"))
    elif not found:
        console.note('There are none yet. `intramuros synonyms add "physical therapy" physiotherapy` makes a group')
    for one in [] if as_json else found:
        console.say(" = ".join(one.words))


async def add(
    settings: Settings,
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words or phrases that mean the same.")],
) -> None:
    """Let words mean the same, in either language.

    Groups that hold one of them become one with it.
    """
    async with opened(settings) as at:
        made = await stored.add(at.runtime.db, at.tenant.id, words)
    console.say(" = ".join(made.words))


async def remove(
    settings: Settings,
    word: Annotated[str, typer.Argument(help="A word of a group.")],
    whole: Annotated[bool, typer.Option("--group", help="Remove all that means the same.")] = False,
) -> None:
    """Remove a word from its group. A word that is left alone goes too."""
    async with opened(settings) as at:
        found = await _group_of(at, word)
        await stored.remove(at.runtime.db, at.tenant.id, found.id, None if whole else word)
    console.say(f"removed {' = '.join(found.words) if whole else word}")


async def import_file(
    settings: Settings,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="CSV in UTF-8, one group a line; - for standard input.")],
) -> None:
    """Add the groups of a file: words that mean the same stand on one line, with commas between.

    Empty lines and lines that begin with # are passed over. Where a line cannot be used nothing at all is added.
    """
    groups = _read(path)
    async with opened(settings) as at:
        for number, words in groups:
            _checked(path, number, words)
        await stored.add_all(at.runtime.db, at.tenant.id, [words for _, words in groups])
    console.say(f"added {console.counted(len(groups), 'group')}")


async def export(settings: Settings) -> None:
    """Print the groups as `import` reads them."""
    async with opened(settings) as at:
        found = await stored.listing(at.runtime.db, at.tenant.id)
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(one.words for one in found)
    console.out().print(lines.getvalue(), end="", soft_wrap=True)


async def _group_of(at: Opened, word: str) -> Synonym:
    found = await stored.group_of(at.runtime.db, at.tenant.id, word)
    if found is None:
        raise NotFound(f"'{word}' has no synonyms. `intramuros synonyms list` shows them")
    return found


def _read(path: Path) -> list[tuple[int, list[str]]]:
    """Numbers of lines with their words. Raises InvalidRequest."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise InvalidRequest(f"{path} cannot be read: {why}") from error
    lines = enumerate(text.removeprefix(BOM).splitlines(), start=1)
    groups = [(number, _words(line)) for number, line in lines if not line.startswith("#")]
    return [(number, words) for number, words in groups if words]


def _words(line: str) -> list[str]:
    return [word.strip() for row in csv.reader([line], skipinitialspace=True) for word in row if word.strip()]


def _checked(path: Path, number: int, words: list[str]) -> None:
    try:
        stored.check(words)
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}, line {number}: {error.message} Nothing was added") from error
