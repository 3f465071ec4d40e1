"""Processes that try untrusted content: how they are started, and the limits that they set for themselves.

They start without Python's start-up files and without the user's environment.
"""

import os
import subprocess
import sys


def limit_process(*, memory: int, seconds: int) -> None:
    """Limit the memory beyond what this process has, and its processor time; does nothing where the system cannot."""
    try:
        import resource
    except ImportError:
        return
    wanted = {resource.RLIMIT_CPU: seconds, resource.RLIMIT_CORE: 0}
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            wanted[resource.RLIMIT_AS] = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        wanted[resource.RLIMIT_AS] += memory
    except OSError:
        pass
    for kind, most in wanted.items():
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(kind, (most, most))
        except (ValueError, OSError):  # macOS refuses some
            continue


def start(module: str) -> subprocess.Popen[bytes]:
    """A process that runs `main` of a module, with the import path of this process. Raises OSError."""
    return subprocess.Popen(
        _command(module),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a Rust panic prints there
        env=_environment(),
    )


def _command(module: str) -> list[str]:
    folders = [each for each in sys.path if os.path.isabs(each)]
    program = f"import sys; sys.path[:] = {folders!r}; from {module} import main; main()"
    return [sys.executable, "-I", "-S", "-B", "-c", program]


def _environment() -> dict[str, str]:
    kept = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "LANG", "TZ")
    given = {name: os.environ[name] for name in kept if name in os.environ}
    return given | {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
