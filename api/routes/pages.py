"""The pages for people. What they show comes from the routes under /v1, so nothing here needs to be kept secret."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

from api import auth
from api.auth import Anyone
from api.context import InContext
from api.language import preferred
from api.views import UserView
from core.errors import Unauthenticated
from core.records import Language, Principal

WEB: Final = Path(__file__).parent.parent / "web"

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, dependencies=[Anyone])

# Following a link from a mail or another site, a browser leaves our cookie out (SameSite=Strict). Loading the same
# address once more, from our own page, brings it along.
_AGAIN: Final = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0"><title>Intramuros</title>'


async def visitor(request: Request, context: InContext) -> Principal | None:
    """Who is looking at the page, None before the log-in."""
    try:
        return await auth.user(request, context)
    except Unauthenticated:
        return None


Visitor = Annotated[Principal | None, Depends(visitor)]


@router.get("/")
async def ask_page(request: Request, principal: Visitor) -> Response:
    """Ask, and read what was answered."""
    return _page(request, "ask", principal)


@router.get("/documents")
async def documents_page(request: Request, principal: Visitor) -> Response:
    """Documents, for administrators."""
    return _admin_page(request, "documents", principal)


@router.get("/documents/{document_id}")
async def document_page(request: Request, document_id: UUID, principal: Visitor) -> Response:
    """One document, for administrators."""
    return _admin_page(request, "document", principal)


@router.get("/quarantine")
async def quarantine_page(request: Request, principal: Visitor) -> Response:
    """Passages that wait to be released, for administrators."""
    return _admin_page(request, "quarantine", principal)


@router.get("/explain")
async def explain_page(request: Request, principal: Visitor) -> Response:
    """Why a search found what it found, for administrators."""
    return _admin_page(request, "explain", principal)


@router.get("/synonyms")
async def synonyms_page(request: Request, principal: Visitor) -> Response:
    """Words that mean the same, for administrators."""
    return _admin_page(request, "synonyms", principal)


@router.get("/traces")
async def traces_page(request: Request, principal: Visitor) -> Response:
    """How answers came about, for administrators."""
    return _admin_page(request, "traces", principal)


@router.get("/approvals")
async def approvals_page(request: Request, principal: Visitor) -> Response:
    """Answers that wait to be approved, for whoever may."""
    return _page(request, "approvals", principal)


@router.get("/login")
async def login_page(request: Request) -> Response:
    """Log in."""
    return _render(request, "login", None)


def _admin_page(request: Request, here: str, principal: Principal | None) -> Response:
    if principal is not None and not principal.is_admin:
        return RedirectResponse("/", 303)
    return _page(request, here, principal)


def _page(request: Request, here: str, principal: Principal | None) -> Response:
    if principal is not None:
        return _render(request, here, principal)
    if request.headers.get("sec-fetch-site") == "cross-site":
        return HTMLResponse(_AGAIN, headers={"Cache-Control": "no-store"})
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse("/login" if wanted == "/" else f"/login?{urlencode({'next': wanted})}", 303)


def _render(request: Request, here: str, principal: Principal | None) -> HTMLResponse:
    language = preferred(request)
    user = UserView.of(principal) if principal else None
    template = _templates().get_template(f"{here}.html")
    return HTMLResponse(
        template.render(here=here, language=language, words=_words(language), user=user),
        headers={"Cache-Control": "no-store", "Vary": "Accept-Language, Cookie"},
    )


@lru_cache(maxsize=1)
def _templates() -> Environment:
    return Environment(loader=FileSystemLoader(WEB / "templates"), autoescape=True, undefined=StrictUndefined)


@lru_cache(maxsize=2)
def _words(language: Language) -> dict[str, Any]:
    words: dict[str, Any] = json.loads((WEB / "words" / f"{language}.json").read_text(encoding="utf-8"))
    return words
