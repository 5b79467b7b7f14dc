import dataclasses
import logging
from dataclasses import FrozenInstanceError

import httpx
import pytest
from pydantic import SecretStr

from core.errors import BootRefused, EgressDenied
from core.settings import Settings
from policy import ledger
from policy.egress import Policy, check_dsn, check_url, parse_peer, parse_url

PEER = ("10.0.0.5", 11434)


def strict(**changes: object) -> Policy:
    base = Policy(scope="strict", peers=frozenset({PEER}), ports=frozenset({11434, 5432}), names=frozenset({"models"}))
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def private() -> Policy:
    return strict(scope="private")


def answering(*addresses: str):  # type: ignore[no-untyped-def]
    return lambda host, port: addresses


def unreachable(host: str, port: int) -> tuple[str, ...]:
    pytest.fail("a look-up was made")


# --- missing or malformed policies deny everything -------------------------------------------------------------------

MALFORMED = [
    None,
    {},
    [],
    "strict",
    {"scope": "Strict"},
    {"scope": " strict"},
    {"scope": "public"},
    {"scope": "unprotected"},
    {"scope": None},
    {"scope": ["strict"]},
    {"scope": "strict", "peers": "10.0.0.5:1"},
    {"scope": "strict", "peers": ["10.0.0.5"]},
    {"scope": "strict", "peers": ["8.8.8.8:53"]},
    {"scope": "strict", "peers": [{"address": "10.0.0.5:1"}]},
    {"scope": "strict", "peers": None},
    {"scope": "strict", "ports": ["11434"]},
    {"scope": "strict", "ports": [True]},
    {"scope": "strict", "ports": [0]},
    {"scope": "strict", "names": [7]},
    {"scope": "strict", "names": ["10.0.0.5"]},
    {"scope": "strict", "names": ["0x7f.1"]},
    {"scope": "strict", "unknown": 1},
]


@pytest.mark.threat(15)
@pytest.mark.parametrize("source", MALFORMED)
def test_a_missing_or_malformed_policy_denies_everything(source: object, caplog: pytest.LogCaptureFixture) -> None:
    policy = Policy.parse(source)  # type: ignore[arg-type]
    assert not policy.sound
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    for host in ("127.0.0.1", "10.0.0.5", "localhost", "models", "1.1.1.1"):
        for purpose in ("database", "model", "embedded", "search"):
            decision = policy.decide(host, 11434, purpose, ["127.0.0.1"])
            assert (decision.allowed, decision.reason, decision.address) == (False, "no_policy", None)
    with pytest.raises(EgressDenied):
        check_dsn(policy, "host=/run/postgresql dbname=x")


@pytest.mark.threat(15)
def test_a_policy_of_an_unknown_scope_denies_everything_however_it_was_made() -> None:
    assert Policy().decide("127.0.0.1", 1, "model").reason == "no_policy"
    assert strict(scope="public").decide("127.0.0.1", 11434, "model").reason == "no_policy"


def test_a_good_mapping_is_read() -> None:
    source = {"scope": "private", "peers": ["10.0.0.5:11434", "[fd00::5]:443"], "ports": [5432], "names": ["models"]}
    policy = Policy.parse(source)
    assert policy.sound
    assert policy.peers == {PEER, ("fd00::5", 443)}
    assert policy.decide("fd00::5", 443, "search").allowed


