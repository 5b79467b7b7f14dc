"""`policy show` leaves no rule out: every reason that the policy can give belongs to one, and says what is in force."""

import pytest

from api.cli.rules import LAYERS, rules
from policy import hook
from policy.address import AddressClass
from policy.egress import Policy
from policy.hook import Rules
from tests.unit.policy.test_reference import reasons

POLICY = Policy(
    scope="private",
    peers=frozenset({("10.0.0.5", 443)}),
    ports=frozenset({11434}),
    names=frozenset({"models.internal"}),
    listen=("0.0.0.0", 8400),
    sockets=("/run/postgresql",),
)
# Words that are no reasons of a denial.
INTERNAL = {"loopback", "peer", "localhost", "shape"}


@pytest.fixture(autouse=True)
def armed(monkeypatch: pytest.MonkeyPatch) -> None:
    in_force = Rules(POLICY, frozenset({"/usr/bin/python3"}), ("/run/postgresql",), ("/usr/lib",), False, True)
    monkeypatch.setattr(hook, "in_force", lambda: in_force)


def test_every_reason_of_a_denial_belongs_to_one_rule() -> None:
    told = [reason for rule in rules(POLICY) for reason in rule.reasons]
    classes = {kind.value for kind in AddressClass} - {"loopback", "private"}
    assert set(reasons()) | classes <= set(told) | INTERNAL
    assert len(told) == len(set(told))


def test_every_layer_has_rules_that_say_what_they_mean() -> None:
    found = rules(POLICY)
    assert {rule.layer for rule in found} == set(LAYERS)
    assert all(rule.value and rule.meaning.endswith(".") for rule in found)
    assert len({(rule.layer, rule.name) for rule in found}) == len(found)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scope", "private"),
        ("private peers", "10.0.0.5:443"),
        ("ports of this machine", "11434"),
        ("look-ups", "localhost, models.internal"),
        ("listening", "this machine, 0.0.0.0:8400"),
        ("Unix sockets", "/run/postgresql"),
        ("programs", "/usr/bin/python3"),
    ],
)
def test_what_is_shown_is_what_is_in_force(name: str, value: str) -> None:
    assert [rule.value for rule in rules(POLICY) if rule.name == name] == [value]


def test_a_policy_that_denies_everything_is_shown_as_such() -> None:
    shown = {rule.name: rule for rule in rules(Policy())}
    assert (shown["scope"].value, shown["offered"].value) == ("None", "none")
    assert "everything is denied" in shown["scope"].meaning
