"""What a model wrote, in a trace file: the likeliest next tokens of each query, and the texts that beam search found.

    "candidates"   [[[token, probability], …] for each query]
    "beams"        [[[token, …], score], …]

Bounded in size: of a longer text only the last queries keep their candidates, and long tokens are cut.
"""

from typing import TYPE_CHECKING, Any

from regard.trace.read_record import Tensors

if TYPE_CHECKING:
    from regard.trace.trace import Candidates, Trace, WrittenBeam

MOST_QUERIES, MOST_CANDIDATES, MOST_BEAMS = 4096, 8, 16
LONGEST_TOKEN = 120


def written_entry(trace: "Trace") -> dict[str, Any]:
    """The JSON of what was written; {} where nothing is known."""
    found: dict[str, Any] = {}
    if trace.candidates is not None:
        dropped = max(0, len(trace.candidates) - MOST_QUERIES)
        listed = [
            [[token[:LONGEST_TOKEN], float(f"{p:.6g}")] for token, p in one[:MOST_CANDIDATES]]
            for one in trace.candidates[dropped:]
        ]
        found["candidates"] = [[] for _ in range(dropped)] + listed
    if trace.beams is not None:
        found["beams"] = [
            [[token[:LONGEST_TOKEN] for token in tokens[:MOST_QUERIES]], float(score)]
            for tokens, score in trace.beams[:MOST_BEAMS]
        ]
    return found


def candidates_in(tensors: Tensors, about: dict[str, Any]) -> "tuple[Candidates, ...] | None":
    """The candidates of each query. Raises FileError where the file is invalid."""
    found = about.get("candidates")
    if found is None:
        return None
    if not (isinstance(found, list) and all(isinstance(one, list) and all(map(_is_candidate, one)) for one in found)):
        raise tensors.garbled("candidates")
    return tuple(tuple((token, float(p)) for token, p in one) for one in found)


def beams_in(tensors: Tensors, about: dict[str, Any]) -> "tuple[WrittenBeam, ...] | None":
    """The texts that beam search found. Raises FileError where the file is invalid."""
    found = about.get("beams")
    if found is None:
        return None
    if not (isinstance(found, list) and all(map(_is_beam, found))):
        raise tensors.garbled("beams")
    return tuple((tuple(tokens), float(score)) for tokens, score in found)


def _is_candidate(found: Any) -> bool:
    return _is_pair(found) and isinstance(found[0], str) and 0 <= found[1] <= 1


def _is_beam(found: Any) -> bool:
    return _is_pair(found) and isinstance(found[0], list) and all(isinstance(token, str) for token in found[0])


def _is_pair(found: Any) -> bool:
    """Whether it is something with a finite number."""
    is_pair = isinstance(found, list) and len(found) == 2 and type(found[1]) in (int, float)
    return is_pair and abs(found[1]) < float("inf")
