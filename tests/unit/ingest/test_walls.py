"""The parts of the walls that can be looked at without building them; the jail's own tests build them."""

import errno
import struct

import pytest

from ingest import walls

PASS, EPERM, EACCES, ENOSYS, KILL = 0x7FFF0000, 0x50000 | 1, 0x50000 | 13, 0x50000 | 38, 0x80000000
X86, ARM = 0xC000003E, 0xC00000B7


def verdict(machine: str, audit: int, number: int, argument: int = 0) -> int:
    """What the filter answers to one system call: an interpreter of its few instructions."""
    program = list(struct.iter_unpack("=HBBI", walls._filter(machine)))
    values = {0: number, 4: audit, 16: argument}
    at = value = 0
    while True:
        code, then, otherwise, operand = program[at]
        at += 1
        if code == 0x06:
            return operand
        if code == 0x20:
            value = values[operand]
            continue
        holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
        at += then if holds else otherwise


@pytest.mark.parametrize(
    ("number", "argument", "answer"),
    [
        (0, 0, PASS),  # read
        (41, 1, PASS),  # socket, Unix
        (41, 2, EACCES),  # socket, IPv4
        (41, 10, EACCES),
        (41, 16, EACCES),  # netlink
        (42, 0, EPERM),  # connect
        (56, 0x00010F00, PASS),  # clone, a thread
        (56, 17, PASS),  # clone, a process
        (56, 0x10000000, EPERM),  # clone, a user namespace
        (435, 0, ENOSYS),  # clone3
        (272, 0, EPERM),  # unshare
        (101, 0, EPERM),  # ptrace
        (425, 0, EPERM),  # io_uring_setup
        (0x40000029, 0, EPERM),  # socket by the numbers of x32
    ],
)
def test_system_calls_are_judged(number: int, argument: int, answer: int) -> None:
    assert verdict("x86_64", X86, number, argument) == answer


def test_each_machine_has_its_own_numbers() -> None:
    assert verdict("aarch64", ARM, 198, 2) == EACCES
    assert verdict("aarch64", ARM, 41, 2) == EPERM  # pivot_root there
    assert verdict("aarch64", ARM, 42, 0) == PASS
    assert verdict("x86_64", ARM, 0) == KILL
    with pytest.raises(OSError) as error:
        walls._filter("riscv64")
    assert error.value.errno == errno.ENOSYS


def test_a_wall_that_cannot_be_built_is_reported() -> None:
    def impossible() -> None:
        raise PermissionError

    assert not walls.attempt(impossible)
