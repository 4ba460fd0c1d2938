"""The agent as a process: what reaches its pipes, and how it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.peers.bridge import MEMORY_AGENT, ROOT, BridgeProcess, running

pytestmark = pytest.mark.process

ENDLESS = (*MEMORY_AGENT, "100000000", "1000")


def start_load(bridge: BridgeProcess) -> object:
    """Begin to replay the long session, and wait until it is under way."""
    bridge.initialize()
    id_ = bridge.start("session/load", {"sessionId": "made:long", "cwd": "/"})
    while not bridge.updates("made:long", "user_message_chunk"):
        bridge.next()
    return id_


def test_a_session_from_hello_to_goodbye() -> None:
    """The first line is the answer to `initialize`; the end of input is a normal end, and stderr is empty."""
    with running() as bridge:
        bridge.initialize()
        assert len(bridge.messages) == 1
        assert len(bridge.request("session/list")["sessions"]) == 2
        bridge.load("made:long")
        assert len(bridge.updates("made:long", "user_message_chunk")) == 500
        bridge.close_input()
        assert bridge.wait() == (0, b"")


@pytest.mark.fault("J4")
def test_requests_in_a_file_are_all_answered() -> None:
    """J4: the end of input does not take the answers away, and the last line needs no newline."""
    requests = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
        b'{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"made:long","cwd":"/"}}\n'
        b'{"jsonrpc":"2.0","id":3,"method":"session/list"}'
    )
    done = subprocess.run(MEMORY_AGENT, input=requests, capture_output=True, cwd=ROOT, timeout=20, check=True)
    assert done.stderr == b""
    assert {line for line in done.stdout.splitlines() if b'"result"' in line and b'"id":2' in line}
    assert b'"id":3,"result"' in done.stdout
    assert done.stdout.count(b"message_chunk") == 1000


def test_an_empty_input_is_a_normal_end() -> None:
    """The registry's launch check does this."""
    done = subprocess.run(MEMORY_AGENT, stdin=subprocess.DEVNULL, capture_output=True, cwd=ROOT, timeout=5, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize("closed", ["input", "output", "both"])
@pytest.mark.fault("J6")
def test_a_client_that_leaves_during_a_replay_ends_it(closed: str) -> None:
    """J6: within two seconds, with code 0 and no traceback."""
    with running(ENDLESS) as bridge:
        start_load(bridge)
        assert bridge.process.stdin is not None
        assert bridge.process.stdout is not None
        if closed != "output":
            bridge.process.stdin.close()
        if closed != "input":
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, bridge.process.stdout.fileno())
            os.close(null)
        assert bridge.wait(3.0) == (0, b"")


@pytest.mark.fault("J6")
def test_a_reader_that_is_stuck_holds_nobody_up() -> None:
    """Invariant 7: a worker thread that cannot be stopped does not keep the process alive."""
    with running(env={**os.environ, "STUCK": "1"}) as bridge:
        bridge.initialize()
        bridge.start("session/load", {"sessionId": "made:stuck", "cwd": "/"})
        bridge.next()
        bridge.close_input()
        assert bridge.wait() == (0, b"")


@pytest.mark.fault("J5", "J6")
def test_a_client_that_stops_reading_and_then_leaves_is_noticed() -> None:
    """J6: the writer hangs in a full pipe, and the process ends all the same."""
    agent = subprocess.Popen(
        ENDLESS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, bufsize=0
    )
    with agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        assert agent.stderr is not None
        agent.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n')
        agent.stdin.write(
            b'{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"made:long","cwd":"/"}}\n'
        )
        agent.stdout.read(1000)
        memory = resident(agent.pid)
        agent.stdin.close()
        assert agent.wait(2.5) == 0
        assert agent.stderr.read() == b""
        assert memory < 150_000


def resident(pid: int) -> int:
    """A process's memory in KiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("phase", ["idle", "replay"])
@pytest.mark.fault("J7")
def test_signals_end_it_with_the_input_open(number: signal.Signals, phase: str) -> None:
    """J7: within two seconds, and a second signal changes nothing."""
    with running(ENDLESS) as bridge:
        if phase == "replay":
            start_load(bridge)
        else:
            bridge.initialize()
        bridge.process.send_signal(number)
        bridge.process.send_signal(number)
        assert bridge.wait() == (0, b"")


@pytest.mark.fault("J8")
def test_stray_output_never_reaches_the_client() -> None:
    """J8: print, a write to descriptor 1 and a child's output land on stderr."""
    with running(env={**os.environ, "NOISY": "1"}) as bridge:
        bridge.initialize()
        bridge.request("session/list")
        bridge.close_input()
        code, stderr = bridge.wait()
        assert code == 0
        assert sorted(stderr.splitlines()) == [b"a stray child", b"a stray print", b"a stray write"]


@pytest.mark.fault("J4")
def test_frames_up_to_the_limit_are_served_and_longer_ones_skipped() -> None:
    """J4: 64 MiB is a frame, more is -32600; what comes after is served, and the memory is free again."""
    with running() as bridge:
        bridge.initialize()
        for size, code in ((63 * 2**20, -32601), (65 * 2**20, -32600)):
            bridge.send_bytes(b'{"jsonrpc":"2.0","id":9,"method":"no/such","params":{"x":"' + b"x" * size + b'"}}\n')
            assert bridge.next()["error"]["code"] == code
        assert bridge.request("session/list")["sessions"]


@pytest.mark.fault("J5")
def test_a_cancel_reaches_a_blocked_replay() -> None:
    """J5: requests are read while the client does not read."""
    with running(ENDLESS) as bridge:
        id_ = start_load(bridge)
        bridge.notify("$/cancel_request", {"requestId": id_})
        assert bridge.answer(id_)["error"]["code"] == -32800
        bridge.close_input()
        assert bridge.wait() == (0, b"")


def test_initialize_loads_nothing_heavy() -> None:
    """An editor waits for it: no pydantic, no watchdog, no rich, and the histories are not even opened."""
    program = """
import sys, threading
from contextlib import asynccontextmanager
from acp_history_bridge.protocol.server import serve
from acp_history_bridge.settings import Settings

@asynccontextmanager
async def source():
    loaded = {"pydantic", "watchdog", "rich", "sqlite3"} & set(sys.modules)
    print("loaded:", *loaded)
    raise OSError
    yield

import logging
logging.getLogger().addHandler(logging.NullHandler())
sys.exit(serve(source, Settings()))
"""
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run((sys.executable, "-c", program), input=hello, capture_output=True, timeout=10, check=True)
    assert done.stdout.count(b"\n") == 1
    assert done.stderr.strip() == b"loaded:"


def test_initialize_is_answered_soon() -> None:
    """Well under a second even on a busy machine."""
    with running() as bridge:
        begin = time.monotonic()
        bridge.initialize()
        assert time.monotonic() - begin < 2
