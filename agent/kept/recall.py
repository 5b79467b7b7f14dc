"""The answers of this day that one principal may be given again.

What an answer depends on beside documents and rights (see `storage.kept`): the question as it is searched, language,
mode, models, policy, settings and this program's version.
"""

from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from core.records import Answer, Filters, Principal
from core.settings import Settings
from inference.select import Models
from policy.egress import Policy
from policy.proof import digest
from storage import kept
from storage.database import Database


@dataclass(slots=True)
class Recall:
    """The kept answers that one principal may be given in one run; `fixed` is what all of its questions have in common.
    `made_by` and `begun` are of what was asked, None before."""

    db: Database
    principal: Principal
    filters: Filters
    fixed: tuple[str, ...]
    made_by: tuple[Any, ...] = ()
    begun: kept.Moment | None = None
    found: bool = field(default=False, init=False)

    async def find(self, *asked: str) -> Answer | None:
        """The answer that was kept to what is asked."""
        self.made_by = (*self.fixed, *asked)
        self.begun, answer = await kept.find(self.db, self.principal, self.filters, self.made_by)
        self.found = answer is not None
        return answer

    async def keep(self, answer: Answer) -> bool:
        """Keep the answer to what was asked; not where anything changed meanwhile, or nothing was asked."""
        if self.begun is None:
            return False
        return await kept.keep(self.db, self.principal, self.filters, self.made_by, self.begun, answer)


def open_recall(
    db: Database, principal: Principal, filters: Filters, models: Models, policy: Policy, settings: Settings
) -> Recall | None:
    """None where answers are not to be kept."""
    if not settings.answer_cache:
        return None
    reranker = models.reranker.id if models.reranker is not None else ""
    made_by = (models.chat.identity, models.grader.identity, models.embedder.id, reranker)
    fixed = (version("intramuros"), digest(policy), settings.model_dump_json(), *made_by)
    return Recall(db, principal, filters, fixed)
