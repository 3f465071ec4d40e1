"""`watch`: records every attention that a model computes inside a `with` block as a Trace. The model is unchanged.

`dispatch_mode` captures the calls, `module_names` and `attention_kinds` name the module and its side, `texts` finds the
tokens, `budget` limits what is kept, and `recording` makes the Record.
"""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any, NamedTuple

from torch import Tensor, nn

from regard.capture.attention_kinds import Kinds
from regard.capture.budget import Budget, FourSizes
from regard.capture.call_masks import MaskRecognizer, PaddingTracker, PadIds
from regard.capture.deferred_calls import CallBatch
from regard.capture.dispatch_mode import CaptureMode
from regard.capture.image_tracking import Images, ImageTracker
from regard.capture.kernel_capture import KernelCapture, RepeatableCall, RepeatedCalls
from regard.capture.layouts import Layouts, Slices, sizes_of
from regard.capture.model_facts import check_module, split_of
from regard.capture.module_names import (
    ChosenLayers,
    CompiledOrder,
    Generation,
    ModuleNames,
    Place,
    may_be_attention,
    running_generation,
)
from regard.capture.operators import CapturedCall, CapturedWeights, is_plain_causal, is_plain_row
from regard.capture.recording import (
    AddedKeys,
    RowSums,
    added_keys,
    outputs_of,
    record_of_call,
    value_norms,
    without_added_keys,
)
from regard.capture.sparse_attention import SparseTracker, refusal_of, sparse_places
from regard.capture.texts import CallTokens, TextTracker
from regard.capture.token_labels import GuardedTokenizer
from regard.capture.watched_trace import DecodeHistory, WatchedTrace, compute_last
from regard.errors import ArgumentError
from regard.masks.padding import Padding
from regard.messages import Listed, say
from regard.records import Kind, Record, See
from regard.statistics_table import bytes_of
from regard.trace import Trace


def watch(
    model: nn.Module,
    tokenizer: Any = None,
    see: See | None = None,
    layers: Any = None,
    budget: Any = None,
    images: Any = None,
) -> "Watch":
    """Record everything that the attention of `model` computes inside the block, in call order, by module name.

    tokenizer   names the tokens: Hugging Face's, regard's, or a function from a list of ids to a list of strings
    see         what each Record holds
    layers      only these modules: names, ends of names, patterns, or layer numbers, -1 for the last; [] for none
    budget      the number of bytes that the Trace may use
    images      the picture that a vision model reads (an array, a picture of Pillow, a path), a grid such as (14, 14),
                a pair (picture, grid), or a list of these; needed only where the model's inputs do not tell

    Outputs, gradients and random numbers are those of the model alone, unless `See(fused=True)` lets outputs differ in
    their last bits. Only the thread that opens the block is watched. Invalid arguments raise when `watch` is called.

    >>> import torch
    >>> layer = nn.MultiheadAttention(8, 2).eval()
    >>> x = torch.ones(3, 8)
    >>> with watch(layer) as trace:
    ...     out, _ = layer(x, x, x, need_weights=False)
    >>> trace[0].shape
    (1, 2, 3, 3)
    """
    return Watch(Watcher(model, tokenizer, see, layers, budget, images))


class Watch:
    """The context manager that `watch` returns. It opens once and gives the Trace; used as a Trace it raises."""

    def __init__(self, watcher: "Watcher") -> None:
        self._watcher = watcher
        self._mode: CaptureMode | None = None
        self._listener: KernelCapture | None = None
        self._opened = False

    def __enter__(self) -> Trace:
        if self._opened:
            raise ArgumentError("watch-again")
        watcher, self._opened = self._watcher, True
        compute_last()
        if watcher.chosen:  # no layer is chosen: do not slow the model down
            self._mode = CaptureMode(
                watcher.receive,
                watcher.texts.listeners,
                replaces=watcher.see.fused,
                running_module=watcher.running_module,
                sparse=watcher.sparse or None,
                refused=watcher.is_refused if watcher.has_refused else None,
                follower=None if watcher.texts.streams is None else watcher.texts.streams.follow,
            )
            watcher.trace.note_error = self._mode.unobserved.add_error
            self._listener = KernelCapture(self._mode, watcher.is_followed, watcher.repeated)
            if watcher.needs_every_operator:
                self._listener.enter()
            else:
                self._listener.begin(watcher.names.devices)
        return watcher.trace

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._mode is None or self._listener is None:
            return
        try:
            self._listener.end(kind, raised, where)
            self._mode.finish()
            self._mode.observe(self._watcher.slices.flush)
        finally:
            self._watcher.trace.end()
            self._mode.is_over = True
        if raised is None:
            self._watcher.warn(self._mode)
        self._mode = self._listener = None
        vars(self._watcher).clear()  # its parts refer to each other, and would keep the records alive

    def __repr__(self) -> str:
        return f"<{say('watch-closed')}>"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(say("watch-closed"), name=name, obj=self)

    def __getitem__(self, item: Any) -> Any:
        raise ArgumentError("watch-closed")

    def __len__(self) -> int:
        raise ArgumentError("watch-closed")


