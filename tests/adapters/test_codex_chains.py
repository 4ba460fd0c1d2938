"""Forks, rewinds and sub-agents: which rollouts make up a history, and what is left out of it."""

from pathlib import Path
from typing import NoReturn

import pytest

from acp_history_adapters.codex.rollouts import Rollouts
from tests.builders.codex import (
    THREAD,
    Legacy,
    Paginated,
    calls,
    compress,
    open_only,
    replay,
    said,
    thread_id,
)


def base(rollout: str, end: int) -> dict[str, object]:
    """The base of a fork or rewind."""
    return {"thread_id": rollout, "end_ordinal_exclusive": end, "end_byte_offset": 1}


def test_a_fork_begins_with_its_base_up_to_the_ordinal(tmp_path: Path) -> None:
    """What the base said later belongs to the base alone, and is not counted as left out."""
    parent = Paginated(thread_id(1)).user("One").agent("1")
    end = parent.ordinal
    parent.user("Later").write(tmp_path)
    fork = Paginated(thread_id(2), minute=1, ordinal=end, history_base=base(thread_id(1), end)).user("Two")
    transcript = open_only(tmp_path, fork.write(tmp_path))
    assert said(list(transcript.turns())) == [("user", "One"), ("agent", "1"), ("user", "Two")]
    assert transcript.left_out == 0
    transcript.close()


def test_a_chain_is_cut_at_the_smallest_ordinal(tmp_path: Path) -> None:
    """A fork from within the part that its base inherited shows nothing that came after."""
    Paginated(thread_id(1)).user("One").user("Two").write(tmp_path)
    Paginated(thread_id(2), minute=1, ordinal=3, history_base=base(thread_id(1), 3)).user("Three").write(tmp_path)
    fork = Paginated(thread_id(3), minute=2, ordinal=2, history_base=base(thread_id(2), 2)).user("Four")
    assert said(replay(tmp_path, fork.write(tmp_path))) == [("user", "One"), ("user", "Four")]


def test_a_rewind_counts_what_it_left_behind(tmp_path: Path) -> None:
    """The rest of the base and the rollouts off the chain are messages that no longer count."""
    Paginated().user("One").user("Two").agent("2").write(tmp_path)
    Paginated(rollout=thread_id(8), minute=1, ordinal=2, history_base=base(THREAD, 2)).user("Off").write(tmp_path)
    rewound = Paginated(rollout=thread_id(9), minute=2, ordinal=2, history_base=base(THREAD, 2)).user("Three")
    transcript = open_only(tmp_path, rewound.write(tmp_path))
    assert said(list(transcript.turns())) == [("user", "One"), ("user", "Three")]
    assert transcript.left_out == 3
    transcript.close()


def test_a_base_is_found_compressed_archived_and_in_a_wrong_folder(tmp_path: Path) -> None:
    """Its name is what counts."""
    parent = Paginated(thread_id(1)).user("One")
    path = tmp_path / ".codex" / "archived_sessions" / "odd" / (parent.name() + ".zst")
    path.parent.mkdir(parents=True)
    path.write_bytes(compress(parent.data))
    fork = Paginated(thread_id(2), minute=1, history_base=base(thread_id(1), 9)).user("Two")
    assert said(replay(tmp_path, fork.write(tmp_path))) == [("user", "One"), ("user", "Two")]


def test_a_base_is_looked_for_in_the_folder_of_its_day_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home with years of rollouts is walked only for a base that lies elsewhere."""
    Paginated(thread_id(1)).user("One").write(tmp_path)

    def refuse(_self: Rollouts) -> NoReturn:
        pytest.fail("the whole home was walked")

    monkeypatch.setattr(Rollouts, "_everything", refuse)
    fork = Paginated(thread_id(2), minute=1, history_base=base(thread_id(1), 9)).user("Two")
    assert said(replay(tmp_path, fork.write(tmp_path))) == [("user", "One"), ("user", "Two")]


@pytest.mark.fault("T2")
def test_bases_that_go_round_in_a_circle_end(tmp_path: Path) -> None:
    """A hostile pair of rollouts is shown as far as it goes."""
    Paginated(thread_id(1), history_base=base(thread_id(2), 9)).user("One").write(tmp_path)
    path = Paginated(thread_id(2), minute=1, history_base=base(thread_id(1), 9)).user("Two").write(tmp_path)
    transcript = open_only(tmp_path, path)
    assert said(list(transcript.turns())) == [("user", "One"), ("user", "Two")]
    assert [problem.kind for problem in transcript.problems] == ["missing-base"]
    transcript.close()


def test_a_legacy_rollback_takes_back_the_last_turns(tmp_path: Path) -> None:
    """With everything that was said in them; what came before and after stays."""
    rollout = Legacy().user("One").agent("1").user("Two").agent("2").user("Three").agent("3")
    rollout.event("thread_rolled_back", num_turns=2).user("Four")
    transcript = open_only(tmp_path, rollout.write(tmp_path))
    assert said(list(transcript.turns())) == [("user", "One"), ("agent", "1"), ("user", "Four")]
    assert transcript.left_out == 4
    transcript.close()


def test_rollbacks_one_after_another_reach_further_back(tmp_path: Path) -> None:
    """A later marker counts only turns that were still there."""
    rollout = Legacy().user("One").user("Two").event("thread_rolled_back", num_turns=1).user("Three")
    rollout.event("thread_rolled_back", num_turns=2).user("Four")
    transcript = open_only(tmp_path, rollout.write(tmp_path))
    assert said(list(transcript.turns())) == [("user", "Four")]
    assert transcript.left_out == 3
    transcript.close()


def test_prompts_within_one_started_turn_are_taken_back_together(tmp_path: Path) -> None:
    """What the user adds while a turn runs belongs to that turn."""
    rollout = Legacy().user("One").event("task_started").user("Two").user("And").event("task_complete")
    rollout.event("thread_rolled_back", num_turns=1)
    assert said(replay(tmp_path, rollout.write(tmp_path))) == [("user", "One")]


def test_what_a_sub_agent_inherited_is_skipped(tmp_path: Path) -> None:
    """It is its parent's conversation."""
    rollout = Paginated(subagent_history_start_ordinal=2).user("Parent's").user("Task")
    assert said(replay(tmp_path, rollout.write(tmp_path))) == [("user", "Task")]


@pytest.mark.fault("T2")
def test_a_sub_agent_that_names_its_parent_as_its_own_is_not_folded_for_ever(tmp_path: Path) -> None:
    """A circle of threads ends at the first one that comes again."""
    spawn = {"tool": "spawn_agent", "status": "completed"}
    Paginated(thread_id(2)).item("CollabAgentToolCall", receiver_thread_ids=[THREAD], **spawn).write(tmp_path)
    path = Paginated().item("CollabAgentToolCall", receiver_thread_ids=[thread_id(2)], **spawn).write(tmp_path)
    (call,) = calls(replay(tmp_path, path))
    (run,) = call.subagents
    assert [inner.subagents for inner in calls(list(run.turns()))] == [()]
