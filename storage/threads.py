"""LangGraph's threads as we name them, and how they go: one thread holds the working state of one run."""

from collections.abc import Iterable
from uuid import UUID

from core.records import Principal
from storage.database import Transaction


def thread_id(principal: Principal, run_id: UUID) -> str:
    """A run's name among LangGraph's checkpoints; row security reads tenant and user from it."""
    return f"{principal.tenant_id}:{principal.user_id}:{run_id}"


async def remove(tx: Transaction, user_id: UUID, run_ids: Iterable[UUID]) -> dict[str, int]:
    """Delete the checkpoints of these runs of a user, whom the transaction must have entered; rows by table."""
    names = [f"{tx.tenant_id}:{user_id}:{run_id}" for run_id in run_ids]
    return {
        "checkpoints": await tx.run("threads.delete_checkpoints", threads=names),
        "checkpoint_writes": await tx.run("threads.delete_writes", threads=names),
        "checkpoint_blobs": await tx.run("threads.delete_blobs", threads=names),
    }
