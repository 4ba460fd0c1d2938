"""What a process costs: CPU, wall time, peak memory, bytes read and files opened (Linux).

CPU is user and system time of the process and the children it waited for; a running one is asked through its CPU
clock, which is exact to the nanosecond. Bytes and files are counted under `strace`, in a run of their own, and only
those below the home.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

__all__ = ["Agent", "Cost", "bridge", "count_reads", "environment", "peak_rss", "run"]

ROOT = Path(__file__).parent.parent
_READ = re.compile(r"(?:read|pread64|readv)\(\d+<(?P<path>[^>]*)>.* = (?P<size>\d+)$")
_OPENED = re.compile(r"openat\(.*\) = \d+<(?P<path>[^>]*)>$")
_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command cost: seconds and MiB."""

    cpu: float
    wall: float
    rss: float


def bridge(*arguments: str) -> list[str]:
    """The command line of the bridge in this checkout."""
    return [sys.executable, "-m", "acp_history_bridge", *arguments]


def environment(home: Path, cache: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """A clean environment with a home and a cache of its own."""
    plain = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": f"{ROOT}:{ROOT / 'adapters'}"}
    places = {"HOME": str(home), "XDG_CACHE_HOME": str(cache), "XDG_STATE_HOME": str(cache / "state")}
    return {**plain, **places, "XDG_CONFIG_HOME": str(cache / "config"), **settings}


def run(argv: Sequence[str], env: Mapping[str, str]) -> Cost:
    """Run a command to its end."""
    start = time.perf_counter()
    process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{argv} ended with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - start, usage.ru_maxrss / 1024)


def count_reads(
    argv: Sequence[str], env: Mapping[str, str], below: Path, requests: Sequence[bytes]
) -> tuple[int, int] | None:
    """Bytes read and files opened below a directory until all requests are answered; None without `strace`."""
    if shutil.which("strace") is None:
        return None
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", errors="replace") as trace:
        filters = ["strace", "-f", "-y", "-qq", "-s", "0", "-e", "trace=openat,read,pread64", "-o", trace.name]
        with subprocess.Popen([*filters, *argv], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for request in requests:
                if process.stdin is not None and process.stdout is not None:
                    process.stdin.write(request)
                    process.stdin.flush()
                    process.stdout.readline()
        size, opened = 0, 0
        for line in trace:
            if (read := _READ.search(line)) and read["path"].startswith(str(below)):
                size += int(read["size"])
            elif (found := _OPENED.search(line)) and found["path"].startswith(str(below)):
                opened += not Path(found["path"]).is_dir()
    return size, opened


def peak_rss(process: int) -> float:
    """The most memory a running process has had, in MiB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


class Agent:
    """The agent as a client sees it: started, spoken to, measured.

    Attributes:
        started: When it was started.
        answered: Its CPU seconds when the last answer came; it goes on working behind an answer.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self.started = time.perf_counter()
        self._process = subprocess.Popen(bridge("acp"), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._next = 0
        self._waiting: dict[int, threading.Event] = {}
        self._answers: dict[int, tuple[float, Any]] = {}
        self.answered = 0.0
        self._listeners: list[Callable[[bytes, float], None]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        stream = self._process.stdin
        if stream is not None:
            stream.close()
        self._process.wait(_TIMEOUT)

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        return time.clock_gettime(((~self.pid) << 3) | 2)

    def bytes_read(self) -> int:
        """Bytes read so far, from whatever."""
        return int(Path(f"/proc/{self.pid}/io").read_text(encoding="ascii").split()[1])

    def listen(self, listener: Callable[[bytes, float], None]) -> None:
        """Call back for every notification."""
        self._listeners.append(listener)

    def start(self, method: str, **params: object) -> int:
        """Send a request and return its id."""
        self._next += 1
        self._waiting[self._next] = threading.Event()
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        return self._next

    def answer(self, request: int) -> tuple[float, Any]:
        """Wait for an answer: when it came, and its result."""
        if not self._waiting[request].wait(_TIMEOUT) or request not in self._answers:
            raise RuntimeError("the agent does not answer")
        return self._answers[request]

    def ask(self, method: str, **params: object) -> Any:  # noqa: ANN401 - JSON
        """Send a request and wait for its result."""
        return self.answer(self.start(method, **params))[1]

    def initialize(self) -> None:
        """Shake hands."""
        self.ask("initialize", protocolVersion=1, clientCapabilities={})

    def settle(self) -> None:
        """Wait until it has had nothing to do for a while."""
        before = -1.0
        while self.cpu() - before > 0.005:
            before = self.cpu()
            time.sleep(1)

    def _read(self) -> None:
        stream = self._process.stdout
        for line in stream or ():
            now = time.perf_counter()
            # Decoding a whole replay here would be measured as a slow reader.
            if b'"method":' in line[:200]:
                for listener in self._listeners:
                    listener(line, now)
                continue
            self.answered = self.cpu()
            message = json.loads(line)
            self._answers[message["id"]] = now, message.get("result")
            self._waiting[message["id"]].set()
        for waiting in self._waiting.values():  # it has ended, and nothing more will come
            waiting.set()