class WatchedCall(NamedTuple):
    """One attention call of a module, with what the watch knows of it.

    captured    without keys that the module adds to those of the text
    whole       with them
    """

    captured: CapturedCall | CapturedWeights
    whole: CapturedCall | CapturedWeights
    place: Place
    kind: Kind
    sizes: FourSizes
    tokens: CallTokens
    images: Images
    padding: Padding | None

    @property
    def name(self) -> str:
        return self.place.name or "attention"


class Watcher:
    """The state of one watch, and its Trace."""

    def __init__(
        self, model: nn.Module, tokenizer: Any, see: See | None, layers: Any, budget: Any = None, images: Any = None
    ) -> None:
        _check(model, see)
        self.trace = WatchedTrace()
        self.see = DEFAULT if see is None else see
        self.names = ModuleNames(model)
        self.names.check_data()
        self.chosen = ChosenLayers.of(layers, self.names)
        facts = self.names.facts
        self.budget = Budget(budget, self.see, lambda: self.chosen.types(self.names))
        self.masks = MaskRecognizer(keep=self.see.qk)
        self.layouts = Layouts()
        self.order = CompiledOrder(self.names)
        self.kinds = Kinds(self.names)
        self._tokenizer = GuardedTokenizer(tokenizer)
        self.images = ImageTracker(model, self.names, images, tokenizer)
        self.trace.split = split_of(model, self._chosen_modules)
        self.texts = TextTracker(model, self._tokenizer, PadIds(model, tokenizer, facts), self.names)
        self.paddings = PaddingTracker()
        self.trace.token_names = self._tokenizer.tokens if self._tokenizer.available else None
        self.history = DecodeHistory()
        has_sparse = facts.once("sparse", lambda: bool(sparse_places(self.names.places)))
        sparse = sparse_places(self.names.places) if has_sparse else {}
        self.missed = Missed(self.names, self.chosen)
        self.sparse = SparseTracker(sparse, self.receive, self.missed.refuse)
        self.has_refused = facts.once("refused", lambda: any(map(refusal_of, self.names.all)))
        self.row_sums = RowSums()
        self.slices = Slices(self._add)
        self._generation: tuple[int, Generation] | None = None
        """What `running_generation` returned, and the number of forwards before."""
        self._added_keys: dict[str, AddedKeys] = {}
        """By module name."""
        self._batch: CallBatch | None = None
        """Where the last call waits; None if it was computed at once."""
        self._has_row = False
        """Whether the last call waits as the row of a generated token."""
        self.repeated = RepeatedCalls(self)

    def _chosen_modules(self) -> list[nn.Module]:
        return [place.module for place in self.names.places if place.name in self.chosen]

    def running_module(self, likely: bool) -> str | None:
        """The chosen module that computes a softmax, if that may be attention: by its class, or if `likely`."""
        place = self.names.innermost()
        if place is None or place.name not in self.chosen or not may_be_attention(place, likely):
            return None
        return place.name

    @property
    def needs_every_operator(self) -> bool:
        """Whether tensors must be followed from operator to operator, from the start."""
        return bool(self.sparse) or self.texts.streams is not None

    def is_followed(self, softmax: Tensor) -> bool:
        """Whether a softmax may be attention, so that its use must be followed."""
        if self.has_refused and self.is_refused():
            return False
        if softmax.dim() > 2:
            return True
        place = self.names.innermost()  # a module that contains attentions is none: it samples a token
        return place is None or not self.order.contains_attention(place)

    def is_refused(self) -> bool:
        """Whether the softmaxes of the running module are not weights of queries by keys."""
        place = self.names.innermost()
        reason = None if place is None else refusal_of(place.module)
        if place is not None and reason is not None and place.name in self.chosen:
            self.missed.refuse(place, reason)
        return reason is not None

    def receive(self, captured: CapturedCall | CapturedWeights, place: Place | None = None) -> None:
        """Add a captured attention, computed by `place` or by the running module."""
        place = place or self.names.innermost()
        if place is None:
            self.missed.note_other(None)
            return
        self.missed.observe(place)
        place = self.names.submodule(place, captured.submodule) if captured.submodule else self.order.next_place(place)
        if isinstance(captured, CapturedWeights):
            self.slices.add(captured, place)
        else:
            self.slices.flush()
            self._add(captured, place)

    def _add(self, captured: CapturedCall | CapturedWeights, place: Place) -> None:
        """Record a complete attention of the module `place`."""
        self.repeated.previous = None
        if place.name not in self.chosen and self._shows_nothing(captured, place):
            self.missed.note_other(place)
            return
        call = self._watched_call(captured, place)
        repeatable = self._repeatable(call)
        if place.name not in self.chosen:
            self.missed.note_other(place)
            if repeatable is not None:
                self.repeated.set_previous(place, repeatable)
            return
        see = self.budget.fit(call.captured, call.name, place.module, call.sizes)
        record = self._record(call, see)
        if isinstance(call.captured, CapturedWeights):
            self.row_sums.add(len(self.trace), call.name, call.captured)
            if see.max_score and record.max_score is None:
                self.missed.without_scores.setdefault(call.name)
        is_deferred = self._has_row if call.tokens.step else self._batch is not None
        if repeatable is not None and is_deferred and see is self.see and not (see.values or see.outputs):
            need = bytes_of(see, call.sizes)
            same = repeatable._replace(record=record, bytes=need, batch=self._batch, see=see)
            self.repeated.set_previous(place, same)
        self.trace.append(record)

    def _watched_call(self, captured: CapturedCall | CapturedWeights, place: Place) -> WatchedCall:
        """The call with its kind, its tokens, its pictures and its padding."""
        if isinstance(captured, CapturedCall):
            whole: CapturedCall | CapturedWeights = self.masks.with_mask(captured)
        else:
            whole = self.layouts.ordered(captured, place)
        added = self._added_keys.get(place.name)
        if added is None:  # constant for a module
            added = self._added_keys[place.name] = added_keys(place.module)
        captured = without_added_keys(whole, added)
        sizes = sizes_of(captured, place.module)
        kind = self.kinds.of(place, captured, sizes)
        tokens = self.texts.of_call(place, kind, captured, sizes)
        images = self.images.of_call(place, kind, sizes, tokens.ids, tokens.step, tokens.query_tokens)
        padding = self.paddings.of_call(kind, captured, sizes, place.module, tokens.step, tokens.is_text, tokens.offset)
        return WatchedCall(captured, whole, place, kind, sizes, tokens, images, padding)

    def _repeatable(self, call: WatchedCall) -> RepeatableCall | None:
        """The call, if other layers may repeat it: of a decoder, without padding, not a step of several tokens."""
        if not isinstance(call.captured, CapturedCall) or call.kind != "decoder" or call.padding is not None:
            return None
        step = call.tokens.step
        if step is not None and not is_plain_row(call.captured):
            return None
        captured, module = call.captured._replace(out=None), type(call.place.module)
        return RepeatableCall(captured, call.sizes, module, self.texts.forwards, step=step)

    def _record(self, call: WatchedCall, see: See) -> Record:
        """The complete Record of a call, unless its statistics are deferred."""
        tokens, generation = call.tokens, self._running_generation()
        fields: dict[str, Any] = {
            "name": call.name,
            "kind": call.kind,
            "step": tokens.step,
            "ids": tokens.ids,
            "query_tokens": tokens.query_tokens,
            "key_tokens": tokens.key_tokens,
            "written": tokens.written,
            "images": call.images,
        }
        is_prompt = tokens.step is None and call.kind == "decoder"
        if is_prompt and generation.length is not None and generation.length < call.sizes[2]:
            fields["prompt"] = generation.length
        self._batch, self._has_row = None, False
        is_ours = isinstance(call.captured, CapturedCall) and call.captured.output is not None
        if not is_ours:  # first, so that no deferred call waits for a record that an error here prevents
            fields |= self._values_and_outputs(call, see)
        record = self._statistics(call, see, generation.is_running)
        if is_ours:  # the output is known after the statistics only
            fields |= self._values_and_outputs(call, see)
        return record.changed(**fields)

    def _values_and_outputs(self, call: WatchedCall, see: See) -> dict[str, Any]:
        """The value norms and the outputs of a Record, if requested."""
        fields: dict[str, Any] = {}
        if see.values:
            fields["value_norms"] = value_norms(call.captured, self.names.ancestors(call.place.name))
        if see.outputs:
            fields["outputs"] = outputs_of(call.whole, call.place.module, call.padding)
        if any(found is None for found in fields.values()):
            self.missed.without_values.setdefault(call.name)
        return fields

    def _shows_nothing(self, captured: CapturedCall | CapturedWeights, place: Place) -> bool:
        """Whether a call shows nothing of its text that another layer has not shown: one of several causal layers."""
        is_causal = isinstance(captured, CapturedCall) and is_plain_causal(captured)
        return is_causal and self.texts.has_leader("decoder", besides=place.name)

    def _running_generation(self) -> Generation:
        """Whether the model generates text, looked up once for each of its forwards."""
        if self._generation is None or self._generation[0] != self.texts.forwards:
            self._generation = self.texts.forwards, running_generation()
        return self._generation[1]

    def _statistics(self, call: WatchedCall, see: See, is_generating: bool) -> Record:
        """The statistics of a call, computed now or deferred, as a Record without its name and its tokens."""
        step, module = call.tokens.step, call.place.module
        if step is None or not step.parents:
            self.history.reset(call.place.name)
        continues = step is not None and (call.kind == "decoder" or bool(step.parents))
        if see.is_empty:
            return record_of_call(call.captured, module, see, call.padding)
        if continues or (call.kind != "encoder" and is_generating):
            return self._generated(call, see)
        if call.padding is None and isinstance(call.captured, CapturedCall):
            self._batch = self.trace.defer_call(
                call.captured, see, lambda: self.budget.modules_like(module), self.budget.left
            )
            if self._batch is not None:
                return Record(shape=call.sizes)
        return record_of_call(call.captured, module, see, call.padding)

    def _generated(self, call: WatchedCall, see: See) -> Record:
        """The same for a call during generation, with what its exact rows can be computed from later."""
        captured, name, step, padding = call.captured, call.place.name, call.tokens.step, call.padding
        if isinstance(captured, CapturedWeights):
            fine = see.map is not None and max(captured.weights.shape[-2:]) <= see.map
            qk = see.qk or (not fine and self.budget.reserve(captured.weights.nbytes, captured.weights))
            return record_of_call(captured, call.place.module, replace(see, qk=qk), padding)
        if step is not None and padding is None and call.kind != "cross":
            row = self.history.row(name, captured, step)
            if row is not None:
                self._has_row = True
                self.trace.defer(row, see)
                return Record(shape=(*row.q.shape[:3], row.S))
        # A step keeps its queries and its own keys. The whole cache at every step would be quadratic.
        keeps = see.qk and step is None
        whole = see if see.lse and not see.qk else replace(see, lse=True, qk=keeps, v=see.v and keeps)
        record = record_of_call(captured, call.place.module, whole, padding)
        if call.kind == "cross":
            record = self.history.with_source_keys(name, captured, record)
        else:
            record = self.history.with_history(name, captured, record, step)
        return record if see.lse else record.changed(lse=None)

    def warn(self, mode: CaptureMode) -> None:
        """Warn about what was not recorded, and explain an empty Trace."""
        mismatch = self.order.mismatch()
        unexplained_sums = self.row_sums.apply(self.trace)
        found = [
            self.budget.warning(),
            None if mismatch is None else say("watch-order", calls=mismatch[0], count=mismatch[1]),
            say("watch-no-words", reason=self._tokenizer.error) if self._tokenizer.error else None,
            self.images.warning(),
            say("watch-tables") if self.texts.guessed and self._tokenizer.available else None,
            *(say("watch-layout", name=name, shape=shape, H=H) for name, (shape, H) in self.layouts.unknown.items()),
            say("watch-row-sums", names=Listed.few(unexplained_sums, 3)) if unexplained_sums else None,
            *self.missed.messages(mode, is_empty=not len(self.trace)),
        ]
        for text in filter(None, found):
            warnings.warn(text, stacklevel=3)  # reported at the `with` line


