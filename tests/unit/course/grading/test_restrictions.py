"""Kernel restrictions, cleanup after a killed grader or supervisor, and removal of any folder."""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from regard.course.catalogue import HOME
from regard.course.exercise import call
from regard.course.grading import process, sandbox, serialisation, supervisor
from regard.course.grading.linux_restrictions import _readable
from regard.course.grading.process import RunLimits
from regard.course.grading.sandbox import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what the kernel refuses, and /proc, are Linux's")

SOLUTION = HOME / "exercises" / "softmax" / "solution.py"
WITHOUT = Path(__file__).parents[3] / "without_restrictions.py"
NATIVE = """
import os
def native(text, **names):  # as a C extension would, below the audit hook
    code = "import ctypes, os, struct\\nlibc = ctypes.CDLL(None, use_errno=True)\\n" + text
    exec(compile(code, "/usr/lib/disguised.py", "exec"), names)
    return names
"""


@pytest.fixture(params=["namespaces", "none"])
def isolated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With namespaces, and without, as in a container that refuses them."""
    if request.param == "none":
        monkeypatch.setattr(sandbox, "_run", partial(_without_isolation, sandbox._run))
    return request.param


def _without_isolation(run: Any, *args: Any, isolated: bool) -> Any:
    return run(*args, isolated=False)


SIGNALS = """
def f(victim):
    import fcntl
    r, w = os.pipe()
    native('''
for owner in (victim, -victim, os.getppid()):
    libc.fcntl(r, 8, owner); libc.fcntl(r, 15, struct.pack("ii", 1, abs(owner))); libc.fcntl(r, 10, 9)
    libc.fcntl(r, 4, 0x2800); libc.ioctl(r, 0x5452, struct.pack("i", 1)); libc.ioctl(r, 0x8901, struct.pack("i", owner))
    os.write(w, b"x")
    info = ctypes.create_string_buffer(128)
    libc.kill(owner, 9); libc.syscall(424, libc.syscall(434, owner, 0), 9, 0, 0); libc.syscall(129, owner, 9, info)
    libc.syscall(302, owner, 0, struct.pack("QQ", 0, 0), 0); libc.ptrace(16, owner, 0, 0)
kept = libc.prctl(1, 0, 0, 0, 0), libc.prctl(4, 0, 0, 0, 0), libc.setuid(1)
''', r=r, w=w, victim=victim)
    try:
        fcntl.fcntl(r, fcntl.F_SETOWN, victim)
    except PermissionError as error:
        return str(error)
"""


def test_other_processes_cannot_be_signalled(isolated: str, victim: "subprocess.Popen[bytes]") -> None:
    (answer,) = run(NATIVE + SIGNALS, [call("f", victim.pid)], "numpy").answers
    assert answer.value == "an answer may not send signals to processes"
    assert victim.poll() is None
    assert Path(f"/proc/{victim.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


READS = """
def f(path):
    found = []
    def history():
        import readline
        readline.read_history_file(path)
        return readline.get_history_item(1)
    def database():
        import sqlite3
        return sqlite3.connect(":memory:").execute("attach ? as x", (path,)).execute("select * from x.y")
    def certificate():
        import ssl
        return ssl.create_default_context(cafile=path)
    def c(): return native("fd = libc.open(path.encode(), 0)", path=path)["fd"] >= 0
    def root(): return native("fd = libc.open(b'/proc/self/root' + path.encode(), 0)", path=path)["fd"] >= 0
    def data():
        import numpy as np
        return np.memmap(path, mode="r")
    for way in (history, database, certificate, c, root, data):
        try:
            if way():
                found.append(way.__name__)
        except Exception as error:
            print(way.__name__, type(error).__name__, error)
    return found
