"""One run to a folder: a lock that the system takes back by itself when its holder dies, however it dies.

The file stays where it is, locked or not; what stands in it is only for the message of whoever comes second.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.errors import FileError
from regard.files import open_lock, reason_of, try_lock

LOCK = "lock"


@contextmanager
def hold(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Be the only run in a folder. FileError, with the holder's process and machine, where there is another.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, hold(folder):
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['lock']
    """
    path = Path(folder) / LOCK
    descriptor = open_lock(path)
    try:
        try:
            try_lock(descriptor)
        except BlockingIOError as error:
            pid, _, host = os.read(descriptor, 300).decode(errors="replace").partition(" ")
            raise FileError("run-locked", path=str(folder), pid=pid or "?", host=host or "?") from error
        except OSError as error:  # a drive without locks
            raise FileError("run-unlockable", path=str(path), reason=reason_of(error)) from error
        with suppress(OSError):  # the name is a courtesy; a full disk must not stop a run that holds the lock
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()} {socket.gethostname()}".encode())
        yield
    finally:
        os.close(descriptor)  # and with it the lock
