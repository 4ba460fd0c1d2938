"""All exceptions of the project, in one tree.

    BridgeError
    ├── AdapterError          an adapter broke its contract, or could not be loaded
    ├── TranscriptError       a transcript cannot be opened or read any more
    ├── ForkError             a session cannot be forked
    ├── TrashError            a session's files cannot be moved to the trash
    ├── IndexStoreError       the index cannot be read or written
    ├── ConfigurationError    a setting is wrong
    ├── CursorError           a list cursor is forged, foreign or stale
    ├── QueryError            a filter in a search makes no sense
    └── ProtocolError         answers a JSON-RPC request with an error; carries the code

A transcript's *content* is never a reason for an exception: adapters report it as a `Problem`.
"""

__all__ = [
    "AdapterError",
    "BridgeError",
    "ConfigurationError",
    "CursorError",
    "ForkError",
    "IndexStoreError",
    "ProtocolError",
    "QueryError",
    "TranscriptError",
    "TrashError",
]


class BridgeError(Exception):
    """Base of every error this project raises on purpose; its text can be shown to a person."""


class AdapterError(BridgeError):
    """An adapter could not be imported, or did something its contract forbids."""


class TranscriptError(BridgeError):
    """A transcript cannot be opened: gone, not a regular file, or not permitted."""


class ForkError(BridgeError):
    """A session cannot be forked: its tool's format does not allow it, or the copy cannot be written."""


class TrashError(BridgeError):
    """A session's files cannot be moved to the trash: they are in use, shared with others, or there is no trash."""


class IndexStoreError(BridgeError):
    """The index store cannot be read or written."""


class ConfigurationError(BridgeError):
    """A setting in the configuration file or the environment is wrong."""


class CursorError(BridgeError):
    """A list cursor was not made by this process, or belongs to another query."""


class QueryError(BridgeError):
    """A filter in a search has a value that makes no sense; the message says which."""


class ProtocolError(BridgeError):
    """Answers the request at hand with a JSON-RPC error.

    Attributes:
        code: The JSON-RPC error code (ACP v1: -32602 invalid params, -32002 resource not found, …).
        details: A readable sentence for the error's `data.details`, which Toad and acpx print.
        session_id: Which session it is about, for `data.sessionId`.
    """

    def __init__(self, code: int, message: str, details: str | None = None, session_id: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = details
        self.session_id = session_id
