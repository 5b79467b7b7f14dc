"""How an explained search, and the words that mean the same, leave the program."""

from collections.abc import Collection
from datetime import UTC, date, datetime
from typing import Self
from uuid import UUID

from api.views import HitView, View
from core.records import Explanation, Filters, Hit, Language, Listed, Synonym
from storage import lexical


class SynonymView(View):
    """Words and phrases that mean the same."""

    id: UUID
    words: tuple[str, ...]

    @classmethod
    def of(cls, synonym: Synonym) -> Self:
        return cls.model_validate(synonym)


class SynonymsView(View):
    """Groups of words that mean the same, by their first word."""

    synonyms: tuple[SynonymView, ...]


class TermView(View):
    """A term of the query, stemmed: how often it `counts`, in how many `chunks` it stands, how rare (`idf`) that is.

    `weight` is the product; `added`: a synonym brought it.
    """

    text: str
    counts: float
    chunks: int
    idf: float
    weight: float
    added: bool


class ListedView(View):
    """A passage's place in one of the lists. `score` is a cosine or BM25, `matched` the terms that stand in it."""

    rank: int
    chunk_id: int
    document_id: UUID
    title: str
    heading_path: tuple[str, ...]
    score: float
    matched: tuple[str, ...]

    @classmethod
    def of(cls, listed: Listed) -> Self:
        return cls.model_validate(listed)


class MarkedView(View):
    """A piece of a passage, and whether it is (part of) a term of the query."""

    text: str
    matched: bool


class ExplainedHitView(View):
    """A hit, its passage in pieces, its ranks in the lists (null: in none) and its scores there from 0 to 1."""

    hit: HitView
    passage: tuple[MarkedView, ...]
    nearest_rank: int | None
    lexical_rank: int | None
    by_vector: float
    by_words: float


class FiltersView(View):
    """What a search was narrowed to beside rights, null: not narrowed; `as_of` is the day whose revisions counted."""

    collections: tuple[str, ...] | None
    documents: tuple[UUID, ...] | None
    languages: tuple[Language, ...] | None
    media_types: tuple[str, ...] | None
    as_of: date

    @classmethod
    def of(cls, filters: Filters) -> Self:
        return cls(
            collections=filters.collections,
            documents=filters.documents,
            languages=filters.languages,
            media_types=filters.media_types,
            as_of=filters.as_of or datetime.now(UTC).date(),
        )


class ExplanationView(View):
    """Why a search found what it found.

    `documents` and `chunks` are how many rights and filters left; `words` is the weight of the list by words, from 0 to
    1; `exact`: vectors were compared one by one, without an index.
    """

    query: str
    filters: FiltersView
    synonyms: dict[str, tuple[str, ...]]
    terms: tuple[TermView, ...]
    documents: int
    chunks: int
    words: float
    exact: bool
    nearest: tuple[ListedView, ...]
    lexical: tuple[ListedView, ...]
    hits: tuple[ExplainedHitView, ...]

    @classmethod
    def of(cls, query: str, filters: Filters, found: Explanation) -> Self:
        names = frozenset(term.text for term in found.terms)
        nearest, words = ({one.chunk_id: one.rank for one in lists} for lists in (found.nearest, found.lexical))
        return cls(
            query=query,
            filters=FiltersView.of(filters),
            synonyms=dict(found.synonyms),
            terms=_terms(query, found),
            documents=found.documents,
            chunks=found.chunks,
            words=found.words,
            exact=found.exact,
            nearest=tuple(map(ListedView.of, found.nearest)),
            lexical=tuple(map(ListedView.of, found.lexical)),
            hits=tuple(
                ExplainedHitView(
                    hit=HitView.of(hit),
                    passage=_marked(hit, names),
                    nearest_rank=nearest.get(hit.chunk_id),
                    lexical_rank=words.get(hit.chunk_id),
                    by_vector=hit.scores.by_vector,
                    by_words=hit.scores.by_words,
                )
                for hit in found.hits
            ),
        )


def _terms(query: str, found: Explanation) -> tuple[TermView, ...]:
    """The heaviest first."""
    also = [word for words in found.synonyms.values() for word in words]
    counts, typed = lexical.query_weights(query, also), frozenset(lexical.query_terms(query))
    shown = (
        TermView(
            text=term.text,
            counts=counts[term.text],
            chunks=term.chunks,
            idf=term.weight / counts[term.text],
            weight=term.weight,
            added=term.text not in typed,
        )
        for term in found.terms
    )
    return tuple(sorted(shown, key=lambda term: -term.weight))


def _marked(hit: Hit, terms: Collection[str]) -> tuple[MarkedView, ...]:
    return tuple(MarkedView(text=text, matched=matched) for text, matched in lexical.marked(hit.text, terms))
