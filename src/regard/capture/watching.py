"""watch: every attention that a model computes inside a `with` block, as a Trace. The model is not changed.

Here the parts meet: `mode` catches, `names` and `kinds` say whose attention it was, `sides` which text it was about,
`keeping` what may be kept of it; `recording` makes the Record.
"""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

from torch import nn

from regard.capture.additive_masks import Lowering
from regard.capture.attention_kinds import Kinds
from regard.capture.budget import Keeping
from regard.capture.captured import Caught, CaughtWeights
from regard.capture.decode_rows import Later, Steps
from regard.capture.dispatch_mode import Catching
from regard.capture.layer_choice import Chosen
from regard.capture.layouts import Layouts, sizes_of
from regard.capture.module_names import Names, Order, Place, is_attention, is_writing, written_so_far
from regard.capture.padding import Paddings, PadIds
from regard.capture.recording import AddedKeys, RowSums, added_keys, recorded, value_lengths, without_added_keys
from regard.capture.sliced_attention import Slices
from regard.capture.sparse_attention import Blocks, refusal_of, sparse_places
from regard.capture.texts import Sides
from regard.capture.token_labels import Spelling
from regard.errors import ArgumentError, RegardError
from regard.messages import Listed, say
from regard.padding import Padding
from regard.records import Kind, Record, See, Step
from regard.trace import Trace


def watch(
    model: nn.Module, tokenizer: Any = None, see: See | None = None, layers: Any = None, budget: Any = None
) -> "Watch":
    """Everything that the attention of `model` does inside the block, in call order, named after its modules.

    tokenizer   names the tokens: Hugging Face's, regard's, or a function from a list of ids to a list of strings
    see         what each Record holds
    layers      only these modules: names, ends of names, patterns, or numbers of layers, -1 for the last; [] for none
    budget      how many bytes the Trace may take

    Outputs, gradients and random numbers are those of the model alone, unless `See(fused=True)` lets outputs differ in
    their last bits. Only the thread that opens the block is watched. What cannot be watched is said when called.

    >>> import torch
    >>> layer = nn.MultiheadAttention(8, 2).eval()
    >>> x = torch.ones(3, 8)
    >>> with watch(layer) as trace:
    ...     out, _ = layer(x, x, x, need_weights=False)
    >>> trace[0].shape
    (1, 2, 3, 3)
    """
    return Watch(Watcher(model, tokenizer, see, layers, budget))


class Watch:
    """What `with` opens, once: it gives the Trace. Asked for anything of the Trace itself, it says so."""

    def __init__(self, watcher: "Watcher") -> None:
        self._watcher = watcher
        self._catching: Catching | None = None
        self._opened = False

    def __enter__(self) -> Trace:
        if self._opened:
            raise ArgumentError("watch-again")
        watcher, self._opened = self._watcher, True
        if watcher.chosen:  # where nothing was asked for, nothing is slowed down
            self._catching = Catching(
                watcher.tell,
                watcher.sides.listeners,
                answer=watcher.see.fused,
                whose=watcher.whose,
                blocks=watcher.blocks or None,
                refused=watcher.refuses if watcher.refusing else None,
                follower=None if watcher.sides.streams is None else watcher.sides.streams.follow,
            )
            self._catching.__enter__()
        return watcher.trace

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._catching is None:
            return
        try:
            self._catching.__exit__(kind, raised, where)
            self._catching.finish()
        finally:
            self._settle(self._catching)
            self._watcher.trace.before_looking = None
        if raised is None:
            self._watcher.close(self._catching.lost(), self._catching.unseen.reasons, self._catching.across())

    def _settle(self, catching: Catching) -> None:
        """Make what waits. The model has run: an error here is ours, and is warned of."""
        try:
            self._watcher.slices.flush()
            self._watcher.later.settle()
        except RegardError:
            raise
        except Exception as error:
            catching.unseen.fail(error)

    def __repr__(self) -> str:
        return f"<{say('watch-closed')}>"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(say("watch-closed"), name=name, obj=self)

    def __getitem__(self, item: Any) -> Any:
        raise ArgumentError("watch-closed")

    def __len__(self) -> int:
        raise ArgumentError("watch-closed")


