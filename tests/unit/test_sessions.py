"""Wire ids: stable, distinct, and harmless wherever a client puts them."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_history_bridge.adapter import Store
from acp_history_bridge.sessions import plain_id, suffixed_id

STORE = Store("claude-code", Path("/home/ada/.claude/projects"))
_HOSTILE = [
    "../../etc/passwd",
    "/etc/passwd",
    "a/b",
    "..%2f",
    "a\0b",
    "x" * 10_000,
    "",
    ".",
    "\uff45",
    "A",
    "a",
    "\ud800",
    "a~b",
]


def test_a_uuid_is_its_own_wire_id() -> None:
    """Ids that tools make are readable behind the tool's prefix."""
    assert plain_id("claude", "c7df0b2f-5626-4b66-9648-ab18b7e97b98") == "claude:c7df0b2f-5626-4b66-9648-ab18b7e97b98"


@pytest.mark.fault("S4")
def test_hostile_ids_stay_apart() -> None:
    """Look-alikes, other cases and escaped spellings are different sessions."""
    assert len({plain_id("claude", native_id) for native_id in _HOSTILE}) == len(_HOSTILE)


@given(st.text(st.characters(codec=None)) | st.sampled_from(_HOSTILE))
@pytest.mark.fault("S4")
def test_a_wire_id_is_short_and_has_only_harmless_characters(native_id: str) -> None:
    """Clients use ids as file names and on command lines."""
    for made in (plain_id("claude", native_id), suffixed_id("claude", native_id, STORE, "")):
        assert re.fullmatch(r"claude:[A-Za-z0-9._%~-]*", made)
        assert len(made) < 255


@given(st.text(max_size=60), st.text(max_size=60))
@pytest.mark.fault("S4", "T2")
def test_different_ids_never_meet(one: str, other: str) -> None:
    """Escaping is reversible, so no two native ids share a wire id."""
    assert (one == other) == (plain_id("claude", one) == plain_id("claude", other))


@pytest.mark.parametrize("native_id", ["a", "a~1a2b3c4d", "x" * 10_000])
def test_no_plain_id_looks_like_one_with_a_suffix(native_id: str) -> None:
    """The `~` of a suffix cannot come from a native id."""
    assert "~" not in plain_id("claude", native_id)


def test_a_suffix_says_where_a_session_lies_and_stays_the_same() -> None:
    """Another store or another origin gives another suffix; the same place the same one in every release."""
    elsewhere = Store("claude-code", Path("/mnt/old/projects"))
    made = {
        suffixed_id("claude", "a", STORE, ""),
        suffixed_id("claude", "a", STORE, "project"),
        suffixed_id("claude", "a", elsewhere, ""),
    }

    assert len(made) == 3
    assert suffixed_id("claude", "a", STORE, "project") == "claude:a~6e0b9999"