# --- the decision ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "port", "purpose", "in_strict", "in_private"),
    [
        ("127.0.0.1", 11434, "model", "loopback", "loopback"),
        ("127.0.0.1", 5432, "database", "loopback", "loopback"),
        ("localhost", 11434, "model", "loopback", "loopback"),
        (b"127.0.0.1", 11434, "model", "loopback", "loopback"),
        ("::1", 11434, "model", "loopback", "loopback"),
        ("127.0.0.1", 40000, "embedded", "loopback", "loopback"),
        ("10.0.0.5", 11434, "model", "peer", "peer"),
        ("10.0.0.5", 11434, "search", "!scope", "peer"),
        ("127.0.0.1", 2375, "model", "!port_not_listed", "!port_not_listed"),
        ("127.0.0.1", 11434, "search", "!scope", "!scope"),
        ("10.0.0.5", 11435, "model", "!peer_not_listed", "!peer_not_listed"),
        ("10.0.0.6", 11434, "model", "!peer_not_listed", "!peer_not_listed"),
        ("1.1.1.1", 11434, "model", "!public", "!public"),
        ("169.254.169.254", 80, "model", "!metadata", "!metadata"),
        ("100.64.0.1", 80, "model", "!shared", "!shared"),
        ("0.0.0.0", 11434, "model", "!unspecified", "!unspecified"),
        ("2002:a00:5::", 11434, "model", "!translated", "!translated"),
        ("0x7f.1", 11434, "model", "!malformed_host", "!malformed_host"),
        ("LOCALHOST", 11434, "model", "!malformed_host", "!malformed_host"),
        ("localhost.", 11434, "model", "!malformed_host", "!malformed_host"),
        ("models", 11434, "model", "!unresolved", "!unresolved"),
        ("m0dels", 11434, "model", "!name_not_listed", "!name_not_listed"),
        ("127.0.0.1", 65536, "model", "!malformed_port", "!malformed_port"),
        ("127.0.0.1", "11434", "model", "!malformed_port", "!malformed_port"),
        ("127.0.0.1", True, "model", "!malformed_port", "!malformed_port"),
    ],
)
def test_what_each_scope_allows(host: str, port: int, purpose: str, in_strict: str, in_private: str) -> None:
    for policy, expected in ((strict(), in_strict), (private(), in_private)):
        decision = policy.decide(host, port, purpose)
        assert decision.reason == expected.lstrip("!")
        assert decision.allowed is not expected.startswith("!")
        assert (decision.address is not None) is decision.allowed


def test_a_public_address_is_denied_even_when_it_is_listed() -> None:
    policy = strict(scope="private", peers=frozenset({("1.1.1.1", 443), ("169.254.169.254", 80)}))
    assert policy.decide("1.1.1.1", 443, "model").reason == "public"
    assert policy.decide("169.254.169.254", 80, "model").reason == "metadata"


@pytest.mark.threat(31)
@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["10.0.0.5"], "10.0.0.5"),
        (["::1", "127.0.0.1"], "127.0.0.1"),
        (["127.0.0.1", "10.0.0.5"], "127.0.0.1"),
        (["10.0.0.5", "1.1.1.1"], "!mixed_answers"),
        (["1.1.1.1", "10.0.0.5"], "!mixed_answers"),
        (["10.0.0.5", "10.0.0.6"], "!mixed_answers"),
        (["10.0.0.5", "fe80::1%eth0"], "!mixed_answers"),
        (["1.1.1.1"], "!public"),
        (["10.0.0.6", "10.0.0.7"], "!peer_not_listed"),
        (["64:ff9b::7f00:1"], "!translated"),
        ([], "!unresolved"),
    ],
)
def test_every_answer_of_a_look_up_must_be_allowed(answers: list[str], expected: str) -> None:
    decision = strict().decide("models", 11434, "model", answers)
    assert (decision.address if decision.allowed else "!" + decision.reason) == expected


# --- URLs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("http://127.0.0.1:11434", "127.0.0.1", 11434, ""),
        ("http://localhost:11434/", "localhost", 11434, "/"),
        ("https://models:8443/v1", "models", 8443, "/v1"),
        ("http://[fd00::5]:8000/v1/", "fd00::5", 8000, "/v1/"),
        ("https://10.0.0.5", "10.0.0.5", 443, ""),
        ("http://10.0.0.5:80", "10.0.0.5", 80, ""),
    ],
)
def test_plain_urls_are_read_as_httpx_reads_them(url: str, host: str, port: int, path: str) -> None:
    endpoint = parse_url(url)
    assert (endpoint.host, endpoint.port, endpoint.path, endpoint.address) == (host, port, path, None)
    seen = httpx.URL(url)
    assert (seen.host, seen.port or {"http": 80, "https": 443}[seen.scheme]) == (host, port)


