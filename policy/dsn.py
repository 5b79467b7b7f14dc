"""PostgreSQL connection strings: read, narrowed to the parameters we know, and written again in one form."""

import re
from collections.abc import Mapping
from urllib.parse import unquote

# Parameters that cannot make libpq look anything up or go anywhere. `service`, `servicefile`, the Kerberos and the
# OAuth ones are left out on purpose; so is whatever a later libpq invents.
_KNOWN = frozenset(
    {"host", "hostaddr", "port", "dbname", "user", "password", "passfile", "application_name", "options"}
    | {"client_encoding", "connect_timeout", "target_session_attrs", "tcp_user_timeout", "gssencmode"}
    | {"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "requirepeer", "require_auth"}
    | {"sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslnegotiation", "ssl_min_protocol_version"}
    | {"channel_binding"}
)
_URI = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?#]*)(?::(?P<password>[^@/?#]*))?@)?"
    r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[^\[\]:@/?#]*))(?::(?P<port>[0-9]*))?"
    r"(?:/(?P<dbname>[^?#]*))?(?:\?(?P<query>[^#]*))?"
)
_PAIR = re.compile(r"\s*(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)(?=\s|$)", re.DOTALL)


def parse(text: str) -> dict[str, str]:
    """Parameters of a URI or keyword string, `port` filled in. Raises ValueError with a reason code.

    The host must be there: libpq would otherwise take it from its surroundings.
    """
    if not isinstance(text, str) or "\0" in text:
        raise ValueError("malformed_dsn")
    fields = _from_uri(text) if text.startswith(("postgresql://", "postgres://")) else _from_pairs(text)
    fields = {key: value for key, value in fields.items() if value != ""}
    if not set(fields) <= _KNOWN:
        raise ValueError("parameter_not_allowed")
    if "host" not in fields and "hostaddr" not in fields:
        raise ValueError("no_host")
    if any("," in fields.get(key, "") for key in ("host", "hostaddr", "port")):
        raise ValueError("several_hosts")
    if fields.get("host", "").startswith("@"):
        raise ValueError("abstract_socket")
    port = fields.setdefault("port", "5432")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError("malformed_port")
    return fields


def is_socket(fields: Mapping[str, str]) -> bool:
    """Whether these parameters lead to a Unix socket (a `host` that is a folder, and no address)."""
    return "hostaddr" not in fields and fields["host"].startswith("/")


def render(fields: Mapping[str, str]) -> str:
    """Keyword form, every value quoted."""
    escaped = {key: value.replace("\\", "\\\\").replace("'", "\\'") for key, value in fields.items()}
    return " ".join(f"{key}='{value}'" for key, value in escaped.items())


def _from_uri(text: str) -> dict[str, str]:
    match = _URI.fullmatch(text)
    if match is None:
        raise ValueError("malformed_dsn")
    parts = match.groupdict(default="")
    query, v6 = parts.pop("query"), parts.pop("v6")
    fields = {key: unquote(value) for key, value in parts.items()}
    fields["host"] = v6 or fields["host"]
    for pair in filter(None, query.split("&")):
        key, equals, value = pair.partition("=")
        if not equals or fields.get(unquote(key)):
            raise ValueError("malformed_dsn")
        fields[unquote(key)] = unquote(value)
    return fields


def _from_pairs(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    position = 0
    while text[position:].strip():
        match = _PAIR.match(text, position)
        if match is None or match[1] in fields:
            raise ValueError("malformed_dsn")
        value = match[2][1:-1] if match[2].startswith("'") else match[2]
        fields[match[1]] = re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
        position = match.end()
    return fields
