"""The one error tree.

A class's docstring is its default message: what happened, then what to do. Every error carries a short machine
`code` and the HTTP `status` it becomes at the edge. Foreign exceptions are translated once, where they enter, with
the cause kept (`raise X(...) from error`). Messages may be shown to a person: never put a secret in one.
"""

import inspect


class IntramurosError(Exception):
    """Something went wrong inside Intramuros. Run `intramuros doctor` to see which part is unhealthy."""

    code = "internal"
    status = 500

    def __init__(self, message: str | None = None, **details: object) -> None:
        self.message = message or inspect.cleandoc(type(self).__doc__ or "").replace("\n", " ")
        self.details = details
        super().__init__(self.message)


# --- settings and start ---------------------------------------------------------------------------------------------


class SettingsError(IntramurosError):
    """A setting has a value that cannot be used. Correct the variable that the message names and start again."""

    code = "settings"


class MissingExtra(SettingsError):
    """A part that this configuration needs is not installed. Run: pip install 'intramuros[embedded]'."""

    code = "missing_extra"


# --- policy ---------------------------------------------------------------------------------------------------------


class PolicyError(IntramurosError):
    """The egress policy does not allow this. Change the policy settings only if the peer is inside your network."""

    code = "policy"
    status = 403


class BootRefused(PolicyError):
    """The process may not start: something in its surroundings could carry data out. The message names it."""

    code = "boot_refused"


class EgressDenied(PolicyError):
    """A connection was refused by the egress policy. List the peer in INTRAMUROS_PRIVATE_PEERS if it is yours."""

    code = "egress_denied"

    def __init__(self, message: str | None = None, *, reason: str = "denied", **details: object) -> None:
        super().__init__(message, reason=reason, **details)
        self.reason = reason


class ToolDenied(PolicyError):
    """The model asked for a tool that this run does not offer."""

    code = "tool_denied"


# --- storage --------------------------------------------------------------------------------------------------------


class StorageError(IntramurosError):
    """The database did not do what was asked. Run `intramuros doctor`; nothing was half written."""

    code = "storage"


class DatabaseUnavailable(StorageError):
    """The database cannot be reached. Check that PostgreSQL runs and that INTRAMUROS_DATABASE_URL is right."""

    code = "database_unavailable"
    status = 503


class UnsafeRole(StorageError):
    """The database user could step around row security. Let INTRAMUROS_DATABASE_URL name the role intramuros_app."""

    code = "unsafe_role"
    status = 503


class SchemaOutdated(StorageError):
    """The database schema is older than this program. Run `intramuros migrate`."""

    code = "schema_outdated"
    status = 503


class SchemaTooNew(StorageError):
    """The database schema is newer than this program. Install the newer Intramuros that made it."""

    code = "schema_too_new"
    status = 503


class TenantContextMissing(StorageError):
    """A query needs a tenant and none was given. This is a defect: please report it."""

    code = "tenant_context_missing"


class NotFound(StorageError):
    """There is no such thing, or you may not see it."""

    code = "not_found"
    status = 404


class AlreadyExists(StorageError):
    """A thing of this name exists already. Choose another name."""

    code = "already_exists"
    status = 409


class SessionBusy(StorageError):
    """This session is answering another question. Wait for it to finish, or start a new session."""

    code = "session_busy"
    status = 409


class AlreadyDecided(StorageError):
    """Somebody has approved or rejected this answer already."""

    code = "already_decided"
    status = 409


class EmbeddingSetMismatch(StorageError):
    """The vectors were made by another model than the one in use. Choose it again, or run `intramuros reembed`."""

    code = "embedding_set_mismatch"
    status = 409


# --- identity -------------------------------------------------------------------------------------------------------


class Unauthenticated(IntramurosError):
    """You are not logged in, or the token is not valid. Log in, or ask an administrator for a token."""

    code = "unauthenticated"
    status = 401


class Forbidden(IntramurosError):
    """Your role does not allow this. Ask an administrator of your organisation."""

    code = "forbidden"
    status = 403


class Cancelled(IntramurosError):
    """The question was stopped. Nothing of it was stored as an answer; ask again whenever you like."""

    code = "cancelled"
    status = 409


class TooManyAttempts(IntramurosError):
    """Too many failed attempts. Wait a minute and try again."""

    code = "too_many_attempts"
    status = 429


