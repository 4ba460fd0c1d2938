"""From rollouts to turns: which copy of a message is shown, and what its parts become."""

from pathlib import Path

import pytest

from acp_history_bridge.turns import (
    Compaction,
    Image,
    Notice,
    Plan,
    PlanEntry,
    ResourceLink,
    Text,
    Thought,
    ToolCall,
    Turn,
)
from tests.builders.codex import (
    START,
    Bare,
    Legacy,
    Paginated,
    calls,
    open_only,
    replay,
    said,
)

PIXEL = "data:image/png;base64,iVBORw0KGgo="
PLAN = {"plan": [{"step": "Read", "status": "completed"}, {"step": "Write", "status": "in_progress"}]}
ENTRIES = (PlanEntry("Read", "completed"), PlanEntry("Write", "in_progress"))


def parts(turns: list[Turn]) -> list[object]:
    """All parts of all turns."""
    return [part for turn in turns for part in turn.parts]


# -- one copy of each message -----------------------------------------------------------------------------------------


def test_paginated_messages_come_from_items_alone(tmp_path: Path) -> None:
    """The response items beside them, with everything sent to the model, show nothing."""
    message = {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
    rollout = Paginated().response("message", **message).user("Hello").response("message", **message).agent("Hi")
    assert said(replay(tmp_path, rollout.write(tmp_path))) == [("user", "Hello"), ("agent", "Hi")]


def test_legacy_messages_come_from_events_alone(tmp_path: Path) -> None:
    """The response items beside them show nothing, whatever wrapper they hold."""
    wrapper = {"role": "user", "content": [{"type": "input_text", "text": "<environment_context>x"}]}
    answer = {"role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
    rollout = Legacy().response("message", **wrapper).user("Hello").agent("Hi").response("message", **answer)
    assert said(replay(tmp_path, rollout.write(tmp_path))) == [("user", "Hello"), ("agent", "Hi")]


def test_the_plan_of_a_legacy_rollout_is_the_only_item_shown(tmp_path: Path) -> None:
    """Plan mode wrote its plan as an item before there were other items."""
    item = {"type": "Plan", "id": "plan", "text": "# Plan"}
    other = {"type": "AgentMessage", "id": "m", "content": [{"type": "Text", "text": "Hi"}]}
    rollout = Legacy().event("item_completed", item=item).event("item_completed", item=other).agent("Hi")
    assert said(replay(tmp_path, rollout.write(tmp_path))) == [("agent", "# Plan"), ("agent", "Hi")]


def test_bare_messages_are_shown_without_wrappers(tmp_path: Path) -> None:
    """What Codex put into the user's mouth is told by how it begins."""
    rollout = Bare().message("user", "<user_instructions>x").message("user", "<environment_context><cwd>/w</cwd>")
    rollout.message("developer", "Rules").message("user", "Hello").message("assistant", "Hi")
    assert said(replay(tmp_path, rollout.write(tmp_path))) == [("user", "Hello"), ("agent", "Hi")]


@pytest.mark.fault("T2")
def test_the_same_record_twice_is_shown_once(tmp_path: Path) -> None:
    """A crash between two writes leaves a message twice, with one id."""
    rollout = Paginated().user("Hello")
    rollout.records.append(rollout.records[-1])
    assert said(replay(tmp_path, rollout.write(tmp_path))) == [("user", "Hello")]


def test_messages_that_share_an_id_are_both_shown(tmp_path: Path) -> None:
    """Some model servers repeat their ids; nothing said is lost, and turns stay apart."""
    rollout = Paginated()
    for text in ("One", "Two"):
        rollout.item("AgentMessage", id="same", content=[{"type": "Text", "text": text}])
    turns = replay(tmp_path, rollout.write(tmp_path))
    assert said(turns) == [("agent", "One"), ("agent", "Two")]
    assert len({turn.id for turn in turns}) == 2


@pytest.mark.fault("T2")
def test_calls_that_share_an_id_stay_apart(tmp_path: Path) -> None:
    """Ids of calls are unique in a session even where the model repeats them."""
    rollout = Legacy()
    for command in ("ls", "pwd"):
        rollout.call("call_0", "exec_command", {"cmd": command}).output("call_0", "x")
    found = calls(replay(tmp_path, rollout.write(tmp_path)))
    assert [call.title for call in found] == ["ls", "pwd"]
    assert len({call.id for call in found}) == 2


def test_times_and_models_are_those_of_the_records(tmp_path: Path) -> None:
    """A turn has the time of its record, an agent's turn the model of its context."""
    rollout = Paginated().context(model="gpt-6").user("Hello").agent("Hi")
    user, agent = replay(tmp_path, rollout.write(tmp_path))
    assert user.timestamp is not None
    assert (user.timestamp - START).seconds == 2
    assert (user.model, agent.model) == (None, "gpt-6")


# -- parts ------------------------------------------------------------------------------------------------------------


def test_attachments_of_an_item_are_images_and_links(tmp_path: Path) -> None:
    """A data URL is an image; a path is a link that is never opened."""
    rollout = Paginated().user(
        "See", {"type": "image", "image_url": PIXEL}, {"type": "local_image", "path": "/tmp/a b.png"}
    )
    assert parts(replay(tmp_path, rollout.write(tmp_path))) == [
        Text("See"),
        Image("image/png", data="iVBORw0KGgo="),
        ResourceLink("file:///tmp/a%20b.png", "a b.png"),
    ]


def test_attachments_of_an_event_are_images_and_links(tmp_path: Path) -> None:
    """Legacy prompts list them beside the text."""
    rollout = Legacy().user("See", images=[PIXEL], local_images=["/tmp/b.png"])
    assert parts(replay(tmp_path, rollout.write(tmp_path)))[1:] == [
        Image("image/png", data="iVBORw0KGgo="),
        ResourceLink("file:///tmp/b.png", "b.png"),
    ]


def test_each_part_of_a_reasoning_summary_is_a_thought(tmp_path: Path) -> None:
    """Raw content stands in only where there is no summary."""
    rollout = Paginated().item("Reasoning", summary_text=["One", "Two"], raw_content=["Raw"])
    rollout.item("Reasoning", summary_text=[], raw_content=["Raw"])
    found = parts(replay(tmp_path, rollout.write(tmp_path)))
    assert found == [Thought("One"), Thought("Two"), Thought("Raw")]


def test_a_compaction_carries_the_summary_before_it(tmp_path: Path) -> None:
    """History goes on across it."""
    rollout = (
        Paginated().user("One").record("compacted", {"message": "So far"}).item("ContextCompaction", id="c").user("Two")
    )
    found = parts(replay(tmp_path, rollout.write(tmp_path)))
    assert found == [Text("One"), Compaction("c", "So far"), Text("Two")]


def test_a_review_is_told_with_its_findings(tmp_path: Path) -> None:
    """For legacy reviews the end event has the only copy of the outcome."""
    finding = {
        "title": "[P2] Guard",
        "body": "Negative.",
        "code_location": {"absolute_file_path": "/a.py", "line_range": {"start": 1, "end": 2}},
    }
    review = {"overall_explanation": "Fine.", "findings": [finding]}
    rollout = Legacy().event("entered_review_mode", user_facing_hint="current changes")
    rollout.event("exited_review_mode", review_output=review)
    turns = replay(tmp_path, rollout.write(tmp_path))
    assert said(turns) == [
        ("agent", "Entered review mode: current changes"),
        ("agent", "Exited review mode: Fine.\n\nReview comment:\n\n- [P2] Guard — /a.py:1-2\n  Negative."),
    ]
    assert all(turn.synthetic for turn in turns)


def test_interruptions_and_failures_are_notices(tmp_path: Path) -> None:
    """They were shown beside the conversation and are not counted as messages."""
    rollout = (
        Paginated().event("turn_aborted", reason="interrupted").event("task_complete", error={"message": "No room."})
    )
    turns = replay(tmp_path, rollout.write(tmp_path))
    assert parts(turns) == [Notice("The turn ended early: interrupted."), Notice("No room.")]
    assert all(turn.synthetic for turn in turns)


def test_a_command_that_the_user_ran_in_a_legacy_rollout_is_a_notice(tmp_path: Path) -> None:
    """Only a message to the model tells of it."""
    ran = "<command>\nls\n</command>\n<result>\nExit code: 0\nREADME\n</result>"
    text = f"<user_shell_command>\n{ran}\n</user_shell_command>"
    rollout = Legacy().response("message", role="user", content=[{"type": "input_text", "text": text}])
    assert parts(replay(tmp_path, rollout.write(tmp_path))) == [Notice("ls\nExit code: 0\nREADME")]


def test_tokens_in_the_context_are_the_usage(tmp_path: Path) -> None:
    """The last count wins, and it is of the last request, not of the whole session."""
    rollout = Paginated()
    for used in (10, 20):
        info = {"last_token_usage": {"total_tokens": used}, "total_token_usage": {"total_tokens": 99}}
        rollout.event("token_count", info={**info, "model_context_window": 1000})
    transcript = open_only(tmp_path, rollout.write(tmp_path))
    list(transcript.turns())
    transcript.close()
    assert transcript.usage is not None
    assert (transcript.usage.used, transcript.usage.size) == (20, 1000)


# -- plans ------------------------------------------------------------------------------------------------------------


def test_a_legacy_plan_is_a_call_and_a_plan(tmp_path: Path) -> None:
    """The call keeps the explanation, which the plan has no place for."""
    rollout = Legacy().call("c", "update_plan", {"explanation": "Why", **PLAN}).output("c", "Plan updated")
    (turn,) = replay(tmp_path, rollout.write(tmp_path))
    call, plan = turn.parts
    assert plan == Plan(ENTRIES)
    assert isinstance(call, ToolCall)
    assert call.content == (Text("Why"),)


def test_a_paginated_plan_has_no_item_and_is_shown_from_its_call(tmp_path: Path) -> None:
    """It is the one thing that items leave out."""
    rollout = Paginated().call("c", "update_plan", PLAN).output("c", "Plan updated")
    assert parts(replay(tmp_path, rollout.write(tmp_path))) == [Plan(ENTRIES)]


def test_a_refused_plan_is_no_plan(tmp_path: Path) -> None:
    """The user never saw it."""
    rollout = Paginated().call("c", "update_plan", PLAN).output("c", "unsupported call: update_plan")
    assert parts(replay(tmp_path, rollout.write(tmp_path))) == []


# -- calls in flight --------------------------------------------------------------------------------------------------


def test_a_call_whose_turn_ended_without_an_output_is_unfinished(tmp_path: Path) -> None:
    """It stands before what was said next."""
    rollout = Legacy().event("task_started").call("c", "exec_command", {"cmd": "sleep 9"})
    rollout.event("turn_aborted", reason="interrupted").user("Next")
    turns = replay(tmp_path, rollout.write(tmp_path))
    assert [call.status for call in calls(turns)] == ["unfinished"]
    assert isinstance(turns[-1].parts[0], Text)


def test_a_prompt_ends_the_turn_in_releases_that_did_not_mark_turns(tmp_path: Path) -> None:
    """A call that was never answered is not kept for the end of the file."""
    rollout = Legacy().call("c", "shell", {"command": ["sleep", "9"]}).user("Next")
    turns = replay(tmp_path, rollout.write(tmp_path))
    assert [call.status for call in calls(turns[:1])] == ["unfinished"]


def test_a_prompt_while_a_marked_turn_runs_does_not_end_its_calls(tmp_path: Path) -> None:
    """The output still belongs to the call."""
    rollout = (
        Legacy().event("task_started").call("c", "exec_command", {"cmd": "make"}).user("Faster").output("c", "done")
    )
    assert [call.status for call in calls(replay(tmp_path, rollout.write(tmp_path)))] == ["completed"]


def test_an_outcome_that_comes_later_brings_the_call_again(tmp_path: Path) -> None:
    """Turn and call keep their ids, so that the one shown is replaced."""
    rollout = Legacy().user("Go").call("c", "exec_command", {"cmd": "make"})
    path = rollout.write(tmp_path)
    transcript = open_only(tmp_path, path)
    before = list(transcript.turns())[-1]
    assert list(transcript.turns()) == []
    with path.open("ab") as file:
        file.write(rollout.output("c", "done").lines[-1])
    (after,) = transcript.turns()
    assert (after.id, [call.id for call in calls([after])]) == (before.id, [call.id for call in calls([before])])
    assert [calls([turn])[0].status for turn in (before, after)] == ["unfinished", "completed"]
    transcript.close()
