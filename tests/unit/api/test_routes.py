"""The route table: every route declares a guard, and is in the documentation."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import Mount

import api
from api import auth
from api.app import ROUTERS, create_app
from core.settings import Settings

ROUTES = [route for router in ROUTERS for route in router.routes]
REFERENCE = Path(api.__file__).parent.parent / "docs" / "reference" / "api.md"


def _calls(dependant: Dependant) -> Iterator[object]:
    for below in dependant.dependencies:
        yield below.call
        yield from _calls(below)


def _name(route: APIRoute) -> str:
    return f"{min(route.methods)} {route.path}"


def test_there_is_nothing_but_routes() -> None:
    assert all(isinstance(route, APIRoute) for route in ROUTES)
    assert len({_name(route) for route in ROUTES if isinstance(route, APIRoute)}) == len(ROUTES) > 20


@pytest.mark.parametrize("route", ROUTES, ids=_name)
@pytest.mark.threat(114)
def test_every_route_declares_a_guard(route: APIRoute) -> None:
    assert auth.GUARDS & set(_calls(route.dependant)), "declare Anyone, User or Admin"


@pytest.mark.parametrize("route", ROUTES, ids=_name)
def test_only_reading_routes_are_open_to_everybody(route: APIRoute) -> None:
    if auth.user not in set(_calls(route.dependant)):
        assert route.methods == {"GET"} or route.path == "/v1/login"


@pytest.mark.parametrize("route", ROUTES, ids=_name)
def test_every_route_is_documented_with_its_guard(route: APIRoute) -> None:
    calls = set(_calls(route.dependant))
    # The pages look who is there, to greet; they refuse nobody.
    opened = auth.anyone in calls
    guard = "anyone" if opened else "admin" if auth.admin in calls else "user"
    assert f"| `{_name(route)}` | {guard} |" in REFERENCE.read_text(encoding="utf-8")


def test_nothing_is_documented_that_is_not_there() -> None:
    documented = re.findall(r"^\| `([A-Z]+ /[^`]*)` \|", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(documented) == sorted(_name(route) for route in ROUTES)


def test_the_app_serves_the_routers_and_the_static_files_only(tmp_path: Path) -> None:
    app = create_app(Settings.load(home=tmp_path))
    assert [route.path for route in app.routes if isinstance(route, Mount)] == ["/static"]
    assert app.docs_url is app.redoc_url is app.openapi_url is None


def test_route_modules_read_no_body_before_the_guard() -> None:
    # A parameter of type UploadFile makes the framework read the file first and ask who is there afterwards.
    for path in (Path(api.__file__).parent / "routes").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.AsyncFunctionDef):
                annotations = {ast.unparse(a.annotation) for a in node.args.args if a.annotation}
                assert not annotations & {"UploadFile", "bytes", "FormData"} or node.name.startswith("_")
