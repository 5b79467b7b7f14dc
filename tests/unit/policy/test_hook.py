import ctypes.util
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import BootRefused
from policy import hook
from tests.unit.policy.armed import run

# Each attempt is an expression; beside it the reason that denies it, or None where the hook lets it pass.
# Sockets do not block, so nothing waits for an answer where an attempt passes.
ATTEMPTS: dict[str, str | None] = {
    # Addresses
    "tcp().connect(('1.1.1.1', 443))": "public",
    "tcp().connect_ex(('1.1.1.1', 443))": "public",
    "tcp().connect(('203.0.113.1', 9))": "canary",
    "tcp().connect(('10.0.0.6', 443))": "peer_not_listed",
    "tcp().connect(('10.0.0.5', 80))": "peer_not_listed",
    "tcp().connect(('169.254.169.254', 80))": "metadata",
    "tcp().connect(('100.64.0.1', 80))": "shared",
    "tcp().connect(('0.0.0.0', 80))": "unspecified",
    "tcp().connect(('', 80))": "unknown_shape",
    "tcp().connect(('127.1', 80))": "unknown_shape",
    "tcp().connect(('0x7f.1', 80))": "unknown_shape",
    "tcp().connect((b'1.1.1.1', 443))": "public",
    "tcp().connect((bytearray(b'127.0.0.1'), 80))": "unknown_shape",
    "tcp6().connect(('2606:4700::1111', 443))": "public",
    "tcp6().connect(('64:ff9b::7f00:1', 443))": "translated",
    "tcp6().connect(('::ffff:1.1.1.1', 443))": "unknown_shape translated",
    "tcp6().connect(('fe80::1', 443, 0, 2))": "unknown_shape",
    "tcp().connect(('127.0.0.1', 53))": "dns",
    "udp().connect(('127.0.0.53', 53))": "dns",
    "udp().connect(('8.8.8.8', 53))": "public",
    "tcp().connect(('127.0.0.1', 1))": None,
    "tcp().connect((b'127.0.0.1', 1))": None,
    "tcp6().connect(('::1', 1))": None,
    # Datagrams
    "udp().sendto(b'x', ('1.1.1.1', 53))": "public",
    "udp().sendto(b'x', 0, ('1.1.1.1', 53))": "public",
    "udp().sendmsg([b'x'], [], 0, ('1.1.1.1', 53))": "public",
    "udp().sendto(b'x', ('127.0.0.53', 53))": "dns",
    "udp().sendto(b'x', ('127.0.0.1', 9))": None,
    "socket.socketpair()[0].sendmsg([b'x'])": None,
    # Look-ups
    "socket.getaddrinfo('secret.example', 80)": "name",
    "socket.getaddrinfo(b'secret.example', 80)": "name",
    "socket.getaddrinfo('xn--80ak6aa92e.example', 80)": "name",
    "socket.getaddrinfo('LOCALHOST', 80)": "malformed_host",
    "socket.getaddrinfo('0x7f.1', 80)": "malformed_host",
    "socket.gethostbyname('secret.example')": "name",
    "socket.gethostbyname_ex('secret.example')": "name",
    "socket.gethostbyaddr('1.1.1.1')": "reverse_look_up",
    "socket.gethostbyaddr('secret.example')": "reverse_look_up",
    "socket.getnameinfo(('1.1.1.1', 80), 0)": "reverse_look_up",
    "socket.create_connection(('secret.example', 80), 1)": "name",
    "socket.getaddrinfo('localhost', 80)": None,
    "socket.getaddrinfo('127.0.0.1', 80)": None,
    "socket.getaddrinfo('1.1.1.1', 80)": None,
    "socket.getaddrinfo(None, 80)": None,
    "socket.getnameinfo(('127.0.0.1', 80), socket.NI_NUMERICHOST)": None,
    # Listening
    "tcp().bind(('0.0.0.0', 0))": "bind",
    "tcp().bind(('10.0.0.1', 8400))": "bind",
    "tcp().bind(('127.0.0.1', 0))": None,
    "tcp().bind(('0.0.0.0', 8400))": None,
    # Unix sockets and other families
    "unix().connect('/var/run/docker.sock')": "unix_socket",
    "unix().connect(b'/run/systemd/resolve/io.systemd.Resolve')": "unix_socket",
    "unix().connect('\\0abstract')": "unix_socket",
    "unix().connect(b'\\0abstract')": "unix_socket",
    "unix().connect(SOCKETS + '/../docker.sock')": "unix_socket",
    "unix().connect(SOCKETS + '/link.sock')": "unix_socket",
    "unix().bind('/dev/shm/outside.sock')": "unix_socket",
    "unix().connect(SOCKETS + '/.s.PGSQL.5432')": None,
    "unix().bind(SOCKETS + '/own.sock')": None,
    "socket.socketpair()": None,
    "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)": "family",
    "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)": "family",
    "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)": "raw_socket",
    "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)": "family",
    # Programs
    "subprocess.run(['curl', 'http://1.1.1.1'])": "program",
    "subprocess.run('true', shell=True)": "program",
    "subprocess.run(['/bin/true'])": "program",
    "subprocess.run(['./true'])": "program",
    "subprocess.run(['no-such-program'])": "program",
    "subprocess.run(['python'], executable='/bin/true')": "program",
    "subprocess.run([sys.executable, '-c', ''], env={})": None,
    "os.system('true')": "program",
    "os.posix_spawn('/bin/true', ['true'], {})": "program",
    "os.execv('/bin/true', ['true'])": "program",
    "os.fork()": "program",
    "os.waitpid(os.posix_spawn(sys.executable, ['python', '-c', ''], {}), 0)": None,
    # Libraries
    "ctypes.CDLL('/dev/shm/evil.so')": "library",
    "ctypes.CDLL('./evil.so')": "library",
    "ctypes.CDLL(None)": None,
    "ctypes.CDLL(LIBC)": None,
}

