import inspect
import re

import pytest

from core import errors
from core.errors import EgressDenied, IntramurosError

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, IntramurosError)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_says_what_to_do_in_one_line(kind: type[IntramurosError]) -> None:
    assert kind.__doc__, "the docstring is the default message"
    message = kind().message
    assert "\n" not in message
    assert "  " not in message
    assert message[0].isupper()
    assert message.endswith(".")
    assert str(kind()) == message
    assert 400 <= kind.status <= 599
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", kind.code)


def test_codes_are_unique() -> None:
    assert len({kind.code for kind in CLASSES}) == len(CLASSES)


def test_a_message_of_its_own_and_details_are_kept() -> None:
    error = errors.NotFound("There is no tenant 'x'.", slug="x")
    assert (str(error), error.message, error.details) == (
        "There is no tenant 'x'.",
        "There is no tenant 'x'.",
        {"slug": "x"},
    )


def test_a_denial_carries_its_reason() -> None:
    assert EgressDenied().reason == "denied"
    assert EgressDenied(reason="public", purpose="model").details == {"reason": "public", "purpose": "model"}
