"""The walls around a reader of hostile files, as far as this kernel and this user may build them.

Each one is tried and none is relied on: a container may forbid namespaces, an old kernel knows no Landlock, another
system has neither. `ingest.reader` proves at its start which of them hold. Nothing here can be undone by a process
that stands inside.

Sources: unshare(2), setns(2), user_namespaces(7), pid_namespaces(7), landlock(7), seccomp(2), capset(2).
"""

import ctypes
import errno
import os
import platform
import re
import struct
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

_NEW_MOUNTS, _NEW_IPC, _NEW_USER, _NEW_PID, _NEW_NET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_BIND, _PRIVATE, _MOUNT_SET, _HERE, _RECURSIVE, _READ_ONLY = 0x1000, 0x44000, 442, -100, 0x8000, 1
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _SECCOMP_FILTER = 38, 22, 2
_CAPABILITY_VERSION_3 = 0x20080522

# What a program needs of the system in order to run at all. Accounts and keys of the machine are not among it.
SYSTEM = (
    "/bin",
    "/lib",
    "/lib64",
    "/opt",
    "/usr",
    "/proc",
    "/sys/devices/system/cpu",
    "/dev/urandom",
    "/dev/random",
    "/dev/zero",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/libreoffice",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/var/cache/fontconfig",
    "/var/lib/libreoffice",
    "/var/spool/libreoffice",
)


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _system_call(number: int, *args: object) -> int:
    return _checked(_libc().syscall(ctypes.c_long(number), *args))


def _unshare(flags: int) -> None:
    _checked(_libc().unshare(ctypes.c_int(flags)))


def attempt(wall: Callable[[], object]) -> bool:
    """Whether this wall could be built. An AttributeError is a C library that does not know it."""
    if sys.platform != "linux":
        return False
    try:
        wall()
    except (OSError, AttributeError):
        return False
    return True


# --- namespaces -------------------------------------------------------------------------------------------------------


def leave() -> None:
    """Give this process a network without a single interface, and its next child a process tree of its own.

    Fork once after it and go on in the child. Call it before any thread is started. Raises OSError where neither this
    user nor a user namespace of its own may do so.
    """
    namespaces = _NEW_NET | _NEW_IPC | _NEW_PID
    try:
        _unshare(namespaces)
    except PermissionError:
        user, group = os.getuid(), os.getgid()
        _unshare(namespaces | _NEW_USER)
        # The same ids inside as outside, or no file could be made.
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def write_only_below(folder: Path) -> None:
    """Make every other file read-only to this process, in a view of the file system of its own. After `leave`.

    LibreOffice needs it where Landlock holds: it looks for a folder for its socket, and takes one that we name only
    when the usual ones are read-only. Raises OSError.
    """
    _unshare(_NEW_MOUNTS)
    place = os.fsencode(folder)
    _checked(_libc().mount(None, b"/", None, ctypes.c_ulong(_PRIVATE), None))
    _checked(_libc().mount(place, place, None, ctypes.c_ulong(_BIND), None))
    _set_mount(b"/", _RECURSIVE, on=_READ_ONLY)
    for writable in (place, b"/proc"):
        _set_mount(writable, 0, off=_READ_ONLY)


def _set_mount(place: bytes, flags: int, *, on: int = 0, off: int = 0) -> None:
    attributes = struct.pack("=4Q", on, off, 0, 0)
    _system_call(
        *(_MOUNT_SET, ctypes.c_int(_HERE), place, ctypes.c_uint(flags), attributes, ctypes.c_size_t(len(attributes)))
    )


def fork_tree() -> int:
    """As os.fork, but the child heads a process tree of its own, which ends with it to the last process."""
    with Path("/proc/self/ns/pid").open() as own:
        _unshare(_NEW_PID)
        child = -1
        try:
            child = os.fork()
        finally:
            if child != 0:
                _checked(_libc().setns(own.fileno(), ctypes.c_int(_NEW_PID)))
        return child


# --- the process itself -----------------------------------------------------------------------------------------------


def drop_privileges() -> None:
    """Give up every capability for good, root's as well: no program started from here gets any back."""
    _checked(_libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0))
    _checked(_libc().capset(header, ctypes.create_string_buffer(24)))


def adopt_orphans() -> None:
    """Become the parent of what the children of this process leave behind."""
    _checked(_libc().prctl(36, 1, 0, 0, 0))


def die_with_parent() -> None:
    """Be killed when the process that forked this one ends, however it ends."""
    _checked(_libc().prctl(1, 9, 0, 0, 0))


def counted_apart() -> bool:
    """Whether a limit on processes counts only those in here: in a user namespace, not for root, from Linux 5.14 on."""
    major, minor = re.findall(r"\d+", os.uname().release)[:2]
    mapped = Path("/proc/self/uid_map").read_text().split()
    return (int(major), int(minor)) >= (5, 14) and mapped[-1] == "1" and os.getuid() != 0


def volunteer() -> None:
    """Be the first to go when the machine runs out of memory."""
    Path("/proc/self/oom_score_adj").write_text("1000")


# --- proofs, from inside ----------------------------------------------------------------------------------------------


