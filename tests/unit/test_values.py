"""Typed values out of JSON that holds anything."""

from hypothesis import given
from hypothesis import strategies as st

from acp_history_bridge.values import boolean, first_string, integer, items, mapping, maps, number, string

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(_JSON)
def test_each_helper_answers_with_its_type_whatever_it_is_given(value: object) -> None:
    """A wrong type gives the empty value, never an exception."""
    assert isinstance(mapping(value), dict)
    assert isinstance(items(value), list | tuple)
    assert all(isinstance(item, dict) for item in maps(value))
    assert isinstance(string(value), str)
    assert integer(value) is None or type(integer(value)) is int
    assert number(value) is None or type(number(value)) is float
    assert type(boolean(value)) is bool


def test_values_of_the_right_type_pass_through() -> None:
    """What fits is returned itself."""
    assert mapping({"a": 1}) == {"a": 1}
    assert items([1, "a"]) == [1, "a"]
    assert maps([{"a": 1}, 2, {}]) == [{"a": 1}, {}]
    assert (string("a"), integer(7), integer(7.0), number(7), boolean(True)) == ("a", 7, 7, 7.0, True)


def test_booleans_are_no_numbers() -> None:
    """Python's `True == 1` must not turn a flag into a count."""
    assert (integer(True), number(True), boolean(1)) == (None, None, False)


def test_numbers_out_of_reason_are_none() -> None:
    """Infinity, NaN and absurd sizes are not numbers a transcript can mean."""
    assert [number(value) for value in (float("inf"), float("nan"), 10**400, -1e19)] == [None] * 4
    assert [integer(value) for value in (float("inf"), float("nan"), 1.5)] == [None] * 3


def test_the_first_name_that_holds_text_wins() -> None:
    """Empty strings and other types are passed over."""
    source = {"path": "", "file": 3, "file_path": "a.py", "name": "b.py"}

    assert first_string(source, "path", "file", "file_path", "name") == "a.py"
    assert first_string(source, "nothing") == ""


def test_an_integer_beyond_64_bits_is_none() -> None:
    """No frame can carry it."""
    assert [integer(value) for value in (2**63, -(2**63) - 1, 1e30)] == [None] * 3
    assert (integer(2**63 - 1), integer(-(2**63))) == (2**63 - 1, -(2**63))
