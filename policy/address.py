"""Hosts and addresses: one strict reading, and one table of address classes.

`ipaddress.is_private` changes between Python releases and calls several routable or translated ranges private, so the
table is our own. Whatever is not an exact, canonical literal or a plain lower-case ASCII name is malformed: the C
library would happily resolve `0x7f.1`, `017700000001` or a full-width `127`.
"""

import ipaddress
import re
from enum import StrEnum

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class AddressClass(StrEnum):
    """What kind of place an address is. Only the first two can ever be allowed."""

    LOOPBACK = "loopback"
    PRIVATE = "private"
    UNSPECIFIED = "unspecified"
    LINK_LOCAL = "link_local"
    SHARED = "shared"
    METADATA = "metadata"
    TRANSLATED = "translated"
    MULTICAST = "multicast"
    RESERVED = "reserved"
    PUBLIC = "public"


# First match wins, so an exception stands before the range that it is taken from.
# Sources: IANA IPv4 and IPv6 special-purpose address registries; the metadata services of the large clouds.
_TABLE = [
    (ipaddress.ip_network(network), kind)
    for kind, networks in (
        (AddressClass.METADATA, ("169.254.169.254/32", "169.254.170.0/24", "100.100.100.200/32", "168.63.129.16/32")),
        (AddressClass.METADATA, ("192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::/32")),
        (AddressClass.UNSPECIFIED, ("0.0.0.0/8", "::/128")),
        (AddressClass.LOOPBACK, ("127.0.0.0/8", "::1/128")),
        (AddressClass.TRANSLATED, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")),
        (AddressClass.TRANSLATED, ("2002::/16", "2001::/32", "192.88.99.0/24")),
        (AddressClass.PRIVATE, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")),
        (AddressClass.LINK_LOCAL, ("169.254.0.0/16", "fe80::/10", "fec0::/10")),
        (AddressClass.SHARED, ("100.64.0.0/10",)),
        (AddressClass.MULTICAST, ("224.0.0.0/4", "ff00::/8")),
        (AddressClass.RESERVED, ("192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24")),
        (
            AddressClass.RESERVED,
            ("203.0.113.0/24", "240.0.0.0/4", "100::/64", "2001:db8::/32", "3fff::/20", "5f00::/16"),
        ),
    )
    for network in networks
]


class MalformedHost(ValueError):
    """A host that is neither a canonical address literal nor a plain name."""


def classify(address: Address) -> AddressClass:
    """The class of an address, by the table above; what is in no range is public."""
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id:
        return AddressClass.LINK_LOCAL
    return next((kind for network, kind in _TABLE if address in network), AddressClass.PUBLIC)


def literal(host: str) -> Address | None:
    """The address that `host` writes in canonical form, or None when it is no such literal."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return address if str(address) == host and "%" not in host else None


def read_host(host: str | bytes) -> Address | str:
    """An address for a canonical literal, the name itself for a plain name. Raises MalformedHost for all else."""
    if isinstance(host, bytes):
        try:
            host = host.decode("ascii")
        except UnicodeDecodeError:
            raise MalformedHost from None
    if not isinstance(host, str):
        raise MalformedHost
    address = literal(host)
    if address is not None:
        return address
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels) or _NUMBER.fullmatch(labels[-1]):
        raise MalformedHost
    return host
