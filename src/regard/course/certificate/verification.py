"""`verify`: grades the answers of a certificate again, each in the sandbox, and gives the outcome of each item."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from regard.course.catalogue import entries, exercise
from regard.course.certificate.contents import Certificate, Item, digest
from regard.course.grading.grader import grade

Outcome = Literal["passes", "fails", "changed", "no-answer", "unknown", "no-torch"]


@dataclass(frozen=True)
class Checked:
    """One item, and what became of it when it was run again."""

    item: Item
    outcome: Outcome
    reason: str = ""
    """The diagnosis of an answer that fails."""


def verify(certificate: Certificate) -> Iterator[Checked]:
    """Run every item again, on new data."""
    known = {row.id: row for row in entries()}
    for item in certificate.items:
        row = known.get(item.id)
        if row is None:
            yield Checked(item, "unknown")
        elif item.answer is None:
            yield Checked(item, "no-answer")
        elif digest(item.answer) != item.sha256:
            yield Checked(item, "changed")
        elif row.track == "torch" and row.kind != "sheet" and find_spec("torch") is None:
            yield Checked(item, "no-torch")
        else:
            verdict = grade(exercise(item.id), item.answer)
            yield Checked(item, "passes" if verdict.passed else "fails", verdict.diagnosis or "")
