"""Which tools a run may offer to the model, and the same question asked again when one is about to run."""

from collections.abc import Collection, Iterable
from typing import Literal, Protocol, TypeVar

from core.errors import ToolDenied
from policy import ledger
from policy.egress import Policy

# How far a tool reaches: `local` reads our own database, `peer` would ask a listed private peer.
# A tool that is not in this table is not offered, whatever it says of itself.
REACH: dict[str, Literal["local", "peer"]] = {
    "kb_search": "local",
    "kb_read_chunk": "local",
    "kb_list_documents": "local",
    "kb_outline": "local",
    "kb_find": "local",
    "research_subtopics": "local",
}


class Named(Protocol):
    """Anything with a tool's name, such as a LangChain tool."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


def may_offer(policy: Policy, name: str) -> bool:
    """Whether the policy's scope lets this tool exist at all."""
    reach = REACH.get(name)
    return policy.sound and (reach == "local" or (reach == "peer" and policy.scope == "private"))


def allowed_tools(policy: Policy, tools: Iterable[T]) -> list[T]:
    """The tools that the model may be shown, order kept. Empty under a policy that denies everything."""
    return [tool for tool in tools if may_offer(policy, tool.name)]


def check_tool(policy: Policy, name: str, allowed: Collection[str]) -> None:
    """Raise ToolDenied unless `name` is one of this run's `allowed` names and the policy still lets it be offered.

    The message names the allowed tools only, so that a model learns of no other.
    """
    if name in allowed and may_offer(policy, name):
        return
    ledger.count("tool_forbidden" if name in REACH else "tool_unknown", purpose="tool")
    offered = ", ".join(sorted(other for other in allowed if may_offer(policy, other))) or "none"
    raise ToolDenied(f"There is no such tool in this run. Available tools: {offered}.")
