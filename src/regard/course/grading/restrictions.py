"""What a learner's program may not do, put up in its own process just before its text is loaded.

Three layers, each as far as the system has it: resource limits; the kernel's own refusals (`system_calls` by seccomp,
`file_access` by Landlock), which hold for native code too; and an audit hook, which holds everywhere and says in a
friendly line what was refused. It guards against accidents and lazy cheating. Read by the learner's process: standard
library only, and of ours only the two files named.
"""

import ctypes
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from regard.course.grading.kernel_rules import drop_capabilities, libraries, refuse_system_calls, stay_below


class RefusedError(PermissionError):
    """Something that a learner's program may not do; `what` is the key of the sentence."""

    def __init__(self, what: str, sentence: str) -> None:
        super().__init__(sentence)
        self.what = what


def put_up(file: str, limits: Mapping[str, Any], hidden: Sequence[str], words: Mapping[str, str]) -> list[str]:
    """All layers, around the folder that we are in; a layer that this system does not have is left out.

    `file` is the learner's text in tracebacks, `hidden` are folders that it may not read. Returns what the kernel
    keeps from native code too: "calls" (signals, processes, sockets), "files" (reading what is hidden).
    """
    home, holds = os.path.realpath(os.getcwd()), []
    _limit(limits)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        drop_capabilities(libc)
        holds += ["files"] * stay_below(libc, home, hidden, libraries())
        holds += ["calls"] * refuse_system_calls(libc)
    holds += ["files"] * all(_is_empty(folder) for folder in hidden)  # the guard could put something over them
    sys.meta_path.insert(0, _Hidden(words, () if "files" in holds else _OPENERS, file))
    sys.addaudithook(_hook(file, home, tuple(hidden), dict(words), int(limits["files"]), "files" not in holds))
    return sorted(set(holds))


def _is_empty(folder: str) -> bool:
    try:
        return not os.listdir(folder)
    except OSError:
        return False


# --- limits -------------------------------------------------------------------------------------------------


