"""Ways out that no Python sees: C code and processes of their own. Only rules of the operating system close them.

A function raises `Closed`, or an OSError of `CLOSED`, where the system refused; where it returns, nobody did.
"""

import ctypes
import errno
import socket
import subprocess
import sys
import time

# What the kernel answers when a rule, or the lack of a route, keeps a packet in.
CLOSED = frozenset({errno.EPERM, errno.EACCES, errno.ENETUNREACH, errno.EHOSTUNREACH})
CLOSED |= {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}
_REFUSALS = ("unreachable", "not permitted", "permission denied", "no route", "cannot assign")
# Seconds that a refusal of the system may take: it comes at once, an answer from afar never does.
PATIENCE = 1.0
_PORTS = {"udp": 53, "tcp": 443}

_CHILD = """
import socket, sys
try:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (sys.argv[1], 53))
except OSError as error:
    sys.exit(error.errno)
"""


class Closed(OSError):
    """The operating system refused it."""


def reason(error: BaseException | None) -> str:
    """A short code for what the system said."""
    number = getattr(error, "errno", None)
    return "no_route" if number in (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) else "rule"


def udp(address: str) -> None:
    """Send one byte to `address` by C calls."""
    number = _call("udp", address)
    if number:
        raise Closed(number, "datagram refused")


def tcp(address: str) -> None:
    """Begin a connection to `address` by C calls, and give the system a moment to refuse it.

    A rule that drops without a word tells the caller nothing: then the same rule's answer to a datagram decides.
    """
    number = _call("tcp", address)
    if number == errno.EINPROGRESS:
        udp(address)
    elif number in CLOSED:
        raise Closed(number, "connection refused")


def libpq(address: str) -> None:
    """Let PostgreSQL's client connect to `address`."""
    import psycopg

    try:
        psycopg.connect(f"hostaddr={address} port=443 user=x dbname=x sslmode=disable connect_timeout=2").close()
    except psycopg.OperationalError as error:
        said = str(error).lower()
        if any(words in said for words in _REFUSALS):
            raise Closed(errno.ENETUNREACH if "unreachable" in said else errno.EPERM, "libpq refused") from error
        if "timeout" in said:
            udp(address)


def child(address: str) -> None:
    """Let another interpreter, which knows nothing of the policy, send one byte to `address`."""
    code = subprocess.run([sys.executable, "-I", "-c", _CHILD, address], check=False, capture_output=True).returncode  # noqa: S603
    if code in CLOSED:
        raise Closed(code, "datagram refused")


def _call(kind: str, address: str) -> int:
    """The error number of a connection that does not wait, or of a datagram; EINPROGRESS where nobody answered."""
    libc = ctypes.CDLL(None, use_errno=True)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM | socket.SOCK_NONBLOCK
    descriptor = libc.socket(int(family), int(made), 0)
    if descriptor < 0:
        return ctypes.get_errno()
    try:
        place = _place(family, address, _PORTS[kind])
        if kind == "udp":
            return 0 if libc.sendto(descriptor, b"x", 1, 0, place, len(place)) >= 0 else ctypes.get_errno()
        if libc.connect(descriptor, place, len(place)) == 0:
            return 0
        return _settled(descriptor) if ctypes.get_errno() == errno.EINPROGRESS else ctypes.get_errno()
    finally:
        libc.close(descriptor)


def _settled(descriptor: int) -> int:
    """What became of a connection under way, within PATIENCE."""
    sock = socket.socket(fileno=socket.dup(descriptor))
    with sock:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number or _answered(sock):
                return number
            time.sleep(0.02)
    return errno.EINPROGRESS


def _answered(sock: socket.socket) -> bool:
    try:
        sock.getpeername()
    except OSError:
        return False
    return True


def _place(family: int, address: str, port: int) -> bytes:
    """A `sockaddr_in` or `sockaddr_in6` as C lays it out."""
    packed = socket.inet_pton(family, address)
    head = int(family).to_bytes(2, sys.byteorder) + port.to_bytes(2, "big")
    return head + (b"\0" * 4 + packed + b"\0" * 4 if family == socket.AF_INET6 else packed + b"\0" * 8)
