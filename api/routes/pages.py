"""The pages for people. What they show comes from the routes under /v1, so nothing here needs to be kept secret."""

import json
from dataclasses import dataclass
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
from ingest.kinds import EXTENSIONS
from storage import approvals

WEB: Final = Path(__file__).parent.parent / "web"

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, dependencies=[Anyone])

# Following a link from a mail or another site, a browser leaves our cookie out (SameSite=Strict). Loading the same
# address once more, from our own page, brings it along.
_AGAIN: Final = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0"><title>Intramuros</title>'


@dataclass(frozen=True, slots=True)
class Guest:
    """Who is looking at a page, and how many answers wait for their approval: None where nobody would ask them."""

    principal: Principal
    waiting: int | None


async def visitor(request: Request, context: InContext) -> Guest | None:
    """Who is looking at the page, None before the log-in."""
    try:
        principal = await auth.user(request, context)
    except Unauthenticated:
        return None
    return Guest(principal, await approvals.waiting(context.runtime.db, principal))


Visitor = Annotated[Guest | None, Depends(visitor)]


@router.get("/")
async def ask_page(request: Request, guest: Visitor) -> Response:
    """Ask, and read what was answered."""
    return _page(request, "ask", guest)


@router.get("/documents")
async def documents_page(request: Request, guest: Visitor) -> Response:
    """Documents, for administrators."""
    return _admin_page(request, "documents", guest)


@router.get("/documents/{document_id}")
async def document_page(request: Request, document_id: UUID, guest: Visitor) -> Response:
    """One document, for administrators."""
    return _admin_page(request, "document", guest)


@router.get("/quarantine")
async def quarantine_page(request: Request, guest: Visitor) -> Response:
    """Passages that wait to be released, for administrators."""
    return _admin_page(request, "quarantine", guest)


@router.get("/explain")
async def explain_page(request: Request, guest: Visitor) -> Response:
    """Why a search found what it found, for administrators."""
    return _admin_page(request, "explain", guest)


@router.get("/synonyms")
async def synonyms_page(request: Request, guest: Visitor) -> Response:
    """Words that mean the same, for administrators."""
    return _admin_page(request, "synonyms", guest)


@router.get("/traces")
async def traces_page(request: Request, guest: Visitor) -> Response:
    """How answers came about, for administrators."""
    return _admin_page(request, "traces", guest)


@router.get("/approvals")
async def approvals_page(request: Request, guest: Visitor) -> Response:
    """Answers that wait to be approved, for whoever may."""
    return _page(request, "approvals", guest)


@router.get("/login")
async def login_page(request: Request) -> Response:
    """Log in."""
    return _render(request, "login", None)


def _admin_page(request: Request, here: str, guest: Guest | None) -> Response:
    if guest is not None and not guest.principal.is_admin:
        return RedirectResponse("/", 303)
    return _page(request, here, guest)


def _page(request: Request, here: str, guest: Guest | None) -> Response:
    if guest is not None:
        return _render(request, here, guest)
    if request.headers.get("sec-fetch-site") == "cross-site":
        return HTMLResponse(_AGAIN, headers={"Cache-Control": "no-store"})
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse("/login" if wanted == "/" else f"/login?{urlencode({'next': wanted})}", 303)


def _render(request: Request, here: str, guest: Guest | None) -> HTMLResponse:
    language = preferred(request)
    user, waiting = (UserView.of(guest.principal), guest.waiting) if guest else (None, None)
    template = _templates().get_template(f"{here}.html")
    return HTMLResponse(
        template.render(here=here, language=language, words=_words(language), user=user, waiting=waiting),
        headers={"Cache-Control": "no-store", "Vary": "Accept-Language, Cookie"},
    )


@lru_cache(maxsize=1)
def _templates() -> Environment:
    made = Environment(loader=FileSystemLoader(WEB / "templates"), autoescape=True, undefined=StrictUndefined)
    made.globals["kinds"] = _kinds()
    return made


def _kinds() -> dict[str, str]:
    """Media types of what is read -> the endings that such files have, as `JPG, JPEG`."""
    endings: dict[str, list[str]] = {}
    for ending, kind in EXTENSIONS.items():
        endings.setdefault(kind.value, []).append(ending[1:].upper())
    return {media_type: ", ".join(names) for media_type, names in endings.items()}


@lru_cache(maxsize=2)
def _words(language: Language) -> dict[str, Any]:
    words: dict[str, Any] = json.loads((WEB / "words" / f"{language}.json").read_text(encoding="utf-8"))
    return words
