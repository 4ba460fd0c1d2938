"""Tool calls of every release: what they are called, what they changed, how they ended."""

from pathlib import Path

import pytest

from acp_history_adapters.codex.calls import command_line
from acp_history_adapters.codex.outputs import read_output
from acp_history_adapters.codex.patches import changes_of_patch
from acp_history_bridge.turns import Diff, Image, Location, ResourceLink, ShellResult, Text, ToolCall
from tests.builders.codex import CWD, Legacy, Paginated, calls, replay, thread_id

PATCH = (
    "*** Begin Patch\n*** Update File: shop/cart.py\n@@ def total\n-    return 1\n+    return 2\n # end\n@@\n-a\n+b\n"
    "*** Add File: NEW.md\n+# New\n+\n*** Delete File: OLD.md\n*** End Patch\n"
)
DIFFS = (
    Diff(f"{CWD}/shop/cart.py", "    return 2\n# end\n", "    return 1\n# end\n"),
    Diff(f"{CWD}/shop/cart.py", "b\n", "a\n"),
    Diff(f"{CWD}/NEW.md", "# New\n\n"),
    Diff(f"{CWD}/OLD.md", "", ""),
)


def legacy_call(home: Path, name: str, arguments: object, output: object, **fields: object) -> ToolCall:
    """A call of a legacy rollout."""
    rollout = Legacy().context().call("c", name, arguments, **fields).output("c", output)
    (call,) = calls(replay(home, rollout.write(home)))
    return call


def item_call(home: Path, kind: str, **fields: object) -> ToolCall:
    """A call of a paginated rollout."""
    (call,) = calls(replay(home, Paginated().context().item(kind, **fields).write(home)))
    return call


# -- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "text", "exit_code"),
    [
        ('{"output":"hi\\n","metadata":{"exit_code":3,"duration_seconds":0.1}}', "hi\n", 3),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nhi\n", "hi\n", 1),
        ("Exit code: 0\nWall time: 0 seconds\nTotal output lines: 9\nOutput:\nhi\n", "hi\n", 0),
        (
            "Chunk ID: 1\nWall time: 0.0 seconds\nProcess exited with code 2\nOriginal token count: 66\nOutput:\nhi",
            "hi",
            2,
        ),
        (
            "Command: /bin/bash -lc 'ls'\nChunk ID: 1\nWall time: 0.0 seconds\nProcess exited with code 0\nOutput:\nhi",
            "hi",
            0,
        ),
        ("Wall time: 0.0008 seconds\nOutput:\nhi", "hi", None),
        ("hi", "hi", None),
        ('{"output": cut', '{"output": cut', None),
        ("Exit code: 1", "Exit code: 1", None),
    ],
)
def test_the_wrapping_of_an_output_is_taken_off(raw: str, text: str, exit_code: int | None) -> None:
    """Every shape that a release gave it; what fits none is shown as it is."""
    output = read_output(raw)
    assert (output.text, output.exit_code, output.failed) == (text, exit_code, bool(exit_code))


def test_a_process_that_still_runs_is_no_failure() -> None:
    """Its output so far is shown."""
    output = read_output("Chunk ID: 1\nWall time: 1 seconds\nProcess running with session ID 7\nOutput:\n>>> ")
    assert (output.text, output.running, output.failed) == (">>> ", True, False)


@pytest.mark.parametrize(
    "raw",
    ["unsupported call: x", "apply_patch verification failed: no", "aborted by user after 2s", "invalid arguments: {}"],
)
def test_a_refused_call_has_failed(raw: str) -> None:
    """It never ran."""
    assert read_output(raw).failed


