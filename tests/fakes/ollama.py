"""A small Ollama on loopback, for tests: real HTTP, scripted replies, every request kept.

    with FakeOllama(replies=[Reply("Sixteen weeks.")]) as server:
        ... Settings(ollama_url=server.url)

It knows /api/version, /api/tags, /api/show, /api/ps, /api/chat and /api/embed and answers 404 to everything else.
Embeddings come from tests.fakes.embedder, so texts that share words are near each other.
"""

import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.fakes.embedder import DIMENSION, vector
from tests.fakes.server import LoopbackServer

PIECE = 4  # characters in one line of a stream


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply to /api/chat. `status` other than 200 answers `error`; `first_token` gives alternatives.

    `done=False` ends the stream without its last line; `hang=True` stops after the first piece until the client
    leaves (`FakeOllama.left` is then set); `broken=True` loses the connection in the middle.
    """

    text: str = ""
    tool_calls: Sequence[Mapping[str, Any]] = ()
    first_token: Mapping[str, float] = field(default_factory=dict)
    status: int = 200
    error: str = ""
    done: bool = True
    done_reason: str = "stop"
    prompt_eval_count: int | None = None
    hang: bool = False
    broken: bool = False
    pieces: Sequence[str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def model(*capabilities: str, size: str = "1.5B", **extra: Any) -> dict[str, Any]:
    """What /api/show answers for one model; `extra` adds or replaces fields (remote_host, model_info ...)."""
    shown = {
        "capabilities": list(capabilities or ("completion", "tools")),
        "details": {"family": "qwen2", "parameter_size": size, "quantization_level": "Q4_K_M"},
        "model_info": {"general.architecture": "qwen2", "qwen2.context_length": 32768},
        "template": "{{ .Prompt }}",
        "modelfile": "",
    }
    return shown | extra


@dataclass(frozen=True, slots=True)
class Request:
    """One request that reached the server; header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class FakeOllama(LoopbackServer):
    """A context manager; `requests` lists what came, `left` is set when a client left a hanging reply."""

    def __init__(
        self,
        *,
        models: Mapping[str, Mapping[str, Any]] | None = None,
        replies: Sequence[Reply] = (),
        context_tokens: int | None = None,
        embed_tokens: int | None = None,
    ) -> None:
        self.models = dict(models) if models is not None else {"chat:latest": model()}
        self.replies = list(replies)
        self.requests: list[Request] = []
        self.left = threading.Event()
        self.context_tokens = context_tokens  # longer prompts are 400 under truncate: false (words count as tokens)
        self.embed_tokens = embed_tokens
        self._lock = threading.Lock()
        super().__init__(_Handler, "")

    @property
    def chats(self) -> list[Mapping[str, Any]]:
        """The bodies sent to /api/chat."""
        return [request.body for request in self.requests if request.path == "/api/chat"]

    def answer(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        """Status and JSON body of everything but a chat reply."""
        if path == "/api/version":
            return 200, {"version": "0.24.0"}
        if path == "/api/tags":
            return 200, {"models": [{"name": name, "model": name, "size": 1} for name in self.models]}
        if path == "/api/ps":
            return 200, {"models": []}
        if path == "/api/show":
            shown = self.find(str(body.get("model", "")))
            return (200, shown) if shown is not None else (404, {"error": "model not found"})
        if path == "/api/embed":
            return self._embed(body)
        return 404, {"error": f"no such route: {path}"}

    def find(self, name: str) -> Mapping[str, Any] | None:
        """A model by its name, `:latest` understood."""
        return self.models.get(name) or self.models.get(f"{name}:latest")

    def next_reply(self, body: Mapping[str, Any]) -> Reply:
        """The reply to one /api/chat request."""
        if self.find(str(body.get("model", ""))) is None:
            return Reply(status=404, error=f"model '{body.get('model')}' not found")
        words = sum(len(str(message.get("content", "")).split()) for message in body["messages"])
        if self.context_tokens is not None and words > self.context_tokens and body.get("truncate") is False:
            return Reply(status=400, error="the input length exceeds the context length")
        with self._lock:
            return self.replies.pop(0) if self.replies else Reply(status=500, error="no reply left in the script")

    def _embed(self, body: Mapping[str, Any]) -> tuple[int, Any]:
        if self.find(str(body.get("model", ""))) is None:
            return 404, {"error": "model not found"}
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        longest = max((len(text.split()) for text in texts), default=0)
        if self.embed_tokens is not None and longest > self.embed_tokens and body.get("truncate") is False:
            return 400, {"error": "the input length exceeds the context length"}
        return 200, {"model": body["model"], "embeddings": [vector(text).tolist() for text in texts]}


def dimension() -> int:
    """Length of the vectors that /api/embed gives."""
    return DIMENSION


class _Handler(BaseHTTPRequestHandler):
    owner: FakeOllama
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._handle({})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        self._handle(json.loads(raw or b"{}"))

    def _handle(self, body: Mapping[str, Any]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.owner.requests.append(Request(self.path, headers, body))
        if self.path == "/api/chat":
            self._chat(body)
        else:
            self._json(*self.owner.answer(self.path, body))

    def _json(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, text)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _chat(self, body: Mapping[str, Any]) -> None:
        reply = self.owner.next_reply(body)
        if reply.status != 200:
            self._json(reply.status, {"error": reply.error}, reply.headers)
            return
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("connection", "close")
        if reply.broken:
            self.send_header("content-length", "1000000")
        self.end_headers()
        self.close_connection = True
        try:
            for line in self._lines(str(body["model"]), reply):
                self.wfile.write(json.dumps(line).encode() + b"\n")
                self.wfile.flush()
                if reply.hang:
                    self.connection.recv(1)  # returns when the client closes the connection
                    self.owner.left.set()
                    return
        except (BrokenPipeError, ConnectionResetError):
            self.owner.left.set()

    def _lines(self, name: str, reply: Reply) -> list[dict[str, Any]]:
        head = {"model": name, "created_at": "2026-01-01T00:00:00Z"}
        if reply.pieces is not None:
            pieces = list(reply.pieces)
        else:
            pieces = [reply.text[at : at + PIECE] for at in range(0, len(reply.text), PIECE)]
        lines = [head | {"message": {"role": "assistant", "content": piece}, "done": False} for piece in pieces]
        if reply.first_token and lines:
            likeliest = max(reply.first_token, key=lambda token: reply.first_token[token])
            top = [{"token": token, "logprob": math.log(p)} for token, p in reply.first_token.items()]
            lines[0]["logprobs"] = [
                {"token": likeliest, "logprob": math.log(reply.first_token[likeliest]), "top_logprobs": top}
            ]
        if reply.tool_calls:
            calls = [{"function": dict(call)} for call in reply.tool_calls]
            message = {"role": "assistant", "content": "", "tool_calls": calls}
            lines.append(head | {"message": message, "done": False})
        if reply.done:
            last = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reply.done_reason}
            counts = {"eval_count": len(pieces), "total_duration": 1}
            if reply.prompt_eval_count is not None:
                counts["prompt_eval_count"] = reply.prompt_eval_count
            lines.append(head | last | counts)
        return lines
