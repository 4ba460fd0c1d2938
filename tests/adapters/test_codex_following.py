"""Rollouts that grow, and rollouts that are packed."""

import json
from pathlib import Path

import pytest

from acp_history_adapters.codex import lines
from acp_history_bridge.turns import (
    Notice,
    Turn,
)
from tests.builders.codex import (
    THREAD,
    Legacy,
    Paginated,
    Rollout,
    compress,
    open_only,
    replay,
    said,
)

PLAN = {"plan": [{"step": "Read", "status": "completed"}, {"step": "Write", "status": "in_progress"}]}


def parts(turns: list[Turn]) -> list[object]:
    """All parts of all turns."""
    return [part for turn in turns for part in turn.parts]


# -- following --------------------------------------------------------------------------------------------------------

CONVERSATION = (
    Legacy()
    .context()
    .user("One ü")
    .agent("1")
    .call("a", "exec_command", {"cmd": "ls"})
    .output("a", "x")
    .call("b", "update_plan", PLAN)
    .output("b", "Plan updated")
    .agent("2")
)
ITEMS = Paginated().context().user("One ü").item("Reasoning", summary_text=["Hm"]).agent("1").user("Two").agent("2")


@pytest.mark.parametrize("rollout", [CONVERSATION, ITEMS], ids=["legacy", "paginated"])
@pytest.mark.fault("R4", "Z3")
def test_following_line_by_line_gives_the_whole(tmp_path: Path, rollout: Rollout) -> None:
    """Whatever was there at the first call, all calls together are the replay of the whole file."""
    whole = replay(tmp_path / "whole", rollout.write(tmp_path / "whole"))
    for start in range(1, len(rollout.lines)):
        path = rollout.path(tmp_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(rollout.lines[:start]))
        transcript = open_only(tmp_path, path)
        followed = {turn.id: turn for turn in transcript.turns()}
        for line in rollout.lines[start:]:
            with path.open("ab") as file:
                file.write(line)
            followed |= {turn.id: turn for turn in transcript.turns()}
        assert list(followed.values()) == whole
        transcript.close()


@pytest.mark.parametrize("rollout", [CONVERSATION, ITEMS], ids=["legacy", "paginated"])
@pytest.mark.fault("F1")
def test_a_line_torn_at_any_byte_waits_for_its_rest(tmp_path: Path, rollout: Rollout) -> None:
    """Nothing is shown of half a record, nothing is lost and nothing is a problem."""
    whole = replay(tmp_path / "whole", rollout.write(tmp_path / "whole"))
    data, tail = rollout.data, sum(map(len, rollout.lines[-3:]))
    path = rollout.path(tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for cut in range(len(data) - tail, len(data)):
        path.write_bytes(data[:cut])
        transcript = open_only(tmp_path, path)
        followed = {turn.id: turn for turn in transcript.turns()}
        with path.open("ab") as file:
            file.write(data[cut:])
        followed |= {turn.id: turn for turn in transcript.turns()}
        assert list(followed.values()) == whole
        assert not transcript.problems
        transcript.close()


def test_a_turn_taken_back_while_the_session_is_followed_is_told(tmp_path: Path) -> None:
    """What was shown cannot be unshown."""
    rollout = Legacy().user("One")
    path = rollout.write(tmp_path)
    transcript = open_only(tmp_path, path)
    list(transcript.turns())
    with path.open("ab") as file:
        file.write(rollout.event("thread_rolled_back", num_turns=1).lines[-1])
    assert parts(list(transcript.turns())) == [Notice("The last turn was taken back.")]
    transcript.close()


def test_a_document_is_followed_item_by_item(tmp_path: Path) -> None:
    """It is rewritten as a whole; only what is new is yielded."""
    path = tmp_path / ".codex" / "sessions" / f"rollout-2026-01-02-{THREAD}.json"
    path.parent.mkdir(parents=True)
    items = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]} for text in "AB"]
    path.write_text(json.dumps({"session": {"id": THREAD}, "items": items[:1]}), encoding="utf-8")
    transcript = open_only(tmp_path, path)
    assert said(list(transcript.turns())) == [("user", "A")]
    path.write_text(json.dumps({"session": {"id": THREAD}, "items": items}), encoding="utf-8")
    assert said(list(transcript.turns())) == [("user", "B")]
    path.write_text('{"session": {', encoding="utf-8")
    assert list(transcript.turns()) == []


# -- compressed -------------------------------------------------------------------------------------------------------


def compressed(home: Path, rollout: Rollout, data: bytes) -> Path:
    """A compressed rollout with these bytes."""
    path = rollout.path(home).with_name(rollout.name() + ".zst")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_compressed_rollout_reads_as_the_plain_one(tmp_path: Path) -> None:
    """Also when it was written in several frames."""
    half = len(ITEMS.data) // 2
    frames = compress(ITEMS.data[:half]) + compress(ITEMS.data[half:])
    assert replay(tmp_path, compressed(tmp_path, ITEMS, frames)) == replay(tmp_path / "b", ITEMS.write(tmp_path / "b"))


@pytest.mark.fault("F13")
def test_a_truncated_compressed_rollout_shows_what_is_there(tmp_path: Path) -> None:
    """And says that it is truncated."""
    rollout = Paginated()
    for number in range(4000):
        rollout.user(f"Question {number * 7919 % 100003}")
    data = compress(rollout.data)
    transcript = open_only(tmp_path, compressed(tmp_path, rollout, data[: len(data) * 9 // 10]))
    found = said(list(transcript.turns()))
    assert found[:2] == [("user", "Question 0"), ("user", "Question 7919")]
    assert "truncated" in {problem.kind for problem in transcript.problems}
    transcript.close()


@pytest.mark.fault("F13")
def test_a_bomb_is_unpacked_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes before the limit is shown."""
    monkeypatch.setattr(lines, "UNPACKED_LIMIT", 1_000_000)
    rollout = Paginated().user("Hello")
    path = compressed(tmp_path, rollout, compress(rollout.data + b"\n" * 3_000_000))
    transcript = open_only(tmp_path, path)
    assert said(list(transcript.turns())) == [("user", "Hello")]
    assert [problem.kind for problem in transcript.problems] == ["too-large"]
    transcript.close()


@pytest.mark.fault("F13")
def test_garbage_behind_the_name_of_a_compressed_rollout_is_a_problem(tmp_path: Path) -> None:
    """It costs nothing but itself."""
    transcript = open_only(tmp_path, compressed(tmp_path, ITEMS, b"not zstd at all"))
    assert list(transcript.turns()) == []
    assert [problem.kind for problem in transcript.problems] == ["damaged"]
    transcript.close()
