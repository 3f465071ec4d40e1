"""Kernel restrictions for a learner's program on Linux: system calls by seccomp, files by Landlock."""

import ctypes
import os
import platform
import stat
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The column in the tables below, and the kernel's AUDIT_ARCH value."""

_NEVER = {
    # other programs
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    # other processes: their memory and files, signals to them
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "ioprio_set": (251, 30),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    # the network
    "socket": (41, 198),
    "socketpair": (53, 199),
    # namespaces and mounts, and files opened without a path
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # user changes, which would also clear the parent-death signal
    "setuid": (105, 146),
    "setgid": (106, 144),
    "setreuid": (113, 145),
    "setregid": (114, 143),
    "setgroups": (116, 159),
    "setresuid": (117, 147),
    "setresgid": (119, 149),
    "setfsuid": (122, 151),
    "setfsgid": (123, 152),
    "capset": (126, 91),
    # limits; io_uring operations bypass the filter
    "setrlimit": (160, 164),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # objects that outlive the process, and those of other processes, addressed by number
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "semctl": (66, 191),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_notify": (244, 184),
    # named pipes and devices, which raise no audit event
    "mknod": (133, None),
    "mknodat": (259, 33),
}
_ABOUT_FILES = {  # permissions, owners, times and attributes, which Landlock does not cover
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
}
_OWN_PROCESS_ONLY = {  # allowed with the own pid as the first argument, which abort() needs
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
}
_SCHEDULING = {  # allowed with the own pid, or with 0, which means the same
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
}
_SETPRIORITY, _PRLIMIT, _CLONE, _SECCOMP = (141, 140), (302, 261), (56, 220), (317, 277)
_FCNTL, _IOCTL, _PRCTL, _FALLOCATE = (72, 25), (16, 29), (157, 167), (285, 47)

