"""Supervisor process between the grader and a learner's program: starts it, waits for it, and kills what is left.

Run as `python -I -S -B supervisor.py GRADER SECONDS ISOLATED BYTES HIDDEN FOLDER COMMAND …`; standard library only. As
a subreaper it becomes the parent of orphaned descendants, so that a daemon cannot escape, and kills until none is left.
Where the system has namespaces, the program gets its own pid namespace, an empty disk of BYTES bytes, no network, and
an empty folder in place of our package. The exit code reports why the program ended. The supervisor does not use the
pipes. If the grader itself has ended, it removes the folder of the run.
"""

import contextlib
import ctypes
import os
import signal
import stat
import struct
import sys
import time
from collections.abc import Callable

DONE, OUT_OF_TIME, STOPPED, CPU, BY_SIGNAL, NOT_STARTED, OUT_OF_DISK = 40, 41, 42, 43, 44, 45, 46
"""Exit codes: the program exited; wall-clock timeout; stopped by the grader; CPU time; another signal; not started; too
much written to disk."""
CODES = frozenset((DONE, OUT_OF_TIME, STOPPED, CPU, BY_SIGNAL, NOT_STARTED, OUT_OF_DISK))

WORK = "work"
"""The program's working folder, inside the folder of the run."""
MOST_FILES = 1000
POLL = 0.05
"""Seconds between two checks of the bytes written."""

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_NEW_MOUNTS, _NEW_USER, _NEW_PIDS, _NEW_NET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXEC = 1, 2, 4, 8
_EXITING = 4
"""PF_EXITING, a flag in /proc/PID/stat."""
_MOUNT_SETATTR, _HERE, _RECURSIVE = 442, -100, 0x8000


def main(
    grader: int, seconds: float, isolated: bool, most: int, hidden: list[str], folder: str, command: list[str]
) -> int:
    """Start the command in its own session, wait until it ends or must be stopped, and kill all descendants."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is not None:
        libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # if the grader is killed, the program ends too
    if _has_ended(grader):  # killed before the signal was set up
        remove(folder)
        return NOT_STARTED
    signals = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    program = os.fork()
    if program == 0:
        try:
            _exec_program(libc, isolated, most, hidden, folder, command, signals)
        finally:
            os._exit(NOT_STARTED)
    _release_pipes()
    is_disk_full = (lambda: bytes_written(os.path.join(folder, WORK), program) > most) if folder else (lambda: False)
    code = _wait(program, seconds, signals, is_disk_full)
    _kill_all(program)
    if folder and _has_ended(grader):
        remove(folder)
    return code


def _has_ended(grader: int) -> bool:
    """Whether the grader has ended or is exiting.

    A killed process closes its pipes, which may end the program, before its children are reparented.
    """
    if os.getppid() != grader:
        return True
    try:
        with open(f"/proc/{grader}/stat", "rb") as file:
            flags = int(file.read().rpartition(b")")[2].split()[6])
    except (OSError, IndexError, ValueError):
        return False
    return bool(flags & _EXITING)


def _release_pipes() -> None:
    """Close our copies of the pipes: they end when the program ends or closes them."""
    null = os.open(os.devnull, os.O_RDWR)
    for pipe in (0, 1, 2):
        os.dup2(null, pipe)


# --- the program --------------------------------------------------------------------------------------------


def _exec_program(
    libc: "ctypes.CDLL | None",
    isolated: bool,
    most: int,
    hidden: list[str],
    folder: str,
    command: list[str],
    signals: set[signal.Signals],
) -> None:
    """In the child: new session, parent-death signal, namespaces if available, then exec the command."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    if libc is not None and isolated:
        unshared = _unshare(libc)
        if unshared:
            _die_with_parent(libc)
            if (first := os.fork()) != 0:
                os._exit(_wait_for_child(first))
            _die_with_parent(libc)
            _hide(libc, most, hidden, os.path.join(folder, WORK))
            # It has pid 1, which receives only signals it handles: SIGXCPU would be lost. So the program runs as its
            # child.
            if (program := os.fork()) != 0:
                os._exit(_wait_for_child(program))
            os.setsid()
    if libc is not None:
        _die_with_parent(libc)
    os.execv(command[0], command)


