"""The smallest ACP client: it starts an agent as an editor would, sends requests and collects the updates.

`bridge try` shows with it that the agent works over real pipes; nothing of the agent's own code is shared.
"""

import subprocess
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import orjson

from acp_history_bridge.errors import BridgeError
from acp_history_bridge.values import JsonMap, mapping, string

__all__ = ["AgentProcess"]

_TIMEOUT_SECONDS = 120.0


class AgentProcess:
    """An agent over pipes, for one request at a time.

    Attributes:
        updates: The `session/update` notifications since the last request began.
        seconds: How long the last answer took.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self.updates: list[JsonMap] = []
        self.seconds = 0.0
        self._next_id = 0
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - our own program

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the agent as editors do: close its input, and insist after a while."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def request(self, method: str, **params: object) -> JsonMap:
        """Send a request and wait for its answer.

        Raises:
            BridgeError: The agent answered with an error, ended, or took too long.
        """
        assert self._process.stdin is not None
        self._next_id += 1
        self.updates = []
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        watchdog = threading.Timer(_TIMEOUT_SECONDS, self._process.kill)
        watchdog.start()
        began = time.monotonic()
        try:
            self._process.stdin.write(orjson.dumps(message) + b"\n")
            self._process.stdin.flush()
            answer = self._answer(method)
        except BrokenPipeError as error:
            raise BridgeError(f"the agent ended before {method}") from error
        finally:
            watchdog.cancel()
        self.seconds = time.monotonic() - began
        if failure := mapping(answer.get("error")):
            raise BridgeError(f"{method} failed: {string(failure.get('message'))}")
        return mapping(answer.get("result"))

    def _answer(self, method: str) -> JsonMap:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = mapping(orjson.loads(line))
            if message.get("id") == self._next_id and "method" not in message:
                return message
            if message.get("method") == "session/update":
                self.updates.append(mapping(mapping(message.get("params")).get("update")))
        raise BridgeError(f"the agent ended without answering {method}")
