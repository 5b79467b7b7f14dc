"""Users of a tenant and their tokens. A token's SHA-256 (hexadecimal) is stored, never the token.

Users and API tokens are made and changed by the operator at the command line alone; each change is in the audit log.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal
from uuid import UUID, uuid4

from psycopg.rows import DictRow

from core.errors import NotFound
from core.records import Principal, Role
from storage import audit
from storage.database import Database, typed_row

OPERATOR: Final = UUID(int=0)
TokenKind = Literal["api", "cookie"]


@dataclass(frozen=True, slots=True)
class Account:
    """A user as an administrator sees it."""

    principal: Principal
    disabled: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """What is known of a token besides its secret. `expires_at` None: never."""

    id: UUID
    label: str
    kind: TokenKind
    created_at: datetime
    expires_at: datetime | None


def operator(tenant_id: UUID) -> Principal:
    """The administrator at the command line, whom the operating system has let in already."""
    return Principal(tenant_id, OPERATOR, "operator", Role.ADMIN)


def member(tenant_id: UUID, group: str) -> Principal:
    """Somebody who has the rights of a group and of everyone, none of a user's: to see what the group may read."""
    return Principal(tenant_id, uuid4(), f"member of {group}", Role.EMPLOYEE, frozenset({group}))


async def create(
    db: Database, tenant_id: UUID, name: str, password_hash: str, role: Role, groups: Iterable[str] = ()
) -> Principal:
    """Add a user. Names differ by more than case; raises AlreadyExists."""
    async with db.transaction(tenant_id) as tx:
        row = await tx.row(
            "users.create", name=name, password_hash=password_hash, role=str(role), groups=sorted(set(groups))
        )
        made = _principal(tenant_id, typed_row(row))
        await audit.note(tx, OPERATOR, "user.created", made.user_id)
    return made


async def by_name(db: Database, tenant_id: UUID, name: str) -> tuple[Principal, str] | None:
    """The user of this name (in any case) and the password's hash; None for an unknown or disabled one."""
    async with db.transaction(tenant_id) as tx:
        row = await tx.row("users.by_name", name=name)
    return (_principal(tenant_id, row), row["password_hash"]) if row else None


async def by_id(db: Database, tenant_id: UUID, user_id: UUID) -> Principal | None:
    """The user of this id, None for an unknown or disabled one."""
    async with db.transaction(tenant_id) as tx:
        row = await tx.row("users.by_id", id=user_id)
    return _principal(tenant_id, row) if row else None


async def list_all(db: Database, tenant_id: UUID) -> list[Account]:
    """Every user by name, the operator left out."""
    async with db.transaction(tenant_id) as tx:
        rows = await tx.rows("users.list_all")
    return [Account(_principal(tenant_id, row), row["disabled"], row["created_at"]) for row in rows]


async def set_disabled(db: Database, tenant_id: UUID, user_id: UUID, disabled: bool) -> None:
    """Shut a user out (tokens included) or let it in again. Raises NotFound."""
    async with db.transaction(tenant_id) as tx:
        if not await tx.run("users.set_disabled", id=user_id, disabled=disabled):
            raise NotFound
        await audit.note(tx, OPERATOR, "user.disabled" if disabled else "user.enabled", user_id)


async def set_password(db: Database, tenant_id: UUID, user_id: UUID, password_hash: str) -> None:
    """Change the password and end every log-in by cookie. Raises NotFound."""
    async with db.transaction(tenant_id) as tx:
        if not await tx.run("users.set_password", id=user_id, password_hash=password_hash):
            raise NotFound
        await audit.note(tx, OPERATOR, "user.password_set", user_id)


async def add_token(
    db: Database, principal: Principal, token_sha256: str, label: str, kind: TokenKind, lifetime: timedelta | None
) -> UUID:
    """Store a token of the principal that is good for so long (None: for ever); its id.

    The principal's log-ins that have expired go with it.
    """
    async with db.transaction(principal.tenant_id) as tx:
        row = await tx.row(
            "users.add_token",
            user=principal.user_id,
            sha256=token_sha256,
            label=label,
            kind=kind,
            lifetime=lifetime,
        )
        token_id: UUID = typed_row(row)["id"]
        if kind == "cookie":
            await audit.note(tx, principal.user_id, "login.succeeded", token_id)
        else:
            await audit.note(tx, OPERATOR, "token.created", token_id)
    return token_id


async def by_token(db: Database, tenant_id: UUID, token_sha256: str) -> Principal | None:
    """Whose token this is; None for an unknown or expired one, or a disabled user's."""
    async with db.transaction(tenant_id) as tx:
        row = await tx.row("users.by_token", sha256=token_sha256)
    return _principal(tenant_id, row) if row else None


async def list_tokens(db: Database, principal: Principal) -> list[TokenInfo]:
    """The principal's own tokens, oldest first."""
    async with db.transaction(principal.tenant_id) as tx:
        rows = await tx.rows("users.list_tokens", user=principal.user_id)
    return [TokenInfo(row["id"], row["label"], row["kind"], row["created_at"], row["expires_at"]) for row in rows]


async def revoke_token(db: Database, principal: Principal, token_id: UUID) -> None:
    """Take back one of the principal's own tokens. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        if not await tx.run("users.revoke_token", user=principal.user_id, id=token_id):
            raise NotFound
        await audit.note(tx, OPERATOR, "token.revoked", token_id)


async def forget_token(db: Database, tenant_id: UUID, token_sha256: str) -> None:
    """Log out: the token that was shown is no longer good. Nothing happens when it was not."""
    async with db.transaction(tenant_id) as tx:
        await tx.run("users.forget_token", sha256=token_sha256)


def _principal(tenant_id: UUID, row: DictRow) -> Principal:
    return Principal(tenant_id, row["id"], row["name"], Role(row["role"]), frozenset(row["groups"]))
