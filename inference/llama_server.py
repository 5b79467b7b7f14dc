"""The process of the embedded chat model: `python -m inference.llama_server HOME MODEL NUM_CTX THREADS IDLE_SECONDS`.

The command returns at once and leaves a child behind. That serves OpenAI's routes on a free loopback port to the bearer
of a random key, so that the model's memory and crashes stay out of the program, and ends by itself after IDLE_SECONDS
without use. `inference.runfile` is how it is found.
"""

import os
import secrets
import signal
import sys
import time
from pathlib import Path
from typing import Any

from policy import boot

# Conversations whose prompt stays cached: an answer reads up to three passages, each best kept in a slot of its own.
# Large windows get fewer of them, so that together they take no more memory than this many tokens need.
_SLOTS, _TOKENS = 4, 16384
# Prompts of evicted conversations are kept in this much memory besides.
_CACHE_MB = 256
_HTTP_THREADS = 8
_WARNINGS = 2
# Exit codes, for the one who started it.
ANOTHER_RUNS = 3


def main(arguments: list[str]) -> int:
    """Serve until idle. Returns the exit code."""
    boot.seal()
    home, model, num_ctx, threads, idle = Path(arguments[0]), *arguments[1:]
    from inference import runfile

    with runfile.owned(home) as file:
        if file is None:
            return ANOTHER_RUNS
        if os.fork():  # the lock goes over to the child, and the launcher's parent need not wait for it
            return 0
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        key = secrets.token_urlsafe(32)
        server = _serve(model, int(num_ctx), int(threads), key)
        _allow_nothing()
        runfile.note_use(home)
        runfile.announce(file, runfile.Running(os.getpid(), server.listening_address, key, model, int(num_ctx)))
        _wait(home, float(idle))
    return 0


def _serve(model: str, num_ctx: int, threads: int, key: str) -> Any:
    import xllamacpp

    from inference.fetch import CHAT_MODEL

    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = model, {Path(model).stem}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.api_keys = [key]
    params.offline, params.ui, params.endpoint_slots, params.endpoint_props = True, False, False, False
    params.cors_origins = ""
    slots = max(1, min(_SLOTS, _TOKENS // num_ctx))
    params.n_ctx, params.n_parallel = num_ctx * slots, slots
    params.cache_ram_mib = _CACHE_MB
    params.verbosity = _WARNINGS
    params.n_gpu_layers, params.fit_params = 0, False
    # Both, or prompts are read with a default number of threads: 7 tokens a second instead of 55.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_threads_http = _HTTP_THREADS
    params.use_jinja = True
    if Path(model).name == CHAT_MODEL:  # another model's file knows its own template best
        params.chat_template = Path(__file__).with_name("chatml.jinja").read_text(encoding="utf-8")
    return xllamacpp.Server(params)


def _allow_nothing() -> None:
    """Python code in this process has no reason to connect anywhere or to start anything."""
    from policy import egress, hook

    hook.arm(egress.Policy())


def _wait(home: Path, idle: float) -> None:
    from inference import runfile

    while True:
        time.sleep(min(idle / 4, 5.0))
        with runfile.unused(home, idle) as unused:
            if unused:
                os._exit(0)  # with the lock held: whoever wants to use the model now starts a new one


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
