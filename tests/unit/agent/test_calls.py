"""Calls of tools that models write as text."""

import json

import pytest

from agent.models.calls import attempted, text_calls

OFFERED = {"kb_search", "kb_read_chunk"}
CALL = json.dumps({"name": "kb_search", "arguments": {"query": "leave"}})
STRINGS = json.dumps({"name": "kb_search", "arguments": json.dumps({"query": "leave"})})
OPENAI = json.dumps({"tool_calls": [{"id": "1", "type": "function", "function": json.loads(STRINGS)}]})

SHAPES = {
    "bare": CALL,
    "fenced": f"```json\n{CALL}\n```",
    "after words": f"I will search.\n```\n{CALL}\n```",
    "on a line of its own": f"Let me look that up.\n{CALL}",
    "tags": f"<tool_call>\n{CALL}\n</tool_call>",
    "an unclosed tag": f"<tool_call>{CALL}",
    "a list": f"[{CALL}]",
    "doubled braces": "{" + CALL + "}",
    "doubled braces all through": CALL.replace("{", "{{")
    .replace("}", "}}")
    .replace('{{"query"', '{"query"')
    .replace('"}}}}', '"}}}'),
    "parameters": CALL.replace("arguments", "parameters"),
    "after thinking": f"<think>where to look?</think>{CALL}",
    "arguments in a string": STRINGS,
    "as OpenAI's API writes it": OPENAI,
    "a function inside": json.dumps({"type": "function", "function": json.loads(CALL)}),
    "python tag": f"<|python_tag|>{CALL.replace('arguments', 'parameters')}",
    "Mistral's list": f"[TOOL_CALLS] [{CALL}]",
    "Mistral's name and arguments": '[TOOL_CALLS]kb_search[ARGS]{"query": "leave"}',
    "Granite": f"<|tool_call|>[{CALL}]",
    "DeepSeek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>kb_search\n"
    '```json\n{"query": "leave"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "Llama's function": '<function=kb_search>{"query": "leave"}</function>',
    "Qwen Coder's XML": "<tool_call>\n<function=kb_search>\n<parameter=query>\nleave\n</parameter>\n</function>\n"
    "</tool_call>",
    "GLM's pairs": "<tool_call>kb_search\n<arg_key>query</arg_key>\n<arg_value>leave</arg_value>\n</tool_call>",
    "invoke": '<invoke name="kb_search">\n<parameter name="query">leave</parameter>\n</invoke>',
    "ReAct": 'Thought: I should search.\nAction: kb_search\nAction Input: {"query": "leave"}',
    "Command R": 'Action: ```json\n[{"tool_name": "kb_search", "parameters": {"query": "leave"}}]\n```',
    "Python": 'kb_search(query="leave")',
    "Python in a list": "[kb_search(query='leave')]",
    "tool code": '```tool_code\nkb_search(query="leave")\n```',
    "single quotes": "{'name': 'kb_search', 'arguments': {'query': 'leave'}}",
    "name as the key": '{"kb_search": {"query": "leave"}}',
    "tool and args": '{"tool": "kb_search", "args": {"query": "leave"}}',
    "action and its input": '{"action": "kb_search", "action_input": {"query": "leave"}}',
    "a namespace": '{"recipient_name": "functions.kb_search", "parameters": {"query": "leave"}}',
    "over several lines": json.dumps(json.loads(CALL), indent=2),
    "indented": f"Searching:\n\n    {CALL}\n",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_call_written_as_text_is_a_call(shape: str) -> None:
    (call,) = text_calls(SHAPES[shape], OFFERED)
    assert (call["name"], call["args"]) == ("kb_search", {"query": "leave"})


@pytest.mark.parametrize(
    "text",
    [
        "DONE",
        "",
        '{"name": "delete_all", "arguments": {}}',
        '{"name": "kb_search", "arguments": "leave"}',
        '{"name": ["kb_search"], "arguments": {}}',
        '{"name": "kb_search", "arguments": {"query": ',
        "{" * 500,
        "[" * 100_000,
        "kb_search(" * 50,
        "kb_search(query=open('x'))",
        "kb_search(query=__import__('os').system('true'))",
        "kb_search() finds documents.",
        f"Employees may write {CALL} in a form.",
        "The tool kb_search looks for {words}.",
        "1. kb_search\n2. kb_read_chunk",
    ],
)
def test_other_text_is_not(text: str) -> None:
    assert text_calls(text, OFFERED) == []


def test_several_calls_in_one_reply() -> None:
    other = CALL.replace("leave", "travel")
    for text in (
        f"{CALL}\n{other}",
        f"{CALL}, {other}",
        f"<tool_call>{CALL}</tool_call><tool_call>{other}</tool_call>",
    ):
        assert [call["args"]["query"] for call in text_calls(text, OFFERED)] == ["leave", "travel"]


def test_chinese_arguments() -> None:
    (call,) = text_calls('我来查一下。\n<tool_call>{"name": "kb_search", "arguments": {"query": "年假"}}', OFFERED)
    assert call["args"] == {"query": "年假"}


@pytest.mark.parametrize(
    ("text", "tried"),
    [
        ('{"name": "kb_search", "arguments": {"query": ', True),
        ("I would use kb_search for this", True),
        ('```json\n{"tool": "search"}\n```', True),
        ("DONE", False),
        ("The limit is 550.", False),
    ],
)
def test_an_attempt_at_a_call_is_told_from_an_answer(text: str, tried: bool) -> None:
    assert attempted(text, OFFERED) is tried
