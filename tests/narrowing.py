"""Types that a test knows more of than the checker: a field that was requested, a list of three arrays."""

from collections.abc import Iterable
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Two: TypeAlias = tuple[T, T]
Three: TypeAlias = tuple[T, T, T]


def present(value: T | None) -> T:
    """`value`, which must not be None: a statistic that was requested, the gradient of a leaf."""
    assert value is not None
    return value


def of_type(kind: type[T], value: object) -> T:
    """`value`, which must be of this type: the config of a recipe, say."""
    assert isinstance(value, kind)
    return value


def two(values: Iterable[T]) -> Two[T]:
    """A query and a key, say, to be passed on as `f(*two(...))`."""
    first, second = values
    return first, second


def three(values: Iterable[T]) -> Three[T]:
    """Query, key and value, to be passed on as `f(*three(...))`."""
    first, second, third = values
    return first, second, third
