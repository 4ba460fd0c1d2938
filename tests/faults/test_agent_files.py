"""The agent as a process, over files that fail it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.faults.agents import agent, list_all, peak_memory, run, texts_of, traced
from tests.faults.tools import TOOLS, Tool, each_tool, write_opencode

pytestmark = pytest.mark.process_slow

_MEBIBYTE = 1 << 20


def _restrained() -> tuple[str, ...]:
    """Words that take root's right to ignore permissions away; nothing for anybody else."""
    if os.getuid() != 0:
        return ()
    words = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    if shutil.which(words[0]) is None or subprocess.run([*words, "true"], check=False).returncode:
        pytest.skip("root may do everything here")
    return words


@pytest.mark.fault("F4", "P3")
@each_tool
def test_half_a_gigabyte_in_one_record_costs_no_memory(tool: Tool, tmp_path: Path) -> None:
    """Within 64 MiB of what a small transcript takes; and the answer to another request does not wait for it."""
    path = tool.write(tmp_path, 1, ["eins", "zwei", "drei"])
    with agent(tmp_path) as bridge:
        (session_id,) = list_all(bridge)
        bridge.load(session_id)
        before = peak_memory(bridge)
    whole = path.read_bytes()
    third = whole.rindex(b"\n", 0, -1) + 1
    with path.open("wb") as stream:
        stream.write(whole[:third] + b'{"type":"user","x":"')
        for _ in range(500):
            stream.write(b"x" * _MEBIBYTE)
        stream.write(b'"}\n' + whole[third:])
    with agent(tmp_path) as bridge:
        assert list_all(bridge) == [session_id]
        load = bridge.start("session/load", {"sessionId": session_id, "cwd": "/", "mcpServers": []})
        bridge.request("session/list")
        bridge.answer(load)
        assert [text for text in texts_of(bridge, session_id) if "large" not in text] in (
            ["eins", "drei", "zwei"],  # prompts first
            ["eins", "zwei", "drei"],
        )
        assert peak_memory(bridge) < before + 64
        bridge.close_input()
        assert bridge.wait() == (0, b"")


@pytest.mark.fault("F10")
@each_tool
@pytest.mark.parametrize("what", ["file", "directory", "root"])
def test_a_permission_that_is_taken_loses_nothing_and_comes_back(tool: Tool, what: str, tmp_path: Path) -> None:
    """The list stays as it was; a load is refused while it cannot be read; then all is as before."""
    home = tmp_path / "home"
    path = tool.write(home, 1, ["eins", "zwei"])
    denied = {"file": path, "directory": path.parent, "root": home / path.relative_to(home).parts[0]}[what]
    with agent(home, *_restrained()) as bridge:
        (session_id,) = list_all(bridge)
    mode = denied.stat().st_mode & 0o777
    denied.chmod(0)
    try:
        with agent(home, *_restrained()) as bridge:
            assert list_all(bridge) == [session_id]
            bridge.refused("session/load", {"sessionId": session_id, "cwd": "/", "mcpServers": []})
    finally:
        denied.chmod(mode)
    with agent(home, *_restrained()) as bridge:
        assert list_all(bridge) == [session_id]
        bridge.load(session_id)
        assert sorted(texts_of(bridge, session_id)) == ["eins", "zwei"]
        bridge.close_input()
        assert bridge.wait() == (0, b"")


