"""Restrictions on a learner's program, applied in its process just before its source is loaded.

Three layers, as far as the system supports them: resource limits; Linux restrictions (`linux_restrictions`),
which also bind native code; and an audit hook, which works everywhere and gives a readable message. They protect
against accidents and easy cheating. The learner's process imports this module: it uses only the standard library and
`linux_restrictions`.
"""

import ctypes
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from regard.course.grading.linux_restrictions import drop_capabilities, libraries, refuse_system_calls, restrict_files


class RefusedError(PermissionError):
    """A forbidden operation; `what` is the key of the message."""

    def __init__(self, what: str, sentence: str) -> None:
        super().__init__(sentence)
        self.what = what


def apply_restrictions(
    file: str, limits: Mapping[str, Any], hidden: Sequence[str], messages: Mapping[str, str]
) -> list[str]:
    """Apply all layers that this system supports; only the current folder stays writable.

    `file` is the learner's file name in tracebacks, `hidden` are folders it may not read. Returns what the kernel
    enforces for native code too: "calls" (signals, processes, sockets), "files" (reading hidden folders).
    """
    home, enforced = os.path.realpath(os.getcwd()), []
    _limit(limits)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        drop_capabilities(libc)
        enforced += ["files"] * restrict_files(libc, home, hidden, libraries())
        enforced += ["calls"] * refuse_system_calls(libc)
    enforced += ["files"] * all(
        _is_empty(folder) for folder in hidden
    )  # the supervisor mounted an empty folder over them
    sys.meta_path.insert(0, _ImportFilter(messages, () if "files" in enforced else _OPENERS, file))
    sys.addaudithook(_hook(file, home, tuple(hidden), dict(messages), int(limits["files"]), "files" not in enforced))
    return sorted(set(enforced))


def _is_empty(folder: str) -> bool:
    try:
        return not os.listdir(folder)
    except OSError:
        return False


# --- limits -------------------------------------------------------------------------------------------------


def _limit(limits: Mapping[str, Any]) -> None:
    """Set limits in addition to what loading the libraries has used; a limit that cannot be set is skipped."""
    try:
        import resource
    except ImportError:  # Windows
        return
    cpu = math.ceil(time.process_time() + limits["cpu"])
    wanted = {
        "RLIMIT_CPU": (cpu, cpu + 1),  # SIGXCPU first, which can be ignored; then SIGKILL, which cannot
        "RLIMIT_AS": (_address_space() + limits["memory"],) * 2,
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


def _address_space() -> int:
    """Bytes of address space in use: a torch built for CUDA maps gigabytes on import."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 4 << 30


# --- imports ------------------------------------------------------------------------------------------------


# Modules whose C code opens files without an audit event.
_OPENERS = (
    *("readline", "sqlite3", "_sqlite3", "dbm", "_gdbm", "_dbm", "tkinter", "_tkinter", "ssl", "_ssl"),
    *("multiprocessing", "_multiprocessing", "_posixshmem"),
)


class _ImportFilter:
    """A meta path finder that refuses our own packages, also through importlib, which raises no audit event; and, to
    the learner's own source, `openers`."""

    def __init__(self, messages: Mapping[str, str], openers: tuple[str, ...], file: str) -> None:
        self.messages, self.openers, self.file = messages, openers, file

    def find_spec(self, name: str, *_: Any) -> None:
        first = name.partition(".")[0]
        if first in ("regard", "deep_learning"):
            raise RefusedError("package", self.messages["package"])
        if first in self.openers and not self._by_library():
            raise RefusedError("module", self.messages["module"])

    def _by_library(self) -> bool:
        frame = sys._getframe(2)
        while frame.f_back is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        return frame.f_code.co_filename != self.file and not frame.f_code.co_filename.startswith("<")


# --- the audit hook -----------------------------------------------------------------------------------------

# Audit events that are refused for any arguments, by the key of the message.
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
# The same, immutable: a program could clear a dict that the hook uses.
_ALWAYS = tuple((what, frozenset(events.split())) for what, events in _REFUSED.items())
_BY_COMMAND = frozenset({"fcntl.fcntl", "fcntl.ioctl"})
_SIGNALLING = frozenset({8, 10, 15, 1024, 1026})  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
_HARMLESS = frozenset({0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451})  # as in `linux_restrictions`
_SET_FLAGS, _ASYNC = 4, getattr(os, "O_ASYNC", 0x2000)
# Events that change files: (event, index of the path, index of its dir_fd).
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
    file: str, home: str, hidden: tuple[str, ...], messages: dict[str, str], files: int, hook_only: bool
) -> Callable[[str, Any], None]:
    """The audit hook. `files`: how often files may be created or changed; `hook_only`: no kernel rules for files.

    All names it uses are local, so that replacing a global name does not affect it.
    """
    watched, always, changes, refusal, changed = _WATCHED, _ALWAYS, _CHANGES, RefusedError, 0
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

    def refuse(what: str) -> None:
        raise refusal(what, messages[what])

    check_read, check_change, check_link = _path_checks(home, hidden, refuse, hook_only)
    by_library, signals, by_command = _library_caller(file), _signals, _BY_COMMAND

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal changed
        if event not in watched:
            return
        if event == "open":
            check_read(args[0], args[1] is None)
            if args[2] & writing:
                check_change(args[0], -1)
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
                        check_link(args[0])
                    check_change(args[path], -1 if folder is None else args[folder])
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
    """Whether a fcntl or ioctl command makes the kernel send signals, or is unknown."""
    command, value = args[1], args[2]
    if event == "fcntl.ioctl":
        return command not in harmless
    return command in signalling or (command == flags[0] and bool(value & flags[1]))


