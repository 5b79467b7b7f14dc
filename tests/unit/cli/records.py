"""Hand-made records for tests of what the command line prints."""

from datetime import UTC, datetime
from uuid import UUID

from core.records import Answer, Citation, Hit, Language, Outcome, Scores

DOCUMENT = UUID(int=7)
NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def hit(rank: int, path: str, text: str = "The cap is EUR 140 per night.", page: int | None = None) -> Hit:
    return Hit(
        rank=rank,
        chunk_id=rank,
        document_id=DOCUMENT,
        title="Travel policy",
        path=path,
        collection="handbook",
        heading_path=("Hotels", "Caps"),
        page=page,
        text=text,
        section_text=text,
        kind="text",
        effective_from=None,
        effective_to=None,
        updated_at=NOW,
        scores=Scores(vector=0.91, bm25=None, fused=0.5),
    )


def citation(n: int, quote: str = "Hotel cap in Berlin: EUR 140 per night", page: int | None = None) -> Citation:
    return Citation(n, n, DOCUMENT, "handbook/en/travel.md", "Travel policy", ("Hotels", "Caps"), page, quote)


def answer(
    text: str = "The cap in Berlin is EUR 140 per night [1].",
    *,
    outcome: Outcome = Outcome.ANSWERED,
    language: Language = "en",
    citations: tuple[Citation, ...] = (citation(1),),
    standalone: str = "What is the cap?",
    nearest: tuple[Hit, ...] = (),
    notice: str | None = None,
) -> Answer:
    return Answer(
        outcome=outcome,
        question="What is the cap?",
        standalone_question=standalone,
        answer=text,
        language=language,
        citations=citations,
        timings={"search": 0.04, "answer": 2.31},
        model_calls=3,
        nearest=nearest,
        notice=notice,
    )
