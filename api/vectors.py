"""How a tenant's sets of vectors leave the program: which one is searched, and what stands beside it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from api.views import View
from storage.embedding_sets import EmbeddingSet, Role


class EmbeddingSetView(View):
    """All vectors by one embedder. `missing`: passages that have none in it; `filled`: it can be searched."""

    embedder_id: str
    dimension: int
    role: Role
    filled: bool
    indexed: bool
    replaced_at: datetime | None
    vectors: int
    missing: int


class EmbeddingSetsView(View):
    """The sets, the active one first. `running`: vectors are being made, or sets changed, at this moment."""

    running: bool
    sets: tuple[EmbeddingSetView, ...]

    @classmethod
    def of(cls, found: Sequence[EmbeddingSet], *, running: bool) -> Self:
        return cls(running=running, sets=tuple(map(EmbeddingSetView.model_validate, found)))