class InvalidRequest(IntramurosError):
    """The request is not well formed. The message says which part."""

    code = "invalid_request"
    status = 422


class ReasonMissing(InvalidRequest):
    """Say why you want to read what somebody else asked. The reason is kept, and shown to that person."""

    code = "reason_missing"
    status = 400


class RequestTooLarge(InvalidRequest):
    """The request is larger than the limit. Send less at once."""

    code = "request_too_large"
    status = 413


# --- inference ------------------------------------------------------------------------------------------------------


class InferenceError(IntramurosError):
    """The model did not answer as it should. Try again; run `intramuros doctor` if it stays."""

    code = "inference"
    status = 502


class ModelUnavailable(InferenceError):
    """The model server cannot be reached. Start it, or run `intramuros doctor` to see which one is expected."""

    code = "model_unavailable"
    status = 503


class ModelMissing(InferenceError):
    """The model is not on this machine. Run `intramuros models pull`, or name one that the model server has."""

    code = "model_missing"
    status = 503


class ModelTimedOut(InferenceError):
    """The model did not answer in time. Try again, or raise INTRAMUROS_CHAT_TIMEOUT on a slow machine."""

    code = "model_timed_out"
    status = 504


class ModelRefused(InferenceError):
    """This model may not be used: it runs on somebody else's computer or lacks a needed capability."""

    code = "model_refused"
    status = 409


class PromptTooLong(InferenceError):
    """The prompt does not fit the model's context. Raise INTRAMUROS_NUM_CTX or ask a shorter question."""

    code = "prompt_too_long"
    status = 413


class PeerUnavailable(InferenceError):
    """The intranet search peer does not answer, or not as expected. See INTRAMUROS_SEARCH_PEER_URL."""

    code = "peer_unavailable"
    status = 503


class DownloadFailed(InferenceError):
    """A model file could not be fetched. Run `intramuros models pull` again: it goes on where it stopped."""

    code = "download_failed"


class ChecksumMismatch(DownloadFailed):
    """A model file is not the one that was pinned. It was removed; run `intramuros models pull` again."""

    code = "checksum_mismatch"


# --- ingest ---------------------------------------------------------------------------------------------------------


class IngestError(IntramurosError):
    """The document could not be read. Nothing of it was stored."""

    code = "unreadable"
    status = 422


class EmptyFile(IngestError):
    """The file is empty. Upload the file again with its content."""

    code = "empty_file"


class NoText(IngestError):
    """The file holds no text that can be read (a scan or a picture). Provide a version with a text layer."""

    code = "no_text"


class EncryptedFile(IngestError):
    """The file is protected by a password. Remove the protection and upload it again."""

    code = "encrypted_file"


class DamagedFile(IngestError):
    """The file is damaged or cut short. Open it in its own program, save it anew and upload it again."""

    code = "damaged_file"


class UnsupportedFormat(IngestError):
    """This kind of file is not supported. Save it as PDF, DOCX, HTML, Markdown or plain text and upload it again."""

    code = "unsupported_format"


class MismatchedFormat(IngestError):
    """The file's content is not what its name says. Give it the right extension and upload it again."""

    code = "mismatched_format"


class FileTooLarge(IngestError):
    """The file is larger than the limit. Split it, or raise INTRAMUROS_MAX_FILE_MB."""

    code = "file_too_large"
    status = 413


class ActiveContent(IngestError):
    """The file holds macros, embedded programs or links that load other files. Save it without them and try again."""

    code = "active_content"


class MissingConverter(IngestError):
    """This kind of file needs a program that is not installed here. The message names it and its package."""

    code = "missing_converter"


class ParserStopped(IngestError):
    """Reading the file took more time or memory than allowed, or ended the reader. Split it, or save it anew."""

    code = "parser_stopped"


class ReaderUnavailable(IntramurosError):
    """The process that reads documents could not be started. Run `intramuros doctor`; then try again."""

    code = "reader_unavailable"
    status = 503


class SyncRefused(IntramurosError):
    """The folder lacks so many of its documents that they may only be out of reach. Nothing was changed."""

    code = "sync_refused"
    status = 409


class ArchiveBomb(IngestError):
    """The file unpacks to far more than a document should. It was refused."""

    code = "archive_bomb"
