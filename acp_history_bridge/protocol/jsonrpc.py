"""JSON-RPC 2.0 as ACP uses it: telling messages apart, running requests at the same time, answering each once.

Policy:

- Nothing a client sends ends the connection. Broken JSON is -32700, a broken envelope -32600, both with the id if it
  can be read; a response that we did not ask for and an unknown notification are ignored; batches are refused.
- Ids are echoed as they came. An id that is still in flight cannot be used again.
- `initialize` is answered before the next frame is looked at, and nothing else is before it.
- `$/cancel_request` ends any other request, which is then answered with -32800; a finished one stays answered.
- A handler's failure is our fault: -32603, with nothing of the conversation in the answer or in the log.
"""

import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio
import orjson
from anyio.abc import TaskGroup

from acp_history_bridge.errors import ProtocolError
from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.stdio import Frame, Oversized
from acp_history_bridge.protocol.wire import Json, RequestId
from acp_history_bridge.values import JsonMap, mapping

__all__ = [
    "CANCELLED",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "RESOURCE_NOT_FOUND",
    "Dispatcher",
    "Handler",
    "MalformedError",
    "Notification",
    "NotificationHandler",
    "Reply",
    "Request",
    "parse",
    "where",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CANCELLED = -32800
RESOURCE_NOT_FOUND = -32002

# Far above what any client keeps open (bulk imports fire one load per session), far below what would hurt.
_IN_FLIGHT_LIMIT = 4096

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """A request's result, and what is to happen once the answer is on its way."""

    result: Json
    then: Callable[[], Awaitable[None]] | None = None


Handler = Callable[[JsonMap], Awaitable[Reply]]
NotificationHandler = Callable[[JsonMap], None]


@dataclass(frozen=True, slots=True)
class Request:
    """A call that wants an answer."""

    id: RequestId
    method: str
    params: JsonMap


@dataclass(frozen=True, slots=True)
class Notification:
    """A call that wants none."""

    method: str
    params: JsonMap


class MalformedError(ProtocolError):
    """A frame that is no message; `id` is the request's where it could be read."""

    def __init__(self, code: int, message: str, id_: RequestId = None) -> None:
        super().__init__(code, message)
        self.id = id_


def parse(frame: Frame) -> Request | Notification | None:
    """Read one frame; None for blank lines and for responses, which we never wait for.

    Raises:
        MalformedError: It is neither a request nor a notification nor a response.
    """
    if isinstance(frame, Oversized):
        raise MalformedError(INVALID_REQUEST, "Message too long")
    if not frame.strip():
        return None
    try:
        value: object = orjson.loads(frame)
    except orjson.JSONDecodeError as error:
        raise MalformedError(PARSE_ERROR, "Parse error") from error
    if isinstance(value, list):
        raise MalformedError(INVALID_REQUEST, "Batches are not supported")
    message = mapping(value)
    if message is not value:
        raise MalformedError(INVALID_REQUEST, "Invalid request")
    return _classify(message)


def _classify(message: JsonMap) -> Request | Notification | None:
    identity = message.get("id")
    readable = identity if isinstance(identity, int | str) and not isinstance(identity, bool) else None
    if message.get("jsonrpc") != "2.0":
        raise MalformedError(INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"', readable)
    if "method" not in message and ("result" in message or "error" in message):
        _log.debug("a response without a request was ignored")
        return None
    method = message.get("method")
    if not isinstance(method, str):
        raise MalformedError(INVALID_REQUEST, 'Invalid request: "method" must be a string', readable)
    params = message.get("params")
    named = mapping(params)
    if "id" not in message:
        return Notification(method, named)
    if readable is None and identity is not None:
        raise MalformedError(INVALID_REQUEST, 'Invalid request: "id" must be a string, an integer or null')
    if params is not None and named is not params:
        raise MalformedError(INVALID_PARAMS, 'Invalid params: "params" must be an object', readable)
    return Request(readable, method, named)


class Dispatcher:
    """Runs what comes in; every request in a task of its own."""

    def __init__(
        self,
        send: Callable[[bytes], Awaitable[None]],
        tasks: TaskGroup,
        requests: Mapping[str, Handler],
        notifications: Mapping[str, NotificationHandler],
    ) -> None:
        self._send = send
        self._tasks = tasks
        self._requests = requests
        self._notifications = {**notifications, "$/cancel_request": self._cancel}
        self._in_flight: dict[RequestId, anyio.CancelScope] = {}
        self._idle = anyio.Event()
        self._initialized = False

    async def dispatch(self, frame: Frame) -> None:
        """Take one frame; returns before a request is done, but for `initialize`."""
        try:
            message = parse(frame)
        except MalformedError as error:
            await self._send(wire.failure(error.id, error))
            return
        if isinstance(message, Request):
            await self._accept(message)
        elif message is not None and self._initialized and message.method in self._notifications:
            self._notifications[message.method](message.params)

    async def finish(self) -> None:
        """Wait until no request is in flight."""
        while self._in_flight:
            self._idle = anyio.Event()
            await self._idle.wait()

    async def _accept(self, request: Request) -> None:
        try:
            handler = self._admit(request)
        except ProtocolError as error:
            await self._send(wire.failure(request.id, error))
            return
        scope = anyio.CancelScope()
        self._in_flight[request.id] = scope
        if request.method == "initialize":
            await self._run(request, handler, scope)
            self._initialized = True
        else:
            self._tasks.start_soon(self._run, request, handler, scope)

    def _admit(self, request: Request) -> Handler:
        if not self._initialized and request.method != "initialize":
            raise ProtocolError(INVALID_REQUEST, "Not initialized", "Send initialize before any other request.")
        handler = self._requests.get(request.method)
        if handler is None:
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found")
        if request.id in self._in_flight:
            raise ProtocolError(INVALID_REQUEST, "Duplicate request id", "A request with this id is still running.")
        if len(self._in_flight) >= _IN_FLIGHT_LIMIT:
            raise ProtocolError(INTERNAL_ERROR, "Too many requests", "Wait for answers before sending more requests.")
        return handler

    async def _run(self, request: Request, handler: Handler, scope: anyio.CancelScope) -> None:
        outcome: Reply | ProtocolError = ProtocolError(CANCELLED, "Request cancelled")
        with scope:
            outcome = await _outcome(request, handler)
        # Outside the scope: from here on it is being answered, and a cancellation comes too late.
        if isinstance(outcome, ProtocolError):
            await self._send(wire.failure(request.id, outcome))
        else:
            await self._send(wire.response(request.id, outcome.result))
        del self._in_flight[request.id]
        if not self._in_flight:
            self._idle.set()
        if isinstance(outcome, Reply) and outcome.then is not None:
            await outcome.then()

    def _cancel(self, params: JsonMap) -> None:
        identity = params.get("requestId")
        if identity is None or (isinstance(identity, int | str) and not isinstance(identity, bool)):
            scope = self._in_flight.get(identity)
            if scope is not None:
                scope.cancel()


async def _outcome(request: Request, handler: Handler) -> Reply | ProtocolError:
    try:
        return await handler(request.params)
    except ProtocolError as error:
        return error
    except Exception as error:  # noqa: BLE001 - one broken session must not end the connection
        # Without the exception's message, which can quote a transcript.
        _log.error("%s failed: %s", request.method, where(error))
        return ProtocolError(INTERNAL_ERROR, "Internal error", "The bridge failed; its log says where.")


def where(error: BaseException) -> str:
    """An error's type and the lines it came through; its message is left out, for it can quote a transcript."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return f"{type(error).__name__} at " + " < ".join(
        f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames)
    )
