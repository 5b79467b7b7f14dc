"""Writes deploy/env.example and docs/reference/settings.md from the settings, which are their only source.

Run it after a change to core/settings.py:  .venv/bin/python deploy/settings_reference.py
"""

from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from core.settings import Settings, variable

ROOT = Path(__file__).resolve().parents[1]
ENV_EXAMPLE = ROOT / "deploy" / "env.example"
REFERENCE = ROOT / "docs" / "reference" / "settings.md"

_ENV_HEAD = """\
# Every setting of Intramuros with its default. Copy this file to deploy/.env, remove the # before what you change.
# Written by deploy/settings_reference.py; a test compares it with the program.
"""

_REFERENCE_HEAD = """\
# Settings

Every setting is an environment variable, read once at start. A value that cannot be used stops the program with a
message that names the variable. `deploy/env.example` holds the same list to copy from; many commands also take a
setting as an option, and `--help` then names its variable.

| variable | default | values | meaning |
|---|---|---|---|
"""


def default(field: FieldInfo) -> str:
    """A default as one would write it in the environment."""
    value = field.default
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def values(field: FieldInfo) -> str:
    """What may be given: the words of a choice, or the limits of a number."""
    if get_origin(field.annotation) is Literal:
        return ", ".join(get_args(field.annotation))
    if field.annotation is bool:
        return "true, false"
    limits: dict[str, Any] = {}
    for constraint in field.metadata:
        limits |= {name: getattr(constraint, name) for name in ("ge", "gt", "le") if hasattr(constraint, name)}
    words = {"ge": "at least {}", "gt": "above {}", "le": "at most {}"}
    return ", ".join(words[name].format(limit) for name, limit in limits.items())


def env_example() -> str:
    """The text of deploy/env.example."""
    lines = [_ENV_HEAD]
    for name, field in Settings.model_fields.items():
        allowed = values(field)
        lines.append(f"# {field.description}" + (f" ({allowed})" if allowed else ""))
        lines.append(f"#{variable(name)}={default(field)}\n")
    return "\n".join(lines).rstrip("\n") + "\n"


def reference() -> str:
    """The text of docs/reference/settings.md."""
    rows = []
    for name, field in Settings.model_fields.items():
        shown = f"`{default(field)}`" if default(field) else "empty"
        rows.append(f"| `{variable(name)}` | {shown} | {values(field)} | {field.description} |")
    return _REFERENCE_HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    ENV_EXAMPLE.write_text(env_example())
    REFERENCE.write_text(reference())
