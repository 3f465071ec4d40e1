"""Answer sheets filled in by us: with the right answers for `regard learn solution`, with others to verify a sheet."""

from collections.abc import Mapping
from typing import Any

from regard.course.exercise import Sheet


def filled_sheet(sheet: Sheet, seed: int, changes: Mapping[str, Any] | None = None) -> str:
    """All fields of a sheet with the right answers, or those of `changes`, as TOML."""
    answers = {field.name: field.expected for field in sheet.fields(seed)} | dict(changes or {})
    return "\n".join([f"seed = {seed}", *(f"{name} = {as_toml(value)}" for name, value in answers.items())])


def as_toml(value: Any) -> str:
    """A value as TOML; numbers with six decimals, more than a sheet requires.

    >>> as_toml([[0.5, 2 / 3], [1, 0]]), as_toml("softmax")
    ('[[0.5, 0.666667], [1, 0]]', '"softmax"')
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(round(value, 6))
    return f'"{value}"' if isinstance(value, str) else str(value)
