"""A process that kills itself (SIGKILL) at a chosen call, and how a test runs one."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from tests.paths import PROJECT

Call = Callable[..., Awaitable[Any]]
# Of what, which function, and before or after it.
Point = tuple[Any, str, Callable[[Call], Call]]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(_: Call) -> Call:
    async def killed(*args: Any, **kwargs: Any) -> None:
        die()

    return killed


def after(real: Call) -> Call:
    async def killed(*args: Any, **kwargs: Any) -> None:
        await real(*args, **kwargs)
        die()

    return killed


def arm(point: Point) -> None:
    """From now on this process dies there."""
    owner, name, way = point
    setattr(owner, name, way(getattr(owner, name)))


async def killed(module: str, *arguments: str) -> None:
    """Run a module in a process of its own, which must end by its own hand."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments), cwd=PROJECT, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(120):
            _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == -signal.SIGKILL, said.decode()