_RUN_ATTEMPTS = """
import ctypes, warnings
warnings.simplefilter("ignore", ResourceWarning)
def made(family, kind):
    sock = socket.socket(family, kind)
    sock.setblocking(False)
    return sock
tcp = lambda: made(socket.AF_INET, socket.SOCK_STREAM)
tcp6 = lambda: made(socket.AF_INET6, socket.SOCK_STREAM)
udp = lambda: made(socket.AF_INET, socket.SOCK_DGRAM)
unix = lambda: made(socket.AF_UNIX, socket.SOCK_STREAM)
SOCKETS, LIBC = POLICY.sockets[0], {libc!r}
hook.arm(POLICY, programs=[Path(sys.executable)])
report([outcome(lambda: eval(attempt)) for attempt in {attempts!r}])
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    # Not tmp_path: a socket's path has to be short.
    path = Path(tempfile.mkdtemp(prefix="sock"))
    (path / "link.sock").symlink_to("/var/run/docker.sock")
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def outcomes(folder: Path) -> dict[str, str]:
    code = _RUN_ATTEMPTS.format(attempts=list(ATTEMPTS), libc=ctypes.util.find_library("c"))
    return dict(zip(ATTEMPTS, run(code, folder), strict=True))


@pytest.mark.threat(21, 22, 23)
@pytest.mark.parametrize(("attempt", "reason"), ATTEMPTS.items())
def test_the_hook_denies_or_lets_pass(attempt: str, reason: str | None, outcomes: dict[str, str]) -> None:
    if reason is None:
        assert outcomes[attempt].startswith("passed"), outcomes[attempt]
    else:
        assert outcomes[attempt] in reason.split()


def test_a_listed_peer_passes_the_hook_whatever_its_family() -> None:
    code = """
hook.arm(POLICY)
checks = hook._CHECKS
rules = sys.modules[hook._HOLDER].rules
v4, v6 = socket.socket(), socket.socket(socket.AF_INET6)
report([
    checks["socket.connect"](rules, (v4, ("10.0.0.5", 443))),
    checks["socket.connect"](rules, (v6, ("fd00::5", 443, 0, 0))),
    checks["socket.getaddrinfo"](rules, ("models", 443, 0, 0, 0)),
])
v4.close(); v6.close()
"""
    assert run(code) == [None, None, None]


def test_shapes_that_python_itself_would_refuse_are_denied_too() -> None:
    code = """
hook.arm(POLICY)
sock = socket.socket()
class Odd: family = socket.AF_PACKET
addresses = [("127.0.0.1",), ("127.0.0.1", 80, 0), ["127.0.0.1", 80], ("127.0.0.1", "80"), ("127.0.0.1", True),
             (None, 80), None, "127.0.0.1:80", ("localhost.", 80), ("models", 80), 7]
found = []
for event in ("socket.connect", "socket.sendto", "socket.bind"):
    found += [outcome(lambda: sys.audit(event, sock, address)) for address in addresses]
found += [outcome(lambda: sys.audit("socket.connect", Odd(), ("127.0.0.1", 80)))]
found += [outcome(lambda: sys.audit("socket.connect"))]
found += [outcome(lambda: sys.audit("subprocess.Popen", None, None, None, None))]
found += [outcome(lambda: sys.audit("ctypes.dlopen", 7.5))]
found += [outcome(lambda: sys.audit("socket.getaddrinfo", 7, 80, 0, 0, 0))]
sock.close()
report(sorted(set(found)))
"""
    assert run(code) == ["malformed_host", "unknown_shape"]


@pytest.mark.threat(20)
def test_every_thread_executor_and_event_loop_is_watched() -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
hook.arm(POLICY)
def connect():
    with socket.socket() as sock:
        sock.connect(("1.1.1.1", 443))
found = []
thread = threading.Thread(target=lambda: found.append(outcome(connect)))
thread.start(); thread.join()
with ThreadPoolExecutor(1) as pool:
    found.append(pool.submit(outcome, connect).result())

async def inside():
    results = []
    for attempt in (lambda: asyncio.to_thread(connect), lambda: asyncio.open_connection("1.1.1.1", 443),
                    lambda: asyncio.open_connection("secret.example", 443),
                    lambda: asyncio.create_subprocess_exec("curl", "x"),
                    lambda: asyncio.open_unix_connection("/var/run/docker.sock"),
                    lambda: asyncio.get_running_loop().create_datagram_endpoint(
                        asyncio.DatagramProtocol, remote_addr=("8.8.8.8", 53))):
        try:
            await attempt()
            results.append("passed")
        except EgressDenied as denied:
            results.append(denied.reason)
    return results
found += asyncio.run(inside())
report(found)
"""
    assert run(code) == ["public", "public", "public", "public", "name", "program", "unix_socket", "public"]


