"""The accepted differences: `accepted.toml`, in which each has a name, a reason and a count.

A rule that accepts missing words of the user or the agent has to prove that nothing they said is lost: apart from what
its patterns name as the tool's own words, every line must be shown somewhere else in our replay, unless it was rewound
and our replay counts what it left out.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.differential.compare import Difference

__all__ = ["Rule", "Setting", "read_rules", "rule_for"]

_FILE = Path(__file__).with_name("accepted.toml")
_SPOKEN = frozenset({"missing user", "missing agent", "missing thought"})


@dataclass(frozen=True, slots=True)
class Setting:
    """What a rule may ask about the session beside the difference itself.

    Attributes:
        shown: Every line that our replay shows anywhere.
        left_out: Messages that our replay left out because they were rewound.
    """

    shown: frozenset[str]
    left_out: int


@dataclass(frozen=True, slots=True)
class Rule:
    """One accepted difference.

    Attributes:
        name: What it is called.
        reason: Why it is accepted.
        what: Patterns of `Difference.what`.
        call: Pattern of the call's name.
        theirs: Pattern that occurs in what the tool's agent has.
        ours: Pattern that occurs in what we have.
        covered: Every line of theirs is in ours, too.
        injected: Patterns of what the tool itself wrote into the user's or the agent's words.
        rewound: The words were taken back.
        counts: How often it occurs, by the group of references.
    """

    name: str
    reason: str
    what: Sequence[str]
    counts: Mapping[str, int]
    call: str = ""
    theirs: str = ""
    ours: str = ""
    covered: bool = False
    injected: Sequence[str] = ()
    rewound: bool = False

    def accepts(self, group: str, difference: Difference, setting: Setting) -> bool:
        """Whether this is such a difference."""
        return (
            group in self.counts
            and any(fnmatchcase(difference.what, pattern) for pattern in self.what)
            and re.search(self.call, difference.tool_call) is not None
            and re.search(self.theirs, difference.theirs, re.DOTALL) is not None
            and re.search(self.ours, difference.ours, re.DOTALL) is not None
            and (not self.covered or _lines(difference.theirs) <= _lines(difference.ours))
            and (difference.what not in _SPOKEN or self._nothing_is_lost(difference.theirs, setting))
        )

    def _nothing_is_lost(self, text: str, setting: Setting) -> bool:
        for pattern in self.injected:
            text = re.sub(pattern, "\n", text, flags=re.DOTALL)
        return _lines(text) <= setting.shown or (self.rewound and setting.left_out > 0)


def read_rules() -> list[Rule]:
    """All rules, in the order in which they are tried."""
    parsed: dict[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return [Rule(name=name, **fields) for name, fields in parsed.items()]


def rule_for(group: str, difference: Difference, setting: Setting, rules: Sequence[Rule]) -> Rule | None:
    """The first rule that accepts a difference."""
    matching: Iterator[Rule] = (rule for rule in rules if rule.accepts(group, difference, setting))
    return next(matching, None)


def _lines(text: str) -> set[str]:
    return {stripped for line in text.splitlines() if (stripped := line.strip())}