def test_an_output_can_be_a_list_of_content() -> None:
    """Text and pictures; the wrapping stands in the first text."""
    output = read_output(
        [
            {"type": "input_text", "text": "Script failed\nWall time 0.0 seconds\nOutput:\n"},
            {"type": "input_text", "text": "Boom"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
        ]
    )
    assert output.content == (Text("Boom"), Image("image/png", data="AA=="))
    assert output.failed


# -- shells -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (["bash", "-lc", "ls | wc"], "ls | wc"),
        (["/bin/zsh", "-c", "ls"], "ls"),
        (["git", "log", "--format=%h %s"], "git log '--format=%h %s'"),
        ("ls", "ls"),
        ([], ""),
        (None, ""),
    ],
)
def test_a_command_is_shown_as_typed(command: object, line: str) -> None:
    """Without the shell that Codex wraps around it."""
    assert command_line(command) == line


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("shell", {"command": ["bash", "-lc", "make"], "workdir": "sub"}),
        ("shell_command", {"command": "make", "workdir": "sub"}),
        ("exec_command", {"cmd": "make", "workdir": f"{CWD}/sub"}),
    ],
)
def test_shells_of_all_releases_are_one_thing(tmp_path: Path, name: str, arguments: object) -> None:
    """The command is the title, the exit code decides."""
    call = legacy_call(tmp_path, name, arguments, "Exit code: 2\nOutput:\nno rule")
    assert (call.title, call.kind, call.status) == ("make", "execute", "failed")
    assert call.shell == ShellResult("no rule", 2, f"{CWD}/sub")


def test_a_local_shell_call_is_a_shell(tmp_path: Path) -> None:
    """It has its command below `action`."""
    rollout = Legacy().response(
        "local_shell_call", call_id="c", action={"type": "exec", "command": ["bash", "-lc", "ls"]}
    )
    (call,) = calls(replay(tmp_path, rollout.output("c", "x").write(tmp_path)))
    assert (call.title, call.kind) == ("ls", "execute")


def test_typing_into_a_terminal_is_shown(tmp_path: Path) -> None:
    """Without input it only waits."""
    assert legacy_call(tmp_path, "write_stdin", {"session_id": 1, "chars": "exit()\n"}, "x").title == "Type exit()"
    assert legacy_call(tmp_path, "write_stdin", {"session_id": 1, "chars": ""}, "x").title == "Wait for the terminal"


@pytest.mark.parametrize(
    ("parsed", "kind", "title", "places"),
    [
        (
            {"type": "read", "name": "cart.py", "path": f"{CWD}/cart.py"},
            "read",
            "Read cart.py",
            (Location(f"{CWD}/cart.py"),),
        ),
        ({"type": "list_files", "path": f"{CWD}/shop"}, "read", "List shop", (Location(f"{CWD}/shop"),)),
        ({"type": "search", "query": "total", "path": "shop"}, "search", "Search “total” in shop", ()),
        ({"type": "unknown", "cmd": "make"}, "execute", "make", ()),
    ],
)
def test_a_simple_command_is_called_by_what_it_does(
    tmp_path: Path, parsed: object, kind: str, title: str, places: tuple[Location, ...]
) -> None:
    """As Codex understood it; the output is a shell's in any case."""
    call = item_call(
        tmp_path,
        "CommandExecution",
        command=["/bin/bash", "-lc", "make"],
        cwd=f"file://{CWD}",
        parsed_cmd=[parsed],
        status="completed",
        aggregated_output="out",
        exit_code=0,
    )
    assert (call.kind, call.title, call.locations, call.status) == (kind, title, places, "completed")
    assert call.shell == ShellResult("out", 0, CWD)


@pytest.mark.parametrize("status", ["failed", "declined"])
def test_a_command_that_failed_or_was_declined_has_failed(tmp_path: Path, status: str) -> None:
    """Also without an exit code."""
    assert item_call(tmp_path, "CommandExecution", command=["x"], status=status).status == "failed"


