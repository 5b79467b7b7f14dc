"""The URL judge under mutated URLs: what it accepts, every other parser must read as it does."""

import random
from urllib.parse import urlsplit

import httpx
import pytest

from policy.address import read_host
from policy.egress import parse_url

SEEDS = (
    "http://127.0.0.1:11434/v1",
    "https://[fd00::5]:443/a/b",
    "http://models.internal",
    "http://10.0.0.5/api/",
    "http://localhost:8080",
)
PIECES = (
    "@",
    "\\",
    "/",
    "//",
    ":",
    "?",
    "#",
    "%",
    "%2e",
    "%00",
    ".",
    "..",
    "[",
    "]",
    "\t",
    "\r",
    "\n",
    "0x7f",
    "0177",
    "①",
    "。",
    "１",
    "ａ",
    "ß",
    "ı",
    "xn--",
    "::1",
    "::ffff:",
    "%1",
    "u:p@",
    "1.1.1.1",
    "evil.example",
)
ROUNDS = 20_000


def mutated(source: random.Random) -> str:
    text = source.choice(SEEDS)
    for _ in range(source.randint(1, 4)):
        start = source.randint(0, len(text))
        end = min(len(text), start + source.choice((0, 0, 1, 3)))
        piece = source.choice((source.choice(PIECES), chr(source.randint(0, 0x2FFF)), text[: source.randint(0, 12)]))
        text = text[:start] + piece + text[end:]
    return text


@pytest.mark.threat(27, 29, 33)
def test_what_is_accepted_is_read_alike_by_every_parser() -> None:
    source, accepted = random.Random(7), 0
    for _ in range(ROUNDS):
        url = mutated(source)
        try:
            endpoint = parse_url(url)
        except ValueError:
            continue
        accepted += 1
        default = {"http": 80, "https": 443}[endpoint.scheme]
        standard, client = urlsplit(url), httpx.URL(url)
        assert (standard.scheme, standard.hostname, standard.port or default) == (
            endpoint.scheme,
            endpoint.host,
            endpoint.port,
        ), url
        assert (client.raw_host.decode(), client.port or default) == (endpoint.host, endpoint.port), url
        assert str(read_host(endpoint.host)) == endpoint.host
        assert url.isascii() and "@" not in url and standard.username is None
    assert 100 < accepted < ROUNDS // 2
