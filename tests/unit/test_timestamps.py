"""Times: what transcripts write is read or refused, and what is written is RFC 3339 that every client reads."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_history_bridge.timestamps import format_time, from_epoch_ms, from_ns, parse_since, parse_time

MOMENT = datetime(2026, 11, 20, 10, 26, 49, 214000, UTC)
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

_TIMES = st.datetimes(
    # hypothesis wants bounds without a zone
    min_value=datetime(1, 1, 2),  # noqa: DTZ001
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.timezones() | st.just(UTC),
)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20T10:26:49.214Z",
        "2026-11-20t10:26:49.214z",
        "2026-11-20T10:26:49.214",
        "2026-11-20 10:26:49.214",
        "2026-11-20T11:26:49.214+01:00",
        "2026-11-20T05:56:49.214-0430",
        "2026-11-20T10:26:49,214Z",
        "2026-11-20T10:26:49.214000999Z",
    ],
)
@pytest.mark.fault("T1")
def test_every_spelling_of_a_moment_is_the_same_moment(text: str) -> None:
    """ISO 8601 in its usual spellings is read; without a zone it is UTC; more than microseconds are cut."""
    assert parse_time(text) == MOMENT


@pytest.mark.parametrize("number", [1795170409214, 1795170409.214, 1795170409214.0])
def test_seconds_and_milliseconds_since_the_epoch_are_told_apart(number: float) -> None:
    """Tools write either; the size says which."""
    assert parse_time(number) == MOMENT


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "",
        "yesterday",
        "2026-13-01",
        "2026-02-30T00:00:00Z",
        float("nan"),
        float("inf"),
        -1,
        10**400,
        [],
        {},
    ],
)
@pytest.mark.fault("T1")
def test_what_is_no_time_is_none(value: object) -> None:
    """Garbage never raises."""
    assert parse_time(value) is None


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_time_whose_zone_leads_out_of_the_calendar_is_none(text: str) -> None:
    """The first and the last year cannot be moved to UTC from everywhere."""
    assert parse_time(text) is None


@given(st.text(st.characters(codec=None)) | st.floats() | st.integers())
@pytest.mark.fault("T1")
def test_parsing_never_raises_and_always_gives_utc(value: object) -> None:
    """Any string or number is a time in UTC or None."""
    time = parse_time(value)

    assert time is None or time.tzinfo is UTC


@given(_TIMES)
def test_a_written_time_is_read_back_to_the_millisecond(time: datetime) -> None:
    """Writing and reading lose less than a millisecond, in every zone, on both sides of a change of clocks."""
    text = format_time(time)

    assert len(text) == len("2026-11-20T10:26:49.214Z")
    parsed = parse_time(text)
    assert parsed is not None
    assert timedelta(0) <= time.astimezone(UTC) - parsed < timedelta(milliseconds=1)


@pytest.mark.fault("T1")
def test_the_hour_that_comes_twice_is_two_hours() -> None:
    """A local time given with its offset is unambiguous when the clocks go back."""
    summer = parse_time("2026-10-25T02:30:00+02:00")
    winter = parse_time("2026-10-25T02:30:00+01:00")

    assert summer is not None
    assert winter is not None
    assert winter - summer == timedelta(hours=1)


def test_times_are_written_in_utc_whatever_their_zone() -> None:
    """CodeCompanion ignores offsets, so there are none."""
    assert format_time(MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30)))) == "2026-11-20T10:26:49.214Z"


@given(st.integers(0, 32_503_680_000_000 - 1))
def test_milliseconds_are_kept_exactly(milliseconds: int) -> None:
    """No millisecond is lost to floating point up to the year 3000."""
    time = from_epoch_ms(milliseconds)

    assert time is not None
    assert (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1) == milliseconds


@given(st.integers(-(2**70), 2**70))
@pytest.mark.fault("T1")
def test_any_file_time_becomes_a_time(nanoseconds: int) -> None:
    """A file system may hold times before 1970 or after the year 3000; they are clamped, never an error."""
    assert datetime(1970, 1, 1, tzinfo=UTC) <= from_ns(nanoseconds) <= datetime(3000, 1, 1, tzinfo=UTC)


def test_a_file_time_keeps_its_microseconds() -> None:
    """Ordering by modification time needs more than seconds."""
    assert from_ns(1_795_170_409_214_567_891) == MOMENT.replace(microsecond=214567)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("90m", NOW - timedelta(minutes=90)),
        ("12h", NOW - timedelta(hours=12)),
        ("7d", NOW - timedelta(days=7)),
        ("2w", NOW - timedelta(weeks=2)),
        ("2026-11-01T09:30Z", datetime(2026, 11, 1, 9, 30, tzinfo=UTC)),
        ("2026-11-01T09:30+02:00", datetime(2026, 11, 1, 7, 30, tzinfo=UTC)),
    ],
)
def test_since_takes_spans_and_times(text: str, time: datetime) -> None:
    """A span counts back from now, a time with a zone is that time."""
    assert parse_since(text, NOW) == time


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-07-01", datetime(2026, 6, 30, 22, tzinfo=UTC)),
        ("2026-11-01", datetime(2026, 10, 31, 23, tzinfo=UTC)),
        ("2026-10-25T01:30", datetime(2026, 10, 24, 23, 30, tzinfo=UTC)),
    ],
)
def test_since_without_a_zone_is_local_time(monkeypatch: pytest.MonkeyPatch, text: str, time: datetime) -> None:
    """People mean their own clock, in summer and in winter."""
    import time as clock

    monkeypatch.setenv("TZ", "Europe/Berlin")
    clock.tzset()
    try:
        assert parse_since(text, NOW) == time
    finally:
        monkeypatch.undo()
        clock.tzset()


@pytest.mark.parametrize("text", ["", "yesterday", "7", "7y", "2026-13-01", "-3d"])
def test_since_refuses_everything_else(text: str) -> None:
    """A time that cannot be understood is not guessed."""
    assert parse_since(text, NOW) is None
