"""The files of deploy/ cannot be run here; they are linted and compared with the program."""

import re
import subprocess
from ipaddress import ip_address, ip_network
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


@pytest.mark.threat(36)
def test_containers_have_one_network_which_is_internal_and_publish_nothing(compose: dict[str, Any]) -> None:
    assert set(compose["networks"]) == {"inside"}
    assert compose["networks"]["inside"]["internal"] is True
    for service in compose["services"].values():
        assert set(service["networks"]) == {"inside"}
        # No question for an outside name leaves the resolver of a container either.
        assert service["dns"] == ["127.0.0.1"]
        assert not set(service) & {"ports", "network_mode", "extra_hosts", "links", "external_links"}


def test_containers_write_nowhere_else_and_gain_no_rights(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert service["read_only"] is True
        assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
        assert service["pids_limit"] > 0
        assert not set(service) & {"privileged", "cap_add", "devices", "pid", "ipc", "userns_mode", "volumes_from"}
        folders = [volume.split(":") for volume in service["volumes"]]
        # Volumes of its own; of the machine's folders only such as it may read.
        assert all(source in compose["volumes"] or rest[-1] == "ro" for source, *rest in folders)


def test_the_addresses_of_containers_are_theirs_alone(compose: dict[str, Any]) -> None:
    (config,) = compose["networks"]["inside"]["ipam"]["config"]
    networks = [service["networks"] for service in compose["services"].values()]
    fixed = [ip_address(one["inside"]["ipv4_address"]) for one in networks if isinstance(one, dict)]
    assert len(set(fixed)) == len(fixed) == 3
    assert all(one in ip_network(config["subnet"]) and one not in ip_network(config["ip_range"]) for one in fixed)


def test_the_role_of_the_program_is_made_without_rights(compose: dict[str, Any]) -> None:
    script = DEPLOY / "postgres" / "app-role.sh"
    assert subprocess.run(["sh", "-n", script], check=False).returncode == 0
    assert "LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOINHERIT PASSWORD :'password'" in script.read_text()
    used = set(re.findall(r"\$(\w+)", script.read_text()))
    assert used <= set(compose["services"]["postgres"]["environment"])


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