ODD_HOSTS = (
    "[::ffff:0:7f00:1] [::127.0.0.1] [2002:7f00:1::] [64:ff9b::7f00:1] [64:ff9b:1::1] [fec0::1] [5f00::1] [3fff::1] "
    "[::ffff:127.0.0.1] [::] 100.64.0.1 100.100.100.200 192.0.0.8 224.0.0.1 168.63.129.16 192.88.99.1 169.254.169.254 "
    "0 0.0.0.0 127.1 2130706433 0x7f.1 0177.0.0.1 017700000001 2852039166 0xa9fea9fe 127.0.0.01 "
    "①②⑦.⓪.⓪.① 127。0。0。1 １２７.0.0.1 192%2e168%2e1%2e1 127.0.0.1%2f [fe80::1%1] [fe80::1%251] [::1%lo] "
    "localhost. LOCALHOST 127.0.0.1. lоcalhost xn--lcalhost-54a modеls models.evil.example ⓛocalhost"
)


@pytest.mark.threat(27, 28, 33)
@pytest.mark.parametrize("host", ODD_HOSTS.split())
def test_odd_hosts_are_refused_without_a_look_up(host: str) -> None:
    with pytest.raises(EgressDenied) as caught:
        check_url(strict(), f"http://{host}:11434/", "model", resolver=unreachable)
    assert host not in caught.value.message


@pytest.mark.threat(29, 33)
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1\\@1.1.1.1/",
        "http://1.1.1.1\\@127.0.0.1:11434/",
        "http://a@b@127.0.0.1:11434/",
        "http://u:p@127.0.0.1:11434/",
        "http://127.0.0.1:11434@1.1.1.1/",
        "http://127.0.0.1:11434#@1.1.1.1/",
        "http://127.0.0.1:11434?x=1",
        "http://127.0.0.1:11434/?token=x",
        "http://127.0.0.1:11434/#f",
        "http:///x",
        "http://127.0.0.1:65536",
        "http://127.0.0.1:0",
        "http://127.0.0.1:",
        "http://127.0.0.1:011434",
        "http://127.0.0.1:１１４３４",
        "http://127.0.0.1:+80",
        "http://127.0.0.1 :80",
        " http://127.0.0.1:11434",
        "http://127.0.0.1:11434\n",
        "http://127.0.0.1:11434/\tx",
        "http://127.0.0.1\r\n:11434",
        "http://::1:11434",
        "http://127.0.0.1:11434//1.1.1.1/",
        "http://127.0.0.1:11434/%2e%2e",
        "http://[127.0.0.1]:11434",
        "HTTP://127.0.0.1:11434",
        "//127.0.0.1:11434",
        "127.0.0.1:11434",
        "ftp://127.0.0.1:11434",
        "http:127.0.0.1",
        "file:///etc/passwd",
        "unix:///var/run/docker.sock",
        "http+unix://%2Fvar%2Frun%2Fdocker.sock",
        "",
        None,
        b"x",
    ],
)
def test_urls_that_two_parsers_could_read_differently_are_refused(url: str) -> None:
    with pytest.raises(EgressDenied) as caught:
        check_url(strict(), url, "model", resolver=unreachable)
    assert caught.value.reason in {"malformed_url", "malformed_host"}


def test_a_url_that_the_client_reads_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpx, "URL", lambda text, read=httpx.URL: read(text.replace("127.0.0.1", "127.0.0.2")))
    with pytest.raises(ValueError, match="not_canonical"):
        parse_url("http://127.0.0.1:11434")


def test_a_checked_url_carries_the_judged_address() -> None:
    assert check_url(strict(), "http://127.0.0.1:11434", "model", resolver=unreachable).address == "127.0.0.1"
    assert check_url(strict(), "http://localhost:11434", "model", resolver=unreachable).address == "127.0.0.1"
    assert check_url(strict(), "http://models:11434", "model", resolver=answering("10.0.0.5")).address == "10.0.0.5"
    with pytest.raises(EgressDenied, match="mixed_answers"):
        check_url(strict(), "http://models:11434", "model", resolver=answering("10.0.0.5", "1.1.1.1"))


