"""The processes that run a learner's program once: temporary folder, limits, start, messages, end."""

import contextlib
import importlib.util
import os
import queue
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from regard.course.grading import serialisation, supervisor
from regard.course.grading.supervisor import remove

LimitName = Literal["wall", "cpu", "memory", "output", "file", "processes", "network"]


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """Limits of one run; time is counted from the end of loading the libraries."""

    wall: float = 5.0
    """Seconds of wall-clock time."""
    cpu: float = 5.0
    """Seconds of CPU time, summed over threads."""
    start: float = 60.0
    """Seconds to load the libraries, before the learner's source is read; a slow disk may need them."""
    memory: int = 1 << 30
    """Bytes in addition to what the libraries use; enough to import torch even where it is not needed."""
    output: int = 200_000
    """Bytes printed."""
    answers: int = 32 << 20
    """Bytes of all answers together."""
    file: int = 4 << 20
    """Bytes of one file in the folder of the run, and of all files together."""
    files: int = 100
    """The number of times files may be created or changed there."""


BETWEEN = 30.0
"""Seconds that a program may wait for a second request, while the expected answers are computed."""
NUMPY = RunLimits()
TORCH = RunLimits(wall=10.0, cpu=10.0)


def limits_for(track: str) -> RunLimits:
    """The default limits of a track.

    >>> limits_for("torch").wall
    10.0
    """
    return TORCH if track == "torch" else NUMPY


def enforced_limits() -> tuple[LimitName, ...]:
    """The limits that this system enforces: wall-clock time and output always.

    Windows has no resource limits, macOS none on memory, and only Linux can refuse processes and the network to native
    code too.
    """
    found: list[LimitName] = ["wall", "output"]
    if importlib.util.find_spec("resource") is not None:
        found += ["cpu", "file"]
    if sys.platform == "linux":
        found += ["memory", "processes", "network"]
    return tuple(found)


GRADING = Path(__file__).parent
PACKAGE = GRADING.parents[1]


def _copies() -> list[str]:
    """This package and `deep_learning`, and other copies of them on the import path, such as an installed one beside a
    checkout."""
    parents = [PACKAGE.parent, *(Path(entry) for entry in sys.path if entry)]
    folders = [parent / name for parent in parents for name in (PACKAGE.name, "deep_learning")]
    return list(dict.fromkeys(str(folder.resolve()) for folder in folders if (folder / "__init__.py").is_file()))


HIDDEN = _copies()
"""Folders hidden from a learner's program: they contain the solutions."""

MARK = "REGARD_RUN"
"""Environment variable that marks every process of a run; its value is the grader's pid and a random number."""
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "SYSTEMDRIVE", "NUMBER_OF_PROCESSORS")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class Cancellation:
    """Lets another thread end a run."""

    def __init__(self) -> None:
        self._lock, self._requested = threading.Lock(), False
        self._process: Process | None = None

    def cancel(self) -> None:
        with self._lock:
            self._requested = True
            if self._process is not None:
                self._process.cancel()

    def attach(self, process: "Process") -> None:
        with self._lock:
            self._process = process
            if self._requested:
                process.cancel()


_CANCELLATION: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextlib.contextmanager
def cancelled_on_error() -> Iterator[None]:
    """A run started inside this block, in a thread with a copy of this context, ends when an exception leaves the block
    (Ctrl-C, or a signal turned into an exception). Its own thread stops the program and removes the folder."""
    cancellation = Cancellation()
    token = _CANCELLATION.set(cancellation)
    try:
        yield
    except BaseException:
        cancellation.cancel()
        raise
    finally:
        _CANCELLATION.reset(token)


