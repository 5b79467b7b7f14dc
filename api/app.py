"""The web application: routes, guards, pages, and what opens and closes around them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.staticfiles import StaticFiles

from api import problems, tasks
from api.context import Context
from api.routes import (
    approvals,
    ask,
    collections,
    completions,
    documents,
    health,
    login,
    models,
    overview,
    pages,
    progress,
    quarantine,
    schema,
    search,
    sessions,
    synonyms,
    traces,
    vectors,
)
from api.runtime import Runtime
from api.security import BodyGuard, Edge
from api.worker import Worker
from core.errors import IntramurosError
from core.settings import Settings

logger = logging.getLogger(__name__)

# `progress` before `documents`, whose /v1/documents/{document_id} would take its path.
ROUTERS: Final = tuple(
    module.router
    for module in (
        approvals,
        ask,
        collections,
        completions,
        progress,
        documents,
        health,
        login,
        models,
        overview,
        pages,
        quarantine,
        schema,
        search,
        sessions,
        synonyms,
        traces,
        vectors,
    )
)

OpenRuntime = Callable[[Settings], AbstractAsyncContextManager[Runtime]]


async def _warm(runtime: Runtime) -> None:
    # The first question would otherwise wait for the choice of the models and for what they import.
    try:
        await runtime.agent()
    except IntramurosError as error:
        logger.warning("questions cannot be answered yet", extra={"code": error.code})


def create_app(settings: Settings, open_runtime: OpenRuntime = Runtime.open) -> FastAPI:
    """The application. The runtime is opened when the server starts and closed when it ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_runtime(settings) as runtime:
            worker = Worker(runtime)
            app.state.context = Context(runtime, worker)
            warming = asyncio.create_task(_warm(runtime), name="warm up")
            async with worker.working(processing=settings.serve_worker):
                yield
            await tasks.end(warming)

    app = FastAPI(
        title="Intramuros",
        lifespan=lifespan,
        # Their pages load scripts from elsewhere; /v1/openapi.json is for who is logged in.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(Edge),
            Middleware(BodyGuard, upload_limit=settings.max_file_bytes),
        ],
    )
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=pages.WEB / "static"), name="static")
    # It logs every event that it sends, answers included.
    logging.getLogger("sse_starlette").setLevel(logging.WARNING)
    return app
