"""The guards, each with what is left when it is taken away and the quick test that must then turn red."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Guard:
    """`text` stands exactly once in `file`; `without` is put in its place. `test`: `file::name`, below the project."""

    name: str
    file: str
    text: str
    without: str
    test: str

    @property
    def quick(self) -> bool:
        """Whether its test needs no database."""
        return self.test.startswith("tests/unit/")


_UNIT, _API, _STORAGE = "tests/unit", "tests/integration/api", "tests/integration/storage"

GUARDS: Final = (
    # --- what may leave ---------------------------------------------------------------------------------------------
    Guard(
        "a policy that was not understood denies everything",
        "policy/egress.py",
        '        if not self.sound:\n            return Decision(False, "no_policy")',
        "",
        f"{_UNIT}/policy/test_egress.py::test_a_missing_or_malformed_policy_denies_everything",
    ),
    Guard(
        "every answer of a look-up must be allowed",
        "policy/egress.py",
        "        if refused:\n            return Decision(False, refused[0]",
        "        if len(refused) == len(decisions):\n            return Decision(False, refused[0]",
        f"{_UNIT}/policy/test_egress.py::test_every_answer_of_a_look_up_must_be_allowed",
    ),
    Guard(
        "a public address is allowed to nobody, listed or not",
        "policy/egress.py",
        "in self.peers and kind in (AddressClass.PRIVATE, AddressClass.LOOPBACK):",
        "in self.peers:",
        f"{_UNIT}/policy/test_egress.py::test_a_public_address_is_denied_even_when_it_is_listed",
    ),
    Guard(
        "two parsers must read a URL alike",
        "policy/egress.py",
        "    if (seen.scheme, seen.host, seen.port or _DEFAULT_PORT[scheme]) != (scheme, host, port):",
        "    if False:",
        f"{_UNIT}/policy/test_egress.py::test_a_url_that_the_client_reads_otherwise_is_refused",
    ),
    Guard(
        "redirects are not followed",
        "policy/transport.py",
        "    return 300 <= response.status_code < 400",
        "    return False",
        f"{_UNIT}/policy/test_transport.py::test_a_redirect_is_an_error_and_nothing_is_sent_on",
    ),
    Guard(
        "the tripwire judges connections",
        "policy/hook.py",
        '    "socket.connect": _connect,\n',
        "",
        f"{_UNIT}/policy/test_hook.py::test_the_hook_denies_or_lets_pass",
    ),
    Guard(
        "the tripwire judges programs",
        "policy/hook.py",
        '    "subprocess.Popen": _popen,\n',
        "",
        f"{_UNIT}/policy/test_hook.py::test_the_hook_denies_or_lets_pass",
    ),
    Guard(
        "a shape that is not understood is denied",
        "policy/hook.py",
        '        reason = "unknown_shape"',
        "        reason = None",
        f"{_UNIT}/policy/test_hook.py::test_shapes_that_python_itself_would_refuse_are_denied_too",
    ),
    Guard(
        "a tool is checked once more when it is called",
        "agent/steering.py",
        '            check_tool(self._run.policy, call["name"], self._offered)\n',
        "",
        f"{_UNIT}/agent/test_steering.py::test_a_tool_that_is_not_offered_is_refused_and_learns_nothing",
    ),
    # --- who may do what --------------------------------------------------------------------------------------------
    Guard(
        "an administrator's route is for administrators",
        "api/auth.py",
        "    if not principal.is_admin:",
        "    if False:",
        f"{_API}/test_authorisation.py::test_an_employee_is_no_admin",
    ),
    Guard(
        "a cookie alone changes nothing",
        "api/auth.py",
        "    if cookie and request.method not in SAFE_METHODS and",
        "    if False and",
        f"{_API}/test_login.py::test_a_cookie_changes_nothing_without_the_header",
    ),
    Guard(
        "a token belongs to the tenant that it names",
        "storage/sql/users.sql",
        "WHERE t.tenant_id = %(tenant)s AND t.sha256 = %(sha256)s AND",
        "WHERE",
        f"{_API}/test_authorisation.py::test_with_a_bad_token_nothing_is_to_be_had",
    ),
    Guard(
        "a disabled user's tokens are no good",
        "storage/sql/users.sql",
        "  AND NOT u.disabled\n",
        "",
        f"{_API}/test_authorisation.py::test_a_disabled_user_is_out_at_once",
    ),
    Guard(
        "tokens expire",
        "storage/sql/users.sql",
        "(t.expires_at IS NULL OR t.expires_at > now())",
        "true",
        f"{_API}/test_authorisation.py::test_with_a_bad_token_nothing_is_to_be_had",
    ),
    Guard(
        "guessing is held up",
        "api/throttle.py",
        "            if len(recent) >= most:",
        "            if False:",
        f"{_UNIT}/api/test_throttle.py::test_ten_thousand_guesses_get_ten_tries",
    ),
    Guard(
        "a body says nothing that was not asked for",
        "api/bodies.py",
        'extra="forbid"',
        'extra="ignore"',
        f"{_API}/test_hostile.py::test_nobody_makes_themselves_somebody_else",
    ),
    Guard(
        "bodies have an end",
        "api/security.py",
        "        if seen > limit:",
        "        if False:",
        f"{_UNIT}/api/test_security.py::test_the_limit_counts_what_comes_not_what_is_announced",
    ),
    Guard(
        "links of an answer stay inside",
        "api/rendering.py",
        'return value if name != "href" or _OWN.fullmatch(value) else None',
        "return value",
        f"{_UNIT}/api/test_rendering.py::test_nothing_in_an_answer_leads_out",
    ),
    Guard(
        "a log line is one line",
        "core/logs.py",
        "char if char.isprintable() else",
        "char if True else",
        f"{_UNIT}/core/test_logs.py::test_nobody_can_forge_a_line_or_colour_the_terminal",
    ),
    # --- what is whose ----------------------------------------------------------------------------------------------
    Guard(
        "a transaction has a tenant",
        "storage/database.py",
        "        if not isinstance(tenant_id, UUID):\n            raise TenantContextMissing\n",
        "",
        f"{_STORAGE}/test_database.py::test_without_a_tenant_nothing_works",
    ),
    Guard(
        "the program's role cannot step around row security",
        "storage/database.py",
        '    if row is None or row["unsafe"]:',
        "    if False:",
        f"{_STORAGE}/test_database.py::test_the_owner_and_superusers_are_refused",
    ),
    Guard(
        "a connection goes back empty",
        "storage/database.py",
        '    if row is None or row["leftover"]:',
        "    if False:",
        f"{_STORAGE}/test_database.py::test_a_connection_that_cannot_be_wiped_is_thrown_away",
    ),
    Guard(
        "row security is forced",
        "storage/migrations/0001_schema.sql",
        "    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);\n",
        "",
        f"{_STORAGE}/test_catalogue.py::test_the_schema_keeps_every_rule",
    ),
    Guard(
        "the wall between tenants is restrictive",
        "storage/migrations/0001_schema.sql",
        "tenant_wall ON %s AS RESTRICTIVE USING",
        "tenant_wall ON %s AS PERMISSIVE USING",
        f"{_STORAGE}/test_catalogue.py::test_the_schema_keeps_every_rule",
    ),
    Guard(
        "a thread of checkpoints is its user's",
        "storage/sql/schema.sql",
        "user_wall ON %s AS RESTRICTIVE TO intramuros_app USING",
        "user_wall ON %s AS PERMISSIVE TO intramuros_app USING",
        f"{_STORAGE}/test_checkpoints.py::test_a_guessed_thread_is_neither_read_nor_written_nor_deleted",
    ),
    Guard(
        "checkpoints are read strictly",
        "storage/checkpoints.py",
        "    if not _msgpack.STRICT_MSGPACK_ENABLED:",
        "    if False:",
        f"{_STORAGE}/test_checkpoints.py::test_without_strict_deserialisation_there_is_no_memory",
    ),
    Guard(
        "a document is read by whom it was granted to",
        "storage/sql/documents.sql",
        "WHERE d.tenant_id = %(tenant)s AND (%(admin)s OR EXISTS (",
        "WHERE d.tenant_id = %(tenant)s AND (true OR EXISTS (",
        f"{_STORAGE}/test_documents.py::test_what_is_not_granted_is_not_there",
    ),
    Guard(
        "a search finds what was granted",
        "storage/sql/search.sql",
        "               AND (%(admin)s OR EXISTS (",
        "               AND (true OR EXISTS (",
        f"{_STORAGE}/test_search.py::test_an_employee_finds_what_is_granted_to_him",
    ),
    Guard(
        "a conversation is its user's",
        "storage/sql/sessions.sql",
        "WHERE s.tenant_id = %(tenant)s AND s.user_id = %(user)s AND (",
        "WHERE s.tenant_id = %(tenant)s AND (",
        f"{_STORAGE}/test_sessions.py::test_nobody_else_finds_a_session",
    ),
    Guard(
        "only administrators delete",
        "storage/documents.py",
        "    if not principal.is_admin:\n        raise Forbidden",
        "    if False:\n        raise Forbidden",
        f"{_STORAGE}/test_documents.py::test_what_is_not_granted_is_not_there",
    ),
    Guard(
        "a citation is of what this very question found",
        "agent/citations.py",
        "        return self._hits.get(handle)",
        "        return self._hits.get(handle) or next(iter(self._hits.values()), None)",
        f"{_UNIT}/agent/test_citations.py::test_a_chunk_keeps_its_handle_and_requests_do_not_share_them",
    ),
    # --- what is recorded -------------------------------------------------------------------------------------------
    Guard(
        "a refusal is noted",
        "api/auth.py",
        "        await audit.record(context.runtime.db, principal.tenant_id,",
        "        lambda: (context.runtime.db, principal.tenant_id,",
        f"{_API}/test_matrix.py::test_what_is_refused_is_noted_once",
    ),
    Guard(
        "a failed log-in is noted",
        "api/auth.py",
        '        await audit.record(db, tenant_id, found[0].user_id if found else None, "login.failed")\n',
        "",
        f"{_API}/test_matrix.py::test_what_is_refused_is_noted_once",
    ),
    Guard(
        "a deletion is noted",
        "storage/documents.py",
        '        await audit.note(tx, principal.user_id, "document.deleted", document_id)\n',
        "",
        f"{_STORAGE}/test_audit.py::test_every_act_leaves_one_entry_and_none_happens_without",
    ),
    Guard(
        "a refused tool is noted",
        "agent/steering.py",
        "            await self._run.retriever.note_refusal()\n",
        "",
        f"{_UNIT}/agent/test_steering.py::test_a_refusal_that_cannot_be_noted_ends_the_run",
    ),
    Guard(
        "the hash of an entry is made anew",
        "storage/audit.py",
        'return None if made.digest() == entry["hash"] else "altered"',
        "return None",
        f"{_STORAGE}/test_audit.py::test_a_change_names_the_first_entry_that_is_wrong",
    ),
    Guard(
        "a removal is proven",
        "storage/tenants.py",
        "        if left := await holdings(connection, tenant.id):",
        "        if left := {}:",
        f"{_STORAGE}/test_removal.py::test_where_something_is_forgotten_nothing_is_removed",
    ),
)
