"""Requests made from the route table, so that a new route is tested without anybody thinking of it."""

import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import httpx
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from api import auth
from api.app import ROUTERS

ROUTES: Final = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]

# The least body that a route takes.
BODIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "POST /v1/login": {"name": "nobody", "password": "wrong password"},
    "POST /v1/collections": {"name": "new"},
    "PATCH /v1/collections/{collection_id}": {"owner_contact": "HR"},
    "PUT /v1/collections/{collection_id}/approval": {"approvers": ["group:legal"]},
    "POST /v1/search": {"query": "hotel"},
    "POST /v1/search/explain": {"query": "hotel"},
    "POST /v1/synonyms": {"words": ["hotel", "lodging"]},
    "POST /v1/ask": {"question": "hotel?"},
    "POST /v1/chat/completions": {"messages": [{"role": "user", "content": "hotel?"}]},
    "POST /v1/runs/{run_id}/trace": {"reason": "a complaint"},
    "POST /v1/approvals/{turn_id}": {"approved": True},
    "POST /v1/sessions": {},
    "PATCH /v1/sessions/{session_id}": {"title": "new"},
    "POST /v1/turns/{turn_id}/feedback": {"value": 1},
    "PATCH /v1/documents/{document_id}": {"supersedes": "HR-12"},
    "POST /v1/documents/{document_id}/release": {},
}
UPLOAD: Final = "POST /v1/documents"
# Answers go on for as long as their client listens.
ENDLESS: Final = frozenset({"GET /v1/documents/events"})


def name_of(route: APIRoute) -> str:
    """`METHOD /path` of a route."""
    return f"{min(route.methods)} {route.path}"


def guard_of(route: APIRoute) -> str:
    """`anyone`, `user` or `admin`."""
    calls = set(_calls(route.dependant))
    return "anyone" if auth.anyone in calls else "admin" if auth.admin in calls else "user"


def _calls(dependant: Dependant) -> list[object]:
    return [call for below in dependant.dependencies for call in (below.call, *_calls(below))]


def takes_json(route: APIRoute) -> bool:
    """Whether the route reads a JSON body."""
    return name_of(route) in BODIES


async def send(
    client: httpx.AsyncClient, route: APIRoute, ids: Mapping[str, object] | None = None, **options: Any
) -> httpx.Response:
    """One request that the route would take, path parameters from `ids` (else ids that nobody has)."""
    known: dict[str, object] = {
        "document_id": UUID(int=1),
        "session_id": UUID(int=2),
        "turn_id": UUID(int=3),
        "synonym_id": UUID(int=4),
        "collection_id": UUID(int=5),
        "run_id": UUID(int=6),
        "chunk_id": 1,
        "number": 1,
        "revision": 1,
    }
    path = re.sub(r"\{(\w+)\}", lambda match: str({**known, **(ids or {})}[match[1]]), route.path)
    name = name_of(route)
    if name == UPLOAD and "content" not in options and "json" not in options:
        options.setdefault("files", {"file": ("note.md", b"# Note\n\nSome text that is long enough to be read.\n")})
        options.setdefault("data", {"collection": "open"})
    elif name in BODIES and "content" not in options:
        options.setdefault("json", BODIES[name])
    return await client.request(min(route.methods), path, **options)