class Process:
    """A learner's program and its supervisor; a context manager that leaves no process and no file behind."""

    def __init__(self, request: bytes, limits: RunLimits, *, isolated: bool) -> None:
        self.limits, self.nonce = limits, secrets.token_bytes(serialisation.NONCE)
        self.ended, self.printed = "", bytearray()
        self._isolated = isolated
        self._mark = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._events: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self._unsent: queue.Queue[bytes] = queue.Queue()
        self._last = 0.0
        self._unsent.put(self.nonce + serialisation.framed(request))
        self._pidfds: list[int] = []

    def __enter__(self) -> "Process":
        if cancellation := _CANCELLATION.get():
            cancellation.attach(self)
        self.folder = Path(tempfile.mkdtemp(prefix="regard-"))
        try:
            self._start()
        except BaseException:
            remove(self.folder)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            remove(self.folder)

    def _start(self) -> None:
        code, work = self.folder / "code", self.folder / supervisor.WORK
        work.mkdir()
        _copy_child_modules(code)
        command = [sys.executable, "-I", "-B", "-u", "-X", "utf8", str(code)]
        if os.name == "posix":
            # Two requests, and our own work between them.
            last = str(self.limits.start + 2 * self.limits.wall + BETWEEN + 5)
            supervised = [str(os.getpid()), last, "01"[self._isolated], str(self.limits.file), os.pathsep.join(HIDDEN)]
            supervised.append(str(self.folder))
            command = [sys.executable, "-I", "-S", "-B", str(GRADING / "supervisor.py"), *supervised, *command]
        pipe = subprocess.PIPE
        self._supervisor = subprocess.Popen(
            command, cwd=work, env=self._environment(work), stdin=pipe, stdout=pipe, stderr=pipe
        )
        tasks = ((self._write, "stdin"), (self._listen, "stdout"), (self._collect, "stderr"))
        pipes = [(task, getattr(self._supervisor, pipe)) for task, pipe in tasks]
        self._threads = [threading.Thread(target=task, args=(pipe,), daemon=True) for task, pipe in pipes]
        for thread in self._threads:
            thread.start()

    def _environment(self, work: Path) -> dict[str, str]:
        """A minimal environment: no tokens, no display, no GPU, no user settings."""
        fixed = {MARK: self._mark, "PATH": os.defpath, "LANG": "C.UTF-8", "HOME": str(work), "TMPDIR": str(work)}
        fixed |= {"MPLBACKEND": "Agg", "CUDA_VISIBLE_DEVICES": "", **dict.fromkeys(_ONE_THREAD, "1")}
        return {name: os.environ[name] for name in _KEPT if name in os.environ} | fixed

    # --- pipes, each with its own thread, because Windows cannot wait for several ---

    def _write(self, pipe: IO[bytes]) -> None:
        with contextlib.suppress(OSError), pipe:  # it may end before it has read everything; its messages show why
            while data := self._unsent.get():
                pipe.write(data)
                pipe.flush()

    def _listen(self, pipe: IO[bytes]) -> None:
        left = self.limits.answers
        with pipe:
            while left > 0 and (chunk := os.read(pipe.fileno(), 1 << 16)):
                left -= len(chunk)
                self._events.put(("received", chunk))
            # Before the pipe is closed; otherwise the program's error about that might arrive first.
            self._events.put(("received", b"") if left > 0 else ("flood", b""))

    def _collect(self, pipe: IO[bytes]) -> None:
        left = self.limits.output
        with pipe:
            while left >= 0 and (chunk := os.read(pipe.fileno(), 1 << 16)):
                self.printed += chunk[:left]
                left -= len(chunk)
            if left < 0:
                self._events.put(("flood", b""))

    # --- messages ---

    def messages(self) -> Iterator[Any]:
        """The messages of the program in order, until it ends or must be stopped; `ended` is then the reason, "" if it
        ended by itself.

        The learner's time is counted from the first message, which follows the loading of the libraries, and again from
        each further request.
        """
        self._last = time.monotonic() + self.limits.start
        received, number = bytearray(), 0
        while True:
            try:
                what, chunk = self._events.get(timeout=max(self._last - time.monotonic(), 0))
            except queue.Empty:
                self.ended = "too-slow"
                return
            if what in ("flood", "cancelled"):
                self.ended = "too-much-output" if what == "flood" else what
                return
            if not chunk:
                return
            received += chunk
            while (message := self._message(received, number)) is not None:
                try:
                    value = serialisation.decode(message)
                except ValueError:
                    self.ended = "garbled"
                    return
                number += 1
                if number == 1:
                    self._open_pidfds()
                    self._last = time.monotonic() + self.limits.wall
                yield value
            if self.ended:
                return

    def request(self, data: bytes) -> None:
        """Send a further request to a program that has answered the one before it."""
        self._unsent.put(serialisation.framed(data))
        self._last = time.monotonic() + self.limits.wall

    def _message(self, received: bytearray, number: int) -> bytes | None:
        """Remove the next complete message from the received bytes; None if there is none yet, or it is invalid."""
        size = serialisation.HEADER.size
        if len(received) < size:
            return None
        nonce, index, length = serialisation.HEADER.unpack_from(received)
        if nonce != self.nonce or index != number or length > self.limits.answers:
            self.ended = "garbled"
            return None
        if len(received) < size + length:
            return None
        message = bytes(received[size : size + length])
        del received[: size + length]
        return message

    # --- end ---

    def stop(self) -> int | None:
        """End all processes and return the supervisor's exit code; None if the supervisor failed."""
        process = self._supervisor
        code: int | None = None
        self._unsent.put(b"")  # no further request: a program that waits for one ends
        try:
            # A program that has closed its pipe is ending; its supervisor needs a moment to find out why.
            code = process.wait(timeout=0 if self.ended else 0.2)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                code = process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                self._open_pidfds()
                process.kill()
                process.wait()
        if os.name == "posix" and code not in supervisor.CODES:
            code = None
            self._kill_pidfds()
            kill_marked(self._mark)
        self._close_pidfds()
        for thread in self._threads:
            thread.join(timeout=1)  # the last output may still be in the pipe
        return code

    def cancel(self) -> None:
        """End `messages` now; called from another thread."""
        self._events.put(("cancelled", b""))

    def _open_pidfds(self) -> None:
        """Open a pidfd for each descendant of the supervisor, in case it or the marks get lost. A plain pid
        might belong to another process by then."""
        if not hasattr(os, "pidfd_open"):
            return
        for pid in supervisor.descendants(self._supervisor.pid):
            with contextlib.suppress(OSError):
                self._pidfds.append(os.pidfd_open(pid))

    def _kill_pidfds(self) -> None:
        for process in self._pidfds:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        for process in self._pidfds:
            select.select([process], [], [], 2)  # readable once the process has ended

    def _close_pidfds(self) -> None:
        while self._pidfds:
            os.close(self._pidfds.pop())


def _copy_child_modules(code: Path) -> None:
    """Copy the modules that the learner's process needs into a folder of their own; the package itself is hidden."""
    package = code / "regard" / "course" / "grading"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").touch()
    for name in ("child.py", "serialisation.py", "restrictions.py", "linux_restrictions.py"):
        shutil.copyfile(GRADING / name, package / name)
    (code / "__main__.py").write_text("from regard.course.grading.child import main\n\nmain()\n", encoding="ascii")


def marked(mark: str) -> list[int]:
    """Processes with this mark in their environment; empty without /proc."""
    found, wanted = [], f"{MARK}={mark}".encode()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit() and int(name) != os.getpid():
            try:
                environment = Path("/proc", name, "environ").read_bytes()
            except OSError:
                continue
            if any(entry.startswith(wanted) for entry in environment.split(b"\0")):
                found.append(int(name))
    return found


def kill_marked(mark: str) -> None:
    """Kill the processes that a dead supervisor left behind, until none is left."""
    last = time.monotonic() + 5
    while time.monotonic() < last and (found := marked(mark)):
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
