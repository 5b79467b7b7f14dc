"""What must be in order before a question can be answered."""

import logging
from collections.abc import Awaitable, Callable

from api.runtime import Runtime
from api.views import CheckView, ReadyView
from core.errors import IntramurosError, PolicyError
from policy import boot, hook, ledger
from storage import migrations

logger = logging.getLogger(__name__)


async def readiness(runtime: Runtime) -> ReadyView:
    """Run every check; each failed one says what to do."""

    async def policy() -> None:
        boot.verify()
        if not runtime.policy.sound:
            raise PolicyError("There is no egress policy, so everything is denied. Correct the policy settings.")
        await hook.canary_in_loop()
        if ledger.closed():
            raise PolicyError("A denial could not be written to the audit log, so nothing may be reached.")

    checks = (
        await _check("database", runtime.db.ping),
        await _check("schema", lambda: migrations.check(runtime.db)),
        await _check("models", runtime.models),
        await _check("policy", policy),
    )
    return ReadyView(ready=all(check.ok for check in checks), checks=checks)


async def _check(name: str, run: Callable[[], Awaitable[object]]) -> CheckView:
    try:
        await run()
    except IntramurosError as error:
        logger.warning("not ready", extra={"check": name, "code": error.code, "detail": error.message})
        # Anybody may ask: the remedy is said in general words, addresses and paths only in the log.
        return CheckView(name=name, ok=False, code=error.code, detail=type(error)().message)
    return CheckView(name=name, ok=True)
