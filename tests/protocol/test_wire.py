"""Frames: whatever a transcript holds, a frame can be made of it."""

import json

from acp_history_bridge.protocol import wire


def test_an_integer_beyond_64_bits_goes_out_as_text() -> None:
    """Its digits are kept, and the rest of the frame is as it was."""
    sent = json.loads(wire.update("s", {"sessionUpdate": "x", "rawInput": {"big": [2**70], "small": 7, "yes": True}}))

    assert sent["params"]["update"]["rawInput"] == {"big": [str(2**70)], "small": 7, "yes": True}


def test_a_lone_surrogate_goes_out_as_a_replacement_character() -> None:
    """In values and in names, however deep."""
    sent = json.loads(wire.update("s", {"sessionUpdate": "x", "rawInput": {"a\ud800": ["b\udfff"]}}))

    assert sent["params"]["update"]["rawInput"] == {"a\ufffd": ["b\ufffd"]}
