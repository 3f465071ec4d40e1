"""What a learner's program may not do, put up in its own process just before its text is loaded.

Three layers, each as far as the system has it: resource limits; the kernel's own refusals (seccomp, Landlock), which
hold for native code too; and an audit hook, which holds everywhere and says in a friendly line what was refused. It
guards against accidents and lazy cheating. Standard library only, and nothing of ours: it is read by the learner's
process.
"""

import ctypes
import math
import os
import platform
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class RefusedError(PermissionError):
    """Something that a learner's program may not do; `what` is the key of the sentence."""

    def __init__(self, what: str, sentence: str) -> None:
        super().__init__(sentence)
        self.what = what


def put_up(file: str, limits: Mapping[str, Any], hidden: Sequence[str], words: Mapping[str, str]) -> None:
    """All layers, around the folder that we are in; a layer that this system does not have is left out.

    `file` is the learner's text in tracebacks, `hidden` are folders that it may not read.
    """
    home = os.path.realpath(os.getcwd())
    _limit(limits)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        _write_only_below(libc, home)
        _refuse_system_calls(libc)
    sys.meta_path.insert(0, _Hidden(words["package"]))
    sys.addaudithook(_hook(file, home, tuple(hidden), dict(words), int(limits["files"])))


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


# --- the kernel's refusals ----------------------------------------------------------------------------------

_NO_NEW_PRIVILEGES = 38
"""What a process gives up first, so that the kernel lets it refuse things to itself."""

# Landlock, the same numbers on every machine. Writing, removing, making (files, folders, links …), and from later
# versions on renaming across folders and cutting files.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_WRITES = 1 << 1 | sum(1 << bit for bit in range(4, 13))
_LATER = {2: 1 << 13, 3: 1 << 14}


def _write_only_below(libc: ctypes.CDLL, home: str) -> bool:
    """Landlock: nothing outside of the folder can be written, whoever writes. False where the kernel has none."""
    version = libc.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return False
    handled = _WRITES | sum(bit for since, bit in _LATER.items() if version >= since)
    ruleset = libc.syscall(_CREATE_RULESET, struct.pack("=Q", handled), 8, 0)
    if ruleset < 0:
        return False
    for path, allowed in ((home, handled), (os.devnull, handled & (1 << 1 | 1 << 14))):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        libc.syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", allowed, place), 0)
        os.close(place)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    done = libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return done


# seccomp: the numbers of system calls on x86_64 and aarch64. What could start a program, reach another or the network,
# lift a limit, go around this filter, or leave something behind that outlives the process.
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_NEVER = {
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setrlimit": (160, 164),
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "keyctl": (250, 219),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
}
_TO_ITSELF = {  # allowed on the program itself, which abort() needs
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
}
_SECCOMP, _CLONE, _PRLIMIT = (317, 277), (56, 220), (302, 261)
_CLONE3, _CLONE_THREAD = 435, 0x10000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _NOT_PERMITTED, _NO_SUCH_CALL = 0x7FFF0000, 0x00050001, 0x00050026


def _refuse_system_calls(libc: ctypes.CDLL) -> bool:
    """seccomp: no processes, sockets, signals to others, new limits; in all threads. False where there is none."""
    if platform.machine() not in _MACHINES or sys.maxsize < 1 << 32:
        return False
    column, machine = _MACHINES[platform.machine()]
    steps = b"".join(struct.pack("=HBBI", *step) for step in _filter(column, machine, os.getpid()))
    kept = ctypes.create_string_buffer(steps, len(steps))
    program = struct.pack("@HxxxxxxP", len(steps) // 8, ctypes.addressof(kept))
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return libc.syscall(_SECCOMP[column], 1, 1, program) == 0  # SECCOMP_SET_MODE_FILTER, for all threads


def _filter(column: int, machine: int, pid: int) -> list[tuple[int, int, int, int]]:
    """The kernel's little program: (what, steps to skip if true, if false, number).

    Of the call it sees the number at byte 0, the machine at 4, and the arguments from 16 on, eight bytes each.
    """
    refuse, which = (_RETURN, 0, 0, _NOT_PERMITTED), (_LOAD, 0, 0, 0)
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, machine), refuse, which]
    steps += [(_AT_LEAST, 0, 1, 0x40000000), refuse]  # another way to make the same calls on x86_64
    for number in (numbers[column] for numbers in _NEVER.values()):
        if number is not None:
            steps += [(_EQUAL, 0, 1, number), refuse]
    # Its arguments lie in memory, where no filter looks; told that it does not exist, libc takes `clone` instead.
    steps += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _NO_SUCH_CALL)]
    steps += [(_EQUAL, 0, 3, _CLONE[column]), (_LOAD, 0, 0, 16), (_ANY_BIT, 1, 0, _CLONE_THREAD), refuse]
    steps += [which, (_EQUAL, 0, 3, _PRLIMIT[column]), (_LOAD, 0, 0, 32), (_EQUAL, 1, 0, 0), refuse]
    for numbers in _TO_ITSELF.values():
        steps += [which, (_EQUAL, 0, 3, numbers[column]), (_LOAD, 0, 0, 16), (_EQUAL, 1, 0, pid), refuse]
    return [*steps, (_RETURN, 0, 0, _ALLOW)]


