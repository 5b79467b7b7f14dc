"""The files of deploy/ cannot be run here; they are linted and compared with the program."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from yamllint import linter
from yamllint.config import YamlLintConfig

from core.settings import PREFIX, Settings, variable
from deploy import settings_reference
from policy import boot
from policy.egress import Policy, check_dsn, check_url

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
LINT = "{extends: default, rules: {line-length: {max: 130}}}"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


@pytest.fixture
def container(compose: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings that the migrating container would read, which has both addresses of the database."""
    for name, value in compose["services"]["migrate"]["environment"].items():
        monkeypatch.setenv(name, re.sub(r"\$\{\w+:\?[^}]*\}", "Pass1", value))
    return Settings.load()


def test_compose_has_no_lint() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    assert [str(problem) for problem in linter.run(text, YamlLintConfig(LINT))] == []


def test_only_the_api_is_reachable_and_only_from_this_machine(compose: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert published == {"api": ["127.0.0.1:8400:8400"]}
    outside = {name for name, service in compose["services"].items() if "edge" in service["networks"]}
    assert outside == {"api"}
    assert compose["networks"]["inside"]["internal"] is True
    assert compose["networks"]["edge"]["driver_opts"] == {"com.docker.network.bridge.enable_ip_masquerade": "false"}


def test_ollama_stays_out_of_the_cloud(compose: dict[str, Any]) -> None:
    assert compose["services"]["ollama"]["environment"] == {"OLLAMA_NO_CLOUD": "1"}


def test_the_containers_settings_are_ones_that_the_policy_accepts(compose: dict[str, Any], container: Settings) -> None:
    known = {variable(name) for name in Settings.model_fields}
    for service in ("api", "migrate"):
        assert {name for name in compose["services"][service]["environment"] if name.startswith(PREFIX)} <= known
    policy = Policy.of(container)
    assert policy.listen == ("0.0.0.0", 8400)
    assert check_url(policy, container.ollama_url, "model").address == "172.30.57.3"
    for secret in (container.database_url, container.database_owner_url):
        assert secret is not None
        assert "hostaddr='172.30.57.2'" in check_dsn(policy, secret.get_secret_value())


def test_the_listed_peers_are_the_containers(compose: dict[str, Any], container: Settings) -> None:
    fixed = {name: compose["services"][name]["networks"]["inside"]["ipv4_address"] for name in ("postgres", "ollama")}
    assert set(container.private_peers) == {f"{fixed['postgres']}:5432", f"{fixed['ollama']}:11434"}


def test_the_owners_password_stays_with_the_migration(compose: dict[str, Any]) -> None:
    assert variable("database_owner_url") not in compose["services"]["api"]["environment"]


def test_the_image_runs_unprivileged_without_pip_and_with_every_switch() -> None:
    final = (DEPLOY / "Dockerfile").read_text().split("\nFROM ")[-1]
    instructions = re.sub(r"\\\n\s*", " ", final)
    given = dict(re.findall(r"(?:^ENV | )(\w+)=(\S+)", instructions, re.MULTILINE))
    assert {name: given.get(name) for name in boot.SWITCHES} == boot.SWITCHES
    assert "pip uninstall" in instructions
    assert re.findall(r"^USER (.*)$", instructions, re.MULTILINE) == ["10001:10001"]
    assert "ADD " not in instructions


def test_the_image_carries_every_package_and_the_ignore_file_lets_them_in() -> None:
    copied = set(re.findall(r"^COPY (\w+) /src/\1$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE))
    assert copied == {"core", "policy", "storage", "inference", "ingest", "agent", "api"}
    assert copied <= set(re.findall(r"^!(\w+)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.MULTILINE))


def test_every_setting_is_documented_as_it_is() -> None:
    remedy = "run: .venv/bin/python deploy/settings_reference.py"
    assert settings_reference.ENV_EXAMPLE.read_text() == settings_reference.env_example(), remedy
    assert settings_reference.REFERENCE.read_text() == settings_reference.reference(), remedy
    for name, field in Settings.model_fields.items():
        assert field.description
        assert variable(name) in settings_reference.ENV_EXAMPLE.read_text()


def test_the_example_read_back_gives_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Settings.load()
    for line in settings_reference.ENV_EXAMPLE.read_text().splitlines():
        if line.startswith(f"#{PREFIX}"):
            name, _, value = line.removeprefix("#").partition("=")
            monkeypatch.setenv(name, value)
    assert Settings.load() == plain
