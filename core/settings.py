"""Settings: the only reader of the environment. Read once at start, validated, frozen, secrets hidden."""

import os
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from core.errors import SettingsError

PREFIX = "INTRAMUROS_"


def _absolute(path: Path) -> Path:
    return path.expanduser().resolve()


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]


class Settings(BaseSettings):
    """Every setting, its default and its meaning. The variable of a field is `INTRAMUROS_` + its name."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True)

    home: AbsolutePath = Field(Path(".intramuros"), description="All state: database, files, run files, logs.")
    cache: AbsolutePath = Field(
        Path("~/.cache/intramuros"), description="Fetched and built models, shared by all clones."
    )
    tenant: str = Field("demo", pattern=r"^[a-z][a-z0-9-]{0,39}$", description="Tenant that commands act on.")

    database_url: SecretStr | None = Field(None, description="PostgreSQL of the app role; empty: embedded.")
    database_owner_url: SecretStr | None = Field(None, description="PostgreSQL of the owner role, for migrations.")
    pool_size: int = Field(8, ge=1, le=200, description="Largest number of database connections.")

    scope: Literal["strict", "private"] = Field("strict", description="Egress scope: strict or private.")
    private_peers: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Private peers that may be connected to, ADDRESS:PORT, separated by commas."
    )

    chat_provider: Literal["auto", "ollama", "openai", "embedded"] = Field("auto", description="Where chat runs.")
    chat_model: str | None = Field(None, description="Chat model's name on its server; empty: the first usable.")
    embed_provider: Literal["auto", "ollama", "openai", "embedded"] = Field("auto", description="Where embedding runs.")
    embed_model: str | None = Field(None, description="Embedding model's name on its server; empty: first usable.")
    grader_model: str | None = Field(
        None,
        description="Another, smaller chat model that grades passages: embedded, ollama:NAME or openai:NAME; empty: "
        "the chat model itself.",
    )
    fallback_model: str | None = Field(
        None,
        description="Chat model that takes over where the first fails: embedded, ollama:NAME or openai:NAME.",
    )
    ollama_url: str = Field("http://127.0.0.1:11434", description="Ollama's address.")
    openai_url: str | None = Field(None, description="A private OpenAI-compatible server's base URL, with /v1.")
    openai_api_key: SecretStr | None = Field(None, description="Key for that server, if it wants one.")
    reranker: Literal["auto", "late", "server", "off"] = Field(
        "auto",
        description="What scores the best hits anew: late (the embedder's token vectors), server (rerank_url), off; "
        "auto: the server where one is named, else late where the embedder can.",
    )
    rerank_url: str | None = Field(None, description="A private rerank server's base URL, with /v1.")
    rerank_model: str | None = Field(None, description="Reranker model's name on that server, if it wants one.")
    rerank_api_key: SecretStr | None = Field(None, description="Key for that server, if it wants one.")
    rerank_timeout: float = Field(5.0, gt=0, description="Seconds that server may take; after them hits stay as found.")
    rerank_cache_mb: int = Field(
        256, ge=1, le=65536, description="Memory for token vectors of passages, about 35 KB each, in megabytes."
    )
    rerank_search: bool = Field(True, description="Rerank a search that does not say; answers are always reranked.")
    search_peer_url: str | None = Field(
        None,
        description="An intranet search that is asked once before a question is given up: its index's base URL, "
        "without /_search. Needs scope private and its ADDRESS:PORT among the private peers.",
    )
    search_peer_name: str = Field("Intranet search", min_length=1, description="What answers call that search.")
    search_peer_key: SecretStr | None = Field(None, description="Key for that search, if it wants one.")
    search_peer_timeout: float = Field(5.0, gt=0, description="Seconds that search may take.")
    gguf: AbsolutePath | None = Field(None, description="Another GGUF chat model for the embedded llama.cpp.")
    num_ctx: int = Field(4096, ge=1024, le=262144, description="Context window asked of the chat model, in tokens.")
    prompt_budget: int | None = Field(
        None,
        ge=200,
        description="Most new prompt tokens of one model call, about; empty: 600, and 1800 with a capable model.",
    )
    chat_timeout: float = Field(120.0, gt=0, description="Seconds one model call may take.")
    ask_timeout: float = Field(300.0, gt=0, description="Seconds one question may take in all.")
    threads: int = Field(0, ge=0, description="Threads for local models; 0: as many as cores.")
    embedded_idle: float = Field(600.0, gt=0, description="Seconds without use after which the embedded model ends.")

    max_model_calls: int = Field(6, ge=1, le=50, description="Model calls the agent may make for one question.")
    max_tool_calls: int = Field(8, ge=1, le=50, description="Tool calls the agent may make for one question.")
    max_rewrites: int | None = Field(
        None,
        ge=0,
        le=2,
        description="Times that a search is tried again in other words; empty: 2, and 1 with a small model.",
    )
    token_budget: int = Field(100_000, ge=1000, description="Tokens, read and written, that one question may take.")
    max_history: int = Field(20, ge=0, le=200, description="Messages of a session that the model is shown.")
    checkpoint_days: int = Field(7, ge=1, le=3650, description="Days that an unused session's working state is kept.")
    trace_days: int = Field(
        30, ge=0, le=3650, description="Days that is kept how an answer came about, for admins; 0: not at all."
    )
    answer_unsupported: Literal["remove", "mark"] = Field(
        "remove", description="What becomes of a sentence that no passage supports: it is removed, or marked as such."
    )
    answer_cache: bool = Field(
        True, description="Give a question asked before its kept answer while documents, rights and day are the same."
    )

    max_file_mb: int = Field(100, ge=1, le=4096, description="Largest file that is ingested, in megabytes.")

    max_attachments: int = Field(500, ge=0, le=10_000, description="Most files taken out of one mail or archive.")
    parse_timeout: float = Field(180.0, gt=0, description="Seconds that reading one file may take.")
    parse_memory_mb: int = Field(2048, ge=256, description="Memory that reading one file may take, in megabytes.")
    ocr: bool = Field(True, description="Read scanned pages and pictures with Tesseract.")
    ocr_languages: str = Field(
        "eng+chi_sim", pattern=r"^[a-zA-Z_]+(\+[a-zA-Z_]+)*$", description="Tesseract's languages, joined by +."
    )
    quarantine: bool = Field(
        True, description="Keep passages that read like instructions to the model from search until released."
    )
    keep_revisions: int = Field(20, ge=1, le=1000, description="Revisions of a document that stay searchable by date.")
    serve_worker: bool = Field(True, description="Process the queue inside `serve`; off: only in `intramuros worker`.")
    concurrency: int = Field(6, ge=1, le=64, description="Documents under way at once, most of them read ahead.")
    max_attempts: int = Field(5, ge=1, le=50, description="Tries of a document whose processing met a passing fault.")

    host: str = Field("127.0.0.1", description="Address that `serve` listens on.")
    port: int = Field(8400, ge=1, le=65535, description="Port that `serve` listens on.")
    secure_cookies: bool = Field(False, description="Send the session cookie over HTTPS only; set it behind TLS.")
    login_hours: int = Field(12, ge=1, le=720, description="Hours that a login lasts.")

    log_format: Literal["pretty", "json"] = Field("pretty", description="Log lines for people or for machines.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("warning", description="Least level logged.")

    @field_validator("private_peers", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator(
        "database_url",
        "database_owner_url",
        "openai_api_key",
        "gguf",
        "chat_model",
        "max_rewrites",
        "prompt_budget",
        "embed_model",
        "grader_model",
        "fallback_model",
        "openai_url",
        "rerank_url",
        "rerank_model",
        "rerank_api_key",
        "search_peer_url",
        "search_peer_key",
        mode="before",
    )
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        return None if value == "" else value

    @field_validator("home")
    @classmethod
    def _own_folder(cls, value: Path) -> Path:
        if value in (Path(value.anchor), Path.home()):
            raise ValueError("must be a folder of its own, not the root or your home folder")
        return value

    @cached_property
    def cores(self) -> int:
        """Threads that local models may use."""
        if self.threads:
            return self.threads
        # Only Linux knows which cores this process may use.
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    @property
    def max_file_bytes(self) -> int:
        """Largest file that is ingested, in bytes."""
        return self.max_file_mb * 1024 * 1024

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Read the environment; `overrides` (from command-line options) win. Raises SettingsError."""
        try:
            return cls(**overrides)
        except ValidationError as error:
            raise SettingsError(_explain(error)) from None


def variable(field: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + field.upper()


def _explain(error: ValidationError) -> str:
    lines = []
    for fault in error.errors(include_url=False, include_input=False):
        name = variable(str(fault["loc"][0])) if fault["loc"] else "settings"
        lines.append(f"{name}: {fault['msg']}")
    return "; ".join(lines) + ". Correct it and start again (docs/reference/settings.md lists every setting)."
