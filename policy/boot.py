"""Switches that keep libraries quiet, thrown before any of them is imported and checked again afterwards.

Only the standard library and `core.errors` may be imported here: the libraries concerned read their switches once, at
import, so this module has to come first in every process that the program starts.
"""

import asyncio
import importlib.util
import os
import sys
from collections.abc import Callable
from typing import Any

from core.errors import BootRefused

# Telemetry, tracing, model hubs and plug-ins of our dependencies, each with the value that its library understands.
SWITCHES = {
    "LANGSMITH_TRACING_V2": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING": "false",
    "LANGGRAPH_STRICT_MSGPACK": "true",
    "DO_NOT_TRACK": "1",
    "SCARF_NO_ANALYTICS": "true",
    "UNSTRUCTURED_DISABLE_NOTICE": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
    "OTEL_SDK_DISABLED": "true",
    # C code, which the tripwire cannot see: it sends how a model was run to its maker, and looks up a name for that.
    "ORT_DISABLE_TELEMETRY": "1",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
    "NO_PROXY": "*",
    "no_proxy": "*",
}

# Addresses, keys and search paths that a library would pick up behind our back, exact or by beginning.
REMOVED = frozenset(
    {
        "UNSTRUCTURED_ALLOW_PRIVATE_URL",
        "UNSTRUCTURED_API_KEY",
        "HF_ENDPOINT",
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "PGSERVICE",
        "PGSERVICEFILE",
        "PGSYSCONFDIR",
        "PGHOST",
        "PGHOSTADDR",
        "PGOPTIONS",
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "SSLKEYLOGFILE",
    }
)
REMOVED_PREFIXES = ("LANGSMITH_", "LANGCHAIN_", "OLLAMA_", "OPENAI_")

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy")

# Event loops in C: the audit hook does not see what they connect to.
BLIND_LOOPS = ("uvloop", "zuvloop")


def seal() -> None:
    """Throw every switch. Call it first in every entry point, before any third-party import. Idempotent.

    Raises BootRefused where uvloop or a proxy would carry traffic past the policy.
    """
    _refuse_proxies()
    _refuse_blind_loops()
    for name in list(os.environ):
        if _unwanted(name):
            del os.environ[name]
    os.environ.update(SWITCHES)


def verify() -> None:
    """Check, after the imports, that every switch still holds and was seen by the library. Raises BootRefused."""
    _refuse_proxies()
    _refuse_blind_loops()
    for name, value in SWITCHES.items():
        if os.environ.get(name) != value:
            raise BootRefused(f"{name} is not '{value}': start through the `intramuros` command, which sets it.")
    for name in os.environ:
        if _unwanted(name):
            raise BootRefused(f"{name} was set after the start: something in this process changes the environment.")
    for name, holds in _LOADED_CHECKS.items():
        module = sys.modules.get(name)
        if module is not None and not holds(module):
            raise BootRefused(
                f"{name} was imported before its switch was set and would talk to others or trust stored data. "
                "Start through the `intramuros` command."
            )


def _unwanted(name: str) -> bool:
    return name in REMOVED or (name.startswith(REMOVED_PREFIXES) and name not in SWITCHES)


def _refuse_proxies() -> None:
    for name, value in os.environ.items():
        if name.lower() in PROXIES and value:
            raise BootRefused(
                f"The variable {name} is set, so a proxy could carry data out. "
                f"Start without it: env -u {name} intramuros ..."
            )


def _refuse_blind_loops() -> None:
    loop_module = type(asyncio.get_event_loop_policy()).__module__.partition(".")[0]
    for name in BLIND_LOOPS:
        if name in sys.modules or loop_module == name or importlib.util.find_spec(name) is not None:
            raise BootRefused(
                f"{name} is installed, and its connections cannot be watched. Remove it: pip uninstall {name}"
            )


# What a loaded library shows of its switch. Their names are private to them, so a change makes this fail, not pass.
_LOADED_CHECKS: dict[str, Callable[[Any], bool]] = {
    "langsmith.utils": lambda module: module.tracing_is_enabled() is False,
    "langsmith.run_trees": lambda module: module._CLIENT is None,
    "langgraph.checkpoint.serde._msgpack": lambda module: module.STRICT_MSGPACK_ENABLED is True,
    "pydantic.plugin._loader": lambda module: not module._plugins,
    "huggingface_hub.constants": lambda module: module.HF_HUB_OFFLINE is True,
}
