"""How long processing will still take: from what was seen of it lately."""

import math
from dataclasses import dataclass
from typing import Final

# Seconds over which the speed is averaged; what is older counts for less and less.
SPAN: Final = 30.0


@dataclass(slots=True)
class Pace:
    """Chunks embedded a second, averaged over the last half minute or so. Unknown until some were."""

    _seconds: float = 0.0
    _chunks: float = 0.0

    def note(self, seconds: float, chunks: int) -> None:
        """So many chunks were embedded in the last so many seconds."""
        kept = math.exp(-seconds / SPAN)
        self._seconds = self._seconds * kept + seconds
        self._chunks = self._chunks * kept + chunks

    def seconds_for(self, chunks: float) -> float | None:
        """How long so many chunks will take; None where that cannot be said."""
        if chunks <= 0:
            return 0.0
        return chunks * self._seconds / self._chunks if self._chunks >= 1 else None
