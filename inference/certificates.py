"""What `intramuros certify` found out about a model on this machine, and how it changes what the model is used for.

A certificate is a file in INTRAMUROS_HOME, not a row in the database: speed and the context that holds are of this
machine, whichever database it works with; it belongs to no tenant; and it is needed where models are opened, before or
without a database. It is known by the model's identity, so that other weights under the same name have none.
"""

import hashlib
import json
import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from inference.interfaces import Traits

log = logging.getLogger(__name__)

CheckName = Literal["quick", "decisions", "tools", "citation", "refusal", "bilingual", "injection", "context"]
# What a model must pass to answer over several passages and to steer its own search.
CAPABLE: frozenset[CheckName] = frozenset(("decisions", "citation", "refusal", "bilingual", "injection"))


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was examined: `right` of `of` were as they should be."""

    name: CheckName
    passed: bool
    right: int
    of: int


@dataclass(frozen=True, slots=True)
class Certificate:
    """`reads` and `writes` in tokens a second; `context_tokens`: the longest context that held, 0 where none did;
    `parallel`: calls at once that all ended well and took no longer than one after another; `num_ctx` and `made_at`
    (ISO 8601) are of when it was made."""

    identity: str
    model: str
    provider: str
    made_at: str
    num_ctx: int
    checks: tuple[Check, ...]
    reads: float
    writes: float
    context_tokens: int
    parallel: int

    @property
    def fit(self) -> Literal["capable", "small", "unfit"]:
        """`capable`: answers over several passages, steers its own search. `small`: answers from one passage alone."""
        passed = {check.name for check in self.checks if check.passed}
        if passed >= CAPABLE and self.context_tokens:
            return "capable"
        return "small" if "quick" in passed and self.context_tokens else "unfit"

    def applied(self, traits: Traits) -> Traits:
        """The traits as they were found to be, in place of those that name and size speak for."""
        tools = traits.tools and any(check.name == "tools" and check.passed for check in self.checks)
        context = min(traits.context_tokens, self.context_tokens or traits.context_tokens)
        return replace(traits, tools=tools, capable=self.fit == "capable", context_tokens=context)


def summary(certificate: Certificate) -> str:
    """One line: what the model is fit for, how fast it is, and what it may be given."""
    speed = f"reads {certificate.reads:g} and writes {certificate.writes:g} tokens a second"
    limits = f"holds {certificate.context_tokens} tokens, takes {certificate.parallel} calls at once"
    return f"{certificate.model} is {certificate.fit}: {speed}, {limits}"


def read(home: Path, identity: str) -> Certificate | None:
    """The certificate of a model; None where it has none that this program can read."""
    path = _path(home, identity)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        checks = tuple(Check(**check) for check in values.pop("checks"))
        found = Certificate(checks=checks, **values)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        log.warning("a certificate could not be read", extra={"file": str(path)})
        return None
    return found if found.identity == identity else None


def write(home: Path, certificate: Certificate) -> Path:
    """Put a certificate in the place of an earlier one, whole or not at all; its file. Raises OSError."""
    path = _path(home, certificate.identity)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(asdict(certificate), ensure_ascii=False, indent=1), encoding="utf-8")
    scratch.replace(path)
    return path


def _path(home: Path, identity: str) -> Path:
    return home / "certificates" / f"{hashlib.sha256(identity.encode()).hexdigest()[:24]}.json"
