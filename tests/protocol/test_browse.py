"""Browse sessions: long answers come in pages."""

import pytest

from tests.peers.bridge import Connection
from tests.peers.memory import later, say, session


def ask(bridge: Connection, prompt: str, session_id: str = "browse:1") -> str:
    """Prompt, and put the answer together."""
    before = len(bridge.updates(session_id))
    params = {"sessionId": session_id, "prompt": [{"type": "text", "text": prompt}]}
    assert bridge.request("session/prompt", params) == {"stopReason": "end_turn"}
    return "".join(update["content"]["text"] for update in bridge.updates(session_id)[before:])


@pytest.mark.parametrize("command", ["/list", "/list title", "/search title"])
def test_a_long_list_goes_on_with_more(bridge: Connection, command: str) -> None:
    """Every session comes once, and at the end there is nothing more."""
    for number in range(2, 46):
        bridge.source.add(later(session(f"made:{number:02}"), number))
    answers = [ask(bridge, command), ask(bridge, "/more"), ask(bridge, "/more")]
    assert [answer.count("/show made:") for answer in answers] == [20, 20, 5]
    assert [answer.endswith("`/more` shows what follows.") for answer in answers] == [True, True, False]
    assert ask(bridge, "/more") == "There is nothing more."


def test_a_long_conversation_goes_on_with_more(bridge: Connection) -> None:
    """By number of messages or by length, losing nothing; each browse session has its own place."""
    bridge.source.add(session("made:2"), [say(number, f"<{number}>") for number in range(150)])
    bridge.source.add(session("made:3"), [say(number, f"<{number}>" + "x" * 60_000) for number in range(3)])
    first, second = ask(bridge, "/show made:2"), ask(bridge, "/show made:3", "browse:2")
    assert ("<99>" in first, "<100>" in first, "<1>" in second, "<2>" in second) == (True, False, True, False)
    assert "To continue it" in first
    rest = ask(bridge, "/more")
    assert ("<100>" in rest, "<149>" in rest, "To continue it" in rest) == (True, True, False)
    assert "<2>" in ask(bridge, "/more", "browse:2")
    assert all(transcript.closed for transcript in bridge.source.opened)


def test_hidden_sessions_are_listed_with_the_way_back(bridge: Connection) -> None:
    """Only they, and only on request."""
    bridge.request("session/delete", {"sessionId": "made:1"})
    assert "made:1" not in ask(bridge, "/list")
    assert "`bridge unhide made:1` shows it again" in ask(bridge, "/hidden")


def test_an_incomplete_search_says_so(bridge: Connection) -> None:
    """While the text index is being built there may be more than was found."""
    bridge.source.text_index = "building"
    assert "still being built" in ask(bridge, "nowhere")


def test_a_session_whose_file_has_gone_says_so(bridge: Connection) -> None:
    """As an answer, not as an error."""
    bridge.source.sessions["made:gone"] = session("made:gone")
    assert "It cannot be read" in ask(bridge, "/show made:gone")