def _library_caller(file: str) -> Callable[[], bool]:
    """A function that returns whether ctypes is used by a library (SciPy or torch on import), not by the learner."""
    above, library = sys._getframe, os.path.dirname(ctypes.__file__)

    def by_library() -> bool:
        frame = above(2)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(library):
            frame = frame.f_back
        return frame.f_code.co_filename != file and not frame.f_code.co_filename.startswith("<")

    return by_library


def _own_number() -> str:
    """Our pid as /proc shows it, which may belong to another pid namespace."""
    try:
        return os.readlink("/proc/self")
    except OSError:
        return str(os.getpid())


def _path_functions(refuse: Refuse) -> tuple[Callable[[Any], str], Callable[[Any, int], str | None]]:
    """The text of a path, and its place after resolving links; None for an open file."""
    realpath, readlink, join, fsdecode = os.path.realpath, os.readlink, os.path.join, os.fsdecode
    integer, text, data, kind, is_kind = int, str, bytes, type, issubclass

    def as_text(path: Any) -> str:
        """The characters of a str or bytes, ignoring overridden methods. Other path objects are refused: they may
        return a different path each time."""
        if is_kind(kind(path), text):
            return text.__str__(path)
        if not is_kind(kind(path), data):
            refuse("inside")
        return fsdecode(data.__getitem__(path, slice(None)))

    def place(path: Any, folder: int) -> str | None:
        if is_kind(kind(path), integer):
            return None  # an open file, checked when it was opened
        plain = as_text(path)
        try:
            return realpath(plain if folder == -1 else join(readlink(f"/proc/self/fd/{folder}"), plain))
        except OSError:  # the path of the current folder exceeds PATH_MAX
            refuse("files")
            raise

    return as_text, place


def _path_checks(
    home: str, hidden: tuple[str, ...], refuse: Refuse, hook_only: bool
) -> tuple[Callable[..., None], Callable[..., None], Callable[..., None]]:
    """Checks for reading a path, changing a path (both after resolving links), and for the target of a new link.

    The audit event of `os.open` does not contain `dir_fd`. So with `hook_only`, no folder outside may be opened, and no
    path or link may lead from inside to the outside.
    """
    is_folder, is_absolute, up = os.path.isdir, os.path.isabs, os.pardir
    sep, own, null = os.sep, _own_number(), os.path.realpath(os.devnull)
    as_text, place = _path_functions(refuse)

    def below(path: str, folder: str) -> bool:
        return path == folder or path.startswith(folder + sep)

    def leads_up(path: Any) -> bool:
        plain = as_text(path)
        return not is_absolute(plain) and up in plain.split(sep)

    def check_read(path: Any, by_descriptor: bool) -> None:
        found = place(path, -1)
        if found is None:
            return
        if hook_only and ((by_descriptor and leads_up(path)) or (is_folder(found) and not below(found, home))):
            refuse("write")
        for folder in hidden:  # also parent folders: files could be opened relative to them
            if below(found, folder) or below(folder, found):
                refuse("package")
        parts = found.split(sep)
        if parts[1:2] == ["proc"] and parts[2:3] and parts[2].isdigit() and parts[2] != own:
            refuse("inside")

    def check_change(path: Any, folder: int) -> None:
        found = place(path, folder)
        if found is not None and found != null and not below(found, home):
            refuse("write")

    def check_link(path: Any) -> None:
        if hook_only and (is_absolute(as_text(path)) or leads_up(path)):
            refuse("write")

    return check_read, check_change, check_link
