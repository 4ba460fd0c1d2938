"""A file's change as the lines of a unified diff.

difflib compares in more than linear time, and transcripts hold whole files: beyond a bound the old text is shown as
removed and the new one as added, which is true, too.
"""

import difflib
from collections.abc import Iterator
from itertools import chain

from acp_history_bridge.turns import Diff

__all__ = ["diff_lines"]

_LINES_TO_COMPARE = 3000
_CHARACTERS_TO_COMPARE = 400_000


def diff_lines(diff: Diff) -> Iterator[str]:
    """Yield the hunks without file names; each line begins with `@`, a blank, `+` or `-`."""
    old, new = (diff.old_text or "").split("\n"), diff.new_text.split("\n")
    if new[-1] == "" and old[-1] == "":  # both end as text files do
        old, new = old[:-1], new[:-1]
    size = len(diff.old_text or "") + len(diff.new_text)
    if diff.old_text is None or len(old) + len(new) > _LINES_TO_COMPARE or size > _CHARACTERS_TO_COMPARE:
        removed = () if diff.old_text is None else (f"-{line}" for line in old)
        yield from chain(removed, (f"+{line}" for line in new))
        return
    for number, line in enumerate(difflib.unified_diff(old, new, lineterm="")):
        if number >= 2:  # the two names before the first hunk
            yield line
