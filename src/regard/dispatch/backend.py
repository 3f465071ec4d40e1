"""What a backend is: a name, an answer to "can you do this call?", and the function that does it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from regard.dispatch.call import Call
from regard.kinds import Array
from regard.records import Statistics
from regard.words import say


class Answer(NamedTuple):
    """Yes, perhaps with a remark; or no, with the reason. The words are a key, to be said in any language."""

    yes: bool
    key: str | None = None
    values: dict[str, Any] = {}  # noqa: RUF012 - a NamedTuple's default, never written to

    def __str__(self) -> str:
        words = say(self.key, **self.values) if self.key else ""
        if not self.yes:
            return words
        return say("backend-yes-but", remark=words) if words else say("backend-yes")


YES = Answer(True)


class Backend(NamedTuple):
    """One way to compute attention. `scratch` is how many bytes a call takes beside what it gives, if that is much."""

    name: str
    answer: Callable[[Call], Answer]
    run: Callable[[Call], tuple[Array, Statistics]]
    scratch: Callable[[Call], int] = lambda _: 0


class Answers(dict[str, str]):
    """What every backend says about a call, first choice first: its name, and yes or its reason. Prints as a table."""

    chosen: str | None = None

    def __str__(self) -> str:
        width = max(len(name) for name in self)
        return "\n".join(f"{'→' if n == self.chosen else ' '} {n:<{width}}  {words}" for n, words in self.items())
