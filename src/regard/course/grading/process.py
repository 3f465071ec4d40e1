"""The processes of one run: a folder of their own, their limits, their start, what they send, their end."""

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

Hold = Literal["wall", "cpu", "memory", "output", "file", "processes", "network"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one run; time is counted from the moment the libraries are loaded."""

    wall: float = 5.0
    """Seconds by the clock."""
    cpu: float = 5.0
    """Seconds of calculation, which threads use up together; told apart from waiting."""
    start: float = 60.0
    """Seconds to load the libraries, which a slow disk may need; the learner's text is not read yet."""
    memory: int = 1 << 30
    """Bytes on top of what the libraries take; room enough to import torch where it is not needed."""
    output: int = 200_000
    """Bytes printed."""
    answers: int = 32 << 20
    """Bytes sent back as answers, all together."""
    file: int = 4 << 20
    """Bytes of one file in the folder of the run, and of all of them together."""
    files: int = 100
    """How often files may be made or changed there."""


NUMPY = Limits()
TORCH = Limits(wall=10.0, cpu=10.0)


def limits_for(track: str) -> Limits:
    """What is usual for a track.

    >>> limits_for("torch").wall
    10.0
    """
    return TORCH if track == "torch" else NUMPY


def holding() -> tuple[Hold, ...]:
    """The limits that this system enforces. Clock and output always; Windows has no resource limits, macOS none on
    memory, and only Linux lets processes and the network be refused for native code too."""
    found: list[Hold] = ["wall", "output"]
    if importlib.util.find_spec("resource") is not None:
        found += ["cpu", "file"]
    if sys.platform == "linux":
        found += ["memory", "processes", "network"]
    return tuple(found)


OURS = Path(__file__).parent
PACKAGE = OURS.parents[1]
HIDDEN = [str(folder.resolve()) for folder in (PACKAGE, PACKAGE.with_name("deep_learning")) if folder.is_dir()]
"""Folders that a learner's program does not see: the answers are in there."""

MARK = "REGARD_RUN"
"""In the environment of every process of a run, with the grader's number and something random."""
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "SYSTEMDRIVE", "NUMBER_OF_PROCESSORS")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class Cancellation:
    """One run that another thread may want to end."""

    def __init__(self) -> None:
        self._lock, self._asked = threading.Lock(), False
        self._process: Process | None = None

    def cancel(self) -> None:
        with self._lock:
            self._asked = True
            if self._process is not None:
                self._process.cancel()

    def attach(self, process: "Process") -> None:
        with self._lock:
            self._process = process
            if self._asked:
                process.cancel()