"""


def test_native_code_cannot_read_the_solution(isolated: str) -> None:
    (answer,) = run(NATIVE + READS, [call("f", str(SOLUTION))], "numpy").answers
    assert answer.value in ([], ["certificate"])  # an error that contains no file content
    source = "import readline\nreadline.read_history_file(PATH)\n".replace("PATH", repr(str(SOLUTION)))
    assert run(source, [call("f")], "numpy").raised in ("PermissionError", "FileNotFoundError")


def test_the_verdict_notes_a_readable_solution(tmp_path: Path) -> None:
    """Modules known to open files are refused too."""
    answer = tmp_path / "answer.py"
    command = [sys.executable, str(WITHOUT), "namespaces,landlock", sys.executable, "-m", "regard", "learn", "check"]
    env = {**os.environ, "REGARD_HOME": str(tmp_path), "REGARD_LANG": "en"}
    check = partial(subprocess.run, [*command, "softmax", str(answer)], env=env, capture_output=True, text=True)
    answer.write_text(SOLUTION.read_text())
    done = check()
    assert done.returncode == 0
    assert "neither namespaces nor Landlock" in done.stdout
    answer.write_text("import importlib\nfor n in ('readline', 'sqlite3', 'tkinter', 'dbm', 'ssl'):\n    try:\n"
                      "        importlib.import_module(n)\n    except PermissionError: continue\n    print('HAS', n)\n"
                      "import readline\n")  # fmt: skip
    done = check()
    assert done.returncode == 1
    assert "open files by themselves" in done.stdout
    assert "HAS" not in done.stdout


UNSEEN = """
import io, os
def f(path, outside):
    found = []
    home = os.open(".", os.O_RDONLY)
    os.makedirs("a/b/c/d/e/f/g/h/i/j/k/l"); os.chdir("a/b/c/d/e/f/g/h/i/j/k/l")
    up = "/".join([".."] * 12) + path
    def interpreter():
        import _xxsubinterpreters as other
        other.run_string(other.create(), f"open({outside + '/1'!r}, 'w')")
    def upwards(): return os.open(up, os.O_RDONLY, dir_fd=home)
    def folder(): return os.open("2", os.O_CREAT | os.O_WRONLY, dir_fd=os.open(outside, os.O_RDONLY))
    def linked():
        os.mkdir("deeper")
        os.symlink("/", "deeper/root")
        return os.open("root" + path, os.O_RDONLY, dir_fd=os.open("deeper", os.O_RDONLY))
    def walked():
        walk = os.fwalk(outside)
        return os.open("3", os.O_CREAT | os.O_WRONLY, dir_fd=next(walk)[3])
    def pipe(): os.mkfifo(outside + "/4")
    def node(): os.mknod(outside + "/5")
    def shared():
        import _posixshmem
        os.close(_posixshmem.shm_open("/regard-hostile", os.O_CREAT | os.O_RDWR, mode=0o600))
    def more_shared():
        from multiprocessing.shared_memory import SharedMemory
        SharedMemory("regard-hostile", True, 10)
    class Lying(bytes):
        def decode(self, *_): return "/usr"
    class Number(str):
        __class__ = int
    class Twice:
        calls = 0
        def __fspath__(self):
            self.calls += 1
            return path if self.calls == 1 else "/usr"
    def lying(): return open(Lying(path.encode()))
    def number(): return open(Number(path))
    def twice(): return io.FileIO(Twice())
    def replaced():
        import builtins
        kept, builtins.isinstance = isinstance, lambda *_: True
        try:
            return open(path)
        finally:
            builtins.isinstance = kept
    seen = [lying, number, twice, replaced, upwards, folder, linked, walked]
    for way in [*seen, interpreter, pipe, node, shared, more_shared]:
        try:
            way()
            found.append(way.__name__)
        except (OSError, RuntimeError, ImportError, TypeError) as error:
            print(way.__name__, type(error).__name__, error)
    return found
"""


def test_file_openers_without_audit_events_are_refused_without_kernel_rules(tmp_path: Path) -> None:
    answer, outside = tmp_path / "answer.py", tmp_path / "outside"
    outside.mkdir()
    answer.write_text(f"{UNSEEN}\ndef softmax(x, axis): raise ValueError(f({str(SOLUTION)!r}, {str(outside)!r}))\n")
    command = [sys.executable, str(WITHOUT), "namespaces,landlock", sys.executable, "-m", "regard", "learn", "check"]
    env = {**os.environ, "REGARD_HOME": str(tmp_path), "REGARD_LANG": "en"}
    done = subprocess.run([*command, "softmax", str(answer)], env=env, capture_output=True, text=True, check=False)
    try:
        assert "ValueError: []" in done.stdout, done.stdout
        assert list(outside.iterdir()) == []
        assert not Path("/dev/shm/regard-hostile").exists()
    finally:
        Path("/dev/shm/regard-hostile").unlink(missing_ok=True)


def test_its_own_folder_stays_usable() -> None:
    source = (
        "import os, shutil, tempfile\ndef f():\n    with tempfile.TemporaryDirectory() as folder:\n"
        "        os.makedirs(folder + '/a/b'); os.symlink('c', folder + '/a/b/d')\n"
        "        open(folder + '/a/b/c', 'w').close()\n"
        "        found = sorted(name for *_, names, _ in os.fwalk(folder) for name in names)\n"
        "    return found, os.listdir('.')\n"
    )
    (answer,) = run(source, [call("f")], "numpy").answers
    assert answer.value == (["c", "d"], [])


IPC = """
def f(*numbers):
    return native("found = [libc.shmctl(numbers[0], 0, 0), libc.msgctl(numbers[1], 0, 0),"
                  "libc.semctl(numbers[2], 0, 0), libc.syscall(30, numbers[0], 0, 0),"
                  "libc.msgsnd(numbers[1], b'x' * 16, 1, 0o4000),"
                  "libc.semop(numbers[2], struct.pack('Hhh', 0, 1, 0), 1)]", numbers=numbers)["found"]
