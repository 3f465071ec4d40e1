"""A small supervisor between the grader and a learner's program: it starts it, waits, and leaves nothing behind.

Run as `python -I -S -B guard.py GRADER SECONDS FENCED BYTES HIDDEN FOLDER COMMAND …`, with the standard library alone.
It becomes the parent of every process whose own parent dies, so that a daemon cannot escape, and kills until none is
left. Where the system has namespaces, the program gets processes of its own (it can name no other, and dies with the
first of them), an empty disk of so many bytes, no network, and nothing where our package is. Its exit code tells the
grader why the program ended. It reads and writes none of the pipes. Where the grader itself is gone, it removes the
folder of the run.
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
"""Exit codes: the program left by itself; the last clock; the grader said so; CPU time; another signal; no program;
more files than it may write."""
CODES = frozenset((DONE, OUT_OF_TIME, STOPPED, CPU, BY_SIGNAL, NOT_STARTED, OUT_OF_DISK))

WORK = "work"
"""The program's own folder, inside of the run's."""
MOST_FILES = 1000
LOOK = 0.05
"""Seconds between two looks at how much is written."""

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_NEW_MOUNTS, _NEW_USER, _NEW_PIDS, _NEW_NET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXEC = 1, 2, 4, 8
_EXITING = 4
"""Of the flags in /proc/PID/stat."""
_MOUNT_SETATTR, _HERE, _RECURSIVE = 442, -100, 0x8000


def main(
    grader: int, seconds: float, fenced: bool, most: int, hidden: list[str], folder: str, command: list[str]
) -> int:
    """Start the command in a session of its own, wait for its end or ours, and sweep up."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is not None:
        libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # a grader that is killed takes its program along
    if _is_gone(grader):  # killed before we could ask for that
        remove(folder)
        return NOT_STARTED
    heard = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    program = os.fork()
    if program == 0:
        try:
            _become(libc, fenced, most, hidden, folder, command, heard)
        finally:
            os._exit(NOT_STARTED)
    _leave_the_pipes()
    is_over = (lambda: written(os.path.join(folder, WORK), program) > most) if folder else (lambda: False)
    code = _wait(program, seconds, heard, is_over)
    _sweep(program)
    if folder and _is_gone(grader):
        remove(folder)
    return code


def _is_gone(grader: int) -> bool:
    """Whether the grader has ended, or is ending.

    A process that is killed closes its pipes, and so may end the program, before its children get another parent.
    """
    if os.getppid() != grader:
        return True
    try:
        with open(f"/proc/{grader}/stat", "rb") as file:
            flags = int(file.read().rpartition(b")")[2].split()[6])
    except (OSError, IndexError, ValueError):
        return False
    return bool(flags & _EXITING)


def _leave_the_pipes() -> None:
    """Only the program holds them: they end when it does, or when it closes them."""
    null = os.open(os.devnull, os.O_RDWR)
    for pipe in (0, 1, 2):
        os.dup2(null, pipe)


# --- the program --------------------------------------------------------------------------------------------


def _become(
    libc: "ctypes.CDLL | None",
    fenced: bool,
    most: int,
    hidden: list[str],
    folder: str,
    command: list[str],
    heard: set[signal.Signals],
) -> None:
    """In the new process: its own session, dead when we die, in namespaces where there are any, then the program."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, heard)
    if libc is not None and fenced:
        alone = _unshare(libc)
        if alone:
            _die_with_parent(libc)
            if (first := os.fork()) != 0:
                os._exit(_reaped(first))
            _die_with_parent(libc)
            _hide(libc, most, hidden, os.path.join(folder, WORK))
            # Its number is 1, and the kernel hands no signal to that one unless it waits for it: SIGXCPU would be
            # lost. So it stays behind, and the program is its child.
            if (program := os.fork()) != 0:
                os._exit(_reaped(program))
            os.setsid()
    if libc is not None:
        _die_with_parent(libc)
    os.execv(command[0], command)


def _die_with_parent(libc: ctypes.CDLL) -> None:
    """Asked for in each process, since a new one does not inherit it."""
    libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _unshare(libc: ctypes.CDLL) -> bool:
    """New namespaces for our children, where the system lets anybody have them."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_USER | _NEW_NET | _NEW_MOUNTS | _NEW_PIDS) != 0:
        return False
    # Root becomes nobody, who cannot lift the limits again; everybody else keeps their number.
    maps = {"uid_map": f"{user or 65534} {user} 1", "gid_map": f"{group or 65534} {group} 1"}
    for name, text in {"setgroups": "deny", **maps}.items():
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    return True


