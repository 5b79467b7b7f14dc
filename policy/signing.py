"""Signed reports: Ed25519 by a key of this installation, kept in its home folder.

Whoever has the public key, which `intramuros policy prove` shows, can tell that a report is this installation's and
unchanged. It cannot tell what a machine would say whose administrator lies.
"""

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

_KIND = "ed25519"


def key(home: Path) -> Ed25519PrivateKey:
    """The installation's key, made at the first call, readable by its owner only. Raises OSError."""
    path = home / "keys" / "reports.key"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = Ed25519PrivateKey.generate().private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return Ed25519PrivateKey.from_private_bytes(path.read_bytes())
    with os.fdopen(descriptor, "wb") as file:
        file.write(made)
    return Ed25519PrivateKey.from_private_bytes(made)


def public(private: Ed25519PrivateKey) -> str:
    """The public half, base64 of its 32 bytes."""
    return base64.b64encode(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def sign(report: Mapping[str, Any], private: Ed25519PrivateKey) -> dict[str, Any]:
    """The report with its `signature`: kind, public key and value, over the report's canonical JSON."""
    value = base64.b64encode(private.sign(_canonical(report))).decode()
    return {**report, "signature": {"kind": _KIND, "key": public(private), "value": value}}


def verified(report: Mapping[str, Any]) -> str | None:
    """The public key under which the report is whole and unchanged, None where it is not."""
    rest = dict(report)
    signature = rest.pop("signature", None)
    try:
        if signature["kind"] != _KIND:
            return None
        signer = Ed25519PublicKey.from_public_bytes(base64.b64decode(signature["key"], validate=True))
        signer.verify(base64.b64decode(signature["value"], validate=True), _canonical(rest))
        return str(signature["key"])
    except (InvalidSignature, KeyError, TypeError, ValueError):
        return None


def _canonical(report: Mapping[str, Any]) -> bytes:
    return json.dumps(report, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
