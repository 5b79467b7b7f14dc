"""What must be in order before a question can be answered."""

from collections.abc import Awaitable, Callable

from api.runtime import Runtime
from api.views import CheckView, ReadyView
from core.errors import IntramurosError, PolicyError
from policy import boot, hook
from storage import migrations


async def readiness(runtime: Runtime) -> ReadyView:
    """Run every check; each failed one says what to do."""

    async def policy() -> None:
        boot.verify()
        if not runtime.policy.sound:
            raise PolicyError("There is no egress policy, so everything is denied. Correct the policy settings.")
        await hook.canary_in_loop()

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
        return CheckView(name=name, ok=False, code=error.code, detail=error.message)
    return CheckView(name=name, ok=True)