def _hide(libc: ctypes.CDLL, most: int, hidden: list[str], work: str) -> None:
    """Mounts that only the program sees; one that is refused leaves the rest to the other layers."""
    everything_read_only = struct.pack("=QQQQ", _READ_ONLY, 0, 0, 0)
    # Landlock keeps files from being written; this keeps their permissions and times too.
    libc.syscall(_MOUNT_SETATTR, _HERE, b"/", _RECURSIVE, everything_read_only, len(everything_read_only))
    for folder in hidden:
        libc.mount(b"none", os.fsencode(folder), b"tmpfs", _READ_ONLY, b"size=4k")
    kept = _NO_SUID | _NO_DEVICES
    options = f"size={most},nr_inodes={MOST_FILES},mode=700".encode("ascii")
    if libc.mount(b"none", os.fsencode(work), b"tmpfs", kept, options) == 0:
        os.chdir(work)
    libc.mount(b"proc", b"/proc", b"proc", kept | _NO_EXEC, None)


def _reaped(child: int) -> int:
    """Wait for the child, and for whatever it left; a code that says how it ended."""
    _leave_the_pipes()
    while True:
        ended, status = os.wait()
        if ended == child:
            return _code(status)


def _code(status: int) -> int:
    if os.WIFEXITED(status):
        code = os.WEXITSTATUS(status)
        return code if code in (NOT_STARTED, CPU, BY_SIGNAL) else DONE
    return CPU if os.WTERMSIG(status) == signal.SIGXCPU else BY_SIGNAL


# --- its end ------------------------------------------------------------------------------------------------


def _wait(program: int, seconds: float, heard: set[signal.Signals], is_over: Callable[[], bool]) -> int:
    """Until the program ends, the grader says so, the disk is full, or the last clock runs out."""
    last, stopped = time.monotonic() + seconds, False
    while (left := last - time.monotonic()) > 0:
        ended, status = os.waitpid(program, os.WNOHANG)
        if ended:
            return _code(status)
        if stopped:
            return STOPPED  # asked again first, because its own end says more than being told to stop
        if is_over():
            return OUT_OF_DISK
        if sys.platform == "darwin":  # has no sigtimedwait
            time.sleep(0.01)
            stopped = bool(signal.sigpending() & heard - {signal.SIGCHLD})
        else:
            told = signal.sigtimedwait(heard, min(left, LOOK))
            stopped = told is not None and told.si_signo != signal.SIGCHLD
    return OUT_OF_TIME


def _sweep(program: int) -> None:
    """Kill the program's group and all descendants, stopped ones too, until we have no child left."""
    last = time.monotonic() + 5
    while time.monotonic() < last:
        for target in (-program, *descendants(os.getpid())):  # the group first, which cannot fork meanwhile
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(target, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def descendants(above: int) -> list[int]:
    """Every process below that one; none where there is no /proc."""
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


# --- its folder ---------------------------------------------------------------------------------------------

_OPEN_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


def written(folder: str, program: int) -> int:
    """Bytes that the program has written to disk, as its files show and as the kernel counted, which sees files without
    a name too; more than any limit where there are too many files."""
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
            except OSError:  # removed, or made unreadable, in this very moment
                pass
            finally:
                os.close(place)
    finally:
        for place in waiting:
            os.close(place)
    return sys.maxsize if count > MOST_FILES else max(total // 4, shown)  # a file may be written anew a few times


def _blocks(entry: "os.DirEntry[str]") -> int:
    try:
        return 512 * getattr(entry.stat(follow_symlinks=False), "st_blocks", 0)
    except OSError:
        return 0


def _opened(name: str, place: int) -> int:
    """A folder inside of an open one, made readable where it is not."""
    try:
        return os.open(name, _OPEN_FOLDER, dir_fd=place)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=place)
        return os.open(name, _OPEN_FOLDER, dir_fd=place)


def remove(folder: "str | os.PathLike[str]") -> None:
    """Remove the folder with all that is in it, however deep, made read-only or not; links are removed, never followed.

    Nothing is named by a path, whose length has a limit: a folder's own folders are moved up before it is removed.
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
    """Pass after pass, each of which brings what is below a level up; until nothing is left, or nothing more goes."""
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
                os.chmod(inner, 0o700, dir_fd=place)  # a folder can be moved only if it may be written
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