class Watcher:
    """One watch: its Trace, and what it has to know to go on with it."""

    def __init__(self, model: nn.Module, tokenizer: Any, see: See | None, layers: Any, budget: Any = None) -> None:
        _check(model, see)
        self.trace = Trace()
        self.see = See() if see is None else see
        self.names = Names(model)
        self.chosen = Chosen(layers, list(self.names))
        chosen = [place.module for place in self.names.places if place.name in self.chosen]
        self.keeping = Keeping(budget, self.see, chosen)
        self.lowering = Lowering(keep=self.see.qk)
        self.layouts = Layouts()
        self.order = Order(self.names)
        self.kinds = Kinds(self.names)
        self._spelling = Spelling(tokenizer)
        self.sides = Sides(model, self._spelling, PadIds(model, tokenizer))
        self.paddings = Paddings()
        self.trace.spell = self._spelling.tokens if self._spelling.speaks else None
        self.steps = Steps()
        self.later = Later(self.trace)
        self.blocks = Blocks(sparse_places(self.names.places), self.tell, self._refuse)
        self.refusing = any(refusal_of(place.module) for place in self.names.places)
        self._refused: dict[str, str] = {}
        """Modules whose softmaxes are no weights of queries by keys, and why."""
        self.row_sums = RowSums()
        self.slices = Slices(self._tell)
        self._others: dict[str, int] = {}
        """How often attention was seen that was not recorded, by the name of its module; "" is for no module."""
        self._without_values: dict[str, None] = {}
        """Modules of which the lengths of values were wanted, and not to be had."""
        self._heard: set[str] = set()
        """Modules of which attention was seen."""
        self._added_keys: dict[str, AddedKeys] = {}
        """By the name of a module."""

    def whose(self, likely: bool) -> str | None:
        """The chosen module that makes a softmax, where that may be attention: by its class, or by being `likely`."""
        place = self.names.innermost()
        if place is None or place.name not in self.chosen or not (likely or is_attention(place)):
            return None
        return place.name

    def refuses(self) -> bool:
        """Whether the module that is running makes softmaxes that are no weights of queries by keys."""
        place = self.names.innermost()
        reason = None if place is None else refusal_of(place.module)
        if place is not None and reason is not None and place.name in self.chosen:
            self._refuse(place, reason)
        return reason is not None

    def _refuse(self, place: Place, reason: str) -> None:
        self._heard.add(place.name)
        self._refused.setdefault(place.name, reason)

    def tell(self, caught: Caught | CaughtWeights, place: Place | None = None) -> None:
        """An attention was computed, by `place` or by the module that is running."""
        place = place or self.names.innermost()
        if place is None:
            self._others[""] = self._others.get("", 0) + 1
            return
        self._heard.add(place.name)
        place = self.names.part(place, caught.part) if caught.part else self.order.placed(place)
        if isinstance(caught, CaughtWeights):
            self.slices.add(caught, place)
        else:
            self.slices.flush()
            self._tell(caught, place)

    def _tell(self, caught: Caught | CaughtWeights, place: Place) -> None:
        """The same, whole, with the module whose it is."""
        if isinstance(caught, Caught):
            caught = self.lowering.lowered(caught)
        else:
            caught = self.layouts.ordered(caught, place)
        added = self._added_keys.get(place.name)
        if added is None:  # what a module is does not change from call to call
            added = self._added_keys[place.name] = added_keys(place.module)
        caught = without_added_keys(caught, added)
        sizes = sizes_of(caught, place.module)
        kind = self.kinds.of(place, caught, sizes)
        seen = self.sides.told(place, kind, caught, sizes)
        padding = self.paddings.told(kind, caught, sizes, place.module, seen.step, seen.text)
        if place.name not in self.chosen:
            self._others[place.name] = self._others.get(place.name, 0) + 1
            return
        see = self.keeping.see(caught, place.name or "attention", place.module, sizes)
        if seen.step is None or not seen.step.parents:
            self.steps.begin(place.name)
        goes_on = seen.step is not None and (kind == "decoder" or bool(seen.step.parents))
        if not see.nothing and (goes_on or (kind != "encoder" and is_writing())):
            record = self._written(caught, place, kind, seen.step, see, padding)
        else:
            record = recorded(caught, place.module, see, padding)
        if see.values:
            record = record.changed(values=value_lengths(caught, self.names.around(place.name)))
            if record.values is None:
                self._without_values.setdefault(place.name or "attention")
        if seen.step is None and kind == "decoder" and (prompt := written_so_far()) is not None:
            record = record.changed(prompt=prompt) if prompt < record.shape[2] else record
        name = place.name or "attention"
        if isinstance(caught, CaughtWeights):
            self.row_sums.add(len(self.trace), name, caught)
        about = seen._asdict()
        del about["text"]  # the padding has it
        self.trace.append(record.changed(name=name, kind=kind, **about))

    def _written(
        self,
        caught: Caught | CaughtWeights,
        place: Place,
        kind: Kind,
        step: Step | None,
        see: See,
        padding: Padding | None,
    ) -> Record:
        """The Record of a call while text is being written, with what its rows can be put together from."""
        if isinstance(caught, CaughtWeights):
            fine = see.map is not None and max(caught.weights.shape[-2:]) <= see.map
            qk = see.qk or (not fine and self.keeping.affords(caught.weights.nbytes))
            return recorded(caught, place.module, replace(see, qk=qk), padding)
        row = (
            None if step is None or padding is not None or kind == "cross" else self.steps.row(place.name, caught, step)
        )
        if row is not None:
            self.later.add(row, see)
            return Record(shape=(*row.q.shape[:3], row.S))
        # A step keeps its queries and its own keys. The whole cache at every step would be quadratic.
        whole = see if see.lse and not see.qk else replace(see, lse=True, qk=see.qk and step is None)
        record = recorded(caught, place.module, whole, padding)
        if kind == "cross":
            record = self.steps.across(place.name, caught, record)
        else:
            record = self.steps.remembered(place.name, caught, record, step)
        return record if see.lse else record.changed(lse=None)

    def close(
        self, lost: Iterable[str] = (), unseen: Mapping[str, str] | None = None, across: Iterable[str] = ()
    ) -> None:
        """The block is over. What one should know of it is said; an empty Trace is nobody's wish, and has a reason.

        lost    modules that made a softmax which may be attention, and was not caught
        unseen  modules whose attention could not be observed, and why
        across  modules whose softmax is over another axis than their product with values sums over
        """
        if not len(self.trace):
            self._refuse_all()
        unseen, across = unseen or {}, [name or "attention" for name in across]
        silent = [name or "attention" for name in lost if name not in self._heard and name not in unseen]
        hidden = [name or "attention" for name in unseen]
        misfit = self.order.misfit()
        unsummed = self.row_sums.settle(self.trace)
        said = [
            self.keeping.left_out(),
            None if misfit is None else say("watch-order", calls=misfit[0], count=misfit[1]),
            say("watch-values", names=Listed.few(self._without_values, 3)) if self._without_values else None,
            say("watch-no-words", reason=self._spelling.failed) if self._spelling.failed else None,
            say("watch-tables") if self.sides.guessed and self._spelling.speaks else None,
            *(say("watch-layout", name=name, shape=shape, H=H) for name, (shape, H) in self.layouts.odd.items()),
            say("watch-lost", names=Listed.few(silent, 3)) if silent else None,
            *self._refusals(),
            say("watch-row-sums", names=Listed.few(unsummed, 3)) if unsummed else None,
            say("watch-across", names=Listed.few(across, 3)) if across else None,
            say("watch-unseen", names=Listed.few(hidden, 3), reason=next(iter(unseen.values()))) if hidden else None,
        ]
        for text in [
            *said,
            None if len(self.trace) or silent or hidden or across or self._refused else self._why_empty(),
        ]:
            if text is not None:
                warnings.warn(text, stacklevel=3)  # at the `with`

    def _refuse_all(self) -> None:
        """Nothing was recorded: modules that make no weights of queries by keys are why."""
        for place in self.names.places:
            reason = refusal_of(place.module)
            if reason is not None and place.name in self.chosen:
                self._refuse(place, reason)

    def _refusals(self) -> list[str]:
        """One sentence for each reason, with the modules that it is about."""
        reasons = dict.fromkeys(self._refused.values())
        named = {reason: [name for name, its in self._refused.items() if its == reason] for reason in reasons}
        return [say("watch-refused", names=Listed.few(names, 3), reason=reason) for reason, names in named.items()]

    def _why_empty(self) -> str:
        names = [name for name in self._others if name]
        if names:
            return say("watch-saw-other-layers", names=Listed.few(names, 3))
        if self._others:
            return say("watch-saw-others", count=self._others[""])
        return say("watch-saw-nothing")


def _check(model: Any, see: Any) -> None:
    if not isinstance(model, nn.Module):
        inner = isinstance(getattr(model, "model", None), nn.Module)
        raise ArgumentError("watch-inner" if inner else "watch-model", found=type(model).__name__)
    if see is not None and not isinstance(see, See):
        raise ArgumentError("watch-see", found=type(see).__name__)
    if see is not None and see.differentiable:
        raise ArgumentError("watch-differentiable")
    first = next(model.named_parameters(), None)
    # Weights that lie on disk until they are needed are on the meta device too; accelerate's hooks fetch them.
    if (
        first is not None
        and all(weight.is_meta for weight in model.parameters())
        and not any(hasattr(m, "_hf_hook") for m in model.modules())
    ):
        raise ArgumentError("watch-meta", name=first[0])
