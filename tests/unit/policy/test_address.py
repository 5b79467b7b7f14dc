import ipaddress

import pytest

from policy.address import AddressClass, MalformedHost, classify, literal, read_host

CLASSES = {
    AddressClass.LOOPBACK: ["127.0.0.1", "127.255.0.9", "::1"],
    AddressClass.PRIVATE: ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fd12:3456::1", "fc00::1"],
    AddressClass.UNSPECIFIED: ["0.0.0.0", "0.1.2.3", "::"],
    AddressClass.LINK_LOCAL: ["169.254.1.1", "fe80::1", "fe80::1%1", "fec0::1"],
    AddressClass.SHARED: ["100.64.0.1", "100.127.255.255"],
    AddressClass.METADATA: [
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
        "192.0.0.192",
    ],
    AddressClass.TRANSLATED: [
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "::ffff:0:7f00:1",
        "2001::1",
        "192.88.99.0",
    ],
    AddressClass.MULTICAST: ["224.0.0.1", "239.1.1.1", "ff02::1"],
    AddressClass.RESERVED: [
        "192.0.0.8",
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "240.0.0.1",
        "255.255.255.255",
        "2001:db8::1",
        "3fff::1",
        "5f00::1",
        "100::1",
    ],
    AddressClass.PUBLIC: ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "192.0.1.1"],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in CLASSES.items() for text in texts])
def test_every_range_has_its_class(kind: AddressClass, text: str) -> None:
    assert classify(ipaddress.ip_address(text)) is kind


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.5", "::1", "fd00::5"])
def test_canonical_literals_are_read_as_addresses(host: str) -> None:
    assert str(read_host(host)) == host
    assert read_host(host.encode()) == read_host(host)
    assert literal(host) is not None


@pytest.mark.parametrize(
    "host", ["localhost", "ollama", "db-1.intranet.example", "3com.example", "a" * 63 + ".example"]
)
def test_plain_names_stay_names(host: str) -> None:
    assert read_host(host) == host


@pytest.mark.parametrize(
    "host",
    [
        "",
        ".",
        "0",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "017700000001",
        "2852039166",
        "0xa9fea9fe",
        "127.0.0.01",
        "1.2.3.4.5",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "１２７.0.0.1",
        "192%2e168%2e1%2e1",
        "127.0.0.1.",
        "localhost.",
        "LOCALHOST",
        "Ollama",
        "ollamа",
        "a..b",
        "-a",
        "a-",
        "a_b",
        "a b",
        "a\tb",
        "a\n",
        "fe80::1%1",
        "0:0:0:0:0:0:0:1",
        "FD00::5",
        "[::1]",
        "a" * 64,
        "a." * 130 + "a",
        "127.0.0.1\x00",
        "x@127.0.0.1",
        b"\xff\xfe",
        None,
        2130706433,
        ("127.0.0.1",),
        bytearray(b"127.0.0.1"),
    ],
)
def test_everything_else_is_malformed(host: object) -> None:
    with pytest.raises(MalformedHost):
        read_host(host)  # type: ignore[arg-type]
