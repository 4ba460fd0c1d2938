"""A client that drives the agent over pipes and checks every line it gets."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from acp_history_bridge.protocol.server import MakeSource, converse
from acp_history_bridge.settings import Settings
from tests.peers.memory import MemorySource
from tests.peers.schema import check_frame, request_kind

ROOT = Path(__file__).parent.parent.parent
MEMORY_AGENT = (sys.executable, "-m", "tests.peers.memory_agent")
_TIMEOUT = 10.0

Message = dict[str, Any]


class Bridge:
    """One connection.

    Attributes:
        messages: What was taken so far, in order, each validated.
        lines: The same as bytes.
        times: When each of them arrived.
    """

    def __init__(self, read_from: int, write_to: int) -> None:
        self.messages: list[Message] = []
        self.lines: list[bytes] = []
        self.times: list[float] = []
        self._methods: dict[object, str] = {}
        self._write_to = write_to
        self._read_from = read_from
        self._next_id = 0
        self._arrived: queue.Queue[tuple[bytes, float] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: object) -> None:
        """Send any JSON value as a line."""
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        """Send raw bytes."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._write_to, view) :]

    def start(self, method: str, params: object = None, *, id_: object = None) -> object:
        """Send a request; its id is returned."""
        self._next_id += 1
        id_ = self._next_id if id_ is None else id_
        self._methods[id_] = request_kind(method, params)
        self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": {} if params is None else params})
        return id_

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def answer(self, id_: object) -> Message:
        """Wait for the response to a request."""
        for message in self.messages:
            if "method" not in message and message["id"] == id_:
                return message
        while True:
            message = self.next()
            if "method" not in message and message["id"] == id_:
                return message

    def request(self, method: str, params: object = None) -> Message:
        """Send a request and wait for its result."""
        message = self.answer(self.start(method, params))
        assert "result" in message, message
        result: Message = message["result"]
        return result

    def refused(self, method: str, params: object = None) -> Message:
        """Send a request and wait for its error."""
        message = self.answer(self.start(method, params))
        assert "error" in message, message
        error: Message = message["error"]
        return error

    def initialize(self, **capabilities: object) -> Message:
        """Shake hands."""
        return self.request("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})

    def load(self, session_id: str, cwd: str = "/") -> Message:
        """Load a session."""
        return self.request("session/load", {"sessionId": session_id, "cwd": cwd, "mcpServers": []})

    def next(self, timeout: float = _TIMEOUT) -> Message:
        """Wait for one more message."""
        arrived = self._arrived.get(timeout=timeout)
        assert arrived is not None, "the agent closed the connection"
        return self._take(*arrived)

    def silent(self, seconds: float) -> float:
        """How long it was silent, up to `seconds`."""
        begin = time.monotonic()
        with contextlib.suppress(queue.Empty):
            self.next(seconds)
        return time.monotonic() - begin

    def ended(self, timeout: float = _TIMEOUT) -> None:
        """Wait for the end of the agent's output, checking what still comes."""
        while (arrived := self._arrived.get(timeout=timeout)) is not None:
            self._take(*arrived)

    def updates(self, session_id: str, kind: str | None = None) -> list[Message]:
        """The updates of a session so far, in order."""
        return [
            message["params"]["update"]
            for message in self.messages
            if message.get("method") == "session/update"
            and message["params"]["sessionId"] == session_id
            and kind in (None, message["params"]["update"]["sessionUpdate"])
        ]

    def _take(self, line: bytes, time_: float) -> Message:
        message = check_frame(line, self._methods)
        self.messages.append(message)
        self.lines.append(line)
        self.times.append(time_)
        return message

    def _read(self) -> None:
        # A test that is over closes the descriptor under this thread.
        with contextlib.suppress(OSError), open(self._read_from, "rb", closefd=False) as stream:
            for line in stream:
                self._arrived.put((line, time.monotonic()))
        self._arrived.put(None)


class BridgeProcess(Bridge):
    """The agent as a process of its own, as an editor starts it."""

    def __init__(self, command: tuple[str, ...] = MEMORY_AGENT, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=None if env is None else dict(env),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        super().__init__(self.process.stdout.fileno(), self.process.stdin.fileno())

    def close_input(self) -> None:
        """Leave as clients do."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self, timeout: float = 2.5) -> tuple[int, bytes]:
        """Wait for the process to end; its exit code and what it wrote to stderr."""
        code = self.process.wait(timeout)
        assert self.process.stderr is not None
        return code, self.process.stderr.read()


@contextlib.contextmanager
def running(command: tuple[str, ...] = MEMORY_AGENT, env: Mapping[str, str] | None = None) -> Generator[BridgeProcess]:
    """An agent that is killed in the end if it still runs."""
    bridge = BridgeProcess(command, env)
    try:
        yield bridge
    finally:
        bridge.process.kill()
        bridge.process.wait()
        for stream in (bridge.process.stdin, bridge.process.stdout, bridge.process.stderr):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()


class Served(Bridge):
    """The agent in this process, over real pipes.

    Attributes:
        call: Runs a function in the agent's event loop.
    """

    def __init__(self, read_from: int, write_to: int, portal: BlockingPortal) -> None:
        self.call = portal.call
        super().__init__(read_from, write_to)


class Connection(Served):
    """The agent with histories that the test can change.

    Attributes:
        source: The histories.
    """

    def __init__(self, source: MemorySource, read_from: int, write_to: int, portal: BlockingPortal) -> None:
        self.source = source
        super().__init__(read_from, write_to, portal)


_Peer = TypeVar("_Peer", bound=Served)


@contextlib.contextmanager
def connected(source: MemorySource, settings: Settings | None = None) -> Generator[Connection]:
    """Serve these histories; when the block ends, the client leaves and the agent has to end by itself."""

    @contextlib.asynccontextmanager
    async def make_source() -> AsyncGenerator[MemorySource]:
        yield source

    with _serving(make_source, settings, partial(Connection, source)) as connection:
        yield connection


@contextlib.contextmanager
def serving(make_source: MakeSource, settings: Settings | None = None) -> Generator[Served]:
    """Serve any histories, as `connected` does."""
    with _serving(make_source, settings, Served) as served:
        yield served


@contextlib.contextmanager
def _serving(
    make_source: MakeSource, settings: Settings | None, peer: Callable[[int, int, BlockingPortal], _Peer]
) -> Generator[_Peer]:
    agent_reads, client_writes = os.pipe()
    client_reads, agent_writes = os.pipe()
    with start_blocking_portal("asyncio") as portal:
        served = portal.start_task_soon(converse, agent_reads, agent_writes, make_source, settings or Settings())
        connection = peer(client_reads, client_writes, portal)
        try:
            yield connection
        finally:
            os.close(client_writes)
            served.result(timeout=_TIMEOUT)
            os.close(agent_writes)
    connection.ended()
    for descriptor in (agent_reads, client_reads):
        os.close(descriptor)
