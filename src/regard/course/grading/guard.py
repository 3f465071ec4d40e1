"""A small supervisor between the grader and a learner's program: it starts it, waits, and leaves no process behind.

Run as `python -I -S -B guard.py SECONDS FENCED HIDDEN COMMAND …`, with the standard library alone. It becomes the
parent of every process whose own parent dies, so that a daemon cannot escape, and kills until none is left. Its exit
code tells the grader why the program ended. It reads and writes none of the pipes.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time

DONE, OUT_OF_TIME, STOPPED, CPU, BY_SIGNAL, NOT_STARTED = 40, 41, 42, 43, 44, 45
"""Exit codes: the program left by itself; the last clock; the grader said so; CPU time; another signal; no program."""
CODES = frozenset((DONE, OUT_OF_TIME, STOPPED, CPU, BY_SIGNAL, NOT_STARTED))

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_NEW_USER, _NEW_NET, _NEW_MOUNTS = 0x10000000, 0x40000000, 0x00020000
_READ_ONLY = 1


def main(seconds: float, fenced: bool, hidden: list[str], command: list[str]) -> int:
    """Start the command in a session of its own, wait for its end or ours, and sweep up."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is not None:
        libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # a grader that is killed takes its program along
    heard = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    program = os.fork()
    if program == 0:
        try:
            _become(libc, fenced, hidden, command, heard)
        finally:
            os._exit(NOT_STARTED)
    null = os.open(os.devnull, os.O_RDWR)
    for pipe in (0, 1, 2):  # only the program holds the pipes: they end when it does
        os.dup2(null, pipe)
    code = _wait(program, seconds, heard)
    _sweep(program)
    return code


def _become(
    libc: "ctypes.CDLL | None", fenced: bool, hidden: list[str], command: list[str], heard: set[signal.Signals]
) -> None:
    """In the new process: its own session, dead when we die, without network and our package, then the program."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, heard)
    if libc is not None:
        libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if fenced:
            _hide(libc, hidden)
    os.execv(command[0], command)


def _hide(libc: ctypes.CDLL, hidden: list[str]) -> None:
    """Namespaces, where the system lets anybody have them: no network, and empty folders where our package is."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_USER | _NEW_NET | _NEW_MOUNTS) != 0:
        return
    # Root becomes nobody, who cannot lift the limits again; everybody else keeps their number.
    maps = {"uid_map": f"{user or 65534} {user} 1", "gid_map": f"{group or 65534} {group} 1"}
    for name, text in {"setgroups": "deny", **maps}.items():
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    for folder in hidden:
        libc.mount(b"none", os.fsencode(folder), b"tmpfs", _READ_ONLY, b"size=4k")


def _wait(program: int, seconds: float, heard: set[signal.Signals]) -> int:
    """Until the program ends, the grader says so, or the last clock runs out."""
    last, stopped = time.monotonic() + seconds, False
    while (left := last - time.monotonic()) > 0:
        ended, status = os.waitpid(program, os.WNOHANG)
        if ended:
            if os.WIFEXITED(status):
                return NOT_STARTED if os.WEXITSTATUS(status) == NOT_STARTED else DONE
            return CPU if os.WTERMSIG(status) == signal.SIGXCPU else BY_SIGNAL
        if stopped:
            return STOPPED  # asked again first, because its own end says more than being told to stop
        if sys.platform == "darwin":  # has no sigtimedwait
            time.sleep(0.01)
            stopped = bool(signal.sigpending() & heard - {signal.SIGCHLD})
        else:
            told = signal.sigtimedwait(heard, left)
            stopped = told is not None and told.si_signo != signal.SIGCHLD
    return OUT_OF_TIME


def _sweep(program: int) -> None:
    """Kill the program's group and all descendants, stopped ones too, until we have no child left."""
    last = time.monotonic() + 5
    while time.monotonic() < last:
        for target in (-program, *_descendants()):  # the group first, which cannot fork meanwhile
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(target, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def _descendants() -> list[int]:
    """Every process below us; none where there is no /proc."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
    found: list[int] = []
    level = {os.getpid()}
    while level := {pid for pid, parent in parents.items() if parent in level}:
        found.extend(level)
    return found


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2] == "1", sys.argv[3].split(os.pathsep), sys.argv[4:]))