_CANCELLATION: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextlib.contextmanager
def cancelled_on_error() -> Iterator[None]:
    """A run that is started inside, in another thread with a copy of this context, ends when an exception leaves here:
    Ctrl-C, or a signal that was made one. Its own thread stops the program and removes the folder."""
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
    """A learner's program and its guard; a context manager that leaves nothing behind."""

    def __init__(self, request: bytes, limits: Limits, *, fenced: bool) -> None:
        self.limits, self.nonce = limits, secrets.token_bytes(16)
        self.ended, self.printed = "", bytearray()
        self._request, self._fenced = request, fenced
        self._mark = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._events: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self._held: list[int] = []

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
        _copy_ours(code)
        command = [sys.executable, "-I", "-B", "-u", "-X", "utf8", str(code)]
        if os.name == "posix":
            last = str(self.limits.start + self.limits.wall + 5)
            supervised = [str(os.getpid()), last, "01"[self._fenced], str(self.limits.file), os.pathsep.join(HIDDEN)]
            supervised.append(str(self.folder))
            command = [sys.executable, "-I", "-S", "-B", str(OURS / "supervisor.py"), *supervised, *command]
        pipe = subprocess.PIPE
        self._guard = subprocess.Popen(
            command, cwd=work, env=self._environment(work), stdin=pipe, stdout=pipe, stderr=pipe
        )
        tasks = ((self._write, "stdin"), (self._listen, "stdout"), (self._collect, "stderr"))
        pipes = [(task, getattr(self._guard, pipe)) for task, pipe in tasks]
        self._threads = [threading.Thread(target=task, args=(pipe,), daemon=True) for task, pipe in pipes]
        for thread in self._threads:
            thread.start()

    def _environment(self, work: Path) -> dict[str, str]:
        """Next to nothing of ours: no tokens, no display, no graphics card, no user's settings."""
        fixed = {MARK: self._mark, "PATH": os.defpath, "LANG": "C.UTF-8", "HOME": str(work), "TMPDIR": str(work)}
        fixed |= {"MPLBACKEND": "Agg", "CUDA_VISIBLE_DEVICES": "", **dict.fromkeys(_ONE_THREAD, "1")}
        return {name: os.environ[name] for name in _KEPT if name in os.environ} | fixed

    # --- pipes, each with a thread of its own, because Windows can wait for one only ---

    def _write(self, pipe: IO[bytes]) -> None:
        with contextlib.suppress(OSError), pipe:  # it may end before it has read all; what it says will tell
            pipe.write(self.nonce + self._request)

    def _listen(self, pipe: IO[bytes]) -> None:
        left = self.limits.answers
        with pipe:
            while left > 0 and (chunk := os.read(pipe.fileno(), 1 << 16)):
                left -= len(chunk)
                self._events.put(("heard", chunk))
            # Before the pipe is closed, or the program's complaint about that might be heard first.
            self._events.put(("heard", b"") if left > 0 else ("flood", b""))

    def _collect(self, pipe: IO[bytes]) -> None:
        left = self.limits.output
        with pipe:
            while left >= 0 and (chunk := os.read(pipe.fileno(), 1 << 16)):
                self.printed += chunk[:left]
                left -= len(chunk)
            if left < 0:
                self._events.put(("flood", b""))

    # --- what it says ---

    def messages(self) -> Iterator[Any]:
        """Its messages in order, until it ends or must be ended; `ended` then tells why, "" for by itself.

        Time for the learner's text is counted from the first message on, which says that the libraries are loaded.
        """
        last = time.monotonic() + self.limits.start
        heard, number = bytearray(), 0
        while True:
            try:
                what, chunk = self._events.get(timeout=max(last - time.monotonic(), 0))
            except queue.Empty:
                self.ended = "too-slow"
                return
            if what in ("flood", "cancelled"):
                self.ended = "too-much-output" if what == "flood" else what
                return
            if not chunk:
                return
            heard += chunk
            while (message := self._message(heard, number)) is not None:
                try:
                    value = serialisation.decode(message)
                except ValueError:
                    self.ended = "garbled"
                    return
                number += 1
                if number == 1:
                    self._hold()
                    last = time.monotonic() + self.limits.wall
                yield value
            if self.ended:
                return

    def _message(self, heard: bytearray, number: int) -> bytes | None:
        """The next whole message, taken out of what was heard; None where there is none yet, or none of ours."""
        size = serialisation.HEADER.size
        if len(heard) < size:
            return None
        nonce, index, length = serialisation.HEADER.unpack_from(heard)
        if nonce != self.nonce or index != number or length > self.limits.answers:
            self.ended = "garbled"
            return None
        if len(heard) < size + length:
            return None
        message = bytes(heard[size : size + length])
        del heard[: size + length]
        return message

    # --- its end ---

    def stop(self) -> int | None:
        """End everything, and say the guard's exit code; None where the guard could not do its work."""
        process = self._guard
        code: int | None = None
        try:
            # A program that has closed its pipe is ending; its guard needs a moment to see why.
            code = process.wait(timeout=0 if self.ended else 0.2)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                code = process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                self._hold()
                process.kill()
                process.wait()
        if os.name == "posix" and code not in supervisor.CODES:
            code = None
            self._kill()
            kill_marked(self._mark)
        self._let_go()
        for thread in self._threads:
            thread.join(timeout=1)  # what was printed last is still on its way
        return code

    def cancel(self) -> None:
        """From another thread: let `messages` end now."""
        self._events.put(("cancelled", b""))

    def _hold(self) -> None:
        """Keep hold of the processes below the guard, whatever becomes of it and of their marks; a number alone might
        be another process's by the time it is used."""
        if not hasattr(os, "pidfd_open"):
            return
        for pid in supervisor.descendants(self._guard.pid):
            with contextlib.suppress(OSError):
                self._held.append(os.pidfd_open(pid))

    def _kill(self) -> None:
        for process in self._held:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        for process in self._held:
            select.select([process], [], [], 2)  # ready once it has ended

    def _let_go(self) -> None:
        while self._held:
            os.close(self._held.pop())


def _copy_ours(code: Path) -> None:
    """The few files that the learner's process needs, in a folder of their own: the package itself is out of sight."""
    room = code / "regard" / "course" / "grading"
    room.mkdir(parents=True)
    for folder in (room, room.parent, room.parent.parent):
        (folder / "__init__.py").touch()
    for name in ("child.py", "serialisation.py", "restrictions.py", "kernel_rules.py"):
        shutil.copyfile(OURS / name, room / name)
    (code / "__main__.py").write_text("from regard.course.grading.child import main\n\nmain()\n", encoding="ascii")


def marked(mark: str) -> list[int]:
    """Processes with this mark in their environment; none where there is no /proc."""
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
    """Kill what a dead guard left behind, until nothing is left."""
    last = time.monotonic() + 5
    while time.monotonic() < last and (found := marked(mark)):
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
