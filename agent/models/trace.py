"""What a run did, step by step, for an administrator who replays it."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from core.records import Step


@dataclass(slots=True)
class Trace:
    """The steps of one run in the order they happened. One lock: sub-agents run in parallel."""

    started: float = field(default_factory=time.perf_counter)
    _steps: list[Step] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _always: Mapping[str, Any] = field(default_factory=dict)

    def part(self, **always: Any) -> "Trace":
        """The same trace for a part of the run: each of its steps holds these too."""
        return replace(self, _always={**self._always, **always})

    def note(self, kind: str, **data: Any) -> None:
        """Remember a step: its kind (`route`, `search`, `model` ...) and what belongs to it, as JSON."""
        at = round((time.perf_counter() - self.started) * 1000)
        with self._lock:
            self._steps.append(Step(kind, at, {**self._always, **data}))

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was noted so far."""
        with self._lock:
            return tuple(self._steps)
