"""A small OpenAI-compatible server on loopback: /v1/models, /v1/chat/completions (streamed) and /v1/embeddings."""

import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.fakes.embedder import vector
from tests.fakes.server import LoopbackServer


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply to a chat request; `status` other than 200 answers `error`, `finish=None` leaves the end out.

    `hang=True` stops before the first event until the client leaves (`FakeOpenAI.left` is then set); `broken=True`
    loses the connection in the middle.
    """

    text: str = ""
    first_token: Mapping[str, float] = field(default_factory=dict)
    status: int = 200
    error: str = ""
    finish: str | None = "stop"
    prompt_tokens: int = 30
    hang: bool = False
    broken: bool = False


class FakeOpenAI(LoopbackServer):
    """A context manager; `requests` lists (path, headers, body) of what came."""

    def __init__(
        self,
        *,
        models: Sequence[str] = ("qwen3-8b",),
        replies: Sequence[Reply] = (),
        embed_words: int | None = None,
    ) -> None:
        self.embed_words = embed_words  # longer texts are refused by /v1/embeddings
        self.models = tuple(models)
        self.replies = list(replies)
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.left = threading.Event()
        super().__init__(_Handler, "/v1")

    @property
    def chats(self) -> list[dict[str, Any]]:
        """The bodies of the chat requests."""
        return [body for path, _, body in self.requests if path == "/v1/chat/completions"]


class _Handler(BaseHTTPRequestHandler):
    owner: FakeOpenAI

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._note({})
        self._json(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in self.owner.models]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self._note(body)
        if self.path == "/v1/embeddings":
            most = self.owner.embed_words
            if most is not None and any(len(text.split()) > most for text in body["input"]):
                self._json(400, {"error": {"message": "This model's maximum context length is exceeded"}})
                return
            data = [{"index": n, "embedding": vector(text).tolist()} for n, text in enumerate(body["input"])]
            self._json(200, {"data": data[::-1]})
            return
        reply = self.owner.replies.pop(0) if self.owner.replies else Reply(status=500, error="no reply left")
        if reply.status != 200:
            self._json(reply.status, {"error": {"message": reply.error, "code": reply.status}})
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        if reply.broken:
            self.send_header("content-length", "1000000")
        self.end_headers()
        if reply.hang:
            self.connection.recv(1)  # returns when the client closes the connection
            self.owner.left.set()
            return
        for event in _events(reply):
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def _note(self, body: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.owner.requests.append((self.path, headers, body))

    def _json(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _events(reply: Reply) -> list[dict[str, Any]]:
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "qwen3-8b"}
    logprobs = None
    if reply.first_token:
        top = [{"token": token, "logprob": math.log(p), "bytes": None} for token, p in reply.first_token.items()]
        logprobs = {"content": [{**top[0], "top_logprobs": top}]}
    events = [
        head | {"choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}, "logprobs": logprobs}]}
        for piece in (reply.text[:4], reply.text[4:])
    ]
    if reply.finish:
        events.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish}]})
    usage = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": 5}
    usage["total_tokens"] = sum(usage.values())
    return [*events, head | {"choices": [], "usage": usage}]
