"""One finding of `doctor`."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; `remedy` is what to do where it is not ok, or what can be done."""

    name: str
    state: State
    detail: str
    remedy: str | None = None
