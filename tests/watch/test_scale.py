import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.watch.listener import Listener, append, make_directory

PROJECT = Path(__file__).parents[2]


@pytest.mark.process_slow
@pytest.mark.fault("W1")
def test_every_append_in_five_thousand_directories_is_reported(tmp_path: Path) -> None:
    """A big archive is watched without losing an event and without work while nothing happens."""
    files = [append(make_directory(tmp_path / f"{number // 100}/{number}") / "a.jsonl") for number in range(5000)]
    with Listener(tmp_path) as listener:
        assert listener.modes == ["events"]
        for path in files:
            append(path)
        listener.until_marked(*files)
        begun = time.process_time()
        assert not listener.woken.wait(5)
        assert time.process_time() - begun < 0.05
        status = listener.watcher.status()
        assert (status.overflows, status.restarts, status.notices) == (0, 0, ())


@pytest.mark.process_slow
@pytest.mark.fault("W2")
def test_twenty_thousand_files_made_while_the_process_stood_still_are_found(tmp_path: Path) -> None:
    """The kernel drops about half of the events; the rescan that follows finds every file."""
    command = [sys.executable, str(Path(__file__).with_name("follow.py")), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", env=environment) as follower:
        try:
            assert follower.stdout is not None
            assert follower.stdout.readline() == "watching\n"
            follower.send_signal(signal.SIGSTOP)
            for number in range(20_000):
                (tmp_path / f"{number}.note").touch()
            follower.send_signal(signal.SIGCONT)
            counts, overflows = zip(*(map(int, line.split()) for line in _until(follower, "20000 ")), strict=True)
            assert counts[-1] == 20_000
            assert overflows[-1] >= 1
        finally:
            follower.kill()


def _until(follower: "subprocess.Popen[str]", beginning: str) -> list[str]:
    assert follower.stdout is not None
    lines: list[str] = []
    while not lines or not lines[-1].startswith(beginning):  # bounded by the suite's time limit
        lines.append(follower.stdout.readline())
        assert lines[-1], "it ended"
    return lines
