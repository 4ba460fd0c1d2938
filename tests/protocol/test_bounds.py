"""No frame reaches 1 MiB, whatever a transcript holds."""

import json
import math
import operator
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from acp_history_bridge.protocol import wire
from acp_history_bridge.protocol.bounds import pieces, plain_json, shorten_middle
from acp_history_bridge.protocol.replay import Replay, ReplayOptions
from acp_history_bridge.protocol.tools import ToolOptions
from acp_history_bridge.turns import (
    Diff,
    Image,
    Location,
    Plan,
    PlanEntry,
    Resource,
    ResourceLink,
    ShellResult,
    Text,
    ToolCall,
    Turn,
)
from tests.peers.schema import check_frame

LARGEST = ToolOptions(cwd="/" + "\x01" * 4000, terminal=True, output_limit=10**9, image_limit=900 * 1024)

characters = st.sampled_from(["x", "\x00", '"', "\u0301", "é", "😀", "\ud800", "\n"])
counts = st.sampled_from([0, 1, 5000, 200_000, 1_500_000])
long_texts: st.SearchStrategy[str] = st.builds(operator.mul, characters, counts)
absolute_paths = st.builds(operator.add, st.just("/"), long_texts)
odd_values: st.SearchStrategy[object] = st.recursive(
    st.none() | st.integers() | st.floats() | long_texts, lambda inner: st.lists(inner, max_size=3)
)
contents = st.one_of(
    st.builds(Text, long_texts),
    st.builds(Diff, path=long_texts, new_text=long_texts, old_text=st.none() | long_texts),
    st.builds(Image, mime_type=long_texts, data=long_texts, uri=st.none() | long_texts),
    st.builds(ResourceLink, uri=long_texts, name=long_texts),
    st.builds(Resource, uri=long_texts, text=st.none() | long_texts, blob=st.none() | long_texts),
)
calls = st.builds(
    ToolCall,
    id=long_texts,
    name=long_texts,
    title=long_texts,
    kind=st.just("other"),
    status=st.just("completed"),
    input=odd_values,
    output=st.dictionaries(long_texts, long_texts, max_size=3),
    content=st.lists(contents, max_size=4).map(tuple),
    locations=st.lists(st.builds(Location, path=absolute_paths), max_size=3).map(tuple),
    shell=st.none() | st.builds(ShellResult, output=long_texts, exit_code=st.none() | st.integers(0, 255)),
)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(max_examples=60, deadline=None)
@example(part=Image("image/png", "\0" * 200_000))
@given(
    part=calls | contents | st.builds(Plan, st.lists(st.builds(PlanEntry, long_texts, st.just("pending"))).map(tuple))
)
@pytest.mark.fault("J11")
def test_any_part_fits_frames(part: Any) -> None:  # noqa: ANN401 - any part
    """Every frame is valid, strict JSON and below 1 MiB."""
    if isinstance(part, Diff):  # is no part of its own
        return
    replay = Replay(ReplayOptions(LARGEST), live=False)
    for update in replay.updates(Turn("m" * 100_000, "agent", (part,))):
        check_frame(wire.update("made:1", update), {})


def test_thousands_of_parts_fit_a_frame() -> None:
    """Many small contents are as bounded as a few big ones."""
    content = tuple(ResourceLink("file:///" + "x" * 5000, "n") for _ in range(5000))
    locations = tuple(Location("/" + "y" * 4000) for _ in range(5000))
    call = ToolCall("t", "n", "t", "other", "completed", [0] * 100_000, {"k": "v"}, content, locations)
    [update] = Replay(ReplayOptions(LARGEST), live=False).updates(Turn("m", "agent", (call,)))
    message = check_frame(wire.update("made:1", update), {})
    assert "more parts left out" in str(message["params"]["update"]["content"][-1])
    assert "more left out" in message["params"]["update"]["rawInput"][-1]


@given(text=st.text(st.characters(codec="utf-8"), max_size=300), limit=st.integers(65, 80))
def test_pieces_are_the_text(text: str, limit: int) -> None:
    """Nothing is lost and nothing is longer than the limit."""
    cut = list(pieces(text, limit))
    assert "".join(cut) == text
    assert all(len(piece) <= limit for piece in cut)


@given(text=st.text(max_size=2000), limit=st.integers(0, 3000))
def test_shortening_keeps_to_its_limit(text: str, limit: int) -> None:
    """But for the note, which is short."""
    short = shorten_middle(text, limit)
    assert len(orjson.dumps(short)) <= limit + 100 or short == text


def test_odd_values_become_plain_json() -> None:
    """Nothing that a parser could produce, or another adapter put in, breaks the encoding."""
    deep: list[object] = []
    for _ in range(500):
        deep = [deep]
    odd = {
        "int": 2**200,
        "nan": math.nan,
        "inf": -math.inf,
        5: b"bytes",
        "none": None,
        "deep": deep,
        "tuple": (1, None),
    }
    plain = plain_json(odd, 64 * 1024)
    assert plain == json.loads(orjson.dumps(plain))
    assert isinstance(plain, dict)
    assert plain["nan"] == "nan"
    assert plain["tuple"] == [1, None]
    assert "none" not in plain


@pytest.mark.parametrize(
    ("odd", "plain"),
    [
        ({"a": None, "b": [1]}, {"b": [1]}),
        ({"a": math.nan}, {"a": "nan"}),
        ({"a": "\ud800"}, {"a": "\ufffd"}),
        ({"a": "null"}, {"a": "null"}),
        ({"a": "x", "b": [{"c": 1.5}]}, {"a": "x", "b": [{"c": 1.5}]}),
    ],
)
def test_a_small_value_is_cleaned_like_a_large_one(odd: object, plain: object) -> None:
    """One odd member is seen although the value is far below its limit."""
    assert plain_json(odd, 64 * 1024) == plain


def test_a_small_value_that_is_nested_deeply_is_cut() -> None:
    """Parsers have limits of their own, so depth counts even where size does not."""
    deep: list[object] = []
    for _ in range(100):
        deep = [deep]
    assert "nested deeper" in json.dumps(plain_json(deep, 64 * 1024))