@pytest.mark.threat(34)
def test_secrets_of_a_denied_url_reach_neither_message_nor_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    before = ledger.denials().get("malformed_url", 0)
    with pytest.raises(EgressDenied) as caught:
        check_url(strict(), "https://user:hunter2@secret.example/?token=t0ken", "model")
    said = caught.value.message + str(caught.value.details) + "".join(str(vars(r)) for r in caplog.records)
    for secret in ("hunter2", "user:", "secret.example", "t0ken"):
        assert secret not in said
    assert ledger.denials()["malformed_url"] == before + 1


# --- PostgreSQL connection strings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        ("postgresql://app:p@127.0.0.1:5432/db", "user='app' password='p' host='127.0.0.1' port='5432' dbname='db'"),
        ("postgres://app@localhost/db", "user='app' host='localhost' dbname='db' port='5432'"),
        ("postgresql://app:p%40%2F@[::1]/db", "user='app' password='p@/' host='::1' dbname='db' port='5432'"),
        ("host=127.0.0.1 dbname=db password='a b\\'c'", "host='127.0.0.1' dbname='db' password='a b\\'c' port='5432'"),
        ("host=db.name hostaddr=127.0.0.1", "host='db.name' hostaddr='127.0.0.1' port='5432'"),
    ],
)
def test_a_loopback_connection_string_is_pinned(dsn: str, expected: str) -> None:
    rendered = check_dsn(strict(), dsn, resolver=unreachable)
    address = "::1" if "::1" in dsn else "127.0.0.1"
    pinned = expected if "hostaddr" in expected else f"{expected} hostaddr='{address}'"
    assert rendered == f"{pinned} gssencmode='disable'"


def test_a_socket_folder_is_allowed_and_a_name_is_pinned() -> None:
    assert check_dsn(strict(), "postgresql://postgres:@/postgres?host=/home/x/pg") == (
        "user='postgres' host='/home/x/pg' dbname='postgres' port='5432' gssencmode='disable'"
    )
    assert "host='/run/postgresql'" in check_dsn(strict(), "postgresql://%2Frun%2Fpostgresql/db")
    policy = strict(peers=frozenset({("10.0.0.7", 5432)}), names=frozenset({"db"}))
    assert "hostaddr='10.0.0.7'" in check_dsn(policy, "postgresql://a@db/x", resolver=answering("10.0.0.7"))
    with pytest.raises(EgressDenied, match="mixed_answers"):
        check_dsn(policy, "postgresql://a@db/x", resolver=answering("10.0.0.7", "10.0.0.8"))


@pytest.mark.parametrize(
    ("dsn", "reason"),
    [
        ("postgresql://a@1.1.1.1/db", "public"),
        ("postgresql://a@10.0.0.9/db", "peer_not_listed"),
        ("postgresql://a@127.0.0.1:9999/db", "port_not_listed"),
        ("postgresql://a@db.example/db", "name_not_listed"),
        ("postgresql://a@127.0.0.1,1.1.1.1/db", "several_hosts"),
        ("host=127.0.0.1,1.1.1.1", "several_hosts"),
        ("host=127.0.0.1 hostaddr=1.1.1.1", "public"),
        ("host=/run/postgresql hostaddr=1.1.1.1", "public"),
        ("postgresql://127.0.0.1/db?hostaddr=1.1.1.1", "public"),
        ("postgresql:///db?host=1.1.1.1", "public"),
        ("postgresql://127.0.0.1/db?host=1.1.1.1", "malformed_dsn"),
        ("host=127.0.0.1 host=1.1.1.1", "malformed_dsn"),
        ("postgresql://a@127.0.0.1@1.1.1.1/db", "malformed_dsn"),
        ("postgresql://a@127.0.0.1:x/db", "malformed_dsn"),
        ("host=127.0.0.1 port=0", "malformed_port"),
        ("host=127.1", "malformed_host"),
        ("host=@abstract", "abstract_socket"),
        ("service=elsewhere", "parameter_not_allowed"),
        ("host=127.0.0.1 service=elsewhere", "parameter_not_allowed"),
        ("host=127.0.0.1 oauth_issuer=https://idp.example", "parameter_not_allowed"),
        ("host=127.0.0.1 krbsrvname=x", "parameter_not_allowed"),
        ("dbname=db", "no_host"),
        ("postgresql:///db", "no_host"),
        ("", "no_host"),
        ("garbage", "malformed_dsn"),
        ("host='127.0.0.1", "malformed_dsn"),
        ("host=127.0.0.1\0", "malformed_dsn"),
    ],
)
def test_other_connection_strings_are_refused(dsn: str, reason: str) -> None:
    with pytest.raises(EgressDenied) as caught:
        check_dsn(strict(), dsn, resolver=unreachable)
    assert caught.value.reason == reason


