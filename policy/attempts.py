"""Ways out that the program itself must close, each tried for real in a process of its own, sealed and armed as ours.

`python -m policy.attempts` reads a policy as JSON on standard input and prints what became of each attempt. Every
destination is of a range kept for documentation (RFC 5737, RFC 3849, RFC 2606), so one that got out reaches nobody.
"""

import asyncio
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Literal

import httpx

from core.errors import EgressDenied
from policy import boot, hook, ledger, telemetry, unseen
from policy.egress import Policy, check_dsn, check_url
from policy.transport import client_options, transport

V4, V6 = "198.51.100.1", "2001:db8::1"
NAME = "exfiltration.example"
# A private address that nobody lists, on the port of nothing.
UNLISTED = "10.255.255.254"

# Spellings of an address that one program reads as a name or a private place, and another as something else.
SPELLINGS = (
    "http://127.1",
    "http://2130706433",
    "http://0x7f.1",
    "http://0177.0.0.1",
    "http://[::ffff:198.51.100.1]",
    "http://[2002:c633:6401::]",
    "http://[64:ff9b::c633:6401]",
    "http://127.0.0.1\\@198.51.100.1/",
    "http://198%2e51%2e100%2e1",
    "http://u:p@198.51.100.1",
    "http://localhost.",
    "http://LOCALHOST",
    "http://①②⑦.0.0.1",
    "http://127。0。0。1",
    "http://[fe80::1%251]",
    "http://127.0.0.1:65536",
)

