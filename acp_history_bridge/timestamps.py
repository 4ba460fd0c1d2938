"""Times: everything inside is an aware UTC `datetime`, everything outside RFC 3339 with `Z`.

Transcripts write ISO 8601 with and without zone, and epoch numbers in seconds or milliseconds; a time without a zone
is taken as UTC. What does not parse is None, never an error.
"""

import re
from datetime import UTC, datetime, timedelta

__all__ = ["format_time", "from_epoch_ms", "from_ns", "parse_since", "parse_time"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR_3000_MS = 32_503_680_000_000

_SPAN = re.compile(r"(\d{1,5})([mhdw])")
_SPAN_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_time(value: object) -> datetime | None:
    """Read an ISO 8601 string, or a number of seconds or milliseconds since the epoch."""
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value.upper())  # RFC 3339 allows `t` and `z`
        except ValueError:
            return None
        try:
            return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
        except (OverflowError, ValueError):
            return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Seconds stay below this bound until the year 5138; milliseconds are above it since March 1973.
        return from_epoch_ms(value * 1000 if abs(value) < 1e11 else value)
    return None


def from_epoch_ms(milliseconds: float) -> datetime | None:
    """Turn milliseconds since the epoch into a time; None when out of range."""
    if not 0 <= milliseconds < _YEAR_3000_MS:  # NaN fails this, too
        return None
    return _EPOCH + timedelta(milliseconds=milliseconds)  # seconds in a float would lose some milliseconds


def from_ns(nanoseconds: int) -> datetime:
    """Turn a `stat` time into a time, to the microsecond; a time out of range is clamped."""
    clamped = min(max(nanoseconds, 0), (_YEAR_3000_MS - 1) * 1_000_000)
    seconds, rest = divmod(clamped, 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)


def format_time(time: datetime) -> str:
    """Write RFC 3339 in UTC with milliseconds and `Z` (CodeCompanion ignores offsets)."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def parse_since(text: str, now: datetime) -> datetime | None:
    """Read what a person types for "since": a span before `now` (`90m`, `12h`, `7d`, `4w`) or an ISO 8601 time.

    A time without zone is local, for a person means the clock on the wall; None for anything else.
    """
    try:
        if span := _SPAN.fullmatch(text):
            return now - timedelta(**{_SPAN_UNITS[span[2]]: int(span[1])})
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