@pytest.mark.fault("F11")
@each_tool
@pytest.mark.parametrize("nth", ["1", "2+", "1+"])
def test_an_io_error_in_a_transcript_costs_no_other(tool: Tool, nth: str, tmp_path: Path) -> None:
    """A broken sector: the agent goes on, the other session is served, and without the fault both are."""
    home = tmp_path / "home"
    path = tool.write(home, 1, ["eins", "zwei"])
    tool.write(home, 2, ["drei", "vier"])
    calls = "read,pread64,readv,preadv"
    faulty = traced(
        "-o", os.devnull, "-P", str(path), "-e", f"trace={calls}", "-e", f"inject={calls}:error=EIO:when={nth}"
    )
    with agent(home, *faulty) as bridge:
        sessions = list_all(bridge)
        for session_id in sessions:
            bridge.answer(bridge.start("session/load", {"sessionId": session_id, "cwd": "/", "mcpServers": []}))
        assert {"drei", "vier"} <= {text for session_id in sessions for text in texts_of(bridge, session_id)}
        bridge.close_input()
        assert bridge.wait(20)[1] == b""
    with agent(home) as bridge:
        sessions = list_all(bridge)
        for session_id in sessions:
            bridge.load(session_id)
        assert {text for session_id in sessions for text in texts_of(bridge, session_id)} == {
            *("eins", "zwei", "drei", "vier")
        }


@pytest.mark.fault("F12")
@pytest.mark.parametrize(
    "variables",
    [
        {"XDG_CACHE_HOME": "", "XDG_STATE_HOME": ""},
        {"XDG_CACHE_HOME": "relative", "XDG_DATA_HOME": "../x", "XDG_CONFIG_HOME": "y", "XDG_STATE_HOME": "."},
        {"XDG_CACHE_HOME": "/dev/null/x", "XDG_STATE_HOME": "/dev/null", "XDG_DATA_HOME": "/proc/x"},
    ],
)
def test_any_directories_in_the_environment_are_survived(variables: dict[str, str], tmp_path: Path) -> None:
    """Nothing is written where the process was started, and every session is listed."""
    TOOLS["claude-code"].write(tmp_path, 1, ["eins", "zwei"])
    before = set(Path.cwd().iterdir())
    with agent(tmp_path, **variables) as bridge:
        assert len(list_all(bridge)) == 1
        bridge.close_input()
        assert bridge.wait() == (0, b"")
    assert set(Path.cwd().iterdir()) == before


@pytest.mark.fault("F12", "I6")
def test_a_read_only_home_is_listed_from_memory(tmp_path: Path) -> None:
    """No index, no log, no decisions can be written; the answer is complete and the status 0."""
    words = ("unshare", "--map-root-user", "--mount")
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system lets nobody make a mount namespace")
    TOOLS["claude-code"].write(tmp_path, 1, ["eins", "zwei"])
    script = f'mount --bind "{tmp_path}" "{tmp_path}" && mount -o remount,ro,bind "{tmp_path}" && exec "$@"'
    done = run(tmp_path, "index", "--json", before=(*words, "sh", "-c", script, "sh"))
    assert (done.returncode, done.stdout.count('"title":"eins"')) == (0, 1), done.stderr
    assert not (tmp_path / ".cache").exists()


@pytest.mark.fault("F12")
def test_without_a_home_the_agent_answers(tmp_path: Path) -> None:
    """Also when HOME names nothing, is relative, or is not set."""
    for home in ({"HOME": str(tmp_path / "nothing")}, {"HOME": "relative"}, {"HOME": ""}):
        with agent(tmp_path, **{**home, "XDG_CACHE_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}) as bridge:
            bridge.request("session/list")
            bridge.close_input()
            assert bridge.wait() == (0, b"")


@pytest.mark.fault("F5")
def test_five_gigabytes_of_nothing_end(tmp_path: Path) -> None:
    """A sparse file is looked through without being held; the sessions beside it are listed and served."""
    TOOLS["qwen-code"].write(tmp_path, 1, ["eins", "zwei"])
    os.truncate(TOOLS["qwen-code"].write(tmp_path, 2, ["drei", "vier"]), 5 << 30)
    write_opencode(tmp_path, 1, ["eins", "zwei"])
    with agent(tmp_path) as bridge:
        listing = bridge.start("session/list")
        while "result" not in (message := bridge.next(60)) or message["id"] != listing:
            pass
        assert len(message["result"]["sessions"]) == 3
        assert peak_memory(bridge) < 128
