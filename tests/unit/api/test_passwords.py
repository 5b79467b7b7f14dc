"""Password hashes."""

import pytest

from api.passwords import Hashing, check_password, hash_password
from core.errors import InvalidRequest


async def test_a_password_opens_its_own_hash_only() -> None:
    stored = hash_password("correct horse 马")
    assert stored.startswith("$argon2id$")
    assert stored != hash_password("correct horse 马")
    hashing = Hashing()
    assert await hashing.check("correct horse 马", stored)
    assert not await hashing.check("correct horse", stored)


@pytest.mark.parametrize("stored", [None, "", "not a hash", "$argon2id$broken"])
def test_without_a_sound_hash_nothing_opens(stored: str | None) -> None:
    assert not check_password("anything", stored)


@pytest.mark.parametrize("password", ["", "short", "x" * 257])
def test_lengths_are_bounded(password: str) -> None:
    with pytest.raises(InvalidRequest):
        hash_password(password)