def _die_with_parent(libc: ctypes.CDLL) -> None:
    """Set the parent-death signal; each process needs this call, since fork does not inherit it."""
    libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _unshare(libc: ctypes.CDLL) -> bool:
    """Create new namespaces for our children; False if the system does not allow it."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_USER | _NEW_NET | _NEW_MOUNTS | _NEW_PIDS) != 0:
        return False
    # Root becomes the user nobody, which cannot raise the limits again; other users keep their uid.
    maps = {"uid_map": f"{user or 65534} {user} 1", "gid_map": f"{group or 65534} {group} 1"}
    for name, text in {"setgroups": "deny", **maps}.items():
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    return True


def _hide(libc: ctypes.CDLL, most: int, hidden: list[str], work: str) -> None:
    """Mounts visible only to the program; if one fails, the other layers still apply."""
    everything_read_only = struct.pack("=QQQQ", _READ_ONLY, 0, 0, 0)
    # Landlock protects the contents of files; a read-only mount also protects permissions and times.
    libc.syscall(_MOUNT_SETATTR, _HERE, b"/", _RECURSIVE, everything_read_only, len(everything_read_only))
    for folder in hidden:
        libc.mount(b"none", os.fsencode(folder), b"tmpfs", _READ_ONLY, b"size=4k")
    kept = _NO_SUID | _NO_DEVICES
    options = f"size={most},nr_inodes={MOST_FILES},mode=700".encode("ascii")
    if libc.mount(b"none", os.fsencode(work), b"tmpfs", kept, options) == 0:
        os.chdir(work)
    libc.mount(b"proc", b"/proc", b"proc", kept | _NO_EXEC, None)


def _wait_for_child(child: int) -> int:
    """Wait for the child and reap orphans; return the exit code that reports how it ended."""
    _release_pipes()
    while True:
        ended, status = os.wait()
        if ended == child:
            return _code(status)


def _code(status: int) -> int:
    if os.WIFEXITED(status):
        code = os.WEXITSTATUS(status)
        return code if code in (NOT_STARTED, CPU, BY_SIGNAL) else DONE
    return CPU if os.WTERMSIG(status) == signal.SIGXCPU else BY_SIGNAL


# --- end of the program -------------------------------------------------------------------------------------


def _wait(program: int, seconds: float, signals: set[signal.Signals], is_disk_full: Callable[[], bool]) -> int:
    """Wait until the program ends, the grader stops it, the disk is full, or the time is over."""
    last, stopped = time.monotonic() + seconds, False
    while (left := last - time.monotonic()) > 0:
        ended, status = os.waitpid(program, os.WNOHANG)
        if ended:
            return _code(status)
        if stopped:
            return STOPPED  # after another waitpid: the program's own end is more informative
        if is_disk_full():
            return OUT_OF_DISK
        if sys.platform == "darwin":  # has no sigtimedwait
            time.sleep(0.01)
            stopped = bool(signal.sigpending() & signals - {signal.SIGCHLD})
        else:
            received = signal.sigtimedwait(signals, min(left, POLL))
            stopped = received is not None and received.si_signo != signal.SIGCHLD
    return OUT_OF_TIME


def _kill_all(program: int) -> None:
    """Kill the program's process group and all descendants, also stopped ones, until no child is left."""
    last = time.monotonic() + 5
    while time.monotonic() < last:
        for target in (-program, *descendants(os.getpid())):  # the group first, which is killed atomically
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(target, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def descendants(above: int) -> list[int]:
    """All descendants of a process; empty without /proc."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
    found: list[int] = []
    level = {above}
    while level := {pid for pid, parent in parents.items() if parent in level}:
        found.extend(level)
    return found


# --- folder of the run --------------------------------------------------------------------------------------

_OPEN_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


def bytes_written(folder: str, program: int) -> int:
    """Bytes that the program has written to disk: by the size of its files, and by the kernel's counter, which includes
    unlinked files; sys.maxsize if there are too many files."""
    total, count = 0, 0
    try:
        with open(f"/proc/{program}/io", "rb") as file:
            total = sum(int(line.split()[1]) for line in file if line.startswith(b"write_bytes"))
    except (OSError, ValueError):
        total = 0
    shown, waiting = 0, []
    with contextlib.suppress(OSError):
        waiting.append(os.open(folder, _OPEN_FOLDER))
    try:
        while waiting and count <= MOST_FILES:
            place = waiting.pop()
            try:
                with os.scandir(place) as entries:
                    for entry in entries:
                        count += 1
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(_opened(entry.name, place))
                        shown += _blocks(entry)
            except OSError:  # just removed or made unreadable
                pass
            finally:
                os.close(place)
    finally:
        for place in waiting:
            os.close(place)
    return sys.maxsize if count > MOST_FILES else max(total // 4, shown)  # a file may be rewritten a few times


def _blocks(entry: "os.DirEntry[str]") -> int:
    try:
        return 512 * getattr(entry.stat(follow_symlinks=False), "st_blocks", 0)
    except OSError:
        return 0


def _opened(name: str, place: int) -> int:
    """Open a folder inside an open one; make it readable if needed."""
    try:
        return os.open(name, _OPEN_FOLDER, dir_fd=place)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=place)
        return os.open(name, _OPEN_FOLDER, dir_fd=place)


def remove(folder: "str | os.PathLike[str]") -> None:
    """Remove the folder and its contents at any depth, read-only or not; links are removed, never followed.

    Uses no long paths, whose length is limited: subfolders are moved up before their folder is removed.
    """
    if os.open not in os.supports_dir_fd:  # Windows
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        os.chmod(folder, 0o700)
        top = os.open(folder, _OPEN_FOLDER)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(folder)


def _empty(top: int) -> None:
    """Repeat passes, each of which moves subfolders one level up, until nothing is left or nothing changes."""
    before: list[str] = []
    while (names := os.listdir(top)) and names != before:
        before = names
        for name in names:
            with contextlib.suppress(OSError):
                _remove_one(name, top)


def _remove_one(name: str, top: int) -> None:
    if not _is_folder(name, top):
        os.unlink(name, dir_fd=top)
        return
    os.chmod(name, 0o700, dir_fd=top)
    place = os.open(name, _OPEN_FOLDER, dir_fd=top)
    try:
        for inner in os.listdir(place):
            if _is_folder(inner, place):
                os.chmod(inner, 0o700, dir_fd=place)  # only a writable folder can be moved
                os.rename(inner, f"moved-{os.urandom(12).hex()}", src_dir_fd=place, dst_dir_fd=top)
            else:
                os.unlink(inner, dir_fd=place)
    finally:
        os.close(place)
    os.rmdir(name, dir_fd=top)


def _is_folder(name: str, place: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode)


if __name__ == "__main__":
    _, parent, first, second, third, hidden_folders, run_folder, *rest = sys.argv
    folders = hidden_folders.split(os.pathsep)
    sys.exit(main(int(parent), float(first), second == "1", int(third), folders, run_folder, rest))
