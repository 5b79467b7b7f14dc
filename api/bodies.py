"""What request bodies have in common: unknown members are refused, texts are bounded."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints


class Body(BaseModel):
    """A request body. A member that is not declared (`role`, `tenant_id` ...) makes the request invalid."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000)]
