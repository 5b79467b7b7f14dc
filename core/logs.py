"""Logging: one configuration, JSON or pretty lines, a trace id that follows a request down to SQL.

Of an exception its kinds and places are written, never its text: that may hold what a user asked or a document says.
"""

import json
import logging
import sys
import traceback
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

_trace: ContextVar[str] = ContextVar("trace", default="-")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "trace"}


def trace_id() -> str:
    """The trace id in force, `-` outside a request."""
    return _trace.get()


@contextmanager
def traced(trace: str | None = None) -> Iterator[str]:
    """Give everything inside one trace id (16 hexadecimal digits when none is handed in)."""
    value = trace or uuid.uuid4().hex[:16]
    token = _trace.set(value)
    try:
        yield value
    finally:
        _trace.reset(token)


def configure(log_format: Literal["pretty", "json"], level: str) -> None:
    """Send every log record to standard error. Safe to call again: the last call wins."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log_format == "json" else _Pretty())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("httpx", "httpcore", "unstructured", "asyncio", "psycopg.pool"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))


def places(error: BaseException) -> dict[str, list[str]]:
    """What may be logged of an exception: `kinds`, its own and its causes', and `frames`, the last twelve."""
    kinds = [type(error).__name__]
    cause = error.__cause__ or error.__context__
    while cause is not None and len(kinds) < 8:
        kinds.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    return {"kinds": kinds, "frames": frames[-12:]}


def _said(record: logging.LogRecord) -> str:
    message = record.getMessage()
    # Below its first line asyncio shows tasks with the text of their exceptions.
    return message.partition("\n")[0] if record.name == "asyncio" else message


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


def _one_line(text: str) -> str:
    # Log injection: a user's name or path must not be able to start a new line or colour the terminal.
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "trace": trace_id(),
            "message": _said(record),
            **_extra(record),
        }
        if record.exc_info and record.exc_info[1]:
            line["exception"] = places(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False, default=str)


class _Pretty(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        clock = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        fields = " ".join(f"{key}={value}" for key, value in _extra(record).items())
        text = _one_line(f"{_said(record)} {fields}".rstrip())
        line = f"{clock} {record.levelname.lower():7} {trace_id()} {record.name}: {text}"
        if record.exc_info and record.exc_info[1]:
            seen = places(record.exc_info[1])
            line = "\n".join([line, *map(_one_line, (" < ".join(seen["kinds"]), *seen["frames"]))])
        return line