# --- from settings ---------------------------------------------------------------------------------------------------


def test_the_default_settings_allow_the_local_model_server_only() -> None:
    policy = Policy.of(Settings())
    assert policy.scope == "strict"
    assert policy.decide("127.0.0.1", 11434, "model").allowed
    assert not policy.decide("127.0.0.1", 5432, "database").allowed
    assert policy.listen == ("127.0.0.1", 8400)


def test_settings_name_the_servers_that_may_be_reached() -> None:
    settings = Settings(
        private_peers=("10.0.0.5:8000", "10.0.0.7:5432"),  # type: ignore[arg-type]
        openai_url="http://models:8000/v1",
        database_url=SecretStr("postgresql://app:p@10.0.0.7/db"),
        database_owner_url=SecretStr("postgresql://owner:p@/db?host=/run/postgresql"),
    )
    policy = Policy.of(settings)
    assert policy.names == {"models"}
    assert policy.decide("models", 8000, "model", ["10.0.0.5"]).address == "10.0.0.5"
    assert check_dsn(policy, settings.database_url.get_secret_value())  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "variable"),
    [
        ({"private_peers": ("8.8.8.8:53",)}, "INTRAMUROS_PRIVATE_PEERS"),
        ({"private_peers": ("intranet:443",)}, "INTRAMUROS_PRIVATE_PEERS"),
        ({"private_peers": ("10.0.0.5",)}, "INTRAMUROS_PRIVATE_PEERS"),
        ({"private_peers": ("10.0.0.0/8:443",)}, "INTRAMUROS_PRIVATE_PEERS"),
        ({"private_peers": ("100.64.0.1:443",)}, "INTRAMUROS_PRIVATE_PEERS"),
        ({"ollama_url": "https://ollama.com"}, None),
        ({"ollama_url": "http://1.1.1.1:11434"}, "INTRAMUROS_OLLAMA_URL"),
        ({"ollama_url": "http://10.0.0.5:11434"}, "INTRAMUROS_OLLAMA_URL"),
        ({"ollama_url": "http://user:hunter2@127.0.0.1:11434"}, "INTRAMUROS_OLLAMA_URL"),
        ({"openai_url": "http://127.1:8000/v1"}, "INTRAMUROS_OPENAI_URL"),
        ({"database_url": SecretStr("postgresql://a:hunter2@8.8.8.8/db")}, "INTRAMUROS_DATABASE_URL"),
        ({"database_url": SecretStr("service=x password=hunter2")}, "INTRAMUROS_DATABASE_URL"),
        ({"database_owner_url": SecretStr("postgresql://a:hunter2@10.0.0.9/db")}, "INTRAMUROS_DATABASE_OWNER_URL"),
    ],
)
def test_unsafe_settings_are_refused_at_start(changes: dict[str, object], variable: str | None) -> None:
    settings = Settings(**changes)  # type: ignore[arg-type]
    if variable is None:
        # A name is judged by its addresses, when it is connected to: a public one is refused then.
        assert Policy.of(settings).decide("ollama.com", 443, "model", ["34.36.133.15"]).reason == "public"
        return
    with pytest.raises(BootRefused, match=variable) as caught:
        Policy.of(settings)
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize("text", ["10.0.0.5:0", "10.0.0.5:65536", "[10.0.0.5]:1", "fd00::5:1", "[fe80::1]:1", "", None])
def test_malformed_peers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="_peer"):
        parse_peer(text)


@pytest.mark.threat(16)
@pytest.mark.parametrize("field", ["scope", "peers", "ports", "names", "listen", "sockets"])
def test_a_policy_cannot_be_changed_while_it_holds(field: str) -> None:
    policy = Policy(scope="strict")
    with pytest.raises(FrozenInstanceError):
        setattr(policy, field, None)
    assert policy == Policy(scope="strict")
