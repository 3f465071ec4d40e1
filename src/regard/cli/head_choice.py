"""The heads that `regard see` shows, from --kind, --layer and --head; a record as JSON; the Trace saved to files."""

from typing import TYPE_CHECKING, Any, NamedTuple

from regard.cli.number_options import is_count
from regard.cli.streams import print_message
from regard.errors import ArgumentError
from regard.messages import Listed, say

if TYPE_CHECKING:
    from pathlib import Path

    from regard.records import Record
    from regard.trace import Trace

KINDS = ("encoder", "decoder", "cross")
ALL, MEAN = "all", "mean"


class HeadOptions(NamedTuple):
    """The three options as written; None where one is not given."""

    kind: str | None = None
    layer: str | None = None
    head: str | None = None

    def check(self) -> None:
        """Raise ArgumentError for values that are invalid for every model."""
        if self.kind not in (None, *KINDS):
            raise ArgumentError("option-unknown", option="--kind", asked=self.kind, choices=Listed(KINDS))
        for option, value, words in (("--layer", self.layer, (ALL,)), ("--head", self.head, (ALL, MEAN))):
            if value is not None and value not in words and not is_count(value):
                raise ArgumentError("see-choice", option=option, found=value, words=say("see-or").join(words))


class ChosenHeads(NamedTuple):
    """Records of one kind with the numbers of their layers, and the heads to show.

    heads        heads to draw in full; None for an overview of all
    mean         whether to show the mean of all heads instead
    best         the layer and head that the model's settings name for this kind of attention, else None
    candidates   the number of heads among which the shown one has the clearest pattern; else None
    """

    layers: list[int]
    records: "list[Record]"
    heads: list[int] | None
    mean: bool
    best: tuple[int, int] | None
    candidates: int | None = None


def choose(trace: "Trace", options: HeadOptions) -> ChosenHeads:
    """The requested heads; without a request, the head that every view of the Trace opens with.

    That is a head of cross-attention, or of self-attention if there is no cross-attention. Raises ArgumentError with
    the available choices.
    """
    from regard.views.caption import opening_head

    if options == HeadOptions() and len(trace):
        at, head = opening_head(trace, list(trace))
        record = trace[at]
        names = [one.name for one in trace if one.kind == record.kind]
        layer, is_named = names.index(record.name), trace.opening == (record.name, head)
        count = None if is_named else sum(one.shape[1] for one in trace)
        return ChosenHeads([layer], [record], [head], False, (layer, head) if is_named else None, count)
    best = None
    if trace.opening is not None and (opening := trace[trace.opening[0]]).kind == "cross":
        best = [one.name for one in trace if one.kind == opening.kind].index(opening.name), trace.opening[1]
    kinds = list(dict.fromkeys(record.kind for record in trace))
    main = "cross" if "cross" in kinds else "decoder"
    kind = options.kind or main
    records = [record for record in trace if record.kind == kind]
    if not records:
        raise ArgumentError("see-kind", asked=kind, kinds=Listed(kinds))
    if kind != main:
        best = None
    layers, heads = list(range(len(records))), None
    if options.layer is not None and options.layer != ALL:
        layers = [_number("--layer", options.layer, len(records))]
    elif options.layer is None and best is not None:
        layers = [best[0]]
    H = records[0].shape[1]
    if options.head == ALL:
        heads = list(range(H))
    elif options.head is not None and options.head != MEAN:
        heads = [_number("--head", options.head, H)]
    elif options.layer is options.head is None and best is not None:
        heads = [best[1]]
    return ChosenHeads(layers, [records[layer] for layer in layers], heads, options.head == MEAN, best)


def record_as_json(record: "Record", layer: int, heads: list[Any], weights: Any) -> dict[str, Any]:
    """A record as --json prints it; `weights` (H, T, S) has a map for each of the `heads`."""
    sides = {"queries": record.query_tokens, "written": record.written, "keys": record.key_tokens}
    tokens = {side: list(rows[0]) if rows else None for side, rows in sides.items()}
    about = {"name": record.name, "kind": record.kind, "layer": layer, "heads": heads}
    return about | tokens | {"weights": weights.tolist()}


def save_files(trace: "Trace", save: "Path | None", html: "Path | None") -> None:
    """Save all layers and heads to the requested files."""
    if save is not None:
        trace.save(save, qk=True)
        print_message(say("saved", file=save))
    if html is not None:
        trace.html(html)
        print_message(say("saved", file=html))


def save_svg(record: "Record", head: int, path: "Path") -> None:
    """Save one head as an SVG that fits a column of a paper; needs no matplotlib."""
    from regard.files.output import write_output
    from regard.messages import language
    from regard.views.explorer.still import still
    from regard.views.picture import merged_or_cut, picture

    drawn, sample = merged_or_cut(record, 0, None)
    write_output(path, still(picture(drawn, head, sample), language()).encode())
    print_message(say("saved", file=path))


def _number(option: str, text: str, count: int) -> int:
    if int(text) >= count:
        raise ArgumentError("see-number", option=option, found=text, last=count - 1)
    return int(text)