def test_asyncio_servers_and_clients_on_loopback_work_under_the_hook() -> None:
    code = """
hook.arm(POLICY)
async def echo(reader, writer):
    writer.write(await reader.read(5))
    writer.close()
    await writer.wait_closed()
async def main():
    server = await asyncio.start_server(echo, "localhost", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("localhost", port)
        writer.write(b"hello")
        heard = await reader.read(5)
        writer.close()
        await writer.wait_closed()
        return heard.decode()
report(asyncio.run(main()))
"""
    assert run(code) == "hello"


@pytest.mark.threat(24)
def test_a_reload_does_not_stack_hooks_and_arming_again_replaces_the_rules() -> None:
    code = """
import importlib
hook.arm(POLICY)
for _ in range(5):
    importlib.reload(hook)
    hook.arm(POLICY)
def connect():
    with socket.socket() as sock:
        sock.connect(("1.1.1.1", 443))
before = ledger.denials().get("public", 0)
outcome(connect)
counted = ledger.denials()["public"] - before
hook.arm(Policy())
with socket.socket() as sock:
    sock.setblocking(False)
    narrowed = outcome(lambda: sock.connect(("10.0.0.5", 443)))
report([counted, narrowed])
"""
    assert run(code) == [1, "peer_not_listed"]


@pytest.mark.threat(25)
def test_a_denial_that_a_library_swallows_is_still_counted() -> None:
    code = """
hook.arm(POLICY)
try:
    socket.getaddrinfo("secret.example", 80)
except Exception:
    pass
report(ledger.denials())
"""
    assert run(code) == {"name": 1}


def test_a_folder_of_programs_may_be_allowed() -> None:
    code = """
hook.arm(POLICY, programs=[Path("/bin/true").resolve().parent])
report([outcome(lambda: subprocess.run(["true"])), outcome(lambda: subprocess.run([sys.executable, "-c", ""]))])
"""
    same_folder = Path(sys.executable).resolve().parent == Path("/bin/true").resolve().parent
    assert run(code) == ["passed", "passed" if same_folder else "program"]


def test_without_a_network_not_even_this_machine_is_talked_to() -> None:
    code = """
hook.arm(POLICY, network=False)
def tcp():
    return socket.socket()
def udp():
    return socket.socket(type=socket.SOCK_DGRAM)
def unix():
    return socket.socket(socket.AF_UNIX)
reasons = [
    outcome(lambda: tcp().connect(("127.0.0.1", 11434))),
    outcome(lambda: tcp().connect(("10.0.0.5", 443))),
    outcome(lambda: udp().sendto(b"x", ("127.0.0.1", 9))),
    outcome(lambda: udp().sendmsg([b"x"], [], 0, ("127.0.0.1", 9))),
    outcome(lambda: tcp().bind(("127.0.0.1", 0))),
    outcome(lambda: socket.getaddrinfo("localhost", 80)),
    outcome(lambda: unix().connect("/nowhere/s")),
]
report([sorted(set(reasons)), outcome(socket.socketpair)])
"""
    assert run(code) == [["no_network"], "passed"]


@pytest.mark.parametrize(("allowed", "expected"), [(True, "passed"), (False, "program")])
def test_a_process_copies_itself_only_where_it_may(allowed: bool, expected: str) -> None:
    code = """
hook.arm(POLICY, forks=ALLOWED)
def fork():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
report(outcome(fork))
"""
    assert run(code.replace("ALLOWED", str(allowed))) == expected


def test_the_platform_can_still_be_named() -> None:
    code = """
import platform
hook.arm(POLICY)
report([platform.platform() != "", ledger.denials()])
"""
    assert run(code) == [True, {}]


def test_the_canary_is_quiet_under_the_hook() -> None:
    code = """
hook.arm(POLICY)
hook.canary()
async def serve():
    hook.canary()
    await hook.canary_in_loop()
asyncio.run(serve())
report(ledger.denials())
"""
    assert run(code) == {"canary": 5}


@pytest.mark.threat(2)
async def test_the_canary_refuses_to_start_without_a_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    # Loopback stands in for the public address, as nothing may leave the machine that runs the tests either.
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        monkeypatch.setattr(hook, "CANARY_ADDRESS", "127.0.0.1")
        monkeypatch.setattr(hook, "CANARY_PORT", server.getsockname()[1])
        with pytest.raises(BootRefused, match="audit hook"):
            hook.canary()
        with pytest.raises(BootRefused, match="audit hook"):
            await hook.canary_in_loop()
