"""Logging in and out, and who one is."""

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field

from api import auth
from api.auth import Anyone, User
from api.bodies import Body, Name
from api.context import InContext, Open
from api.views import UserView, View
from storage import users

router = APIRouter(prefix="/v1", tags=["login"])


class LoginBody(Body):
    """A name and a password; the tenant's short name where a server has several."""

    tenant: Annotated[str | None, Field(max_length=40)] = None
    name: Name
    password: Annotated[str, Field(min_length=1, max_length=256)]


class LoginView(View):
    """Who is logged in now."""

    user: UserView


@router.post("/login", dependencies=[Anyone])
async def log_in(body: LoginBody, request: Request, response: Response, context: InContext) -> LoginView:
    """Log in by name and password; sets the cookie `intramuros_session`."""
    settings = context.runtime.settings
    client = request.client.host if request.client else "-"
    principal, token = await auth.log_in(context, body.tenant or settings.tenant, body.name, body.password, client)
    auth.set_cookie(response, token, settings)
    return LoginView(user=UserView.of(principal))


@router.post("/logout", status_code=204)
async def log_out(principal: User, request: Request, response: Response, runtime: Open) -> None:
    """Revoke the token that this request carries and clear the cookie."""
    token = auth.token_of(request)
    if token:
        await users.forget_token(runtime.db, principal.tenant_id, auth.digest(token))
    auth.clear_cookie(response, runtime.settings)


@router.get("/me")
async def me(principal: User) -> UserView:
    """Who is logged in."""
    return UserView.of(principal)