def _limit(limits: Mapping[str, Any]) -> None:
    """Limits on top of what loading the libraries has used; a refused one must not fail the run."""
    try:
        import resource
    except ImportError:  # Windows
        return
    cpu = math.ceil(time.process_time() + limits["cpu"])
    wanted = {
        "RLIMIT_CPU": (cpu, cpu + 1),  # SIGXCPU first, which can be ignored; then SIGKILL, which cannot
        "RLIMIT_AS": (_mapped() + limits["memory"],) * 2,
        "RLIMIT_FSIZE": (limits["file"],) * 2,
        "RLIMIT_NOFILE": (64, 64),
        "RLIMIT_CORE": (0, 0),
    }
    for name, (soft, hard) in wanted.items():
        most = resource.getrlimit(getattr(resource, name))[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        try:
            resource.setrlimit(getattr(resource, name), (soft, hard))
        except (ValueError, OSError):  # macOS refuses RLIMIT_AS
            continue


def _mapped() -> int:
    """Bytes of address space in use: a torch built for CUDA maps gigabytes before anybody asks for one."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 4 << 30


# --- imports ------------------------------------------------------------------------------------------------


# Modules whose C code opens the files that it is told to, where no audit event says so.
_OPENERS = (
    *("readline", "sqlite3", "_sqlite3", "dbm", "_gdbm", "_dbm", "tkinter", "_tkinter", "ssl", "_ssl"),
    *("multiprocessing", "_multiprocessing", "_posixshmem"),
)


class _Hidden:
    """A finder that refuses our own packages, also to importlib, which tells no audit hook what it imports; and, to the
    learner's own text, `openers`."""

    def __init__(self, words: Mapping[str, str], openers: tuple[str, ...], file: str) -> None:
        self.words, self.openers, self.file = words, openers, file

    def find_spec(self, name: str, *_: Any) -> None:
        first = name.partition(".")[0]
        if first in ("regard", "deep_learning"):
            raise RefusedError("package", self.words["package"])
        if first in self.openers and not self._by_library():
            raise RefusedError("module", self.words["module"])

    def _by_library(self) -> bool:
        frame = sys._getframe(2)
        while frame.f_back is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        return frame.f_code.co_filename != self.file and not frame.f_code.co_filename.startswith("<")


# --- the audit hook -----------------------------------------------------------------------------------------

# What is refused, whatever its arguments: audit events by the key of the sentence.
_REFUSED = {
    "process": "subprocess.Popen os.fork os.forkpty os.posix_spawn os.spawn os.exec os.system os.startfile pty.spawn "
    "webbrowser.open _winapi.CreateProcess",
    "network": "socket.__new__ socket.connect socket.bind socket.getaddrinfo socket.gethostbyname socket.sendto "
    "socket.gethostbyaddr socket.getnameinfo socket.sendmsg urllib.Request ftplib.connect smtplib.connect",
    "signal": "os.kill os.killpg signal.pthread_kill",
    # A second interpreter has no audit hook.
    "inside": "gc.get_objects gc.get_referrers gc.get_referents sys._current_frames cpython.PyInterpreterState_New",
    "limits": "resource.setrlimit resource.prlimit",
    "native": "ctypes.dlopen ctypes.dlsym ctypes.dlsym/handle ctypes.call_function ctypes.cdata ctypes.string_at "
    "ctypes.wstring_at",
}
# The same, frozen: what a hook holds in a dict, a program could empty.
_ALWAYS = tuple((what, frozenset(events.split())) for what, events in _REFUSED.items())
_BY_COMMAND = frozenset({"fcntl.fcntl", "fcntl.ioctl"})
_SIGNALLING = frozenset({8, 10, 15, 1024, 1026})  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
_HARMLESS = frozenset({0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451})  # as in `system_calls`
_SET_FLAGS, _ASYNC = 4, getattr(os, "O_ASYNC", 0x2000)
# What changes files: (event, which argument is the path, which is its folder's descriptor).
_CHANGES = (
    ("os.remove", 0, 1),
    ("os.rmdir", 0, 1),
    ("os.mkdir", 0, 2),
    ("os.rename", 0, 2),
    ("os.rename", 1, 3),
    ("os.link", 0, 2),
    ("os.link", 1, 3),
    ("os.symlink", 1, 2),
    ("os.chmod", 0, 2),
    ("os.chown", 0, 3),
    ("os.utime", 0, 3),
    ("os.truncate", 0, None),
    ("os.setxattr", 0, None),
    ("sqlite3.connect", 0, None),
)
_WATCHED = frozenset({"open"}).union(
    _BY_COMMAND, *(events for _, events in _ALWAYS), (change[0] for change in _CHANGES)
)

Refuse = Callable[[str], None]


def _hook(
    file: str, home: str, hidden: tuple[str, ...], words: dict[str, str], files: int, alone: bool
) -> Callable[[str, Any], None]:
    """The hook; `files` is how often it lets files be made or changed, `alone` that the kernel keeps none from it.

    It holds all that it needs itself, so that replacing a name elsewhere does not change it.
    """
    watched, always, changes, refusal, changed = _WATCHED, _ALWAYS, _CHANGES, RefusedError, 0
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

    def refuse(what: str) -> None:
        raise refusal(what, words[what])

    may_read, may_change, may_lead = _places(home, hidden, refuse, alone)
    by_library, signals, by_command = _caller(file), _signals, _BY_COMMAND

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal changed
        if event not in watched:
            return
        if event == "open":
            may_read(args[0], args[1] is None)
            if args[2] & writing:
                may_change(args[0], -1)
                changed += 1
        elif event in by_command:
            if signals(event, args):
                refuse("signal")
        else:
            for what, events in always:
                if event in events and not (what == "native" and by_library()):
                    refuse(what)
            for name, path, folder in changes:
                if event == name:
                    if event == "os.symlink":
                        may_lead(args[0])
                    may_change(args[path], -1 if folder is None else args[folder])
                    changed += event != "os.remove"
        if changed > files:
            refuse("files")

    return hook


def _signals(
    event: str,
    args: tuple[Any, ...],
    signalling: frozenset[int] = _SIGNALLING,
    harmless: frozenset[int] = _HARMLESS,
    flags: tuple[int, int] = (_SET_FLAGS, _ASYNC),
) -> bool:
    """Whether fcntl or ioctl is asked for what makes the kernel send signals, or for what we do not know."""
    command, value = args[1], args[2]
    if event == "fcntl.ioctl":
        return command not in harmless
    return command in signalling or (command == flags[0] and bool(value & flags[1]))


def _caller(file: str) -> Callable[[], bool]:
    """Whether ctypes is used by a library, such as SciPy or torch when they are imported, and not by the learner."""
    above, library = sys._getframe, os.path.dirname(ctypes.__file__)

    def by_library() -> bool:
        frame = above(2)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(library):
            frame = frame.f_back
        return frame.f_code.co_filename != file and not frame.f_code.co_filename.startswith("<")

    return by_library


def _own_number() -> str:
    """Our number as /proc has it, which may be that of another namespace than ours."""
    try:
        return os.readlink("/proc/self")
    except OSError:
        return str(os.getpid())


def _places(
    home: str, hidden: tuple[str, ...], refuse: Refuse, alone: bool
) -> tuple[Callable[..., None], Callable[..., None], Callable[..., None]]:
    """Who may read and who may change the file at a path, links followed first; and where a new link may lead.

    `os.open` does not tell the hook the folder that a path begins at (its `dir_fd`). So where the hook is `alone`, no
    folder outside is opened, and nothing leads from one inside to what is outside: no path upwards, and no link.
    """
    realpath, readlink, join, fsdecode = os.path.realpath, os.readlink, os.path.join, os.fsdecode
    is_folder, is_absolute, up = os.path.isdir, os.path.isabs, os.pardir
    sep, own, null = os.sep, _own_number(), os.path.realpath(os.devnull)
    integer, text, data, kind, is_kind = int, str, bytes, type, issubclass

    def spelt(path: Any) -> str:
        """Its characters, whatever methods it has been given. An object that spells a path may do so anew each time."""
        if is_kind(kind(path), text):
            return text.__str__(path)
        if not is_kind(kind(path), data):
            refuse("inside")
        return fsdecode(data.__getitem__(path, slice(None)))

    def place(path: Any, folder: int) -> str | None:
        if is_kind(kind(path), integer):
            return None  # an open file, looked at when it was opened
        plain = spelt(path)
        try:
            return realpath(plain if folder == -1 else join(readlink(f"/proc/self/fd/{folder}"), plain))
        except OSError:  # we are in a folder whose path is longer than a path may be
            refuse("files")
            raise

    def below(path: str, folder: str) -> bool:
        return path == folder or path.startswith(folder + sep)

    def leads_up(path: Any) -> bool:
        plain = spelt(path)
        return not is_absolute(plain) and up in plain.split(sep)

    def may_read(path: Any, by_descriptor: bool) -> None:
        found = place(path, -1)
        if found is None:
            return
        if alone and ((by_descriptor and leads_up(path)) or (is_folder(found) and not below(found, home))):
            refuse("write")
        for folder in hidden:  # nor a folder above it, since files can be opened from there without a path
            if below(found, folder) or below(folder, found):
                refuse("package")
        parts = found.split(sep)
        if parts[1:2] == ["proc"] and parts[2:3] and parts[2].isdigit() and parts[2] != own:
            refuse("inside")

    def may_change(path: Any, folder: int) -> None:
        found = place(path, folder)
        if found is not None and found != null and not below(found, home):
            refuse("write")

    def may_lead(path: Any) -> None:
        if alone and (is_absolute(spelt(path)) or leads_up(path)):
            refuse("write")

    return may_read, may_change, may_lead