_SIGNALLING = (8, 10, 15, 1024, 1026)
"""fcntl commands that make the kernel send signals to any given process: F_SETOWN, F_SETSIG, F_SETOWN_EX,
F_SETLEASE, F_NOTIFY."""
_SET_FLAGS, _ASYNC = 4, 0x2000
"""F_SETFL, and the flag that enables those signals."""
_REQUESTS = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""The only ioctl requests allowed: terminal state and width (TCGETS, TCGETS2, TIOCGWINSZ), bytes to read (FIONREAD),
blocking mode (FIONBIO), close-on-exec (FIONCLEX, FIOCLEX)."""
_OPTIONS = (2, 3, 15, 16, 21, 23, 27, 38, 39, 42, 0x53564D41)
"""The only prctl options allowed. They read (parent-death signal, dumpable, seccomp, capabilities, securebits,
no_new_privs, huge pages), or name a thread or a memory area."""

_CLONE3, _CLONE_THREAD = 435, 0x10000
_NEWER = 463
"""System calls from here on are newer than this list: on ENOSYS, libraries fall back to the older ones."""
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _NOT_PERMITTED, _NO_SUCH_CALL, _NOT_SUPPORTED = 0x7FFF0000, 0x00050001, 0x00050026, 0x0005005F

Instruction = tuple[int, int, int, int]
_REFUSE: Instruction = (_RETURN, 0, 0, _NOT_PERMITTED)
_ALLOWED: Instruction = (_RETURN, 0, 0, _ALLOW)


def refuse_system_calls(libc: ctypes.CDLL) -> bool:
    """Install the seccomp filter in all threads. False if this system or machine has none."""
    if platform.machine() not in _MACHINES or sys.maxsize < 1 << 32:
        return False
    column, machine = _MACHINES[platform.machine()]
    never = _NEVER if os.statvfs("/").f_flag & os.ST_RDONLY else {**_NEVER, **_ABOUT_FILES}
    numbers = [number for number in (both[column] for both in never.values()) if number is not None]
    steps = b"".join(struct.pack("=HBBI", *step) for step in _filter(column, machine, os.getpid(), numbers))
    kept = ctypes.create_string_buffer(steps, len(steps))
    program = struct.pack("@HxxxxxxP", len(steps) // 8, ctypes.addressof(kept))
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, which an unprivileged process needs for this
    return libc.syscall(_SECCOMP[column], 1, 1, program) == 0  # SECCOMP_SET_MODE_FILTER, for all threads


def _filter(column: int, machine: int, pid: int, never: Iterable[int]) -> list[Instruction]:
    """The BPF program: (operation, instructions to skip if true, if false, operand).

    Its input is struct seccomp_data: the call number at byte 0, the machine at 4, the arguments from 16 on, eight bytes
    each.
    """
    steps: list[Instruction] = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, machine), _REFUSE, (_LOAD, 0, 0, 0)]
    steps += [(_AT_LEAST, 0, 1, 0x40000000), _REFUSE]  # the x32 ABI: the same calls under other numbers on x86_64
    steps += [(_AT_LEAST, 0, 1, _NEWER), (_RETURN, 0, 0, _NO_SUCH_CALL)]
    for number in never:
        steps += [(_EQUAL, 0, 1, number), _REFUSE]
    # Its arguments are in memory, which a filter cannot read; on ENOSYS, libc uses `clone` instead.
    steps += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _NO_SUCH_CALL)]
    # It allocates blocks without writing, which no write counter shows; on EOPNOTSUPP, libc writes zeros.
    steps += [(_EQUAL, 0, 1, _FALLOCATE[column]), (_RETURN, 0, 0, _NOT_SUPPORTED)]
    steps += _when(_CLONE[column], [_argument(0), (_ANY_BIT, 1, 0, _CLONE_THREAD), _REFUSE, _ALLOWED])
    steps += _when(_PRLIMIT[column], [_argument(2), (_EQUAL, 1, 0, 0), _REFUSE, _ALLOWED])
    for calls, own in ((_OWN_PROCESS_ONLY, (pid,)), (_SCHEDULING, (pid, 0))):
        for numbers in calls.values():
            steps += _when(numbers[column], [_argument(0), *_only(own)])
    steps += _when(_SETPRIORITY[column], [_argument(0), (_EQUAL, 1, 0, 0), _REFUSE, _argument(1), *_only((0, pid))])
    steps += _when(_IOCTL[column], [_argument(1), *_only(_REQUESTS)])
    steps += _when(_PRCTL[column], [_argument(0), *_only(_OPTIONS)])
    flags = [_argument(2), (_ANY_BIT, 0, 1, _ASYNC), _REFUSE, _ALLOWED]
    commands = [step for command in _SIGNALLING for step in ((_EQUAL, 0, 1, command), _REFUSE)]
    steps += _when(_FCNTL[column], [_argument(1), *commands, (_EQUAL, 0, len(flags), _SET_FLAGS), *flags, _ALLOWED])
    return [*steps, _ALLOWED]


def _argument(place: int) -> Instruction:
    """Load the lower 32 bits of an argument, which hold a whole int."""
    return (_LOAD, 0, 0, 16 + 8 * place)


def _only(values: Iterable[int]) -> list[Instruction]:
    """Allow the call for these values of the argument just loaded, refuse it for any other."""
    return [step for value in values for step in ((_EQUAL, 0, 1, value), _ALLOWED)] + [_REFUSE]


def _when(number: int, steps: list[Instruction]) -> list[Instruction]:
    """Instructions for one system call; every path through them ends in a decision."""
    return [(_EQUAL, 0, len(steps), number), *steps]


# The same numbers on every machine.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RUN, _WRITE, _READ, _LIST, _CUT = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_MAKE = sum(1 << bit for bit in range(4, 13))
"""Removing and creating files, folders, links …"""
_LATER = {2: 1 << 13, 3: _CUT, 5: 1 << 15}
"""Rights of later Landlock versions: renaming across folders, truncating files, ioctl on devices."""
_NETWORK, _OUTSIDE = 1 << 0 | 1 << 1, 1 << 0 | 1 << 1
"""From version 4 on: bind and connect. From 6 on: abstract sockets of, and signals to, processes outside."""

_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/proc", "/sys", "/nix", "/gnu")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


def restrict_files(libc: ctypes.CDLL, home: str, hidden: Sequence[str], paths: Sequence[str]) -> bool:
    """Allow writing only below `home`, and reading only that, `paths` and the system libraries, never `hidden`.

    False if the kernel has no Landlock.
    """
    version = libc.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return False
    handled = _RUN | _WRITE | _READ | _LIST | _MAKE | sum(bit for since, bit in _LATER.items() if version >= since)
    attributes = struct.pack("=QQQ", handled, _NETWORK, _OUTSIDE)[: 8 * (1 + (version >= 4) + (version >= 6))]
    ruleset = libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    _allow(libc, ruleset, home, handled & ~_RUN)
    for device in _DEVICES:
        _allow(libc, ruleset, device, handled & (_READ | _WRITE | _CUT))
    for path, listed_only in _readable((*_SYSTEM, *paths), tuple(hidden)):
        _allow(libc, ruleset, path, _LIST if listed_only else _READ | _LIST)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, which an unprivileged process needs for this
    done = libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return done


def libraries() -> list[str]:
    """Folders of this Python and of the libraries it has loaded."""
    found = [sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path, *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
            found += [os.path.dirname(line[line.index("/") :].rstrip("\n")) for line in file if ".so" in line]
    except (OSError, ValueError):
        pass
    return [path for path in dict.fromkeys(found) if path.startswith("/") and path != "/"]


def _readable(paths: Sequence[str], hidden: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """The (path, list only) rules that allow reading all of `paths` but nothing of `hidden`.

    A parent folder of a hidden one may only be listed; its other entries get rules of their own. Links are skipped: the
    location of their target decides.
    """
    waiting, seen = [os.path.realpath(path) for path in paths], set[str]()
    while waiting:
        path = waiting.pop()
        if path in seen or any(_is_below(path, folder) for folder in hidden):
            continue
        seen.add(path)
        above = any(_is_below(folder, path) for folder in hidden)
        yield path, above
        if above:
            try:
                with os.scandir(path) as entries:
                    waiting += [entry.path for entry in entries if not entry.is_symlink()]
            except OSError:
                continue


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    """Add a rule for a path, without folder rights for a file; a missing path needs no rule."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(place).st_mode):
        rights &= ~(_LIST | _MAKE | 1 << 13)
    libc.syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, place), 0)
    os.close(place)


def drop_capabilities(libc: ctypes.CDLL) -> None:
    """Drop all capabilities: root without namespaces keeps its uid, but cannot overwrite any file, load modules …"""
    header = struct.pack("=Ii", 0x20080522, 0)
    libc.capset(header, bytes(24))
