import os
from pathlib import Path

import pytest

from core.errors import SettingsError
from core.settings import Settings, variable

SECRETS = ("database_url", "database_owner_url", "openai_api_key")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("INTRAMUROS_"):
            monkeypatch.delenv(name)


def test_the_defaults_work_and_are_the_safe_ones() -> None:
    settings = Settings.load()
    assert (settings.scope, settings.host, settings.port, settings.private_peers) == ("strict", "127.0.0.1", 8400, ())
    assert settings.database_url is None
    assert settings.home.is_absolute()
    assert settings.cores >= 1


def test_the_environment_is_read_and_options_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTRAMUROS_PORT", "9000")
    monkeypatch.setenv("INTRAMUROS_TENANT", "acme")
    monkeypatch.setenv("INTRAMUROS_NO_SUCH_SETTING", "x")
    settings = Settings.load(port=9001)
    assert (settings.port, settings.tenant) == (9001, "acme")


def test_peers_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTRAMUROS_PRIVATE_PEERS", " 10.0.0.5:443, [fd00::5]:443 ,,")
    assert Settings.load().private_peers == ("10.0.0.5:443", "[fd00::5]:443")


def test_an_empty_variable_of_an_optional_setting_means_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    optional = [name for name, field in Settings.model_fields.items() if field.default is None]
    for name in optional:
        monkeypatch.setenv(variable(name), "")
    settings = Settings.load()
    assert {name: getattr(settings, name) for name in optional} == dict.fromkeys(optional)


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings.load(cache="~/models").cache == tmp_path / "models"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("home", "/"),
        ("home", "~"),
        ("tenant", "Demo"),
        ("tenant", "a/../b"),
        ("tenant", ""),
        ("scope", "public"),
        ("scope", " strict"),
        ("scope", ""),
        ("port", "0"),
        ("port", "65536"),
        ("pool_size", "0"),
        ("num_ctx", "12"),
        ("chat_timeout", "0"),
        ("chat_timeout", "-1"),
        ("chat_provider", "cloud"),
        ("max_model_calls", "1000"),
        ("log_level", "verbose"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_its_variable(
    field: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable(field), value)
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    assert caught.value.message.startswith(f"{variable(field)}: ")
    assert "docs/reference/settings.md" in caught.value.message


def test_every_fault_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTRAMUROS_PORT", "many")
    monkeypatch.setenv("INTRAMUROS_SCOPE", "open")
    with pytest.raises(SettingsError, match=r"INTRAMUROS_SCOPE: .*; INTRAMUROS_PORT: "):
        Settings.load()


def test_secrets_are_in_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(variable(name), "hunter2")
    settings = Settings.load()
    assert "hunter2" not in repr(settings) + str(settings) + settings.model_dump_json()
    for name in SECRETS:
        assert getattr(settings, name).get_secret_value() == "hunter2"


def test_a_refused_value_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTRAMUROS_PORT", "hunter2")
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    assert "hunter2" not in caught.value.message
    assert caught.value.__cause__ is None


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings.load().port = 1  # type: ignore[misc]


def test_threads_may_be_fixed() -> None:
    assert Settings.load(threads=3).cores == 3
