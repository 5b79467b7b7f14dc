"""The log-in throttle, on a clock of the test's own."""

from uuid import uuid4

import pytest

from api.auth import new_token
from api.throttle import CAPACITY, PER_ADDRESS, PER_NAME, WINDOW, Throttle
from core.errors import TooManyAttempts


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.threat(105)
def test_ten_thousand_guesses_get_ten_tries() -> None:
    throttle, let_through = Throttle(Clock()), 0
    for number in range(10_000):
        try:
            throttle.attempt(("demo", "ada"), f"10.0.{number // 250}.{number % 250}")
        except TooManyAttempts:
            continue
        let_through += 1
    assert let_through == PER_NAME


def test_one_client_cannot_try_many_names() -> None:
    throttle, let_through = Throttle(Clock()), 0
    for number in range(1000):
        try:
            throttle.attempt(("demo", f"user{number}"), "10.0.0.1")
        except TooManyAttempts:
            continue
        let_through += 1
    assert let_through == PER_ADDRESS


def test_waiting_helps_and_the_error_says_how_long() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    for _ in range(PER_NAME):
        throttle.attempt(("demo", "ada"), "a")
    clock.now += 20
    with pytest.raises(TooManyAttempts) as caught:
        throttle.attempt(("demo", "ada"), "b")
    assert caught.value.details["retry_after"] == WINDOW - 20
    clock.now += WINDOW - 20
    throttle.attempt(("demo", "ada"), "b")


def test_success_forgets_the_accounts_failures_only() -> None:
    throttle = Throttle(Clock())
    for _ in range(PER_NAME):
        throttle.attempt(("demo", "ada"), "a")
        throttle.succeeded(("demo", "ada"), "a")
    throttle.attempt(("demo", "ada"), "a")
    for number in range(PER_ADDRESS - 1):
        throttle.attempt(("demo", f"user{number}"), "a")
    with pytest.raises(TooManyAttempts):
        throttle.attempt(("demo", "another"), "a")


def test_other_accounts_and_tenants_are_not_held_up() -> None:
    throttle = Throttle(Clock())
    for _ in range(PER_NAME):
        throttle.attempt(("demo", "ada"), "a")
    throttle.attempt(("demo", "bob"), "a")
    throttle.attempt(("other", "ada"), "a")


def test_made_up_names_do_not_fill_the_memory() -> None:
    throttle = Throttle(Clock())
    for number in range(CAPACITY):
        throttle.attempt(("demo", str(number)), str(number))
    assert len(throttle._attempts) <= CAPACITY


@pytest.mark.threat(105)
def test_a_token_has_more_bits_than_anybody_guesses() -> None:
    """43 letters of 64, from the system's own source: 256 bits, none of them the same for two tokens."""
    tenant = uuid4()
    secrets = [new_token(tenant).removeprefix(f"im_{tenant.hex}_") for _ in range(2000)]
    assert {len(secret) for secret in secrets} == {43}
    assert len(set(secrets)) == len(secrets)
    for place in range(42):  # of the last letter four bits count
        assert len({secret[place] for secret in secrets}) == 64
