"""The walls of the operating system that are shipped: linted, and compared with the program."""

import configparser
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from yamllint import linter
from yamllint.config import YamlLintConfig

from core.settings import Settings
from tests.paths import PROJECT

DEPLOY = PROJECT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
NFT = DEPLOY / "nftables" / "intramuros.nft"
LINT = "{extends: default, rules: {line-length: {max: 130}, braces: {max-spaces-inside: 0}}}"


def unit(path: Path) -> dict[str, list[str]]:
    """The settings of a unit's [Service]."""
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text())
    return {name: value.split() for name, value in parser["Service"].items()}


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_service_reaches_this_machine_only_and_gains_no_rights(path: Path) -> None:
    told = unit(path)
    assert (told["IPAddressDeny"], told["IPAddressAllow"]) == (["any"], ["localhost"])
    assert set(told["RestrictAddressFamilies"]) == {"AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"}
    assert (told["ProtectSystem"], told["NoNewPrivileges"]) == (["strict"], ["yes"])
    assert (told["CapabilityBoundingSet"], told["AmbientCapabilities"]) == ([], [])
    assert told["User"] == ["intramuros"]
    # The process that reads documents needs these for its own walls.
    assert {"user", "mnt", "pid", "net"} <= set(told["RestrictNamespaces"])
    refused = told["SystemCallFilter"]
    assert refused[0].startswith("~")
    assert {"~@clock", "@debug", "@module", "@raw-io", "@reboot", "@swap"} <= set(refused)
    assert told["ExecStart"][0].endswith("/intramuros")


def test_server_and_worker_stand_behind_the_same_wall() -> None:
    server, worker = (unit(DEPLOY / "systemd" / name) for name in ("intramuros.service", "intramuros-worker.service"))
    assert server.pop("ExecStart")[1] == "serve"
    assert worker.pop("ExecStart")[1] == "worker"
    assert server == worker


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze not installed")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_finds_no_fault(path: Path) -> None:
    done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
    faults = [line for line in done.stderr.splitlines() if path.name in line and "is not executable" not in line]
    assert faults == []
    # At most 2.5 of 10, where 10 is a service without any sandbox. What is left are the walls that the reader of
    # documents builds itself, and the sockets that a server needs.
    weighed = ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=25", path]
    done = subprocess.run(weighed, capture_output=True, text=True, check=False)
    if "unrecognized option" not in done.stderr:
        assert done.returncode == 0, done.stdout[-200:]


@pytest.mark.skipif(shutil.which("nft") is None, reason="nft not installed")
def test_nftables_accepts_the_rules() -> None:
    command = ["unshare", "--net", "nft", "--check", "--define", "user=1000", "--file", str(NFT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "Operation not permitted" in done.stderr:
        pytest.skip("no network namespace may be made here")
    assert done.returncode == 0, done.stderr


def test_the_rules_end_in_a_refusal_that_counts() -> None:
    lines = [line.strip() for line in NFT.read_text().splitlines() if line.strip()]
    assert lines[lines.index("chain keep_in {") - 2] == "goto keep_in"
    assert lines[lines.index("chain keep_in {") + 1 :][:2] == [
        'counter name "refused"',
        "reject with icmpx type admin-prohibited",
    ]


@pytest.fixture(scope="module")
def policies() -> dict[str, dict[str, Any]]:
    text = (DEPLOY / "kubernetes" / "network-policy.yaml").read_text()
    assert [str(problem) for problem in linter.run(text, YamlLintConfig(LINT))] == []
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        assert (document["apiVersion"], document["kind"]) == ("networking.k8s.io/v1", "NetworkPolicy")
        assert document["metadata"]["namespace"] == "intramuros"
    return {document["metadata"]["name"]: document["spec"] for document in documents}


# Members that networking.k8s.io/v1 knows: what is misspelt is passed over without a word where a cluster is not strict.
SPEC = {"podSelector", "policyTypes", "ingress", "egress"}
SELECTOR = {"matchLabels", "matchExpressions"}
WHICH = {"ingress": ("Ingress", "from"), "egress": ("Egress", "to")}


def selectors(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every selector of a policy, for whom and of whom."""
    yield spec["podSelector"]
    for way, (_, whom) in WHICH.items():
        for rule in spec.get(way, ()):
            for peer in rule[whom]:
                assert set(peer) <= {"podSelector", "namespaceSelector"}
                yield from peer.values()


def test_every_policy_says_only_what_a_cluster_understands(policies: dict[str, dict[str, Any]]) -> None:
    for spec in policies.values():
        assert set(spec) <= SPEC
        assert all(set(selector) <= SELECTOR for selector in selectors(spec))
        for way, (kind, whom) in WHICH.items():
            # Rules of a kind that is not named do not count.
            assert (way in spec) <= (kind in spec["policyTypes"])
            for rule in spec.get(way, ()):
                # Without a peer a rule means everybody, without a port every one of them.
                assert set(rule) == {whom, "ports"}
                assert rule[whom]
                assert all(set(port) == {"protocol", "port"} for port in rule["ports"])


def test_a_cluster_denies_by_default_and_opens_no_way_out(policies: dict[str, dict[str, Any]]) -> None:
    everything = policies["nothing-leaves"]
    assert everything == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    outward = [rule for spec in policies.values() for rule in spec.get("egress", ())]
    assert len(outward) == 2
    for rule in outward:
        assert all(set(peer) == {"podSelector"} and peer["podSelector"]["matchLabels"] for peer in rule["to"])
        assert all(port["protocol"] == "TCP" and port["port"] != 53 for port in rule["ports"])


def test_a_cluster_lets_the_page_be_reached(policies: dict[str, dict[str, Any]]) -> None:
    assert policies["page-from-ingress"]["ingress"][0]["ports"] == [{"protocol": "TCP", "port": Settings.load().port}]
