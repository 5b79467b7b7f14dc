"""The graph of one question, drawn at the foot of this file. Its steps are in steps.py, exploring.py and ending.py."""

from typing import Any, Final, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.answering import ALONE_PASSAGES
from agent.ending import cite, done, refuse
from agent.exploring import explore
from agent.run import Run
from agent.state import Context, State
from agent.steps import answer, condense, converse, grade, guard, rewrite, search

# A small model finds hardly anything by a second rewriting, and each costs up to three more grades.
MAX_REWRITES: Final = {"capable": 2, "small": 1}
# Steps of the drawn graph: those of a straight way through, and three for each rewrite.
GRAPH_STEPS: Final = 12 + 3 * max(MAX_REWRITES.values())


def route(state: State) -> Literal["converse", "search"]:
    """By code only: nothing that a model says keeps a question from being searched."""
    return "converse" if state["talk"] else "search"


def after_search(state: State) -> Literal["grade", "agent"]:
    """The path was chosen by what the model can do."""
    return "agent" if state["path"] == "agent" else "grade"


def after_grade(state: State, runtime: Context) -> Literal["answer", "rewrite", "refuse"]:
    """Search again while there is hope: not when the limit is reached, nor when other words found the same."""
    if runtime.context.limit:
        return "refuse"
    if not state["refused"]:
        return "answer"
    *tried, latest = runtime.context.evidence.batches
    seen = {handle for batch in tried for handle in batch[:ALONE_PASSAGES]}
    repeats = bool(tried) and seen.issuperset(latest[:ALONE_PASSAGES])
    most = MAX_REWRITES["capable" if runtime.context.chat.traits.capable else "small"]
    return "refuse" if repeats or state["rewrites"] >= most else "rewrite"


def after_cite(state: State) -> Literal["done", "refuse"]:
    """No real citation, no answer."""
    return "refuse" if state["refused"] else "done"


def build(checkpointer: BaseCheckpointSaver[Any] | None) -> CompiledStateGraph[State, Run, State, State]:
    """The graph, with or without a memory."""
    graph = StateGraph(State, context_schema=Run)
    nodes: list[Any] = [guard, condense, converse, search, grade, rewrite, explore, answer, cite, done, refuse]
    for node in nodes:
        graph.add_node(node.__name__, node)

    graph.add_edge(START, "guard")
    graph.add_edge("guard", "condense")
    graph.add_conditional_edges("condense", route, {"converse": "converse", "search": "search"})
    graph.add_conditional_edges("search", after_search, {"grade": "grade", "agent": "explore"})
    graph.add_conditional_edges("grade", after_grade, {"answer": "answer", "rewrite": "rewrite", "refuse": "refuse"})
    graph.add_edge("rewrite", "search")
    graph.add_edge("explore", "answer")
    graph.add_edge("answer", "cite")
    graph.add_edge("converse", "cite")
    graph.add_conditional_edges("cite", after_cite, {"done": "done", "refuse": "refuse"})
    graph.add_edge("done", END)
    graph.add_edge("refuse", END)
    return graph.compile(checkpointer=checkpointer)
