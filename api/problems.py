"""Every error as one JSON body, application/problem+json (RFC 9457).

Members: type, title, status, detail, code, trace, and `errors` where a body did not fit. Never SQL, a stack or a
secret: a person gets the trace id, the log has the rest under the same id.
"""

import inspect
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from core.errors import IntramurosError, InvalidRequest
from core.logs import places, trace_id

logger = logging.getLogger(__name__)


class ProblemResponse(JSONResponse):
    """A problem document."""

    media_type = "application/problem+json"


def problem(
    status: int,
    code: str,
    title: str,
    detail: str,
    *,
    errors: Sequence[Mapping[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> ProblemResponse:
    """The response for an error: `code` is for programs, `title` and `detail` are for people."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "trace": trace_id(),
    }
    if errors:
        body["errors"] = list(errors)
    return ProblemResponse(body, status, headers)


def of(error: Exception) -> ProblemResponse:
    """The response for any exception. One that is not ours is logged, without its text, and told as `internal`."""
    if isinstance(error, IntramurosError):
        if error.status >= 500:
            logger.error("request failed", extra={"code": error.code, "cause": type(error.__cause__).__name__})
        return _own(error)
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        return _http(error)
    log_defect(error)
    return _own(IntramurosError())


def by_code(code: str, message: str) -> ProblemResponse:
    """The response for an error that is known by its code and message only."""
    kind = _kinds().get(code, IntramurosError)
    return problem(kind.status, code, _title(kind), message)


def _kinds() -> Mapping[str, type[IntramurosError]]:
    # Not kept: packages that are imported late add errors of their own.
    found: dict[str, type[IntramurosError]] = {}
    waiting: list[type[IntramurosError]] = [IntramurosError]
    while waiting:
        kind = waiting.pop()
        found.setdefault(kind.code, kind)
        waiting += kind.__subclasses__()
    return found


def log_defect(error: BaseException) -> None:
    """Log an unexpected exception: kinds and places only, for its text may hold what a user wrote."""
    logger.error("unexpected error", extra=places(error))


def install(app: FastAPI) -> None:
    """Answer every error of the app's routes with a problem document."""

    async def handle(_: Request, error: Exception) -> ProblemResponse:
        return of(error)

    for kind in (IntramurosError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, handle)


def _own(error: IntramurosError) -> ProblemResponse:
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
    if error.status == 429:
        headers["Retry-After"] = str(error.details.get("retry_after", 60))
    return problem(error.status, error.code, _title(type(error)), error.message, headers=headers)


def _title(kind: type[IntramurosError]) -> str:
    first, _, _ = inspect.cleandoc(kind.__doc__ or "").replace("\n", " ").partition(". ")
    return first.rstrip(".")


def _invalid(error: RequestValidationError) -> ProblemResponse:
    faults = [
        {"where": ".".join(str(part) for part in fault["loc"]), "message": str(fault["msg"])}
        for fault in error.errors()[:20]
    ]
    detail = "; ".join(f"{fault['where']}: {fault['message']}" for fault in faults[:3])
    return problem(422, InvalidRequest.code, _title(InvalidRequest), detail, errors=faults)


def _http(error: HTTPException) -> ProblemResponse:
    status = HTTPStatus(error.status_code)
    # The framework's own words, none of which repeats what was sent.
    return problem(status, status.name.lower(), status.phrase, str(error.detail), headers=error.headers)