Layer = Literal["boot", "judge", "transport", "tripwire", "system", "models"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """`layer` is the one expected to refuse. `act` raises where it was refused, or names the switch that kept it in."""

    name: str
    layer: Layer
    act: Callable[[Policy], str | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an attempt.

    refused: by `layer`, with a reason code. passed: nothing stopped it, which is a fault. open: nothing stopped it, and
    only the operating system could have. absent: the library that it is about is not installed.
    """

    name: str
    result: Literal["refused", "passed", "open", "absent"]
    layer: Layer
    reason: str


def outcome(attempt: Attempt, policy: Policy) -> Outcome:
    """Try it. A denial counts wherever it was raised, and when a library swallowed it, by the ledger."""
    before = ledger.denials()
    try:
        kept = attempt.act(policy)
    except ImportError:
        return Outcome(attempt.name, "absent", attempt.layer, "not_installed")
    except Exception as error:  # noqa: BLE001 - whatever a library makes of the denial, the denial is what matters
        return _refused(attempt, before, error)
    if kept is not None:
        return Outcome(attempt.name, "refused", attempt.layer, kept)
    return _refused(attempt, before, None)


def _refused(attempt: Attempt, before: Any, error: BaseException | None) -> Outcome:
    denied = _denial(error)
    if denied is not None:
        tripped = str(denied.details.get("purpose", "")) in hook.EVENTS
        return Outcome(attempt.name, "refused", "tripwire" if tripped else attempt.layer, denied.reason)
    swallowed = [reason for reason, count in ledger.denials().items() if count > before.get(reason, 0)]
    if swallowed:
        return Outcome(attempt.name, "refused", "tripwire", swallowed[0])
    walled = getattr(error, "errno", None) in unseen.CLOSED
    if walled or isinstance(error, unseen.Closed):
        return Outcome(attempt.name, "refused", "system", unseen.reason(error))
    result: Literal["open", "passed"] = "open" if attempt.layer == "system" else "passed"
    return Outcome(attempt.name, result, attempt.layer, type(error).__name__ if error else "no_error")


def _denial(error: BaseException | None) -> EgressDenied | None:
    while error is not None and not isinstance(error, EgressDenied):
        error = error.__cause__ or error.__context__
    return error


# --- sockets ---------------------------------------------------------------------------------------------------------


def _tcp(policy: Policy) -> None:
    socket.create_connection((V4, 443), timeout=1)


def _tcp6(policy: Policy) -> None:
    with socket.socket(socket.AF_INET6) as sock:
        sock.setblocking(False)
        sock.connect((V6, 443))


def _in_thread(policy: Policy) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_tcp, policy).result()


def _asyncio(policy: Policy) -> None:
    asyncio.run(asyncio.wait_for(asyncio.open_connection(V4, 443), 1))


def _asyncio_datagram(policy: Policy) -> None:
    async def send() -> None:
        await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=(V4, 53))

    asyncio.run(send())


def _udp(policy: Policy) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", (V4, 53))


def _udp6(policy: Policy) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        sock.sendmsg([b"x"], [], 0, (V6, 53))


def _resolver(policy: Policy) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", ("127.0.0.53", 53))


def _raw(policy: Policy) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()


def _docker(policy: Policy) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect("/var/run/docker.sock")


def _listen(policy: Policy) -> None:
    with socket.socket() as sock:
        sock.bind(("0.0.0.0", 0))  # noqa: S104 - tried, to see it refused


# --- names -----------------------------------------------------------------------------------------------------------


def _look_up(policy: Policy) -> None:
    socket.getaddrinfo(NAME, 443)


def _look_up_old(policy: Policy) -> None:
    socket.gethostbyname(NAME)


def _look_up_reverse(policy: Policy) -> None:
    socket.gethostbyaddr(V4)


def _look_up_async(policy: Policy) -> None:
    async def ask() -> None:
        await asyncio.get_running_loop().getaddrinfo(NAME, 443)

    asyncio.run(ask())


# --- programs and libraries ------------------------------------------------------------------------------------------


def _curl(policy: Policy) -> None:
    subprocess.run(["curl", "--max-time", "1", f"http://{V4}/"], capture_output=True, check=False)  # noqa: S603, S607 - to see it refused


def _shell(policy: Policy) -> None:
    subprocess.run("true", shell=True, check=False)  # noqa: S602, S607 - to see it refused


def _system(policy: Policy) -> None:
    os.system("true")  # noqa: S605, S607 - to see it refused


def _spawn(policy: Policy) -> None:
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


def _fork(policy: Policy) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _library(policy: Policy) -> None:
    ctypes.CDLL("/dev/shm/intramuros-no-such-library.so")  # noqa: S108 - a folder that anybody may write to


# --- the judge and the transport -------------------------------------------------------------------------------------


def _urllib(policy: Policy) -> None:
    urllib.request.urlopen(f"http://{V4}/", timeout=1)


def _spellings(policy: Policy) -> None:
    for url in SPELLINGS[:-1]:
        try:
            check_url(policy, url, "model")
        except EgressDenied:
            continue
        return
    check_url(policy, SPELLINGS[-1], "model")


def _unlisted(policy: Policy) -> None:
    check_url(policy, f"http://{UNLISTED}:9", "model")


def _database(policy: Policy) -> None:
    check_dsn(policy, f"postgresql://app@{V4}:5432/intramuros")


def _service(policy: Policy) -> None:
    check_dsn(policy, "host=127.0.0.1 service=elsewhere")


def _mixed(policy: Policy) -> None:
    with _site(200) as port:
        named = replace(policy, names=frozenset({NAME}), ports=frozenset({port}))
        check_url(named, f"http://{NAME}:{port}", "model", resolver=lambda *_: ("127.0.0.1", V4))


def _client(policy: Policy) -> None:
    with httpx.Client(**client_options(policy, "model"), timeout=1) as client:
        client.get(f"http://{V4}/")


def _redirect(policy: Policy) -> None:
    with _site(307) as port, httpx.Client(**client_options(policy, "embedded"), timeout=2) as client:
        client.get(f"http://127.0.0.1:{port}/")


def _rebinding(policy: Policy) -> None:
    with _site(200) as port:
        named = replace(policy, scope="strict", names=frozenset({NAME}), ports=frozenset({port}))
        answers: Iterator[Sequence[str]] = iter((("127.0.0.1",), (V4,)))
        inner = transport(named, "model", resolver=lambda *_: next(answers))
        with httpx.Client(transport=inner, trust_env=False, timeout=2) as client:
            client.get(f"http://{NAME}:{port}/")
            client.get(f"http://{NAME}:{port}/")


@contextmanager
def _site(status: int) -> Iterator[int]:
    """A server on loopback that answers with this status and sends whoever follows it outside; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Location", f"http://{V4}/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


ATTEMPTS = (
    Attempt("TCP, IPv4", "tripwire", _tcp),
    Attempt("TCP, IPv6", "tripwire", _tcp6),
    Attempt("TCP from a thread", "tripwire", _in_thread),
    Attempt("asyncio, TCP", "tripwire", _asyncio),
    Attempt("asyncio, UDP", "tripwire", _asyncio_datagram),
    Attempt("UDP, IPv4", "tripwire", _udp),
    Attempt("UDP, IPv6", "tripwire", _udp6),
    Attempt("a resolver on loopback", "tripwire", _resolver),
    Attempt("a raw socket", "tripwire", _raw),
    Attempt("the container engine's socket", "tripwire", _docker),
    Attempt("listening for the network", "tripwire", _listen),
    Attempt("name look-up", "tripwire", _look_up),
    Attempt("name look-up, old call", "tripwire", _look_up_old),
    Attempt("name look-up in an event loop", "tripwire", _look_up_async),
    Attempt("reverse look-up", "tripwire", _look_up_reverse),
    Attempt("urllib", "tripwire", _urllib),
    Attempt("a program (curl)", "tripwire", _curl),
    Attempt("a shell", "tripwire", _shell),
    Attempt("os.system", "tripwire", _system),
    Attempt("posix_spawn", "tripwire", _spawn),
    Attempt("a copy of the process", "tripwire", _fork),
    Attempt("a shared library from elsewhere", "tripwire", _library),
    Attempt(f"{len(SPELLINGS)} odd spellings of a URL", "judge", _spellings),
    Attempt("a private peer that is not listed", "judge", _unlisted),
    Attempt("a database elsewhere", "judge", _database),
    Attempt("a PostgreSQL service file", "judge", _service),
    Attempt("a name with one foreign address", "judge", _mixed),
    Attempt("our own HTTP client", "transport", _client),
    Attempt("an HTTP redirect", "transport", _redirect),
    Attempt("a name that moves (rebinding)", "transport", _rebinding),
    Attempt("tracing (langsmith)", "boot", telemetry.tracing),
    Attempt("tracing, sent all the same", "tripwire", telemetry.trace_sent),
    Attempt("telemetry of the document library", "boot", telemetry.documents),
    Attempt("a model hub (huggingface_hub)", "boot", telemetry.hub),
    Attempt("telemetry of onnxruntime", "boot", telemetry.models),
    Attempt("plug-ins of pydantic", "boot", telemetry.plug_ins),
    Attempt("C code: TCP, IPv4", "system", lambda _: unseen.tcp(V4)),
    Attempt("C code: TCP, IPv6", "system", lambda _: unseen.tcp(V6)),
    Attempt("C code: UDP, IPv4", "system", lambda _: unseen.udp(V4)),
    Attempt("C code: UDP, IPv6", "system", lambda _: unseen.udp(V6)),
    Attempt("libpq, past our judge", "system", lambda _: unseen.libpq(V4)),
    Attempt("a Python that was not sealed", "system", lambda _: unseen.child(V4)),
)


def packed(policy: Policy) -> str:
    """The policy as JSON, the same text for the same policy."""
    return json.dumps(asdict(policy), default=sorted, sort_keys=True)


def unpacked(text: str) -> Policy:
    """The policy of such a text."""
    told = json.loads(text)
    told["peers"] = frozenset((address, port) for address, port in told["peers"])
    told["ports"], told["names"] = frozenset(told["ports"]), frozenset(told["names"])
    told["sockets"], told["listen"] = tuple(told["sockets"]), told["listen"] and tuple(told["listen"])
    return Policy(**told)


def main() -> None:
    """Seal, arm, try everything, and print the outcomes as one JSON array."""
    boot.seal()
    policy = unpacked(sys.stdin.read())
    hook.arm(policy, programs=[Path(sys.executable)])
    print(json.dumps([asdict(outcome(attempt, policy)) for attempt in ATTEMPTS]))  # noqa: T201 - read by the parent


if __name__ == "__main__":
    main()
