"""Who is asking: tokens, cookies, and the guards that every route declares.

A token is `im_<tenant, 32 hex digits>_<secret, 43 characters>`: the tenant tells where to look, the secret has 256
bits, and only its SHA-256 is stored. A log-in hands out such a token as a cookie.
"""

import hashlib
import re
import secrets
from datetime import timedelta
from typing import Annotated, Final, Literal
from uuid import UUID

from fastapi import Depends, Request, Response

from api.context import Context, InContext
from core.errors import Forbidden, NotFound, Unauthenticated
from core.records import Principal
from core.settings import Settings
from storage import audit, tenants, users
from storage.database import Database

COOKIE: Final = "intramuros_session"
# A form or a picture on another site can make a browser send our cookie; it cannot make it send this header.
CSRF_HEADER: Final = "X-Intramuros"
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

_TOKEN = re.compile(r"im_([0-9a-f]{32})_[A-Za-z0-9_-]{43}")


# --- tokens ---------------------------------------------------------------------------------------------------------


def new_token(tenant_id: UUID) -> str:
    """A token nobody has had before."""
    return f"im_{tenant_id.hex}_{secrets.token_urlsafe(32)}"


def digest(token: str) -> str:
    """What is stored of a token: its SHA-256, 64 hexadecimal digits."""
    return hashlib.sha256(token.encode()).hexdigest()


async def issue(
    db: Database, principal: Principal, label: str, kind: Literal["api", "cookie"], lifetime: timedelta | None
) -> str:
    """Store a new token of `principal` and return it. It is shown this once."""
    token = new_token(principal.tenant_id)
    await users.add_token(db, principal, digest(token), label, kind, lifetime)
    return token


async def principal_of(db: Database, token: str) -> Principal:
    """Whose token this is. Raises Unauthenticated for an unknown, expired or revoked one, or a disabled user's."""
    match = _TOKEN.fullmatch(token)
    principal = await users.by_token(db, UUID(match[1]), digest(token)) if match else None
    if principal is None:
        raise Unauthenticated
    return principal


# --- logging in and out ---------------------------------------------------------------------------------------------


async def log_in(context: Context, slug: str, name: str, password: str, client: str) -> tuple[Principal, str]:
    """The user and a fresh cookie token. Raises Unauthenticated, TooManyAttempts."""
    db, account = context.runtime.db, (slug, name.casefold())
    context.throttle.attempt(account, client)
    tenant_id = await _tenant_id(db, slug)
    found = await users.by_name(db, tenant_id, name)
    if not await context.hashing.check(password, found[1] if found else None) or found is None:
        await audit.record(db, tenant_id, found[0].user_id if found else None, "login.failed")
        raise Unauthenticated("The name or the password is not right.")
    context.throttle.succeeded(account, client)
    lifetime = timedelta(hours=context.runtime.settings.login_hours)
    return found[0], await issue(db, found[0], "log-in", "cookie", lifetime)


async def _tenant_id(db: Database, slug: str) -> UUID:
    # Where there is no such tenant all goes on as with one that has no such user.
    try:
        return (await tenants.get(db, slug)).id
    except NotFound:
        return audit.INSTALLATION


def set_cookie(response: Response, token: str, settings: Settings) -> None:
    """Hand the token to a browser: out of reach for scripts, and never sent along from another site."""
    response.set_cookie(
        COOKIE,
        token,
        max_age=settings.login_hours * 3600,
        httponly=True,
        samesite="strict",
        secure=settings.secure_cookies,
    )


def clear_cookie(response: Response, settings: Settings) -> None:
    """Make a browser forget its token."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=settings.secure_cookies)


# --- guards ---------------------------------------------------------------------------------------------------------


def token_of(request: Request) -> str | None:
    """The token that a request carries: the Authorization header's, else the cookie's.

    A request that changes something by cookie must show that a script of our own sent it. Raises Forbidden.
    """
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    if scheme:
        return bearer.strip() if scheme.lower() == "bearer" else None
    cookie = request.cookies.get(COOKIE)
    if cookie and request.method not in SAFE_METHODS and request.headers.get(CSRF_HEADER) != "1":
        raise Forbidden(f"A request that changes something by cookie needs the header {CSRF_HEADER}: 1.")
    return cookie


async def anyone() -> None:
    """Guard of a route that is open to everybody."""


async def user(request: Request, context: InContext) -> Principal:
    """Guard of a route for everyone who is logged in. Raises Unauthenticated, Forbidden (CSRF)."""
    token = token_of(request)
    if not token:
        raise Unauthenticated
    return await principal_of(context.runtime.db, token)


async def admin(principal: Annotated[Principal, Depends(user)], request: Request, context: InContext) -> Principal:
    """Guard of a route for administrators. Raises Forbidden for others, and notes it."""
    if not principal.is_admin:
        route = f"{request.method} {request.scope['route'].path}"
        await audit.record(context.runtime.db, principal.tenant_id, principal.user_id, "access.refused", route)
        raise Forbidden
    return principal


GUARDS: Final = frozenset({anyone, user, admin})
Anyone = Depends(anyone)
User = Annotated[Principal, Depends(user)]
Admin = Annotated[Principal, Depends(admin)]
