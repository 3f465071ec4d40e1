"""What the `run` fixture of the command line's tests is and returns."""

from typing import NamedTuple, Protocol


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str


class Run(Protocol):
    def __call__(self, *arguments: str, stdin: bytes = b"") -> CommandResult: ...
