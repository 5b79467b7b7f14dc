"""How a passage is put before a model: its title and headings, then its text, cut to a budget, marks defused."""

from collections.abc import Sequence
from typing import Final

from agent.grounding.citations import defuse
from agent.language.amounts import is_unit, quantities
from agent.language.binding import CELL
from agent.language.text import around, estimate_tokens, terms
from agent.language.tiers import fitting
from agent.questions.sufficiency import parts
from core.records import Hit

# Rows of a table that are shown when only some of them fit the question best.
_MOST_ROWS: Final = 3
# Tokens that a passage is shown in at least: a heading and a row.
_LEAST: Final = 40


def heading(hit: Hit) -> str:
    """`Title > Heading > Subheading` of a hit."""
    return defuse(" > ".join((hit.title, *hit.heading_path)))


def shown_within(hits: Sequence[Hit], question: str, budget: int) -> list[str]:
    """Hits as `shown`, within `budget` tokens together: an even share each, and what short ones leave to the others."""
    whole = [shown(hit, question, budget) for hit in hits]
    needed = sorted(map(estimate_tokens, whole))
    share = budget
    for at, tokens in enumerate(needed):
        share = budget // (len(needed) - at)
        if tokens > share:
            break
        budget -= tokens
    return [
        text if estimate_tokens(text) <= share else shown(hit, question, share)
        for hit, text in zip(hits, whole, strict=True)
    ]


def shown(hit: Hit, question: str, budget: int) -> str:
    """A hit's heading and the part of its text that fits `budget` tokens around what the question asks."""
    head = heading(hit)
    text = hit.text
    if hit.kind == "table":
        text = "\n".join(cells(row, question) for row in rows(hit, question).splitlines())
    return f"{head}\n{around(defuse(text), terms(question), max(budget - estimate_tokens(head), _LEAST))}"


def rows(hit: Hit, question: str) -> str:
    """The rows of a table that alone hold what is asked for, or all of them: small models take a neighbour's number.

    Prose that the table's chunk begins or ends with hides no row: it is shown beside those that stand out without it.
    """
    lines = hit.text.splitlines()
    tiers = fitting(lines, question)
    if tiers:
        return "\n".join(tiers)
    table = [line for line in lines if CELL in line]
    wanted = [terms(part) for part in parts(question)]
    chosen = {line for words in wanted for among in (lines, table) for line in _telling(among, words)}
    return "\n".join(line for line in lines if line in chosen) or hit.text


def _telling(lines: Sequence[str], wanted: frozenset[str]) -> list[str]:
    """The rows that hold most of what tells one row from another; none where that singles out no few of them."""
    found = [wanted & terms(line) for line in lines]
    # Units and what most rows say tell no row from another: "years" must not pick the tiers that repeat the word.
    telling = [row - frozenset(term for term in row if is_unit(term) or _common(term, found)) for row in found]
    most = max(map(len, telling), default=0)
    best = [line for line, row in zip(lines, telling, strict=True) if most and len(row) == most]
    return best if len(best) <= _MOST_ROWS else []


def _common(term: str, rows_found: Sequence[frozenset[str]]) -> bool:
    return sum(term in row for row in rows_found) * 2 > len(rows_found)


def cells(row: str, question: str) -> str:
    """Each cell of a row, with the column's name that ingesting put before it, in a line of its own.

    Where columns compete with amounts (China, Berlin, London) and a part of the question names one, those that none
    names are left out; the first cell, which says what the row is about, always stays.
    """
    key, *others = row.split(CELL)
    amounts = [cell for cell in others if quantities(cell.partition(":")[2])]
    named = {cell for part in parts(question) for cell in _named(amounts, terms(part))}
    return "\n".join([key, *(cell for cell in others if not named or cell in named or cell not in amounts)])


def _named(amounts: Sequence[str], wanted: frozenset[str]) -> list[str]:
    """The cells whose column holds most of the words wanted; none where no column holds one."""
    found = [len(wanted & terms(cell.partition(":")[0])) for cell in amounts]
    most = max(found, default=0)
    return [cell for cell, held in zip(amounts, found, strict=True) if held == most > 0]
