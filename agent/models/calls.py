"""Tool calls that a small model writes as text, in the shapes that models are taught: JSON bare, fenced or in tags, a
name before its arguments, a call as in Python, and XML with one element for each argument.

A call begins a line, and names a tool that is offered. Anything else is just text: a passage that quotes a call in the
middle of a sentence calls nothing.
"""

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

from langchain_core.messages import ToolCall

from agent.language.text import plain

# What chat templates lay around a call: <tool_call>, <|python_tag|>, [TOOL_CALLS], <｜tool▁calls▁begin｜>, a fence.
_MARKUP: Final = re.compile(
    r"</?tool_calls?>|<[|｜][^<>|｜\n]{1,40}[|｜]>|\[(?:/?TOOL_CALLS|ARGS)\]|```[a-z_]*"
    r"|^[ \t]*(?:action(?: input)?|tool(?: call)?)[ \t]*[:：]",
    re.MULTILINE | re.IGNORECASE,
)
_OPENS: Final = re.compile(r"^[{\[]", re.MULTILINE)
_FOLLOWS: Final = re.compile(r"[\s,;]*(?=\{)")
_CLOSES: Final = re.compile(r"\}?")
# Characters of a reply that are looked at, and closing parentheses at which a call in Python may end.
_LONGEST: Final = 8000
_PARENTHESES: Final = 20
_DECODER: Final = json.JSONDecoder()
# What a decoder or Python's parser says of a text that is not theirs, or that is nested beyond reason.
_UNREADABLE: Final = (ValueError, SyntaxError, MemoryError, RecursionError)
_NAMES: Final = ("name", "tool", "tool_name", "function", "action", "recipient_name")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input", "tool_input", "action_input", "kwargs")
_MANY: Final = ("tool_calls", "tool_uses", "calls", "actions")
_PAIR: Final = re.compile(
    r"<parameter(?:=|\s+name=\")(?P<a>\w+)\"?>\s*(?P<av>.*?)\s*</parameter>"
    r"|<arg_key>\s*(?P<b>\w+)\s*</arg_key>\s*<arg_value>\s*(?P<bv>.*?)\s*</arg_value>",
    re.DOTALL,
)


def text_calls(text: str, offered: Collection[str]) -> list[ToolCall]:
    """The calls of offered tools in a model's text; empty for a text that is none."""
    bare = "\n".join(line.strip() for line in _MARKUP.sub("\n", plain(text[:_LONGEST])).splitlines() if line.strip())
    found = [call for value in _json_values(bare) for call in _calls_of(value, offered)]
    return [
        ToolCall(name=name, args=dict(arguments), id=uuid4().hex, type="tool_call")
        for name, arguments in found or _named(bare, offered)
    ]


def attempted(text: str, offered: Collection[str]) -> bool:
    """Whether a text without a call looks like one that went wrong."""
    bare = plain(text)
    return any(name in bare for name in offered) or bool(re.match(r"\s*(?:```|<tool_call>|[{\[]\s*[\"'{])", bare))


def _json_values(text: str) -> Iterator[Any]:
    """Every JSON value that begins a line, or follows another."""
    at = 0
    while (start := _OPENS.search(text, at)) is not None:
        at = start.start()
        # A chat template that doubles its braces teaches the model to write {{...}}.
        doubled = text.startswith("{{", at)
        try:
            value, at = _DECODER.raw_decode(text, at + doubled)
            yield value
            at = _CLOSES.match(text, at).end() if doubled else at  # type: ignore[union-attr] # matches nothing as well
            while (more := _FOLLOWS.match(text, at)) is not None:
                value, at = _DECODER.raw_decode(text, more.end())
                yield value
        except _UNREADABLE:
            yield from _literal(text[at:])
            at += 1


def _literal(text: str) -> Iterator[Any]:
    """The value of a line in Python's spelling, with single quotes."""
    try:
        yield ast.literal_eval(text.splitlines()[0])
    except _UNREADABLE:
        return


def _calls_of(value: Any, offered: Collection[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(value, list):
        for item in value:
            yield from _calls_of(item, offered)
        return
    if not isinstance(value, dict):
        return
    many = next((value[key] for key in _MANY if isinstance(value.get(key), list)), None)
    inner = value.get("function")
    if many is not None or isinstance(inner, dict):
        yield from _calls_of(many if many is not None else inner, offered)
        return
    name = next((value[key] for key in _NAMES if key in value), None)
    if name is None and len(value) == 1:
        ((name, arguments),) = value.items()
    else:
        arguments = next((value[key] for key in _ARGUMENTS if key in value), {})
    if isinstance(arguments, str):
        arguments = _decoded(arguments)
    if isinstance(name, str) and name.removeprefix("functions.") in offered and isinstance(arguments, dict):
        yield name.removeprefix("functions."), arguments


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except _UNREADABLE:
        return None


def _named(text: str, offered: Collection[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Calls whose name stands before the arguments: `kb_search {...}`, `kb_search(query="...")`, `<function=name>`."""
    names = "|".join(map(re.escape, sorted(offered, key=len, reverse=True)))
    if not names:
        return
    opening = re.compile(rf"^\[?(?:<function(?:=|\s+name=\")|<invoke name=\")?(?P<name>{names})\"?>?\s*", re.MULTILINE)
    for match in opening.finditer(text):
        rest = text[match.end() :]
        arguments = _from_python(rest) if rest.startswith("(") else _from_json(rest) or _from_xml(rest)
        if arguments:
            yield match["name"], arguments


def _from_json(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        value, _ = _DECODER.raw_decode(text)
    except _UNREADABLE:
        return None
    return value if isinstance(value, dict) else None


def _from_xml(text: str) -> dict[str, Any]:
    own = re.split(r"</function>|</invoke>", text)[0]
    if not own.lstrip().startswith("<"):
        return {}
    return {str(pair["a"] or pair["b"]): pair["av"] or pair["bv"] or "" for pair in _PAIR.finditer(own)}


def _from_python(text: str) -> dict[str, Any] | None:
    """The named arguments of `(query="...", limit=3)`, literals only."""
    for end in [match.end() for match in re.finditer(r"\)", text)][:_PARENTHESES]:
        try:
            tree = ast.parse(f"f{text[:end]}", mode="eval").body
        except _UNREADABLE:
            continue
        if not isinstance(tree, ast.Call) or tree.args:
            return None
        try:
            return {word.arg: ast.literal_eval(word.value) for word in tree.keywords if word.arg}
        except _UNREADABLE:
            return None
    return None