# -- patches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("apply_patch", {"input": PATCH}),
        ("shell", {"command": ["apply_patch", PATCH]}),
        ("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}EOF\n"}),
        ("shell", {"command": ["bash", "-lc", f"cd . && apply_patch <<'EOF'\n{PATCH}EOF\n"]}),
    ],
)
def test_a_patch_is_a_patch_however_it_came(tmp_path: Path, name: str, arguments: object) -> None:
    """One diff for each hunk, absolute paths, context lines on both sides."""
    call = legacy_call(tmp_path, name, arguments, "Exit code: 0\nOutput:\nSuccess.")
    assert (call.kind, call.status, call.title) == ("edit", "completed", "Edit shop/cart.py, NEW.md, OLD.md")
    assert call.content == DIFFS
    assert [place.path for place in call.locations] == [f"{CWD}/shop/cart.py", f"{CWD}/NEW.md", f"{CWD}/OLD.md"]


def test_a_custom_patch_call_is_a_patch(tmp_path: Path) -> None:
    """Its input is the patch itself; when it failed, the reason stands behind the diffs."""
    rollout = Legacy().context().response("custom_tool_call", call_id="c", name="apply_patch", input=PATCH)
    rollout.response("custom_tool_call_output", call_id="c", output="apply_patch verification failed: gone")
    (call,) = calls(replay(tmp_path, rollout.write(tmp_path)))
    assert call.status == "failed"
    assert call.content == (*DIFFS, Text("apply_patch verification failed: gone"))


def test_the_event_of_a_patch_says_more_than_its_call(tmp_path: Path) -> None:
    """It replaces the call, under the call's id, and the output adds nothing."""
    rollout = Legacy().context().response("custom_tool_call", call_id="c", name="apply_patch", input=PATCH)
    rollout.event("patch_apply_end", call_id="c", success=True, changes={"/a.py": {"type": "add", "content": "x\n"}})
    rollout.response("custom_tool_call_output", call_id="c", output="Success.")
    (call,) = calls(replay(tmp_path, rollout.write(tmp_path)))
    assert (call.id, call.content) == ("c", (Diff("/a.py", "x\n"),))


def test_file_changes_of_an_item_are_diffs(tmp_path: Path) -> None:
    """Added, deleted, updated and moved files; a move is shown where the file went."""
    changes = {
        "/w/a": {"type": "add", "content": "A\n"},
        "/w/b": {"type": "delete", "content": "B\n"},
        "/w/c": {"type": "update", "unified_diff": "@@ -1,2 +1,2 @@\n--- old\n+-- new\n same\n", "move_path": "/w/d"},
    }
    call = item_call(tmp_path, "FileChange", changes=changes, status="completed")
    assert call.content == (
        Diff("/w/a", "A\n"),
        Diff("/w/b", "", "B\n"),
        Diff("/w/d", "-- new\nsame\n", "-- old\nsame\n"),
    )


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"type": "delete", "content": ""}, "delete"),
        ({"type": "update", "unified_diff": "", "move_path": "/n"}, "move"),
    ],
)
def test_deleting_and_moving_have_kinds_of_their_own(tmp_path: Path, change: object, kind: str) -> None:
    """Where nothing else happened."""
    assert item_call(tmp_path, "FileChange", changes={"/a": change}).kind == kind


def test_a_broken_patch_gives_what_it_has() -> None:
    """Also without begin, end or known headers."""
    assert changes_of_patch("*** Update File: a\n+x", None)[0].diffs == (Diff("a", "x\n", ""),)
    assert changes_of_patch("*** Update File: a\n-a\x0cb\n+a\u2028c\n", None)[0].diffs == (
        Diff("a", "a\u2028c\n", "a\x0cb\n"),
    )
    assert changes_of_patch("nonsense", "/w") == []


# -- other tools ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "namespace"),
    [
        ("stock__level", None),
        ("mcp__stock__level", None),
        ("level", "mcp__stock__"),
        ("level", "mcp__stock"),
    ],
)
def test_tools_of_servers_name_the_server(tmp_path: Path, name: str, namespace: str | None) -> None:
    """In all spellings that releases used; results may be JSON in a string."""
    call = legacy_call(tmp_path, name, {"article": "tea"}, '[{"type":"text","text":"42"}]', namespace=namespace)
    assert (call.title, call.kind, call.input) == ("stock: level", "other", {"article": "tea"})
    assert call.content == (Text("42"),)


