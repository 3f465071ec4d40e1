"""Trace: the records of a run, accessed by number, name or kind.

Drawing is in `regard.views`, the file format in `regard.trace.file`.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex, TextIO, overload

from regard.errors import ArgumentError, UnknownNameError
from regard.files.output import PAGES, extension_of
from regard.images import Side
from regard.messages import Language, Listed, printable
from regard.records import Kind, Record, See
from regard.trace.from_weights import KINDS, is_layers, mean_of_heads, record_from_weights
from regard.trace.pooling import Merge, merged

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from regard.trace.comparison import Comparison
    from regard.trace.measures import Heads
    from regard.trace.trace_merging import Split

Colour = Literal["truecolor", "256", "none"]
Layer = int | str | None
Range = slice | range | None
"""Positions whose exact weights are drawn; None for all of them."""
Candidates = tuple[tuple[str, float], ...]
"""Tokens with their probabilities, the likeliest first."""


class Temperatures(NamedTuple):
    """What makes the probabilities of the candidates exact at other temperatures: p^(1/T) divided by its sum."""

    stops: tuple[float, ...]
    """Temperatures T, smallest first."""
    log_sums: tuple[tuple[float, ...], ...]
    """For each query log Σ p^(1/T) over the whole vocabulary, one number for each T; () where it is unknown."""


WrittenBeam = tuple[tuple[str, ...], float]
"""The tokens of a text that beam search found, and its score."""
ScaleName = Literal["auto", "linear", "log", "renormalised", "hidden"]


class Trace:
    """The records of a run, in call order. A second record of the same name becomes `name#1`, a third `name#2`.

    >>> import numpy as np
    >>> trace = Trace.from_weights(np.eye(3), queries=["I", "love", "you"], name="h.0.attn")
    >>> trace["0.attn"].shape, len(trace)
    ((1, 1, 3, 3), 1)
    """

    def __init__(self, records: Iterable[Record] | Record = ()) -> None:
        self._made: list[Record] = []
        self._by_name: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self.texts: tuple[str, str] | None = None
        """The exact text that was read and the text that was generated, where known: tokens may not show spaces."""
        self.opening: tuple[str, int] | None = None
        """The record name and the head that views show first, where the model's settings name one."""
        self.candidates: tuple[Candidates, ...] | None = None
        """The likeliest next tokens of every query of the decoder, with their probabilities, where known."""
        self.temperatures: Temperatures | None = None
        """What the candidates' probabilities are at other temperatures, where known."""
        self.beams: tuple[WrittenBeam, ...] | None = None
        """The texts that beam search found, best first, as tokens with their scores, where known."""
        self.token_names: Callable[[Sequence[int]], list[str]] | None = None
        """Converts ids to tokens, where a tokenizer is known; not saved in files."""
        self._relevance: Callable[[Trace, Any, int | None], list[Record]] | None = None
        """Computes `relevance`, where the records are those of a watched model."""
        self.split: Split | None = None
        """What the processes of a distributed run divide, where `watch` knows it; not saved in files."""
        for record in [records] if isinstance(records, Record) else records:
            self.append(record)

    @classmethod
    def from_weights(
        cls,
        weights: Any,
        queries: Any = None,
        keys: Any = None,
        *,
        name: str = "attention",
        kind: Kind = "self",
        map: int | None = 256,
    ) -> "Trace":
        """A Trace of any attention weights, NumPy or torch; they are kept, not copied.

        (T, S) is one head, (H, T, S) several heads of one sample, (B, H, T, S) samples; further axes in front
        count samples too. Each of these is one record. A tuple or list of (B, H, T, S) arrays, as returned by Hugging
        Face with `output_attentions=True`, gives one record per layer: `name.0`, `name.1`, and so on.

        `queries` and `keys` are tokens; without `keys`, square self-attention uses `queries` for both. A row must
        sum to 1, or be all 0 for a fully masked query.
        """
        if is_layers(weights):
            named = {f"{name}.{layer}": each for layer, each in enumerate(weights)}
        else:
            named = {name: weights}
        return cls(record_from_weights(each, queries, keys, name=at, kind=kind, map=map) for at, each in named.items())

    def append(self, record: Record) -> None:
        """Add the record of the next call."""
        if not isinstance(record, Record):
            raise ArgumentError("not-a-record", found=type(record).__name__)
        name = self.numbered(record.name)
        self._by_name[name] = len(self._made)
        self._made.append(record if name == record.name else record.named(name))

    def numbered(self, name: str) -> str:
        """The name that the next record of that name will get: `name` itself, `name#1`, `name#2`, …"""
        found, count = name, self._counts.get(name, 0)
        while found in self._by_name:
            count += 1
            found = f"{name}#{count}"
        self._counts[name] = count  # a generation of a thousand steps uses each name a thousand times
        return found

    # --- access ------------------------------------------------------------------------------------------

    @property
    def _records(self) -> list[Record]:
        """All records, for every access from outside; a subclass may complete them first."""
        return self._made

    @property
    def names(self) -> list[str]:
        """The names of the records, in call order."""
        return list(self._by_name)

    def __len__(self) -> int:
        return len(self._made)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Record: ...
    @overload
    def __getitem__(self, key: slice) -> "Trace": ...
    def __getitem__(self, key: SupportsIndex | str | slice) -> "Record | Trace":
        """A record by number or by name (also a unique part of it between dots), or a Trace by a slice."""
        if isinstance(key, str):
            return self._records[self._named(key)]
        if isinstance(key, slice):
            return self._part(self._records[key])
        try:
            return self._records[key]
        except IndexError:
            raise UnknownNameError("record-index", asked=key, count=len(self)) from None
        except TypeError:
            raise ArgumentError("record-key", found=type(key).__name__) from None

    def _named(self, key: str) -> int:
        if key in self._by_name:
            return self._by_name[key]
        matching = [name for name in self._by_name if name.endswith(f".{key}")] if key else []
        if key and not matching:  # "h.1" of "transformer.h.1.attn"; of later calls "h.1#2"
            part, mark, call = key.partition("#")
            matching = [
                name
                for name in self._by_name
                if f".{part}." in f".{name.partition('#')[0]}." and name.partition("#")[1:] == (mark, call)
            ]
        if len(matching) == 1:
            return self._by_name[matching[0]]
        if matching:
            raise ArgumentError("record-ambiguous", asked=key, names=Listed(matching))
        near = get_close_matches(key, self._by_name, n=1, cutoff=0.0)
        if near:
            raise UnknownNameError("record-unknown", asked=key, nearest=near[0], count=len(self))
        raise UnknownNameError("record-unknown-empty", asked=key)

    def select(self, kind: Kind | None = None, name: str | None = None) -> "Trace":
        """The records of one kind, or whose name matches a pattern such as `"decoder.*"`, or both."""
        if kind is not None and kind not in KINDS:
            raise ArgumentError("kind-unknown", asked=kind, kinds=Listed(KINDS))
        return self._part(
            record
            for record in self
            if (kind is None or record.kind == kind) and (name is None or fnmatchcase(record.name, name))
        )

    def _part(self, records: Iterable[Record]) -> "Trace":
        """A Trace of other records with the same texts."""
        part = Trace(records)
        part.texts, part.opening, part.token_names = self.texts, self.opening, self.token_names
        part.candidates, part.temperatures, part.beams = self.candidates, self.temperatures, self.beams
        part.split = self.split
        part._relevance = self._relevance
        return part

    def stitched(self, ids: Any = None, map: int | None = 256) -> "Trace":
        """The steps of a generation with a cache, merged into one Record for each module.

        Each Record is the whole matrix. Its `prompt` is the number of queries of the first call: the whole prompt,
        unless it was read in chunks. Beams are followed: `ids`, the result of `generate`, selects the beams, and the
        text where several were generated; without `ids`, the beams of the last step. Without a cache every step is a
        separate text, and `ids` selects the longest.
        Raises NotKeptError where rows are longer than their maps and q and k were not kept.
        """
        from regard.trace.stitching import stitched_records

        map = See(map=map).map  # validates it
        return self._part(stitched_records(self, ids, map, self.token_names))

    def gather(
        self, group: Any = None, split: "Split | None" = None, map: int | None = 256, positions: Any = None
    ) -> "Trace":
        """The Trace of the whole model or batch, from the parts that the processes of a distributed run recorded.

        group      the process group of torch.distributed; None for all processes
        split      what they divide: "samples" (DDP, FSDP), "heads" (tensor parallel), "keys" of the same queries, each
                   with its own softmax, or "queries" (context parallel). None: what `watch` found in the model
        map        with "keys" and "queries", the largest number of bins of the map, which is computed anew
        positions  with "queries", where those of this process are in the text: None for consecutive parts, "balanced"
                   for chunks i and 2 W − 1 − i of process i of W, or a list of whole numbers

        Every process calls it and gets the whole, with NumPy arrays. Samples and heads must have one length. Of keys
        and queries, map, received, sink and distance need exact weights: `See(qk=True)`, or maps that are the weights.
        """
        from regard.trace.processes import gathered

        whole = gathered(self, group, split, map, positions)
        whole.token_names = self.token_names
        return whole

    def __repr__(self) -> str:
        if not self._records:
            return "Trace(no records)"
        names = self.names if len(self) <= 3 else [self.names[0], "…", self.names[-1]]
        kinds = dict.fromkeys(record.kind for record in self)
        sizes = dict.fromkeys(record.shape[1:] for record in self)
        sizes_text = ", ".join(f"{H} {'head' if H == 1 else 'heads'} {T} × {S}" for H, T, S in list(sizes)[:3])
        more = ", …" if len(sizes) > 3 else ""
        count = "1 record" if len(self) == 1 else f"{len(self)} records"
        return printable(f"Trace({count}: {', '.join(names)}; {', '.join(kinds)}; {sizes_text}{more})")

    def merged(self, by: Merge = "words", sample: int = 0) -> "Trace":
        """One sample with its tokens merged into "characters" or "words": keys summed, queries averaged."""
        return self._part(merged(record, by, sample) for record in self)

    def with_image(
        self, pixels: Any, grid: tuple[int, int], *, first: int = 0, side: Side = "keys", name: str = ""
    ) -> "Trace":
        """A Trace whose records bring the picture that the model read; arguments as for `Record.with_image`.

        Trace.from_weights(weights).with_image(photo, grid=(14, 14), first=1)
        """
        return self._part(record.with_image(pixels, grid, first=first, side=side, name=name) for record in self)

    # --- measures ----------------------------------------------------------------------------------------

    def heads(self, queries: int | None = 2048) -> "Heads":
        """What each head attends to on this text, ranked; prints as a table. `queries` limits the rows of a long text.

        Attention is not explanation: it shows where a head looks, not how the model uses it.
        """
        from regard.trace.measures.heads import find_heads

        return find_heads(self, queries)

    def measure(self, name: str) -> "np.ndarray":
        """`"entropy"`, `"sink"` or `"distance"` of every head: L H.

        First the mean over the queries of each sample, padding left out, then the mean over samples: each text counts
        once, whatever its length.
        """
        from regard.trace.measures.per_head import measure_heads

        return measure_heads(self, name)

    def rollout(self, rows: Range = None) -> "Trace":
        """The attention of all layers multiplied, residuals included: a Trace of one record (Abnar and Zuidema 2020).

        All records must be self-attention of one size: `trace.select(kind="encoder").rollout().show()`. Of relevance,
        it is the rollout of Chefer et al. 2021.
        """
        from regard.trace.measures.per_head import attention_rollout

        return self._part([attention_rollout(self, rows)])

    def relevance(self, loss: Any, map: int | None = 256) -> "Trace":
        """Attention × gradient: max(0, A ⊙ dA) in place of every weight A, dA its gradient (Chefer et al. 2021).

        `loss` is one number that the watched model computed with gradients, such as the logit of a token; the weights
        that raise it are relevant. Needs `See(qk=True)`. One backward pass computes dA = dO · vᵀ where it is asked for,
        so nothing T × S is allocated; gradients of parameters are not changed, and the graph is kept.
        Rows do not sum to 1. `trace.relevance(loss).rollout()` multiplies the layers.

            with regard.watch(model, see=See(qk=True)) as trace:
                logits = model(ids).logits
            trace.relevance(logits[0, -1].max()).show()
        """
        if self._relevance is None:
            raise ArgumentError("relevance-elsewhere" if len(self) else "trace-empty")
        return self._part(self._relevance(self, loss, map))

    def value_weighted(self) -> "Trace":
        """Every weight times the norm of its value vector, normalised to rows that sum to 1 (Kobayashi et al. 2020).

        Needs `See(values=True)` and exact weights. Compared with the Trace, it shows weights that contribute nothing.
        """
        from regard.trace.measures.per_head import value_weighted

        return self._part(value_weighted(record) for record in self)

    def compare(self, other: "Trace", sample: int = 0) -> "Comparison":
        """How far each head's attention differs in another Trace, aligned by tokens; prints as a table.

        Two texts, two models, or two checkpoints of one: layers are paired in order, or by name where one trace has
        more of them. Where q and k were not kept, the maps are compared.
        `compare(other).html("difference.html")` and `.widget()` show both sides and their difference.
        """
        from regard.trace.comparison import Comparison

        return Comparison(self, other, sample)

    def _chosen(self, layer: Layer, head: Any) -> "tuple[Trace, Layer, Any]":
        """What to draw: for "mean", the only head of records that hold the mean."""
        if not isinstance(head, str) or head != "mean":  # an array of heads compares one by one
            return self, layer, head
        chosen = self if layer in (None, "all") else [self[layer]]
        return self._part(mean_of_heads(record) for record in chosen), None, 0

    # --- output ------------------------------------------------------------------------------------------

    def show(
        self,
        layer: int | str | None = None,
        *,
        head: int | Sequence[int] | Literal["mean"] | None = None,
        sample: int = 0,
        file: TextIO | None = None,
        width: int | None = None,
        color: Colour | None = None,
        lang: Language | None = None,
        scale: ScaleName | None = None,
        merge: Merge | None = None,
        rows: Range = None,
        cols: Range = None,
    ) -> None:
        """Draw in the terminal: one head, several, the "mean" of all, the heads of a layer, or all layers.

        `color` overrides the detected colour support; `width` is in columns. `scale` maps weights to colours:
        "linear", "log", or without the first token "renormalised" or "hidden". `merge` merges tokens into "characters"
        or "words"; by default only parts of a character are merged. `rows` and `cols`, such as `slice(1000, 1064)`,
        draw the exact weights of these queries and keys; a long text needs `See(qk=True)` for that.
        """
        from regard.views.terminal import show

        trace, layer, heads = self._chosen(layer, head)
        options: dict[str, Any] = {"color": color, "lang": lang, "scale": scale, "merge": merge}
        show(trace, layer, heads, sample, file=file, width=width, rows=rows, cols=cols, **options)

    def plot(
        self,
        layer: int | str | None = None,
        *,
        head: int | Sequence[int] | Literal["mean"] | None = None,
        sample: int = 0,
        ax: "Axes | None" = None,
        lang: Language | None = None,
        scale: ScaleName | None = None,
        merge: Merge | None = None,
        vmax: float | None = None,
        cmap: Any = None,
        colorbar: bool = True,
        rows: Range = None,
        cols: Range = None,
    ) -> "Figure":
        """Draw with matplotlib, on a new Figure or on `ax`, and return the Figure. Other arguments as `show`.

            trace.plot(0, head=0).savefig("head.png")        # one head
            trace.plot(0).savefig("heads.png")               # all heads of a layer
            trace.plot(0, head=[0, 3])                       # two heads

        In a notebook end the line with `;`: matplotlib shows the Figure, and as the value of a cell it is shown again.

        `vmax` is the weight of the last colour; use the same in two figures to compare them. `cmap` names the colour
        map; `colorbar` shows it.
        """
        import numpy as np

        from regard.views.plots import plot

        trace, layer, heads = self._chosen(layer, head)
        colours: dict[str, Any] = {"vmax": vmax, "cmap": cmap, "colorbar": colorbar}
        axes = plot(trace, layer, heads, sample, ax, lang, scale, merge, rows=rows, cols=cols, **colours)
        first: Axes = axes.flat[0] if isinstance(axes, np.ndarray) else axes
        figure = first.get_figure(root=True)
        assert figure is not None
        return figure

    def image(
        self,
        query: Any = None,
        *,
        layer: int | str | None = None,
        head: int | Literal["mean"] | None = None,
        sample: int = 0,
        image: int | None = None,
        vmax: float | None = None,
        cmap: Any = None,
        lang: Language | None = None,
    ) -> "Figure":
        """Lay the attention of a query over the pictures that the model read, with matplotlib; returns the Figure.

        query   a word, its last occurrence; "[CLS]"; the row and column of a patch, from (0, 0) on; a position. Without
                it the class token, the last token of a text, or the mean of all queries
        layer   a record by number or name; "rollout" for all layers multiplied; by default the last one with a picture
        head    the number of a head; by default the mean of all
        image   the number of a picture, from 0 on; by default all, with their crops and frames

            trace.image("dog", layer=20).savefig("dog.png")

        Weights are exact: a text of more tokens than `See(map=…)` needs `See(qk=True)`. Where the patches are the
        queries and the words the keys, as in a diffusion model, it shows how much each patch attends to the word.
        """
        from regard.views.image_attention import plot_image

        return plot_image(self, query, layer, head, sample, image, vmax=vmax, cmap=cmap, lang=lang)

    def html(
        self,
        path: str | os.PathLike[str],
        layer: int | str | None = None,
        *,
        sample: int = 0,
        lang: Language | None = None,
        scale: ScaleName | None = None,
        merge: Merge | None = None,
        rows: Range = None,
        cols: Range = None,
        model: Any = None,
        inputs: Any = None,
        tokenizer: Any = None,
    ) -> None:
        """Write the explorer as one self-contained HTML file: all layers and heads of a sample, or one layer.

        The file loads nothing and works offline, at most 5 MB for a layer of 12 heads at any length: of a long text it
        holds the maps, and exact weights around the strongest places. `rows` and `cols` as for `show`. With the `model`
        and its `inputs`, as for `widget`, every head is silenced once, and the file shows how far the output moves.
        """
        from regard.views.explorer.page import write_page

        extension_of(Path(path), *PAGES)
        options: dict[str, Any] = {"model": model, "inputs": inputs, "tokenizer": tokenizer}
        write_page(self, path, layer, sample, lang, scale, merge, rows, cols, **options)

    def widget(
        self,
        model: Any = None,
        inputs: Any = None,
        layer: int | str | None = None,
        *,
        sample: int = 0,
        tokenizer: Any = None,
        lang: Language | None = None,
        scale: ScaleName | None = None,
        merge: Merge | None = None,
        rows: Range = None,
        cols: Range = None,
    ) -> Any:
        """The explorer in a notebook: JupyterLab, VS Code, Colab, marimo. Needs `pip install 'regard[notebook]'`.

        The kernel computes each zoom step exactly when it is asked for. With the `model` and the `inputs` it was called
        with, heads can be silenced and edges cut by a click; for a LanguageModel, `inputs` is what its `see` returned.
        Other arguments as `show`. Where scripts do not run, the output is a picture of the first head.
        """
        from regard.views.explorer.widget import trace_widget

        options: dict[str, Any] = {"sample": sample, "lang": lang, "scale": scale, "merge": merge}
        return trace_widget(self, model, inputs, layer, tokenizer=tokenizer, rows=rows, cols=cols, **options)

    def save(self, path: str | os.PathLike[str], qk: bool = False) -> None:
        """Write a safetensors file; with `qk`, also what exact weights are computed from.

        Maps are written in 16 bits: weights that are read back differ by at most 0.000016. With `qk` exact weights
        are saved, directly or as q and k.
        """
        from regard.trace.file import save

        save(self, path, qk)
