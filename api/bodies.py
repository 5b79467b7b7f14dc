"""What request bodies have in common: unknown members are refused, texts are bounded."""

from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints


class Body(BaseModel):
    """A request body. A member that is not declared (`role`, `tenant_id` ...) makes the request invalid."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000)]


def _day(value: Any) -> Any:
    # Pydantic alone would take a number for the seconds since 1970.
    if isinstance(value, str):
        return date.fromisoformat(value)
    return value


Day = Annotated[date, BeforeValidator(_day)]
