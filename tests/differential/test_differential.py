"""Our replay of every session that a tool's own agent replayed, and the table of accepted differences."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from acp_history_bridge.index.library import Library
from acp_history_bridge.sessions import SessionQuery
from tests.differential.compare import Difference, differences
from tests.differential.histories import REFERENCES, Reference, lay_out, library_at, our_replay
from tests.differential.items import replayed
from tests.differential.rules import Setting, read_rules, rule_for

GROUPS = sorted({reference.group for reference in REFERENCES})
RULES = read_rules()


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Library]]:
    """A library over each home that references were recorded on."""
    with ExitStack() as opened:
        yield {
            group: opened.enter_context(library_at(lay_out(group, tmp_path_factory.mktemp("home")))) for group in GROUPS
        }


def compared(reference: Reference, library: Library) -> Iterator[tuple[Difference, Setting]]:
    """All differences in one session; a session that is not ours is one difference."""
    theirs = replayed(reference.updates())
    session = library.find(reference.session_id)
    if session is None:
        if theirs.items:
            yield Difference("missing session", "", reference.path.stem, ""), Setting(frozenset(), 0)
        return
    updates, left_out = our_replay(library, session)
    ours = replayed(updates)
    setting = Setting(ours.shown(), left_out)
    for difference in differences(theirs, ours):
        if reference.is_authority(difference.what):
            yield difference, setting


@pytest.mark.parametrize("group", GROUPS)
def test_every_difference_to_the_tool_s_own_agent_is_an_accepted_one(
    group: str, libraries: dict[str, Library], accepted_rows: list[tuple[str, int, str, str]]
) -> None:
    """Each has a rule with a reason, as often as the table says, and no rule accepts lost words."""
    found: Counter[str] = Counter()
    unexplained: list[str] = []
    for reference in (reference for reference in REFERENCES if reference.group == group):
        for difference, setting in compared(reference, libraries[group]):
            rule = rule_for(group, difference, setting, RULES)
            if rule is None:
                unexplained.append(f"{reference.path.stem}: {difference}")
            else:
                found[rule.name] += 1
    accepted_rows.extend((group, found[rule.name], rule.name, rule.reason) for rule in RULES if found[rule.name])
    assert not unexplained, "\n".join(unexplained)
    assert found == Counter({rule.name: rule.counts[group] for rule in RULES if group in rule.counts})


@pytest.mark.parametrize("group", ["codex", "opencode"])
def test_what_a_folded_sub_agent_said_is_shown_in_another_session(group: str, libraries: dict[str, Library]) -> None:
    """All its answers, in the call that started it; but for the JSON of a reviewer, which is shown as prose."""
    library = libraries[group]
    sessions = library.page(SessionQuery(), 1000).sessions
    shown = frozenset[str]().union(*(replayed(our_replay(library, session)[0]).shown() for session in sessions))
    folded = [
        replayed(reference.updates())
        for reference in REFERENCES
        if reference.group == group and library.find(reference.session_id) is None
    ]
    lines = {item.text.strip() for side in folded for item in side.items if item.kind == "agent"}
    prose = {line for line in lines if not line.startswith('{"findings":')}
    assert prose
    assert prose <= shown
