"""The graph of one question, drawn at the foot of this file. Its steps: steps, researching, brief and ending."""

from typing import Any, Final, Literal, get_args

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.grounding.answering import depth
from agent.workflow.approving import approve
from agent.workflow.brief import compose, outline
from agent.workflow.elsewhere import LastResort, elsewhere, last_resort
from agent.workflow.ending import cite, done, refuse
from agent.workflow.recalling import recall
from agent.workflow.researching import MAX_HOPS, assess, investigate, plan, research
from agent.workflow.run import Run
from agent.workflow.state import Context, State
from agent.workflow.steps import answer, choose, condense, converse, grade, guard, rewrite, search

# A small model finds hardly anything by a second rewriting, and each costs up to three more grades.
MAX_REWRITES: Final = {"capable": 2, "small": 1}
LAST: Final = get_args(LastResort)
# Steps of the drawn graph: those of the quick way and of the other after it, three for each rewrite, two for each hop.
GRAPH_STEPS: Final = 24 + 3 * max(MAX_REWRITES.values()) + 2 * MAX_HOPS


def route(state: State) -> Literal["converse", "recall"]:
    """By code only: nothing that a model says keeps a question from being searched."""
    return "converse" if state["talk"] else "recall"


def after_recall(state: State, runtime: Context) -> str:
    """An answer that was kept is the end."""
    return "search" if runtime.context.answer is None else END


def after_search(state: State) -> Literal["choose", "grade"]:
    """The way is chosen once; a search in other words belongs to the quick one."""
    return "grade" if state["rewrites"] else "choose"


def after_choose(state: State, runtime: Context) -> Literal["grade", "plan", "outline", LastResort]:
    """What the documents cannot concern is not read on."""
    if state["path"] == "unrelated" or runtime.context.limit:
        return last_resort(runtime.context)
    if state["path"] == "brief":
        return "outline"
    return "plan" if state["path"] == "agent" else "grade"


def most_rewrites(run: Run) -> int:
    """Times that the quick way searches again: as set, else by what the model gains from it."""
    if run.settings.max_rewrites is not None:
        return run.settings.max_rewrites
    return MAX_REWRITES["capable" if run.chat.traits.capable else "small"]


def escalates(state: State, run: Run) -> bool:
    """Whether the quick way, where it found nothing, leads on to the agent's: the caller left it open, and the model
    can steer its own search."""
    traits = run.chat.traits
    return run.mode == "auto" and state["path"] == "quick" and traits.capable and traits.tools and not run.limit


def after_grade(state: State, runtime: Context) -> Literal["answer", "rewrite", "plan", LastResort]:
    """Search again while there is hope: not when the limit is reached, nor when other words found the same. A model
    that can steer its own search finds the other words itself."""
    run = runtime.context
    if run.limit:
        return "refuse"
    if not state["refused"]:
        return "answer"
    if escalates(state, run):
        return "plan"
    *tried, latest = run.evidence.batches
    deep = depth(run.chat.traits)
    seen = {handle for batch in tried for handle in batch[:deep]}
    repeats = bool(tried) and seen.issuperset(latest[:deep])
    return "rewrite" if not repeats and state["rewrites"] < most_rewrites(run) else last_resort(run)


def after_plan(state: State, runtime: Context) -> Literal["research", "investigate", "assess"]:
    """Several sub-questions go to sub-agents, a question that is one to the model with its tools."""
    if runtime.context.limit:
        return "assess"
    return "research" if state["subtopics"] else "investigate"


def after_assess(state: State, runtime: Context) -> Literal["research", "answer", LastResort]:
    """What is missing is looked for before an answer is given without it."""
    if state["subtopics"]:
        return "research"
    return last_resort(runtime.context) if state["refused"] else "answer"


def after_outline(state: State, runtime: Context) -> Literal["compose", LastResort]:
    """Without a section there is nothing to write."""
    return last_resort(runtime.context) if state["refused"] or runtime.context.limit else "compose"


def after_elsewhere(state: State) -> Literal["answer", "refuse"]:
    """What the peer said is an answer or the end."""
    return "refuse" if state["refused"] else "answer"


def after_cite(state: State, runtime: Context) -> Literal["done", "plan", LastResort]:
    """No real citation, no answer."""
    if not state["refused"]:
        return "done"
    return "plan" if escalates(state, runtime.context) else last_resort(runtime.context)


def after_done(state: State, runtime: Context) -> str:
    """Where a collection that is cited asks for it, a person looks before the answer is shown."""
    return "approve" if runtime.context.awaiting else END


def build(checkpointer: BaseCheckpointSaver[Any] | None) -> CompiledStateGraph[State, Run, State, State]:
    """The graph, with or without a memory."""
    graph = StateGraph(State, context_schema=Run)
    looking: list[Any] = [guard, condense, recall, converse, search, choose, grade, rewrite]
    researching: list[Any] = [plan, investigate, research, assess, outline, compose]
    ending: list[Any] = [elsewhere, answer, cite, done, refuse]
    for node in (*looking, *researching, *ending):
        graph.add_node(node.__name__, node)

    graph.add_edge(START, "guard")
    graph.add_edge("guard", "condense")
    graph.add_conditional_edges("condense", route, ["converse", "recall"])
    graph.add_conditional_edges("recall", after_recall, ["search", END])
    graph.add_conditional_edges("search", after_search, ["choose", "grade"])
    graph.add_conditional_edges("choose", after_choose, ["grade", "plan", "outline", *LAST])
    graph.add_conditional_edges("grade", after_grade, ["answer", "rewrite", "plan", *LAST])
    graph.add_conditional_edges("outline", after_outline, ["compose", *LAST])
    graph.add_edge("compose", "cite")
    graph.add_edge("rewrite", "search")
    graph.add_conditional_edges("plan", after_plan, ["research", "investigate", "assess"])
    graph.add_edge("investigate", "assess")
    graph.add_edge("research", "assess")
    graph.add_conditional_edges("assess", after_assess, ["research", "answer", *LAST])
    graph.add_edge("answer", "cite")
    graph.add_edge("converse", "cite")
    graph.add_conditional_edges("cite", after_cite, ["done", "plan", *LAST])
    graph.add_conditional_edges("elsewhere", after_elsewhere, ["answer", "refuse"])
    if checkpointer is None:
        graph.add_edge("done", END)
    else:  # to wait takes a state that is kept
        graph.add_node("approve", approve)
        graph.add_conditional_edges("done", after_done, ["approve", END])
        graph.add_edge("approve", END)
    graph.add_edge("refuse", END)
    return graph.compile(checkpointer=checkpointer)
