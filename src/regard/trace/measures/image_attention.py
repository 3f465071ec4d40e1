"""The attention between a word, or any other query, and the patches of pictures: exact weights, shares, sinks."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from regard.arrays import is_integer, to_numpy
from regard.axes import in_range
from regard.errors import ArgumentError, NotKeptError, UnknownNameError
from regard.images import RecordImage
from regard.messages import Listed
from regard.records import Record, tokens_of

if TYPE_CHECKING:
    from regard.trace.trace import Trace

Head = int | Literal["mean"] | None
SINK_TIMES, SINK_QUANTILE, SINK_QUERIES = 5.0, 0.25, 8
"""A patch is a sink if at least three quarters of the queries that see it give it five times an even share; with fewer
than eight such queries nothing is known."""
MOST_QUERIES = 256
"""Queries from which sinks are found."""
_LONGEST_WORD = 24
"""The most tokens of a word."""
_BYTE = re.compile(r"⟨([0-9A-F]{2})⟩")
_ROLLOUT = "rollout"


@dataclass(frozen=True, slots=True, eq=False)
class ViewWeights:
    """The weights of the patches of one picture, crop or frame, rows × columns; NaN where a patch is not in the record.

    sinks    patches to which nearly every query attends; None where this is unknown
    """

    image: RecordImage
    weights: np.ndarray
    sinks: np.ndarray | None

    @property
    def share(self) -> float:
        """The sum of the weights."""
        return float(np.nansum(self.weights))

    @property
    def sink_share(self) -> float:
        """The sum of the weights of sinks."""
        return 0.0 if self.sinks is None else float(np.nansum(self.weights[self.sinks]))

    @property
    def border_sinks(self) -> int:
        """The number of sinks at the border of the picture."""
        if self.sinks is None:
            return 0
        return int(self.sinks.sum() - self.sinks[1:-1, 1:-1].sum())


@dataclass(frozen=True, slots=True, eq=False)
class ImageAttention:
    """What was asked, and the weights on each picture.

    side       "keys": how much the asked query attends to each patch. "queries": how much each patch attends to the
               asked key
    positions  the tokens of the asked word; their mean is drawn
    patch      row and column, where a patch was asked for
    first      the weight of the first key, if that is no patch; None for patches as queries
    """

    record: Record
    head: int | None
    sample: int
    side: Literal["keys", "queries"]
    label: str
    positions: tuple[int, ...]
    patch: tuple[RecordImage, int, int] | None
    views: tuple[ViewWeights, ...]
    first: float | None

    @property
    def share(self) -> float:
        """The share of the attention on the patches of all views."""
        return sum(view.share for view in self.views)


def attend_to_images(
    trace: "Trace",
    query: Any = None,
    layer: int | str | None = None,
    head: Head = None,
    sample: int = 0,
    image: int | None = None,
) -> ImageAttention:
    """The attention of a query to the pictures of one record; see `Trace.image`."""
    record = _chosen(trace, layer, query, sample, image)
    chosen = _chosen_head(record, head)
    images = _images(record, sample, image)
    side: Literal["keys", "queries"] = "keys" if images[0].is_on("keys") else "queries"
    label, positions, patch = _resolved(record, query, sample, side, image)
    weights = _row(record, chosen, sample, side, positions)
    found = tuple(_view(record, chosen, one, weights, sample, side) for one in images if one.is_on(side))
    patches = {int(at) for one in record.images if one.is_on(side) for at in one.patches}
    first = float(weights[0]) if side == "keys" and 0 not in patches and len(weights) else None
    return ImageAttention(record, chosen, sample, side, label, positions, patch, found, first)


# --- which record ----------------------------------------------------------------------------------------


def _chosen(trace: "Trace", layer: int | str | None, query: Any, sample: int, image: int | None) -> Record:
    """The record that is asked for: among the calls of a module, the one that has the query and the picture."""
    if not len(trace):
        raise ArgumentError("trace-empty")
    if not any(record.images for record in trace):
        raise ArgumentError("image-none", count=len(trace))
    if isinstance(layer, str) and layer == _ROLLOUT and _ROLLOUT not in trace.names:
        return _rolled(trace, query, sample)
    if layer is None:
        several: Iterable[Record] = reversed([record for record in trace if record.images])
    elif isinstance(layer, str):
        module = trace[layer].module
        several = [trace[layer]] if "#" in layer else [record for record in trace if record.module == module]
    else:
        several = [trace[in_range("layer", layer, len(trace))]]
    several = list(several)
    failures: list[Exception] = []
    for record in several:
        try:
            images = _images(record, sample, image)
            _resolved(record, query, sample, "keys" if images[0].is_on("keys") else "queries", image)
        except (ArgumentError, UnknownNameError) as error:
            failures.append(error)
        else:
            return record
    raise failures[0]


def _rolled(trace: "Trace", query: Any, sample: int) -> Record:
    """The rollout of the stack of layers that the last record with the query belongs to."""
    last = _chosen(trace, None, query, sample, None)
    stack = re.sub(r"\d+", "#", last.module)
    alike = [one for one in trace if re.sub(r"\d+", "#", one.module) == stack and one.shape == last.shape]
    return trace._part(alike).rollout()[0]


def _images(record: Record, sample: int, number: int | None) -> list[RecordImage]:
    """The pictures of a sample, or one of them. Raises ArgumentError where there is none."""
    B = record.shape[0]
    if not record.images:
        raise ArgumentError("image-not-here", name=record.name)
    sample = in_range("sample", sample, B)
    found = [one for one in record.images if one.is_of(sample)]
    chosen = [one for one in found if number is None or one.number == number]
    if not chosen:
        numbers = sorted({one.number for one in found})
        raise ArgumentError("image-number", asked=number, name=record.name, found=Listed([str(n) for n in numbers]))
    on_keys = [one for one in chosen if one.is_on("keys")]
    return on_keys or chosen


def _chosen_head(record: Record, head: Head) -> int | None:
    """The number of a head; None for the mean of all."""
    if head is None or (isinstance(head, str) and head == "mean"):
        return None
    if not is_integer(head):
        raise ArgumentError("image-head", found=head)
    return in_range("head", head, record.shape[1])


# --- what was asked ----------------------------------------------------------------------------------------


def _resolved(
    record: Record, query: Any, sample: int, side: str, image: int | None
) -> tuple[str, tuple[int, ...], tuple[RecordImage, int, int] | None]:
    """The label, the positions, and the patch of a query; of a key where the patches are the queries."""
    length = record.shape[2] if side == "keys" else record.shape[3]
    own = [one for one in record.images if one.is_of(sample) and one.is_on("queries" if side == "keys" else "keys")]
    tokens = record.query_tokens if side == "keys" else record.key_tokens
    if query is None:
        return _default(record, own, length, tokens, sample)
    if is_integer(query):
        at = in_range("query", query, length)
        return _name(at, own, tokens, sample), (at,), None
    if isinstance(query, tuple) and len(query) == 2 and all(is_integer(one) for one in query):
        return _patch(record, query, own, image)
    if not isinstance(query, str):
        raise ArgumentError("image-query", found=query)
    extra = next((one.extra for one in own if query in one.extra), None)
    if extra is not None:
        return query, (extra.index(query),), None
    if tokens is None:
        names = Listed([f'"{name}"' for one in own[:1] for name in one.extra] or ["0"])
        raise ArgumentError("image-no-words", asked=query, name=record.name, found=names)
    found = find_word(query, tokens_of(tokens, sample))
    if not found:
        raise UnknownNameError("image-word", asked=query, name=record.name, count=length)
    return query, found, None


def _default(
    record: Record, own: Sequence[RecordImage], length: int, tokens: Any, sample: int
) -> tuple[str, tuple[int, ...], None]:
    """[CLS] where there is one, the last token of a text, else the mean over all queries."""
    if own and own[0].extra:
        return own[0].extra[0], (0,), None
    if record.kind == "decoder" or length == 1:
        return _name(length - 1, own, tokens, sample), (length - 1,), None
    return "", tuple(range(length)), None


def _name(at: int, own: Sequence[RecordImage], tokens: Any, sample: int) -> str:
    if own and at < len(own[0].extra):
        return own[0].extra[at]
    token = tokens_of(tokens, sample)[at] if tokens is not None else ""
    return token.strip() or str(at)


def _patch(
    record: Record, query: tuple[int, int], own: Sequence[RecordImage], image: int | None
) -> tuple[str, tuple[int, ...], tuple[RecordImage, int, int]]:
    outside: tuple[int, int] | None = None
    for one in own:
        rows, cols = one.grid
        if image is not None and one.number != image:
            continue
        if not (0 <= query[0] < rows and 0 <= query[1] < cols):
            outside = one.grid
            continue
        at = int(one.patches[query[0] * cols + query[1]])
        if at >= 0:
            return "", (at,), (one, int(query[0]), int(query[1]))
    if outside is not None:
        raise ArgumentError("image-patch-range", asked=query, rows=outside[0], cols=outside[1])
    raise ArgumentError("image-patch-none", asked=query, name=record.name)


def find_word(word: str, tokens: Sequence[str]) -> tuple[int, ...]:
    """The positions of the last occurrence of a word, which may be several tokens; () if there is none.

    >>> find_word("giraffe", ["a", "▁gir", "affe", "."]), find_word("床", ["⟨E5⟩", "⟨BA⟩", "⟨8A⟩"])
    ((1, 2), (0, 1, 2))
    """
    plain = [_bytes(token) for token in tokens]
    folds: tuple[Callable[[bytes], bytes], ...] = (bytes, bytes.lower)
    for fold in folds:
        wanted = fold(_bytes(word))
        if not wanted:
            return ()
        for start in range(len(plain) - 1, -1, -1):
            joined = b""
            for end in range(start, min(len(plain), start + _LONGEST_WORD)):
                joined += fold(plain[end])
                if joined == wanted and plain[start]:
                    return tuple(range(start, end + 1))
                if not wanted.startswith(joined):
                    break
    return ()


def _bytes(token: str) -> bytes:
    """A token without signs of word starts, its parts of characters as bytes."""
    text = token.strip().lstrip("▁Ġ").removeprefix("##").removesuffix("</w>").strip()
    parts = _BYTE.split(text)  # text, byte, text, byte, …
    return b"".join(bytes([int(part, 16)]) if at % 2 else part.encode() for at, part in enumerate(parts))


# --- weights -----------------------------------------------------------------------------------------------


def _weights(
    record: Record, head: int | None, sample: int, rows: slice | None, cols: slice | None = None
) -> np.ndarray:
    """A rectangle of one head, or of the mean of all."""
    if head is None:
        return np.asarray(to_numpy(record.weights(rows, cols))[sample], np.float64).mean(0)
    return np.asarray(to_numpy(record.weights(rows, cols, head=head))[sample], np.float64)


def _row(record: Record, head: int | None, sample: int, side: str, positions: tuple[int, ...]) -> np.ndarray:
    """The mean weights of the asked queries over all keys; the weights of the asked keys together for all queries."""
    chosen = slice(positions[0], positions[-1] + 1)
    if side == "keys":
        return _weights(record, head, sample, chosen).mean(0)
    return _weights(record, head, sample, None, chosen).sum(-1)


def _view(
    record: Record, head: int | None, image: RecordImage, weights: np.ndarray, sample: int, side: str
) -> ViewWeights:
    places = image.patches
    cells = np.where(places >= 0, weights[np.maximum(places, 0)], np.nan).reshape(image.grid)
    return ViewWeights(image, cells, image_sinks(record, head, image, sample) if side == "keys" else None)


def image_sinks(record: Record, head: int | None, image: RecordImage, sample: int) -> np.ndarray | None:
    """The patches, rows × columns, to which nearly every query attends; None where this is unknown.

    A known trait of vision transformers: some patches without information serve as a store, and attract attention from
    everywhere (Darcet et al. 2023).
    """
    T, S = record.shape[2:]
    places = image.patches
    known = places >= 0
    if T < SINK_QUERIES or not known.any():
        return None
    low, high = int(places[known].min()), int(places.max()) + 1
    try:
        blocks = [(rows, _weights(record, head, sample, rows, slice(low, high))) for rows in _sampled_rows(T)]
    except NotKeptError:
        return None
    rows = np.concatenate([np.arange(part.start, part.stop) for part, _ in blocks])
    weights = np.concatenate([part for _, part in blocks])
    visible = (S - T + rows + 1 if record.kind == "decoder" else np.full(len(rows), S))[:, None]
    ratio = np.where(weights > 0, weights * visible, np.nan)
    counted = np.isfinite(ratio).sum(0)
    low_share = np.zeros(ratio.shape[1])
    enough = counted >= SINK_QUERIES
    if enough.any():
        low_share[enough] = np.nanquantile(ratio[:, enough], SINK_QUANTILE, axis=0)
    is_sink = low_share >= SINK_TIMES
    return (known & is_sink[np.where(known, places - low, 0)]).reshape(image.grid)


def _sampled_rows(T: int) -> list[slice]:
    """All queries, or blocks spread evenly over a long text."""
    if T <= MOST_QUERIES:
        return [slice(0, T)]
    size = MOST_QUERIES // 8
    return [slice(at, at + size) for at in np.linspace(0, T - size, 8).astype(int).tolist()]
