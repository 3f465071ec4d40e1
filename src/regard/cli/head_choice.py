"""Which heads `regard see` shows: --kind, --layer and --head, held against what a Trace has; and these as JSON."""

from typing import TYPE_CHECKING, Any, NamedTuple

from regard.cli.number_options import is_count
from regard.errors import ArgumentError
from regard.messages import Listed, say

if TYPE_CHECKING:
    from regard.records import Record
    from regard.trace import Trace

KINDS = ("encoder", "decoder", "cross")
ALL, MEAN = "all", "mean"


class Asked(NamedTuple):
    """The three options as they were written, looked at for their form; None where one was not given."""

    kind: str | None = None
    layer: str | None = None
    head: str | None = None

    def check(self) -> None:
        """What no model could answer is told before one runs."""
        if self.kind not in (None, *KINDS):
            raise ArgumentError("option-unknown", option="--kind", asked=self.kind, choices=Listed(KINDS))
        for option, value, words in (("--layer", self.layer, (ALL,)), ("--head", self.head, (ALL, MEAN))):
            if value is not None and value not in words and not is_count(value):
                raise ArgumentError("see-choice", option=option, found=value, words=say("see-or").join(words))


class Chosen(NamedTuple):
    """Records of one kind with the number of their layer, and heads of each.

    heads   those to be drawn in full; None for an overview of all
    mean    the mean of all heads instead
    best    the layer and head that this kind of attention is best seen by, if the model's settings say so
    among   heads among which the one to be drawn was found, as the one with the clearest pattern; else None
    """

    layers: list[int]
    records: "list[Record]"
    heads: list[int] | None
    mean: bool
    best: tuple[int, int] | None
    among: int | None = None


def choose(trace: "Trace", asked: Asked) -> Chosen:
    """What is asked for; where nothing is, the head that every view of the Trace opens with.

    That is one of cross-attention, and of self-attention only where there is no other. Raises ArgumentError with what
    there is.
    """
    from regard.views.opening_head import opening_head

    if asked == Asked() and len(trace):
        at, head = opening_head(trace, list(trace))
        record = trace[at]
        alike = [one.name for one in trace if one.kind == record.kind]
        layer, is_named = alike.index(record.name), trace.opening == (record.name, head)
        count = None if is_named else sum(one.shape[1] for one in trace)
        return Chosen([layer], [record], [head], False, (layer, head) if is_named else None, count)
    best = None
    if trace.opening is not None and (of := trace[trace.opening[0]]).kind == "cross":
        best = [one.name for one in trace if one.kind == of.kind].index(of.name), trace.opening[1]
    kinds = list(dict.fromkeys(record.kind for record in trace))
    main = "cross" if "cross" in kinds else "decoder"
    kind = asked.kind or main
    records = [record for record in trace if record.kind == kind]
    if not records:
        raise ArgumentError("see-kind", asked=kind, kinds=Listed(kinds))
    if kind != main:
        best = None
    layers, heads = list(range(len(records))), None
    if asked.layer is not None and asked.layer != ALL:
        layers = [_number("--layer", asked.layer, len(records))]
    elif asked.layer is None and best is not None:
        layers = [best[0]]
    H = records[0].shape[1]
    if asked.head == ALL:
        heads = list(range(H))
    elif asked.head is not None and asked.head != MEAN:
        heads = [_number("--head", asked.head, H)]
    elif asked.layer is asked.head is None and best is not None:
        heads = [best[1]]
    return Chosen(layers, [records[layer] for layer in layers], heads, asked.head == MEAN, best)


def record_as_json(record: "Record", layer: int, heads: list[Any], weights: Any) -> dict[str, Any]:
    """A record as --json writes it; `weights` (H, T, S) has a map for each of the `heads`."""
    sides = {"queries": record.queries, "written": record.written, "keys": record.keys}
    tokens = {side: list(rows[0]) if rows else None for side, rows in sides.items()}
    about = {"name": record.name, "kind": record.kind, "layer": layer, "heads": heads}
    return about | tokens | {"weights": weights.tolist()}


def _number(option: str, text: str, count: int) -> int:
    if int(text) >= count:
        raise ArgumentError("see-number", option=option, found=text, last=count - 1)
    return int(text)
