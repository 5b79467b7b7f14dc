"""What the fake model servers share: an HTTP server on a free loopback port, in a thread, while the `with` lasts."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

# A request's JSON to the reply's status and JSON.
Answer = Callable[[dict[str, Any]], tuple[int, Any]]


class LoopbackServer:
    """Serves with `handler`, whose class attribute `owner` is this object; `url` is where, `suffix` included."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], suffix: str) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), {"owner": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}{suffix}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class JsonServer(LoopbackServer):
    """Answers each POST with `answer`; `requests` holds path, authorisation and body."""

    def __init__(self, answer: Answer, suffix: str) -> None:
        super().__init__(_JsonHandler, suffix)
        self.answer = answer
        self.requests: list[tuple[str, str | None, dict[str, Any]]] = []


class _JsonHandler(BaseHTTPRequestHandler):
    owner: JsonServer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.owner.requests.append((self.path, self.headers["authorization"], body))
        status, value = self.owner.answer(body)
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