def test_a_server_tool_that_reports_an_error_has_failed(tmp_path: Path) -> None:
    """Its call as such went well; both ways to say it count."""
    result = {"content": [{"type": "text", "text": "closed"}], "isError": True}
    call = item_call(tmp_path, "McpToolCall", server="stock", tool="order", arguments={"n": 1}, result=result)
    assert (call.status, call.title, call.content) == ("failed", "stock: order", (Text("closed"),))
    call = item_call(tmp_path, "McpToolCall", server="s", tool="t", status="failed", error={"message": "gone"})
    assert (call.status, call.content) == ("failed", (Text("gone"),))


@pytest.mark.parametrize(
    ("action", "title", "kind"),
    [
        ({"type": "search", "query": "sum"}, "Search the web: sum", "search"),
        ({"type": "open_page", "url": "https://a.example"}, "Open https://a.example", "fetch"),
        (
            {"type": "find_in_page", "url": "https://a.example", "pattern": "x"},
            "Find “x” in https://a.example",
            "fetch",
        ),
    ],
)
def test_web_searches_say_what_they_did(tmp_path: Path, action: object, title: str, kind: str) -> None:
    """As items, and as calls that the model's server ran, which have no output."""
    call = item_call(tmp_path, "WebSearch", query="", action=action)
    assert (call.title, call.kind) == (title, kind)
    rollout = Legacy(thread_id(2)).response("web_search_call", id="w", status="completed", action=action)
    (call,) = calls(replay(tmp_path, rollout.write(tmp_path)))
    assert (call.title, call.kind, call.status) == (title, kind, "completed")


@pytest.mark.fault("S6")
def test_a_viewed_image_is_named_and_not_opened(tmp_path: Path) -> None:
    """Where the output holds the picture, that is shown instead."""
    call = item_call(tmp_path, "ImageView", path=f"file://{CWD}/logo.png")
    assert (call.title, call.kind) == ("View logo.png", "read")
    assert call.content == (ResourceLink(f"file://{CWD}/logo.png", "logo.png"),)
    output = [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]
    assert legacy_call(tmp_path, "view_image", {"path": "logo.png"}, output).content == (
        Image("image/png", data="AA=="),
    )


def test_waiting_for_sub_agents_shows_their_reports(tmp_path: Path) -> None:
    """The last word of each."""
    call = item_call(
        tmp_path,
        "CollabAgentToolCall",
        tool="wait",
        status="completed",
        receiver_thread_ids=["t"],
        receiver_agents=[{"thread_id": "t", "agent_nickname": "Nash"}],
        agents_states={"t": {"completed": "Two files."}},
    )
    assert (call.title, call.content) == ("Wait for the sub-agents: Nash", (Text("Two files."),))


def test_a_spawned_agent_of_a_legacy_call_is_found_by_its_output(tmp_path: Path) -> None:
    """Releases without events for it tell the thread only there."""
    Legacy(thread_id(2)).user("Count").agent("One.").write(tmp_path)
    output = f'{{"agent_id":"{thread_id(2)}","nickname":"Nash"}}'
    call = legacy_call(tmp_path, "spawn_agent", {"message": "Count"}, output)
    assert call.title == "Start a sub-agent: Count"
    (run,) = call.subagents
    assert (run.name, [text.text for turn in run.turns() for text in turn.parts if isinstance(text, Text)]) == (
        "Nash",
        ["Count", "One."],
    )


def test_an_unknown_tool_is_shown_by_its_name(tmp_path: Path) -> None:
    """With what it was given and what came back; arguments that are no JSON are kept as they are."""
    call = legacy_call(tmp_path, "brand_new", "not json", "unsupported call: brand_new")
    assert (call.title, call.kind, call.status) == ("brand_new", "other", "failed")
    assert (call.input, call.content) == ({"input": "not json"}, (Text("unsupported call: brand_new"),))
