"""What request bodies have in common: unknown members are refused, texts are bounded."""

from datetime import date
from typing import Annotated, Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from core.records import Filters, Language

T = TypeVar("T")


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
# Not strict: JSON has no UUID type.
Id = Annotated[UUID, Field(strict=False)]


class Narrowed(Body):
    """What a search is narrowed to, each left out when it is not: names of collections, documents' ids and languages,
    media types, and the day whose revisions count (today).
    """

    collections: Annotated[list[Name] | None, Field(max_length=100)] = None
    documents: Annotated[list[Id] | None, Field(max_length=100)] = None
    languages: Annotated[list[Language] | None, Field(max_length=10)] = None
    media_types: Annotated[list[Name] | None, Field(max_length=100)] = None
    as_of: Day | None = None

    @property
    def filters(self) -> Filters:
        """The same for storage."""
        return Filters(
            collections=_tuple(self.collections),
            documents=_tuple(self.documents),
            languages=_tuple(self.languages),
            media_types=_tuple(self.media_types),
            as_of=self.as_of,
        )


def _tuple(values: list[T] | None) -> tuple[T, ...] | None:
    return None if values is None else tuple(values)
