import asyncio
import json
import logging
import re
from collections.abc import Iterator
from typing import Literal

import pytest

from core import logs


@pytest.fixture(autouse=True)
def root_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def written(capsys: pytest.CaptureFixture[str], log_format: Literal["pretty", "json"], **extra: object) -> str:
    logs.configure(log_format, "info")
    logging.getLogger("test.logs").info("said %s", "hello", extra=extra)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_json_lines_hold_the_message_the_trace_and_the_extras(capsys: pytest.CaptureFixture[str]) -> None:
    with logs.traced("abc"):
        line = json.loads(written(capsys, "json", reason="public", 城市="上海"))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "test.logs",
        "trace": "abc",
        "message": "said hello",
        "reason": "public",
        "城市": "上海",
    }


def test_a_pretty_line_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    line = written(capsys, "pretty", reason="public")
    assert re.fullmatch(r"\d\d:\d\d:\d\d info    - test\.logs: said hello reason=public\n", line)


@pytest.mark.parametrize("log_format", ["pretty", "json"])
@pytest.mark.threat(104)
def test_nobody_can_forge_a_line_or_colour_the_terminal(
    log_format: Literal["pretty", "json"], capsys: pytest.CaptureFixture[str]
) -> None:
    name = "x\n12:00:00 error   - root: forged\r\x1b[31m\u202e\u2028"
    line = written(capsys, log_format, file=name)
    assert line.count("\n") == 1
    assert line.endswith("\n")
    for char in ("\r", "\x1b"):
        assert char not in line


@pytest.mark.parametrize("log_format", ["pretty", "json"])
@pytest.mark.threat(104)
def test_of_an_exception_kinds_and_places_are_written_and_not_its_text(
    log_format: Literal["pretty", "json"], capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure(log_format, "info")
    try:
        try:
            raise KeyError("asked in private")
        except KeyError as cause:
            raise ValueError("asked in private \x1b[31m") from cause
    except ValueError:
        logging.getLogger("test.logs").exception("failed")
    written = capsys.readouterr().err
    assert "ValueError" in written
    assert "KeyError" in written
    assert "test_logs.py" in written
    assert "private" not in written
    assert "\x1b" not in written


@pytest.mark.threat(104)
async def test_a_task_that_nobody_waited_for_is_logged_without_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json", "info")
    failed = asyncio.get_running_loop().create_future()
    failed.set_exception(ValueError("asked in private"))
    context = {"message": "Future exception was never retrieved", "exception": failed.exception(), "future": failed}
    asyncio.get_running_loop().call_exception_handler(context)
    line = json.loads(capsys.readouterr().err)
    assert (line["message"], line["exception"]["kinds"]) == (context["message"], ["ValueError"])
    assert "private" not in str(line)


def test_the_last_configuration_wins_and_the_level_holds(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("pretty", "info")
    logs.configure("json", "error")
    logging.getLogger("test.logs").warning("unheard")
    logging.getLogger("test.logs").error("heard")
    assert json.loads(capsys.readouterr().err)["message"] == "heard"


def test_libraries_that_log_addresses_are_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("pretty", "debug")
    logging.getLogger("httpx").info("HTTP Request: POST http://127.0.0.1:11434/api/chat")
    assert capsys.readouterr().err == ""


def test_a_trace_is_made_nested_and_left() -> None:
    assert logs.trace_id() == "-"
    with logs.traced() as outer:
        assert re.fullmatch(r"[0-9a-f]{16}", outer)
        with logs.traced("inner"):
            assert logs.trace_id() == "inner"
        assert logs.trace_id() == outer
    assert logs.trace_id() == "-"


async def test_tasks_and_threads_inherit_the_trace_and_do_not_share_it() -> None:
    async def ask(trace: str) -> tuple[str, str]:
        with logs.traced(trace):
            await asyncio.sleep(0)
            return logs.trace_id(), await asyncio.to_thread(logs.trace_id)

    assert await asyncio.gather(ask("a"), ask("b")) == [("a", "a"), ("b", "b")]