"""


def test_ipc_objects_of_other_processes_are_unreachable(isolated: str) -> None:
    """IPC objects belong to a user and have guessable keys."""
    libc = ctypes.CDLL(None)
    shared, messages, semaphores = libc.shmget(0, 4096, 0o600), libc.msgget(0, 0o600), libc.semget(0, 1, 0o600)
    try:
        (answer,) = run(NATIVE + IPC, [call("f", shared, messages, semaphores)], "numpy").answers
        assert set(answer.value) == {-1}
    finally:
        ended = libc.shmctl(shared, 0, 0), libc.msgctl(messages, 0, 0), libc.semctl(semaphores, 0, 0)
    assert ended == (0, 0, 0)


def test_copies_on_the_import_path_are_hidden_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program could read the solutions of an installed package when the checkout beside it was running."""
    for name in ("regard", "regard_notes", "deep_learning"):
        (tmp_path / name).mkdir()
    (tmp_path / "regard" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    copies = process._copies()
    assert str(process.PACKAGE) in copies
    assert [path for path in copies if path.startswith(str(tmp_path))] == [str(tmp_path / "regard")]


def test_readable_paths_exclude_hidden_folders(tmp_path: Path) -> None:
    for name in ("a/hidden/answer", "a/shown/file", "b/file"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "b" / "link").symlink_to(tmp_path / "a")
    found = dict(_readable([str(tmp_path), str(tmp_path / "a" / "hidden")], (str(tmp_path / "a" / "hidden"),)))
    assert found == {str(tmp_path): True, str(tmp_path / "a"): True, str(tmp_path / "a" / "shown"): False,
                     str(tmp_path / "b"): False}  # fmt: skip


CHANGES = """
def f(path):
    return native('''
found = [libc.chmod(path, 0), libc.fchmod(libc.open(path, 0), 0), libc.utimes(path, struct.pack("qqqq", 1, 0, 1, 0)),
         libc.setxattr(path, b"user.x", b"y", 1, 0), libc.truncate(path, 0), libc.unlink(path), libc.rename(path, b"x"),
         libc.syscall(452, -100, path, 0, 0)]
''', path=path.encode())["found"]
"""


def test_files_elsewhere_keep_their_content_permissions_and_times(isolated: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    before = kept.stat()
    (answer,) = run(NATIVE + CHANGES, [call("f", str(kept))], "numpy").answers
    assert set(answer.value) == {-1}
    after = kept.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_size) == (before.st_mode, before.st_mtime_ns, 4)


DISK = """
import sqlite3
def f():
    base = sqlite3.connect(":memory:")
    base.execute("create table t (b blob)")
    base.execute("insert into t values (zeroblob(1500000))")
    base.commit()
    for place in range(300):
        try:
            base.execute("vacuum into ?", (f"{place}.db",))
        except sqlite3.OperationalError:
            pass
    return sum(e.stat().st_size for e in os.scandir("."))
"""


def test_the_limit_applies_to_all_files_together(
    isolated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    outcome = run("import os\n" + DISK, [call("f")], "numpy", RunLimits(file=4 << 20))
    if isolated == "none":  # detected by the supervisor shortly afterwards
        assert (outcome.ended, outcome.details) == ("refused", {"what": "files"})
    else:
        assert outcome.answers[0].value <= 4 << 20
    assert list(tmp_path.iterdir()) == []


def test_written_bytes_are_counted(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "file").write_bytes(bytes(100_000))
    (tmp_path / "link").symlink_to("/")
    (inner.parent).chmod(0)
    assert 100_000 <= supervisor.bytes_written(str(tmp_path), -1) < 200_000
    assert supervisor.bytes_written(str(tmp_path / "missing"), -1) == 0
    for place in range(supervisor.MOST_FILES):
        (inner / str(place)).touch()
    assert supervisor.bytes_written(str(tmp_path), -1) == sys.maxsize


NESTS = {
    "long names": "for _ in range(20):\n    os.mkdir('n' * 250); os.chdir('n' * 250)",
    "two thousand levels": 'native(\'for _ in range(2000): libc.mkdir(b"n", 0o700); libc.chdir(b"n")\')',
    "without permission": "for _ in range(20):\n    os.mkdir('n' * 250); os.chdir('n' * 250); os.chmod('..', 0)",
}


@pytest.mark.parametrize("nest", NESTS)
def test_deep_folders_still_get_a_verdict(
    isolated: str, nest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    outcome = run(f"{NATIVE}\n{NESTS[nest]}\ndef f(): return 1", [call("f")], "numpy")
    if isolated == "none" and nest == "without permission":  # refused: other files could be affected
        assert (outcome.ended, outcome.raised) == ("raises", "PermissionError")
    elif outcome.ended:
        assert (outcome.ended, outcome.details["what"]) == ("refused", "files")
    else:
        assert [answer.value for answer in outcome.answers] == [1]
    assert list(tmp_path.iterdir()) == []


def test_folders_of_any_depth_and_number_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    place = os.open(folder, os.O_RDONLY)
    for level in range(400):
        os.mkdir("n" * 250, dir_fd=place)
        inner = os.open("n" * 250, os.O_RDONLY, dir_fd=place)
        os.close(os.open("file", os.O_CREAT, 0, dir_fd=inner))
        if level % 3 == 0:
            os.fchmod(place, 0o500)
        os.close(place)
        place = inner
    os.close(place)
    for number in range(500):
        (folder / f"{number}").touch()
    supervisor.remove(folder)
    assert not folder.exists()


# --- what is ended from outside -------------------------------------------------------------------------------

SLEEPS = "import time\ndef softmax(x, axis): time.sleep(1000)\n"


def alive(pids: set[int]) -> list[int]:
    """Running processes, without zombies."""
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += [pid] * (state not in "ZX")
    return found


def until(wanted: Any, seconds: float = 30.0) -> bool:
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        if wanted():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.usefixtures("our_orphans", "signals_at_default")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGKILL", "SIGQUIT"])
def test_an_interrupted_check_leaves_no_process_and_no_file(name: str, tmp_path: Path) -> None:
    number, temporary, answer = getattr(signal, name), tmp_path / "temporary", tmp_path / "answer.py"
    temporary.mkdir()
    answer.write_text(SLEEPS)
    before = set(supervisor.descendants(os.getpid()))
    command = [sys.executable, "-m", "regard", "learn", "check", "softmax", str(answer)]
    env = {**os.environ, "TMPDIR": str(temporary), "REGARD_HOME": str(tmp_path)}
    check = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert until(lambda: any(temporary.iterdir()) and len(supervisor.descendants(check.pid)) >= 2)
    check.send_signal(number)
    began = time.monotonic()
    code = check.wait(timeout=20)
    in_order = name in ("SIGTERM", "SIGHUP", "SIGINT")
    assert code == (128 + number if in_order else -number)
    assert time.monotonic() - began < 15  # the program sleeps for much longer
    if in_order:
        assert list(temporary.iterdir()) == []
    assert until(lambda: not any(temporary.iterdir()), 5)  # a killed grader cannot do it: its supervisor does
    assert until(lambda: not alive(set(supervisor.descendants(os.getpid())) - before), 5)


def test_a_supervisor_of_a_dead_grader_starts_nothing(tmp_path: Path) -> None:
    """The grader was killed after creating the folder and before the supervisor started."""
    folder, trace = tmp_path / "run", tmp_path / "trace"
    (folder / supervisor.WORK).mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", ""]) as grader:
        grader.wait()
    command = [
        sys.executable,
        "-I",
        "-S",
        "-B",
        str(supervisor.__file__),
        str(grader.pid),
        "9",
        "0",
        "9",
        "",
        str(folder),
    ]
    done = subprocess.run([*command, "/bin/sh", "-c", f"echo > {trace}"], timeout=30, check=False)
    assert done.returncode == supervisor.NOT_STARTED
    assert list(tmp_path.iterdir()) == []


def test_a_killed_supervisor_leaves_no_process_even_without_the_mark(isolated: str) -> None:
    """The mark in the environment can be overwritten; the pidfds of the grader cannot."""
    source = NATIVE + (
        "native('''\nwords = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, \"environ\")\nplace = 0\n"
        "while words[place]:\n    ctypes.memset(words[place], 0, len(words[place])); place += 1\n''')\n"
        "import time\ndef f():\n    while True: time.sleep(1)\n"
    )
    before = set(supervisor.descendants(os.getpid()))
    request = sandbox._request(source, [sandbox._plain_call(call("f"), "numpy")], "numpy", RunLimits(wall=1.0))
    with process.Process(
        serialisation.encode(request), RunLimits(wall=1.0), isolated=isolated == "namespaces"
    ) as running:
        messages = running.messages()
        next(messages)
        next(messages)
        left = set(supervisor.descendants(os.getpid())) - before
        os.kill(running._supervisor.pid, signal.SIGKILL)
        assert next(messages, None) is None
        running.stop()
        assert len(left) == (4 if isolated == "namespaces" else 2)
        assert until(lambda: not alive(left), 1)
