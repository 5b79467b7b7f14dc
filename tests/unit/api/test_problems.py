"""Problem documents: one shape, and no text that was not meant for a person."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

import agent.workflow.run  # noqa: F401 its errors belong to the tree
from api import problems
from core import errors
from core.errors import IntramurosError, StorageError, TooManyAttempts
from core.logs import traced


def _body(error: Exception) -> dict[str, Any]:
    with traced("0123456789abcdef"):
        body: dict[str, Any] = json.loads(bytes(problems.of(error).body))
    return body


def _kinds(kind: type[IntramurosError] = IntramurosError) -> Iterator[type[IntramurosError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


@pytest.mark.parametrize("kind", sorted(_kinds(), key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_every_error_of_the_tree_becomes_a_problem(kind: type[IntramurosError]) -> None:
    body = _body(kind())
    assert set(body) == {"type", "title", "status", "detail", "code", "trace"}
    assert (body["status"], body["code"], body["trace"]) == (kind.status, kind.code, "0123456789abcdef")
    assert body["title"]
    assert body["detail"].startswith(body["title"])


def test_the_cause_stays_inside(caplog: pytest.LogCaptureFixture) -> None:
    error = StorageError()
    error.__cause__ = RuntimeError("INSERT INTO users VALUES ('hunter2')")
    with caplog.at_level(logging.DEBUG):
        assert "hunter2" not in json.dumps(_body(error))
    assert "hunter2" not in str([vars(record) for record in caplog.records])


def test_headers_that_the_statuses_ask_for() -> None:
    assert problems.of(errors.Unauthenticated()).headers["www-authenticate"] == "Bearer"
    assert problems.of(TooManyAttempts(retry_after=7)).headers["retry-after"] == "7"
    assert problems.of(HTTPException(405, headers={"Allow": "GET"})).headers["allow"] == "GET"


def test_a_body_that_does_not_fit_says_where_but_not_what() -> None:
    fault = {"type": "string_too_long", "loc": ("body", "name"), "msg": "Too long", "input": "hunter2"}
    body = _body(RequestValidationError([fault]))
    assert body["errors"] == [{"where": "body.name", "message": "Too long"}]
    assert "hunter2" not in json.dumps(body)


@pytest.mark.parametrize(("code", "status"), [("session_busy", 409), ("not_found", 404), ("no_such_code", 500)])
def test_an_error_known_by_its_code(code: str, status: int) -> None:
    reply = problems.by_code(code, "words")
    assert reply.status_code == status
    assert json.loads(bytes(reply.body))["detail"] == "words"
