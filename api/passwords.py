"""Passwords: hashed with Argon2id, checked off the event loop."""

import asyncio
import secrets
from functools import lru_cache
from typing import Final

from pwdlib import PasswordHash
from pwdlib.exceptions import PwdlibError

from core.errors import InvalidRequest

LENGTH: Final = (8, 256)
# One check takes 64 MB: this many at once.
_AT_ONCE: Final = 2


@lru_cache(maxsize=1)
def _hasher() -> PasswordHash:
    return PasswordHash.recommended()


@lru_cache(maxsize=1)
def _decoy() -> str:
    # Checked when there is no such user, so that the time an answer takes does not tell.
    return _hasher().hash(secrets.token_urlsafe(16))


def hash_password(password: str) -> str:
    """The hash to store. Raises InvalidRequest when the password is too short or too long."""
    least, most = LENGTH
    if not least <= len(password) <= most:
        raise InvalidRequest(f"A password has {least} to {most} characters.")
    return _hasher().hash(password)


def check_password(password: str, stored: str | None) -> bool:
    """Whether `password` is the one behind the hash `stored`; as slow when there is none."""
    try:
        return _hasher().verify(password, stored or _decoy()) and stored is not None
    except PwdlibError:
        return False


class Hashing:
    """Checks passwords in threads, few at a time."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def check(self, password: str, stored: str | None) -> bool:
        """As `check_password`."""
        async with self._slots:
            return await asyncio.to_thread(check_password, password, stored)