class Missed:
    """What a watch did not record, by module name, and the messages about it."""

    def __init__(self, names: ModuleNames, chosen: ChosenLayers) -> None:
        self._names, self._chosen = names, chosen
        self._observed: set[str] = set()
        """Modules whose attention was observed."""
        self._others: dict[str, int] = {}
        """The number of attention calls that were not recorded; those outside the model under ""."""
        self._refused: dict[str, str] = {}
        """Modules whose softmaxes are not weights of queries by keys, and why."""
        self.without_values: dict[str, None] = {}
        """Modules whose value norms were requested but are unknown."""
        self.without_scores: dict[str, None] = {}
        """Modules whose largest scores were requested but are unknown."""

    def observe(self, place: Place) -> None:
        """Note that the attention of a module was observed, recorded or not."""
        self._observed.add(place.name)

    def note_other(self, place: Place | None) -> None:
        """Note a call of a module that is not chosen; None is outside the model."""
        name = "" if place is None else place.name
        if place is not None:
            self._observed.add(name)
        self._others[name] = self._others.get(name, 0) + 1

    def refuse(self, place: Place, reason: str) -> None:
        """Note that the softmaxes of a module are not weights of queries by keys."""
        self._observed.add(place.name)
        self._refused.setdefault(place.name, reason)

    def messages(self, mode: CaptureMode, is_empty: bool) -> Iterator[str]:
        """The messages at the end of a watch; of an empty Trace at least one."""
        if is_empty:  # then each refused module may be the reason, also one that did not run
            for place in self._names.places:
                reason = refusal_of(place.module)
                if reason is not None and place.name in self._chosen:
                    self.refuse(place, reason)
        unobserved, wrong_axis = mode.unobserved.reasons, [name or "attention" for name in mode.wrong_axis()]
        lost = [name or "attention" for name in mode.lost() if name not in self._observed and name not in unobserved]
        if self.without_values:
            yield say("watch-values", names=Listed.few(self.without_values, 3))
        if self.without_scores:
            yield say("watch-max-score", names=Listed.few(self.without_scores, 3))
        if lost:
            yield say("watch-lost", names=Listed.few(lost, 3))
        for reason in dict.fromkeys(self._refused.values()):
            names = [name for name, its in self._refused.items() if its == reason]
            yield say("watch-refused", names=Listed.few(names, 3), reason=reason)
        if wrong_axis:
            yield say("watch-across", names=Listed.few(wrong_axis, 3))
        if unobserved:
            names = [name or "attention" for name in unobserved]
            yield say("watch-unseen", names=Listed.few(names, 3), reason=next(iter(unobserved.values())))
        if is_empty and not (lost or unobserved or wrong_axis or self._refused):
            yield self._why_empty()

    def _why_empty(self) -> str:
        names = [name for name in self._others if name]
        if names:
            return say("watch-saw-other-layers", names=Listed.few(names, 3))
        if self._others:
            return say("watch-saw-others", count=self._others[""])
        return say("watch-saw-nothing")


def _check(model: Any, see: Any) -> None:
    check_module(model, "watch")
    if see is not None and not isinstance(see, See):
        raise ArgumentError("watch-see", found=type(see).__name__)
    if see is not None and see.differentiable:
        raise ArgumentError("watch-differentiable")


DEFAULT = See()