# --- imports ------------------------------------------------------------------------------------------------


class _Hidden:
    """A finder that refuses our own packages, also to importlib, which tells no audit hook what it imports."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence

    def find_spec(self, name: str, *_: Any) -> None:
        if name.partition(".")[0] in ("regard", "deep_learning"):
            raise RefusedError("package", self.sentence)


# --- the audit hook -----------------------------------------------------------------------------------------

# What is refused, whatever its arguments: audit events by the key of the sentence.
_REFUSED = {
    "process": "subprocess.Popen os.fork os.forkpty os.posix_spawn os.spawn os.exec os.system os.startfile pty.spawn "
    "webbrowser.open _winapi.CreateProcess",
    "network": "socket.__new__ socket.connect socket.bind socket.getaddrinfo socket.gethostbyname socket.sendto "
    "socket.gethostbyaddr socket.getnameinfo socket.sendmsg urllib.Request ftplib.connect smtplib.connect",
    "signal": "os.kill os.killpg signal.pthread_kill",
    "native": "ctypes.dlopen ctypes.dlsym ctypes.dlsym/handle ctypes.call_function ctypes.cdata ctypes.string_at "
    "ctypes.wstring_at",
    "inside": "gc.get_objects gc.get_referrers gc.get_referents sys._current_frames",
    "limits": "resource.setrlimit resource.prlimit",
}
# The same, frozen: what a hook holds in a dict, a program could empty.
_ALWAYS = tuple((what, frozenset(events.split())) for what, events in _REFUSED.items())
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
_WATCHED = frozenset({"open"}).union(*(events for _, events in _ALWAYS), (change[0] for change in _CHANGES))

Refuse = Callable[[str], None]


def _hook(
    file: str, home: str, hidden: tuple[str, ...], words: dict[str, str], files: int
) -> Callable[[str, Any], None]:
    """The hook; `files` is how often it lets files be made or changed.

    It holds all that it needs itself, so that replacing a name elsewhere does not change it.
    """
    watched, always, changes, refusal, changed = _WATCHED, _ALWAYS, _CHANGES, RefusedError, 0
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

    def refuse(what: str) -> None:
        raise refusal(what, words[what])

    may_read, may_change = _places(home, hidden, refuse)
    by_library = _caller(file)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal changed
        if event not in watched:
            return
        if event == "open":
            may_read(args[0])
            if args[2] & writing:
                may_change(args[0], -1)
                changed += 1
        else:
            for what, events in always:
                if event in events and not (what == "native" and by_library()):
                    refuse(what)
            for name, path, folder in changes:
                if event == name:
                    may_change(args[path], -1 if folder is None else args[folder])
                    changed += event != "os.remove"
        if changed > files:
            refuse("files")

    return hook


def _caller(file: str) -> Callable[[], bool]:
    """Whether ctypes is used by a library, such as SciPy or torch when they are imported, and not by the learner."""
    above, library = sys._getframe, os.path.dirname(ctypes.__file__)

    def by_library() -> bool:
        frame = above(2)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(library):
            frame = frame.f_back
        return frame.f_code.co_filename != file and not frame.f_code.co_filename.startswith("<")

    return by_library


def _places(home: str, hidden: tuple[str, ...], refuse: Refuse) -> tuple[Callable[[Any], None], Callable[..., None]]:
    """Who may read and who may change the file at a path; links are followed first."""
    realpath, readlink, join, fsdecode = os.path.realpath, os.readlink, os.path.join, os.fsdecode
    sep, own, null, integer, text = os.sep, str(os.getpid()), os.path.realpath(os.devnull), int, str

    def place(path: Any, folder: int) -> str | None:
        if isinstance(path, integer):
            return None  # an open file, looked at when it was opened
        plain = text.__str__(fsdecode(path))
        return realpath(plain if folder == -1 else join(readlink(f"/proc/self/fd/{folder}"), plain))

    def below(path: str, folder: str) -> bool:
        return path == folder or path.startswith(folder + sep)

    def may_read(path: Any) -> None:
        found = place(path, -1)
        if found is None:
            return
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

    return may_read, may_change
