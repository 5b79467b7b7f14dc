"""What a route works with: the open runtime, the worker and the login throttle of this app."""

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from api.passwords import Hashing
from api.runtime import Runtime
from api.throttle import Throttle
from api.worker import Worker


@dataclass(frozen=True, slots=True)
class Context:
    """Set once when the app starts. `recheck` is how often, in seconds, a stream asks whether its user may go on."""

    runtime: Runtime
    worker: Worker
    throttle: Throttle = field(default_factory=Throttle)
    hashing: Hashing = field(default_factory=Hashing)
    recheck: float = 2.0


def context(request: Request) -> Context:
    """The context of the app that serves this request."""
    found: Context = request.app.state.context
    return found


def runtime(request: Request) -> Runtime:
    """The open runtime."""
    return context(request).runtime


InContext = Annotated[Context, Depends(context)]
Open = Annotated[Runtime, Depends(runtime)]
