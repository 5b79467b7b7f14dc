"""Where words go: data to standard output, everything about the work to standard error."""

import json
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from core.records import Receipt

# Widest line of running text, in cells: 88 Latin or 44 Chinese characters.
MEASURE = 88
# In a pipe or a file a table's row stays one line.
PIPED_WIDTH = 500

# done, total, what is being worked on
Advance = Callable[[int, int, str], None]


def out() -> Console:
    """Standard output, without guesses about what is a number or an emoji in a document's text."""
    console = Console(highlight=False, markup=False, emoji=False)
    return console if console.is_terminal else _piped(stderr=False)


def err() -> Console:
    """Standard error."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    return console if console.is_terminal else _piped(stderr=True)


def _piped(*, stderr: bool) -> Console:
    return Console(stderr=stderr, width=PIPED_WIDTH, highlight=False, markup=False, emoji=False)


def measure(console: Console) -> int:
    """Width of running text: as wide as reads well, no wider than the terminal."""
    return min(console.width, MEASURE)


def clean(text: str) -> str:
    """Text of a document or a model made harmless for a terminal: no control or invisible formatting characters."""
    kept = (char if char in "\n\t" or unicodedata.category(char)[0] != "C" else "" for char in text)
    return "".join(kept)


def one_line(text: str) -> str:
    """The same on a single line."""
    return " ".join(clean(text).split())


def fail(message: str) -> None:
    """One line `error: ...`, never folded, so that a script can read it."""
    err().print(Text("error: ", style="bold red") + Text(one_line(message)), soft_wrap=True)


def note(message: str) -> None:
    """A quiet line about the work."""
    err().print(Text(one_line(message), style="dim"), soft_wrap=True)


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def say(message: str) -> None:
    """A line of result."""
    out().print(Text(one_line(message)), soft_wrap=True)


def print_json(value: Any) -> None:
    """Exactly one JSON object on standard output."""
    print(json.dumps(value, ensure_ascii=False, indent=2, default=str))  # noqa: T201 - data, not a word


@contextmanager
def json_list(name: str, **others: Any) -> Iterator[Callable[[Any], None]]:
    """One JSON object of `others` and a list, whose members are printed as they are handed in."""
    members = 0
    lead = "".join(f"  {json.dumps(key)}: {json.dumps(value, default=str)},\n" for key, value in others.items())
    print(f'{{\n{lead}  "{name}": [', end="")  # noqa: T201 - data, not a word

    def add(value: Any) -> None:
        nonlocal members
        text = json.dumps(value, ensure_ascii=False, default=str)
        print(",\n    " if members else "\n    ", text, sep="", end="")  # noqa: T201
        members += 1

    yield add
    print("\n  ]\n}" if members else "]\n}")  # noqa: T201


def table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[str] = (), header: bool = True
) -> None:
    """A plain table; `right` names the columns of numbers. Without `header` it goes on from one before."""
    console = out()
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", show_header=header)
    for column in columns:
        grid.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(one_line(str(cell))) for cell in row))
    console.print(grid)


@contextmanager
def progress(what: str, *, counted: bool = True) -> Iterator[Advance]:
    """A bar on standard error while the work lasts, nothing where that is not a terminal.

    It shows `3/28` where single things are counted, else per cent.
    """
    console = err()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn() if counted else TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[item]}", style="dim", markup=False),
    )
    with Progress(
        *columns,
        console=console,
        disable=not console.is_terminal,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as bar:
        task = bar.add_task(what, total=None, item="")

        def advance(done: int, total: int, item: str) -> None:
            bar.update(task, completed=done, total=total, item=one_line(item)[-48:])

        yield advance


def receipt(of: Receipt) -> None:
    """What a deletion removed, on one line."""
    gone = counts(of)
    say(f"deleted {of.what}" + (f": {gone}" if gone else ""))


def counts(of: Receipt) -> str:
    """What a deletion removes, by kind, and how many stored answers it leaves without their passage."""
    gone = ", ".join(f"{count} {kind}" for kind, count in of.counts.items() if kind != "quoting")
    if "quoting" not in of.counts:
        return gone
    quoting = of.counts["quoting"]
    stays = "1 stored answer quotes it and stays" if quoting == 1 else f"{quoting} stored answers quote it and stay"
    return f"{gone}; {stays}"
