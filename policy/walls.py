"""The operating system's wall around this program: is there one, and does it hold?

`python -m policy.walls` looks from a process without any guard of ours, so that whatever is refused was refused by the
system, and prints what it found as JSON. It needs no rights; without them it cannot see rules, only their effect.
"""

import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from core.errors import PolicyError
from policy import unseen

# Addresses for documentation (RFC 5737, RFC 3849): what gets out reaches nobody. A name that nobody has (RFC 2606).
V4, V6 = "198.51.100.1", "2001:db8::1"
NAME = "intramuros-preflight.example"
UNIT = "intramuros.service"
# Seconds: for a look-up, after which nobody answers, and for all of it.
_LOOK_UP, _PATIENCE = 3.0, 60
_ANSWERED = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


@dataclass(frozen=True, slots=True)
class Walls:
    """What was found. tcp, udp, names: whether each is kept in. rules: whether an nftables table `intramuros` is
    loaded, filter: whether systemd filters addresses for the unit; None where this user may not see it."""

    tcp: bool
    udp: bool
    names: bool
    rules: bool | None
    filter: bool | None

    @property
    def hold(self) -> bool:
        """Whether nothing got out."""
        return self.tcp and self.udp and self.names


def look() -> Walls:
    """Look from a process of its own, beyond the tripwire's reach. Blocks. Raises PolicyError where that fails."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "policy.walls"], capture_output=True, text=True, timeout=_PATIENCE, check=False
    )
    try:
        return Walls(**json.loads(done.stdout))
    except (ValueError, TypeError) as error:
        raise PolicyError("The walls could not be looked at: the process that looks did not report.") from error


def found() -> Walls:
    """What this process can see and do."""
    return Walls(
        tcp=_kept_in(lambda: unseen.tcp(V4)) and _kept_in(lambda: unseen.tcp(V6)),
        udp=_kept_in(lambda: unseen.udp(V4)) and _kept_in(lambda: unseen.udp(V6)),
        names=not _answered(),
        rules=_says(["nft", "list", "table", "inet", "intramuros"], "reject"),
        filter=_says(["systemctl", "show", "--property=IPAddressDeny", _unit()], "0.0.0.0/0"),
    )


def _kept_in(attempt: Callable[[], None]) -> bool:
    try:
        attempt()
    except OSError:
        return True
    return False


def _answered() -> bool:
    """Whether anybody answers a question for a name, be it that there is no such name."""
    answers: list[bool] = []

    def ask() -> None:
        try:
            socket.getaddrinfo(NAME, 443)
            answers.append(True)
        except socket.gaierror as error:
            answers.append(error.errno in _ANSWERED)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_LOOK_UP)
    return bool(answers and answers[0])


def _unit() -> str:
    """The systemd unit that this process belongs to, the server's where it is none of a service."""
    try:
        last = Path("/proc/self/cgroup").read_text().strip().rpartition("/")[2]
    except OSError:
        return UNIT
    return last if last.endswith(".service") else UNIT


def _says(command: list[str], words: str) -> bool | None:
    program = shutil.which(command[0], path="/usr/sbin:/usr/bin:/sbin:/bin")
    if program is None:
        return None
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)  # noqa: S603 - fixed
    if done.returncode:
        return False if "No such file" in done.stderr else None
    return words in done.stdout


if __name__ == "__main__":
    print(json.dumps(asdict(found())))  # noqa: T201 - read by the parent
