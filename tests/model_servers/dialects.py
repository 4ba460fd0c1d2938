"""How the four interfaces spell an answer: Anthropic Messages, Gemini, OpenAI Responses and Chat Completions."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["DIALECTS", "Answer", "Dialect"]

Event = tuple[str, Any]

_CALL_ID = "call_1"


@dataclass(frozen=True)
class Answer:
    """Text, or the call of a tool with its arguments."""

    text: str
    call: tuple[str, dict[str, Any]] | None = None


class Dialect(Protocol):
    """One interface; `end` is what closes a stream."""

    end: str

    def messages(self, body: dict[str, Any]) -> list[Any]:
        """The conversation of a request."""
        ...

    def streams(self, body: dict[str, Any]) -> bool:
        """Whether the answer is wanted as a stream."""
        ...

    def events(self, answer: Answer) -> Iterator[Event]:
        """The answer as a stream: the line that names the event, if any, and its data."""
        ...

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The answer in one piece."""
        ...


class _Anthropic:
    end = ""

    def messages(self, body: dict[str, Any]) -> list[Any]:
        return body.get("messages") or []

    def streams(self, body: dict[str, Any]) -> bool:
        return bool(body.get("stream"))

    def events(self, answer: Answer) -> Iterator[Event]:
        whole = self.whole(answer)
        block: dict[str, Any] = whole["content"][0]
        start: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": answer.text}
        if answer.call:
            start = {**block, "input": dict[str, Any]()}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        reason = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        events: list[tuple[str, dict[str, Any]]] = [
            ("message_start", {"message": {**whole, "content": [], "stop_reason": None}}),
            ("content_block_start", {"index": 0, "content_block": start}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": reason, "usage": whole["usage"]}),
            ("message_stop", {}),
        ]
        for kind, fields in events:
            yield f"event: {kind}\n", {"type": kind, **fields}

    def whole(self, answer: Answer) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "text", "text": answer.text}
        if answer.call:
            name, arguments = answer.call
            block = {"type": "tool_use", "id": f"toolu_{_CALL_ID}", "name": name, "input": arguments}
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [block],
            "stop_reason": "tool_use" if answer.call else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }


class _Gemini:
    end = ""

    def __init__(self, *, stream: bool) -> None:
        self._stream = stream

    def messages(self, body: dict[str, Any]) -> list[Any]:
        return body.get("contents") or []

    def streams(self, body: dict[str, Any]) -> bool:
        del body
        return self._stream

    def events(self, answer: Answer) -> Iterator[Event]:
        yield "", self.whole(answer)

    def whole(self, answer: Answer) -> dict[str, Any]:
        part: dict[str, Any] = {"text": answer.text}
        if answer.call:
            part = {"functionCall": {"name": answer.call[0], "args": answer.call[1]}}
        content = {"role": "model", "parts": [part]}
        return {
            "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        }


class _Responses:
    end = ""

    def messages(self, body: dict[str, Any]) -> list[Any]:
        return body.get("input") or []

    def streams(self, body: dict[str, Any]) -> bool:
        return bool(body.get("stream"))

    def events(self, answer: Answer) -> Iterator[Event]:
        whole = self.whole(answer)
        item = whole["output"][0]
        begun: dict[str, Any] = {**whole, "status": "in_progress", "output": []}
        events: list[tuple[str, dict[str, Any]]] = [
            ("response.created", {"response": begun}),
            ("response.output_item.added", {"output_index": 0, "item": item}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": whole}),
        ]
        for number, (kind, fields) in enumerate(events):
            yield f"event: {kind}\n", {"type": kind, "sequence_number": number, **fields}

    def whole(self, answer: Answer) -> dict[str, Any]:
        text: dict[str, Any] = {"type": "output_text", "text": answer.text, "annotations": []}
        item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "content": [text]}
        if answer.call:
            name, arguments = answer.call
            item = {"type": "function_call", "id": "fc_1", "call_id": _CALL_ID, "name": name}
            item["arguments"] = json.dumps(arguments)
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        return {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage}


class _Chat:
    end = "data: [DONE]\n\n"

    def messages(self, body: dict[str, Any]) -> list[Any]:
        return body.get("messages") or []

    def streams(self, body: dict[str, Any]) -> bool:
        return bool(body.get("stream"))

    def events(self, answer: Answer) -> Iterator[Event]:
        whole = self.whole(answer)
        choice = whole["choices"][0]
        message = dict(choice["message"])
        if answer.call:
            message["tool_calls"] = [{"index": 0, **message["tool_calls"][0]}]
        chunk = {"id": whole["id"], "object": "chat.completion.chunk", "created": 1, "model": "local"}
        yield "", {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
        yield "", {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
        yield "", {**chunk, "choices": [], "usage": whole["usage"]}

    def whole(self, answer: Answer) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        if answer.call:
            name, arguments = answer.call
            function = {"name": name, "arguments": json.dumps(arguments)}
            message = {"role": "assistant", "content": None}
            message["tool_calls"] = [{"id": _CALL_ID, "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if answer.call else "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return {"id": "chat_1", "object": "chat.completion", "created": 1, "choices": [choice], "usage": usage}


# By the end of the path of a request.
DIALECTS: dict[str, Dialect] = {
    "/v1/messages": _Anthropic(),
    ":streamGenerateContent": _Gemini(stream=True),
    ":generateContent": _Gemini(stream=False),
    "/responses": _Responses(),
    "/chat/completions": _Chat(),
}
