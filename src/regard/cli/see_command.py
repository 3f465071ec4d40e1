"""`regard see`: run a model on a text and show its attention: the heads from --kind, --layer and --head.

The model may be the layer with weights set by hand, whose heads have names.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from regard.cli.arguments import HANDMADE, BackendOption, is_count, load_model, notes_as_json, see_text, whole_number
from regard.cli.streams import given_text, hint_at_file, print_message, put, write_json
from regard.errors import ArgumentError, TooLargeError, UnknownNameError
from regard.files.output import PAGES, PICTURES, TRACE, VECTOR, check_target, extension_of
from regard.messages import Listed, one_line, say

if TYPE_CHECKING:
    from regard.language import LanguageModel, Seen
    from regard.language.seeing import SilencedToken
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

    @property
    def is_one_head(self) -> bool:
        """Whether a single head is drawn in full."""
        return not self.mean and self.heads is not None and len(self.heads) * len(self.records) == 1


class OutputFiles(NamedTuple):
    """The files to write; None where one is not requested."""

    save: Path | None
    html: Path | None
    png: Path | None
    svg: Path | None

    def check(self) -> None:
        """Raise, before a model runs, for a path that cannot be written or has another ending than its format."""
        for file, endings in zip(self, ((TRACE,), PAGES, PICTURES, (VECTOR,)), strict=True):
            if file is not None:
                extension_of(file, *endings)
                check_target(file)

    @property
    def is_picture(self) -> bool:
        """Whether a picture file takes the place of the picture in the terminal."""
        return self.png is not None or self.svg is not None

    def save_trace(self, trace: "Trace") -> None:
        """Save all layers and heads to --save and --html."""
        if self.save is not None:
            trace.save(self.save, qk=True)
            print_message(say("saved", file=self.save))
        if self.html is not None:
            trace.html(self.html)
            print_message(say("saved", file=self.html))


def choose(trace: "Trace", options: HeadOptions) -> ChosenHeads:
    """The requested heads; without a request, the head that every view of the Trace opens with.

    That is a head of cross-attention, or of self-attention if there is no cross-attention. Raises ArgumentError with
    the available choices.
    """
    if options == HeadOptions() and len(trace):
        return _opening(trace)
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


def _opening(trace: "Trace") -> ChosenHeads:
    from regard.views.caption import opening_head

    at, head = opening_head(trace, list(trace))
    record = trace[at]
    names = [one.name for one in trace if one.kind == record.kind]
    layer, is_named = names.index(record.name), trace.opening == (record.name, head)
    count = None if is_named else sum(one.shape[1] for one in trace)
    return ChosenHeads([layer], [record], [head], False, (layer, head) if is_named else None, count)


def record_as_json(record: "Record", layer: int, heads: list[Any], weights: Any) -> dict[str, Any]:
    """A record as --json prints it; `weights` (H, T, S) has a map for each of the `heads`."""
    sides = {"queries": record.query_tokens, "written": record.written, "keys": record.key_tokens}
    tokens = {side: list(rows[0]) if rows else None for side, rows in sides.items()}
    about = {"name": record.name, "kind": record.kind, "layer": layer, "heads": heads}
    return about | tokens | {"weights": weights.tolist()}


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


MODEL = "translator"
TEXTS = {"translation": "I love you", "text": "床前明月光", "encoding": "The cat sat on the mat."}
"""The default text by the task of the model."""
MOST_WEIGHTS_IN_JSON = 4_000_000
"""About 80 MB of text; use --save for more."""
MOST_SILENCED = 5
"""The number of tokens that --silence prints."""


def see(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="metavar-text", help="help-text", show_default=False)
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", metavar="metavar-kind", help="help-kind")] = None,
    layer: Annotated[str | None, typer.Option("--layer", metavar="metavar-layer", help="help-layer")] = None,
    head: Annotated[str | None, typer.Option("--head", metavar="metavar-head", help="help-head")] = None,
    model: Annotated[str, typer.Option("--model", metavar="metavar-see-model", help="help-see-model")] = MODEL,
    backend: BackendOption = None,
    output: Annotated[str | None, typer.Option("--output", metavar="metavar-text", help="help-see-output")] = None,
    silence: Annotated[bool, typer.Option("--silence", help="help-see-silence")] = False,
    width: Annotated[str | None, typer.Option("--width", metavar="metavar-number", help="help-width")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
    save: Annotated[Path | None, typer.Option("--save", metavar="metavar-file", help="help-save")] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="metavar-file", help="help-see-html")] = None,
    png: Annotated[Path | None, typer.Option("--png", metavar="metavar-file", help="help-see-png")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="metavar-file", help="help-see-svg")] = None,
) -> None:
    columns = None if width is None else _columns(width)
    files = OutputFiles(save, html, png, svg)
    files.check()
    if model == HANDMADE:
        _check_handmade(kind, layer, output, silence)
        given = given_text(text)
        see_handmade(say("see-sentence") if given is None else given, head, files, columns=columns, as_json=as_json)
        return
    options = HeadOptions(kind, layer, head)
    options.check()
    lm = load_model(model, backend)
    given = given_text(text)
    seen = see_text(lm, TEXTS[lm.settings.task] if given is None else given.strip(), output)
    chosen = choose(seen.trace, options)
    if silence and not chosen.is_one_head:
        raise ArgumentError("see-silence-one")
    if svg is not None and not chosen.is_one_head:
        raise ArgumentError("see-svg-one")
    files.save_trace(seen.trace)
    if png is not None:
        _save_png(chosen, png)
    if svg is not None and chosen.heads is not None:
        save_svg(chosen.records[0], chosen.heads[0], svg)
    if as_json:
        write_json(_as_json(lm, seen, chosen) | (_silenced_as_json(lm, seen, chosen) if silence else {}))
        return
    put(first_line(lm, seen))
    if not files.is_picture:
        named = bool(lm.settings.alignment_heads)
        _show(chosen, columns, None if options == HeadOptions() else ALL, named=named)
        if silence:
            _show_silenced(lm, seen, chosen)
        for key in _hints(seen, lm.settings.task, chosen, example=given is None, heads=options == HeadOptions()):
            print_message(say(key))
    hint_at_file("see", text)


def first_line(lm: "LanguageModel", seen: "Seen") -> str:
    """The text as read and the output: with an arrow for a translation, else as one text."""
    between = " → " if lm.settings.task == "translation" else ""
    return one_line(f"{seen.text}{between}{seen.output}")


def _hints(seen: "Seen", task: str, chosen: ChosenHeads, *, example: bool, heads: bool) -> Iterator[str]:
    """Message keys of hints about what to try next."""
    from regard.text.segmentation import split_sentences

    if task == "translation" and len(split_sentences(seen.text)) > 1:
        yield "see-sentences"
    if example:
        yield "see-example"
    if heads:
        yield "see-more-overview" if chosen.best is None else f"see-more-{task}"


def _show(chosen: ChosenHeads, columns: int | None, overview: str | None, *, named: bool) -> None:
    """Print the requested heads in full, one after another; without --head an overview of all.

    named   whether the model's settings name the best head
    """
    from regard.trace import Trace

    if chosen.heads is None and not chosen.mean:
        put()
        Trace(chosen.records).show(overview, width=columns, file=sys.stdout)
    for layer, record in zip(chosen.layers, chosen.records, strict=True):
        if chosen.mean:
            put()
            Trace([record]).show(head="mean", width=columns, file=sys.stdout)
        for head in chosen.heads or []:
            put()
            if chosen.best == (layer, head):
                put(say(f"see-best-{record.kind}" if named else "see-matters", layer=layer, head=head))
            elif chosen.candidates is not None:
                put(say("see-clearest", layer=layer, head=head, count=chosen.candidates))
            Trace([record]).show(head=head, width=columns, file=sys.stdout)
    sys.stdout.flush()


def _silenced(lm: "LanguageModel", seen: "Seen", chosen: ChosenHeads) -> "list[SilencedToken]":
    assert chosen.heads is not None
    return lm.silence(seen, chosen.records[0].name, chosen.heads[0])


def _show_silenced(lm: "LanguageModel", seen: "Seen", chosen: ChosenHeads) -> None:
    """Print the written tokens whose probability changes most without the head, at most five."""
    from regard.views.labels import pad, row_label

    silenced = _silenced(lm, seen, chosen)
    tokens = sorted(silenced, key=lambda one: one.after - one.before)[:MOST_SILENCED]
    put()
    if (most := _most_read(chosen, silenced.index(tokens[0]) if tokens else 0)) is not None:
        row = row_label(tokens[0].read, tokens[0].written)
        put(say("see-silenced-reads", row=row, token=most[0], weight=f"{most[1]:.2f}"))
    put(say("see-silenced"))
    for one in tokens:
        change = f"{one.before:.2f} → {one.after:.2f}"
        instead = "" if one.instead == one.written else "   " + say("see-silenced-instead", token=one.instead)
        put(f"  {pad(row_label(one.read, one.written), 14)} {change}{instead}")
    sys.stdout.flush()


def _most_read(chosen: ChosenHeads, number: int) -> tuple[str, float] | None:
    """The key with the largest weight in the row that writes the token of this number, and that weight.

    None if the rows of the record do not write.
    """
    record = chosen.records[0]
    rows = [row for row, token in enumerate(record.written[0] if record.written else ()) if token]
    if number >= len(rows) or record.key_tokens is None or chosen.heads is None:
        return None
    weights = record.weights(head=chosen.heads[0])[0][rows[number]]
    return record.key_tokens[0][int(weights.argmax())].strip(), float(weights.max())


def _silenced_as_json(lm: "LanguageModel", seen: "Seen", chosen: ChosenHeads) -> dict[str, Any]:
    return {"silenced": [one._asdict() for one in _silenced(lm, seen, chosen)]}


def _save_png(chosen: ChosenHeads, path: Path) -> None:
    """Save the same heads as one picture."""
    from regard.trace import Trace
    from regard.trace.from_weights import mean_of_heads
    from regard.views.plots import save_plot

    records = [mean_of_heads(record) for record in chosen.records] if chosen.mean else chosen.records
    one = chosen.heads[0] if chosen.heads is not None and len(chosen.heads) == 1 else None
    save_plot(Trace(records), path, head=one)
    print_message(say("saved", file=path))


def _as_json(lm: "LanguageModel", seen: "Seen", chosen: ChosenHeads) -> dict[str, Any]:
    """The same heads with every weight."""
    count = 1 if chosen.mean else None
    sizes = [(count or len(chosen.heads or range(r.shape[1]))) * r.shape[2] * r.shape[3] for r in chosen.records]
    if sum(sizes) > MOST_WEIGHTS_IN_JSON:
        raise TooLargeError("see-json-too-large", found=sum(sizes), most=MOST_WEIGHTS_IN_JSON)
    records = []
    for layer, record in zip(chosen.layers, chosen.records, strict=True):
        weights = record.weights()[0]  # H T S
        heads: list[Any] = list(range(len(weights))) if chosen.heads is None else chosen.heads
        weights = weights.mean(0, keepdims=True) if chosen.mean else weights[heads]
        records.append(record_as_json(record, layer, ["mean"] if chosen.mean else heads, weights))
    about = {"model": lm.name, "text": seen.text, "output": seen.output}
    notes = notes_as_json(seen.notes) if lm.settings.task == "translation" else {}
    return {**about, **notes, "records": records}


def _columns(width: str) -> int:
    from regard.views.terminal import NARROWEST

    return whole_number("--width", width, least=NARROWEST)


MOST_WORDS = 20_000
"""Time is quadratic in the number of words; this number takes about ten seconds."""
MOST_WORDS_IN_JSON = 1000
"""Four heads of 1000 × 1000 weights are about 80 MB of text; use --save for more."""


def see_handmade(text: str, head: str | None, files: OutputFiles, *, columns: int | None, as_json: bool) -> None:
    """Run the layer on the words of the text, and show or save the attention of each head."""
    from regard.language.handmade import HEADS, run_layer
    from regard.text import split_words

    heads = _handmade_heads(head, HEADS)
    words = split_words(text)
    if not words:
        raise ArgumentError("cli-text-empty")
    if as_json and len(words) > MOST_WORDS_IN_JSON:
        raise TooLargeError("cli-json-too-large", found=len(words), most=MOST_WORDS_IN_JSON)
    if len(words) > MOST_WORDS:
        raise TooLargeError("cli-text-too-long", found=len(words), most=MOST_WORDS)
    if files.svg is not None and len(heads) != 1:
        raise ArgumentError("see-svg-one")
    print_message(say("see-handmade"))
    trace = run_layer(words).trace
    files.save_trace(trace)
    if files.png is not None:
        from regard.views.plots import save_plot

        save_plot(trace, files.png, head=heads[0] if len(heads) == 1 else None)
        print_message(say("saved", file=files.png))
    if files.svg is not None:
        save_svg(trace[0], heads[0], files.svg)
    if as_json:
        names = [HEADS[number] for number in heads]
        records = [record_as_json(record, 0, names, record.weights()[0, heads]) for record in trace]
        write_json({"model": HANDMADE, "text": text, "output": None, "records": records})
    elif not files.is_picture:
        _show_handmade(trace, heads, HEADS, head, columns)


def _show_handmade(
    trace: "Trace", heads: list[int], names: tuple[str, ...], head: str | None, columns: int | None
) -> None:
    """Print an overview of all heads side by side; with --head, each in full under its own line."""
    for number in heads:
        if head is not None and number != heads[0]:
            put()
        put(say("see-head", number=number, does=say(f"head-{names[number]}")))
        if head is not None:
            trace.show(head=number, width=columns, file=sys.stdout)
    if head is None:
        put()
        trace.show(width=columns, file=sys.stdout)
        sys.stdout.flush()
        print_message(say("see-more"))


def _check_handmade(kind: str | None, layer: str | None, output: str | None, silence: bool) -> None:
    """Raise ArgumentError for an option that the layer with weights set by hand does not have."""
    if kind is not None or layer is not None:
        raise ArgumentError("see-handmade-one")
    if output is not None:
        raise ArgumentError("see-handmade-output")
    if silence:
        raise ArgumentError("see-handmade-silence")


def _handmade_heads(head: str | None, names: tuple[str, ...]) -> list[int]:
    """The requested heads: one by number or name, or all."""
    if head in (None, "all"):
        return list(range(len(names)))
    if head in names:
        return [names.index(head)]
    if is_count(head) and int(head) < len(names):
        return [int(head)]
    heads = Listed(f"{number} ({name})" for number, name in enumerate(names))
    raise UnknownNameError("cli-head-unknown", asked=head, heads=heads)
