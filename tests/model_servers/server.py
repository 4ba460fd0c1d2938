"""A model that does what it is told, behind the four interfaces that the CLIs speak, on a port of this machine.

It answers every prompt with the same text. A prompt that contains `LOOK` is first answered with a call of the tool it
was given. Whatever it is asked is kept, so that a test can see what a CLI sent.
"""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.model_servers.dialects import DIALECTS, Answer, Dialect

__all__ = ["LOOK", "Model", "model_server"]

LOOK = "Please LOOK into it."
_RESULTS = ('"tool_result"', '"functionResponse"', '"role": "tool"', '"function_call_output"')


@dataclass
class Model:
    """What the model says, and what it was asked.

    Attributes:
        text: Its answer.
        call: A tool it calls when asked to look, and the arguments.
        port: Where it listens.
        asked: The bodies of all requests, as JSON text.
    """

    text: str
    call: tuple[str, dict[str, Any]] | None = None
    port: int = 0
    asked: list[str] = field(default_factory=list[str])

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def answer(self, messages: list[Any], *, tools: bool) -> Answer:
        """What comes next, by the messages alone, so that a repeated request gets the same."""
        said = [json.dumps(message) for message in messages]
        asked = max((place for place, text in enumerate(said) if LOOK in text), default=len(said))
        found = any(mark in text for text in said[asked:] for mark in _RESULTS)
        if self.call and tools and asked < len(said) and not found:
            return Answer("", self.call)
        return Answer(self.text)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing."""

    def do_GET(self) -> None:
        """A list of models, for those who ask."""
        self._send("application/json", json.dumps({"object": "list", "data": [], "models": []}).encode())

    do_HEAD = do_GET  # noqa: N815 - the name is the base class's

    def do_POST(self) -> None:
        """An answer of the model."""
        body = json.loads(self._body() or b"{}")
        path = self.path.partition("?")[0]
        dialect = next((dialect for end, dialect in DIALECTS.items() if path.endswith(end)), None)
        if dialect is None:
            self._send("application/json", b'{"input_tokens": 10, "totalTokens": 10}')
            return
        self.model.asked.append(json.dumps(body, ensure_ascii=False))
        self._answer(dialect, body)

    def _answer(self, dialect: Dialect, body: dict[str, Any]) -> None:
        answer = self.model.answer(dialect.messages(body), tools=bool(body.get("tools")))
        if dialect.streams(body):
            events = "".join(f"{event}data: {json.dumps(data)}\n\n" for event, data in dialect.events(answer))
            self._send("text/event-stream", (events + dialect.end).encode())
        else:
            self._send("application/json", json.dumps(dialect.whole(answer)).encode())

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces: list[bytes] = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@contextmanager
def model_server(model: Model) -> Generator[Model]:
    """Run it on a free port."""
    handler = type("_BoundHandler", (_Handler,), {"model": model})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        model.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join(5)