def no_network() -> bool:
    """Whether not even this machine itself can be reached. Asked of the C library, which no audit hook sees."""
    place = _libc().socket(2, 1, 0)
    if place < 0:
        return True
    try:
        address = struct.pack("=H", 2) + struct.pack("!H", 9) + bytes((127, 0, 0, 1)) + bytes(8)
        return _libc().connect(place, address, len(address)) < 0 and ctypes.get_errno() == errno.ENETUNREACH
    finally:
        os.close(place)


def no_foreign_files() -> bool:
    """Whether folders outside cannot be looked at."""
    try:
        next(Path("/").iterdir())
    except PermissionError:
        return True
    return False


# --- files (Landlock) -------------------------------------------------------------------------------------------------

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE, _READ, _LIST, _REMOVE, _MAKE_SOCKET = 1, 2, 4, 8, 1 << 5, 1 << 9
# Version of the interface at which a right came to exist: refer, truncate, device control.
_FILES_BEFORE, _LATER_FILES = (1 << 13) - 1, {2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
_OF_A_FILE = _EXECUTE | _WRITE | _READ | 1 << 14 | 1 << 15


def fence_files(writable: Iterable[Path], readable: Iterable[Path], sockets: Iterable[Path]) -> None:
    """See and change nothing but these folders and files, beside what programs need of the system.

    In the folders `sockets` sockets may be made and files be removed. The fence also keeps this process from tracing
    and signalling processes outside, and from TCP. Raises OSError.
    """
    version = _system_call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    files = _FILES_BEFORE | sum(right for since, right in _LATER_FILES.items() if version >= since)
    fields = [files, *([3] if version >= 4 else []), *([3] if version >= 6 else [])]
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _system_call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    try:
        for path in writable:
            _allow(ruleset, path, files)
        for path in (*readable, *map(Path, SYSTEM)):
            _allow(ruleset, path, files & (_EXECUTE | _READ | _LIST))
        for path in sockets:
            _allow(ruleset, path, _REMOVE | _MAKE_SOCKET)
        _allow(ruleset, Path(os.devnull), files & (_READ | _WRITE))
        _system_call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    with suppress(FileNotFoundError):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            allowed = rights if path.is_dir() else rights & _OF_A_FILE
            rule = struct.pack("=Qi", allowed, place)
            _system_call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint32(0))
        finally:
            os.close(place)


# --- system calls (seccomp) -------------------------------------------------------------------------------------------

# Machine: its audit number, then the numbers of socket and clone, then of what is refused outright: connect, ptrace,
# process_vm_readv and writev, mount, umount2, pivot_root, chroot, setns, unshare, bpf, perf_event_open, userfaultfd,
# add_key, request_key, keyctl, open_by_handle_at, init_module, finit_module, kexec_load.
_MACHINES = {
    "x86_64": (
        0xC000003E,
        41,
        56,
        (42, 101, 310, 311, 165, 166, 155, 161, 308, 272, 321, 298, 323, 248, 249, 250, 304, 175, 313, 246),
    ),
    "aarch64": (
        0xC00000B7,
        198,
        220,
        (203, 117, 270, 271, 40, 39, 41, 51, 268, 97, 280, 241, 282, 217, 218, 219, 265, 105, 273, 104),
    ),
}
# Numbers that all machines share: io_uring (its requests pass by this filter), the newer mounts, pidfd_getfd.
_SHARED = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442)
_CLONE3 = 435
_FOREIGN_NUMBERS = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_PASS, _KILL, _FAIL_WITH = 0x7FFF0000, 0x80000000, 0x00050000


def fence_system_calls() -> None:
    """No sockets but Unix ones, which reach nobody, and no way into other processes or namespaces. Raises OSError.

    For this process and all that it starts, for good; needs `drop_privileges` first.
    """
    program = _filter(platform.machine())
    code = ctypes.create_string_buffer(program)
    rules = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))
    _checked(_libc().prctl(_SET_SECCOMP, _SECCOMP_FILTER, rules, 0, 0))


def _filter(machine: str) -> bytes:
    """The rules as instructions of classic BPF."""
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"no rules for {machine}")
    audit, socket, clone, refused = _MACHINES[machine]
    rules = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _FOREIGN_NUMBERS),
        (_RETURN, 0, 0, _FAIL_WITH | errno.EPERM),
        # Callers then use `clone`, whose flags can be looked at.
        (_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, _FAIL_WITH | errno.ENOSYS),
    ]
    for number in (*refused, *_SHARED):
        rules += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL_WITH | errno.EPERM)]
    rules += [
        (_EQUAL, 0, 4, socket),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_EQUAL, 1, 0, 1),
        (_RETURN, 0, 0, _FAIL_WITH | errno.EACCES),
        (_RETURN, 0, 0, _PASS),
        (_EQUAL, 0, 3, clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_ANY_BIT, 0, 1, _NEW_USER),
        (_RETURN, 0, 0, _FAIL_WITH | errno.EPERM),
        (_RETURN, 0, 0, _PASS),
    ]
    return b"".join(struct.pack("=HBBI", *rule) for rule in rules)
