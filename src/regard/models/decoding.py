"""Decoding: a model in the middle of a text. Keys and values are cached; each step reads the new tokens.

A step can be compiled, and on a GPU captured as a graph.
"""

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from regard.config import inputs
from regard.dispatch import attend_within
from regard.errors import ArgumentError
from regard.layers.cache import KeysAndValues, in_place, moved
from regard.masks import Mask
from regard.models.inputs import given_ids, on_device
from regard.models.span import GrowingPast, Past, StaticPast
from regard.position_rules import check_counts
from regard.records import Attend
from regard.reference.inputs import as_array, padding_after

if TYPE_CHECKING:
    from regard.models.transformer import Transformer


Step = Callable[[Tensor], Tensor]


def quick(step: Step, device: torch.device) -> Step:
    """The step compiled without breaks; on a GPU its kernels are then launched as one graph."""
    compiled: Step = torch.compile(_of_its_own(step), fullgraph=True, dynamic=False)
    return Captured(compiled) if device.type == "cuda" else compiled


def _of_its_own(step: Step) -> Step:
    """The same function as a new piece of code: PyTorch gives up on one that it has compiled for eight shapes."""

    def once(ids: Tensor) -> Tensor:
        return step(ids)

    return FunctionType(once.__code__.replace(), once.__globals__, closure=once.__closure__)


class Captured:
    """A step on a GPU, recorded when it is called the third time and replayed from then on.

    The first two calls run as they are: compiling and choosing kernels must be over before a graph can be recorded,
    and what the first call makes once may lead to one more compilation.
    """

    WARM_UP = 2

    def __init__(self, step: Step) -> None:
        self._step = step
        self._calls = 0
        self._graph = torch.cuda.CUDAGraph()
        self._ids: Tensor
        self._logits: Tensor

    def __call__(self, ids: Tensor) -> Tensor:
        if self._calls == 0:
            self._ids = ids.contiguous().clone()  # one place and one layout, whatever callers cut their ids from
        self._ids.copy_(ids)
        self._calls += 1
        if self._calls <= self.WARM_UP:
            return self._step(self._ids)
        if self._calls == self.WARM_UP + 1:
            with torch.cuda.graph(self._graph):
                self._logits = self._step(self._ids)
        self._graph.replay()
        return self._logits.clone()  # the next replay writes into the same memory


class Decoding:
    """Reads ids, any number at a time, and says what may come next. `Transformer.begin` makes one.

    memory        each layer's keys and values of the source, where there is one
    memory_keep   which of these are no padding, B 1 1 S

    >>> from regard.config import TransformerConfig
    >>> from regard.models import Transformer
    >>> model = Transformer(TransformerConfig.gpt2(vocab_size=10, d_model=8, n_heads=2, d_ff=16, n_layers=1)).eval()
    >>> decoding = model.begin()
    >>> decoding.step([[1, 2, 3]]).shape, decoding.step([[4]]).shape, decoding.length
    (torch.Size([1, 10]), torch.Size([1, 10]), 4)
    """

    def __init__(
        self,
        model: "Transformer",
        past: Past,
        *,
        memory: list[KeysAndValues] | None,
        memory_keep: Tensor | None,
        max_len: int | None,
        compile: bool,
        attend: Attend,
    ) -> None:
        self.max_len = max_len
        self.length = 0
        """How many columns were read."""
        self._model, self._past, self._attend = model, past, attend
        self._memory, self._memory_keep = memory, memory_keep
        self._beginning = memory, memory_keep
        self._samples = self._samples_at_first = None if memory is None else len(memory[0][0])
        self._origins = list(range(self._samples or 0))
        """Which source each sample reads."""
        self._padding: np.ndarray | None = None
        """How many columns before each text are padding, (B,); what `past` has on the device."""
        self._compile = compile
        self._device = next(model.parameters()).device
        self._one_token = self._quick()

    @property
    def vocab_size(self) -> int:
        """How many logits a step gives."""
        assert self._model.config.vocab_size is not None
        return self._model.config.vocab_size

    @torch.inference_mode(False)  # caches outlive the caller's inference_mode
    @torch.no_grad()
    def step(self, ids: Any, keep: Any = None) -> Tensor:
        """Logits (B, W) after the last of ids (B, T).

        keep (B, T) is False for padding, which stands before a text: nobody looks there, and positions do not count it.
        """
        check_evaluating(self._model)
        ids = given_ids(self._model.config, on_device("ids", ids, self._device))
        if self._samples is not None:
            inputs.check_samples("ids", ids.shape[0], self._samples)
        inputs.check_room(self.length + ids.shape[1], self.max_len)
        before = self._padding
        if keep is not None:
            self._pad(padding_after(as_array("keep", keep), tuple(ids.shape), self.length, before))
        try:
            logits = self._one_token(ids) if ids.shape[1] == 1 else self._read(ids)
        except BaseException:  # stopped half-way: some layers have read what others have not
            self._past.crop(self.length)
            self._pad(before)
            raise
        if self.length == 0:
            self._samples_at_first = ids.shape[0]
        self._samples, self.length = ids.shape[0], self.length + ids.shape[1]
        return logits

    @torch.inference_mode(False)
    def select(self, rows: Sequence[int]) -> None:
        """Go on with these samples, in this order: reorder, repeat or drop them."""
        rows = inputs.checked_rows(rows, self._samples)
        index = torch.tensor(rows, device=self._device)
        self._past.select(index)
        if self._memory is not None and (origins := [self._origins[row] for row in rows]) != self._origins:
            # Beams of one source that change places look at the same as before: nothing to copy.
            self._origins = origins
            is_first = self._memory is self._beginning[0]  # which stays as it is, for `crop` to go back to
            move = moved if is_first else in_place
            self._memory = [(move(k, index), move(v, index)) for k, v in self._memory]
            self._memory_keep = None if self._memory_keep is None else move(self._memory_keep, index)
            if is_first:
                self._one_token = self._quick()
        self._padding = None if self._padding is None else self._padding[rows]
        if len(rows) != self._samples:  # other shapes, other memory
            self._one_token = self._quick()
        self._samples = len(rows)

    def crop(self, length: int) -> None:
        """Forget what was read after the first `length` columns; with all of it, what samples were selected."""
        inputs.check_crop(length, self.length)
        self._past.crop(length)
        self._pad(None if self._padding is None else np.minimum(self._padding, length))
        self.length = length
        if length == 0:
            self._restart()

    def _restart(self) -> None:
        """As many samples as there were at first, each with its own source."""
        if self._memory is not self._beginning[0]:
            self._memory, self._memory_keep = self._beginning
            self._origins = list(range(self._samples_at_first or 0))
            self._one_token = self._quick()
        if self._samples != self._samples_at_first:
            self._pad(None)
            self._samples = None if self._memory is None else self._samples_at_first
            self._one_token = self._quick()

    def _read(self, ids: Tensor) -> Tensor:
        model = self._model
        assert model.decoder is not None
        x = model.decoder(model.vectors(ids), self._past.span(ids), self._memory, self._memory_keep, self._attend)
        return model.logits(x[:, -1])

    def _quick(self) -> Any:
        """What reads one token: compiled, if asked for; made anew when the memory that it works in has changed."""
        return quick(self._read, self._device) if self._compile else self._read

    def _pad(self, padding: np.ndarray | None) -> None:
        """So many columns before each text are padding; in the same memory, once there is some."""
        self._padding = padding
        there, columns = self._past.padding, None
        if padding is not None:
            columns = torch.from_numpy(padding[:, None]).to(self._device)
            if there is not None and there.shape == columns.shape:
                there.copy_(columns)
                return
        if there is not columns:
            self._past.padding = columns
            self._one_token = self._quick()


@torch.inference_mode(False)
def begun(
    model: "Transformer",
    source: Any,
    *,
    source_mask: Any,
    cache: str,
    max_len: int | None,
    compile: bool,
    attend: Attend,
) -> Decoding:
    """What `Transformer.begin` gives: everything looked at, the source read."""
    inputs.check_decodes(model.config)
    check_evaluating(model)
    if compile and attend is not attend_within:
        raise ArgumentError("compile-looking")
    if max_len is not None:
        check_counts(max_len=(max_len, 1))
    limits = [limit for limit in (model.config.max_len, max_len) if limit is not None]
    longest = min(limits, default=None)
    past = _past(model, cache, longest, compile)
    inputs.check_sides(model.config, source, source_mask)
    memory, keep = (None, None) if source is None else _memory(model, source, source_mask, attend)
    return Decoding(model, past, memory=memory, memory_keep=keep, max_len=longest, compile=compile, attend=attend)


def _past(model: "Transformer", cache: str, max_len: int | None, compile: bool) -> Past:
    assert model.decoder is not None
    if cache == "static":
        if max_len is None:
            raise ArgumentError("static-without-length")
        return StaticPast(len(model.decoder.layers), max_len, next(model.parameters()).device)
    if cache != "growing":
        raise ArgumentError("unknown-choice", name="cache", value=cache, choices="growing, static")
    if compile:
        raise ArgumentError("compile-growing")
    return GrowingPast(len(model.decoder.layers))


@torch.no_grad()
def _memory(
    model: "Transformer", source: Any, source_mask: Any, attend: Attend
) -> tuple[list[KeysAndValues], Tensor | None]:
    """The source read, as keys and values for each cross-attention, and which of it is no padding, B 1 1 S."""
    assert model.decoder is not None
    source = given_ids(model.config, on_device("source", source, next(model.parameters()).device), source=True)
    mask = None if source_mask is None else Mask.of(source_mask)
    keep = None
    if mask is not None:
        B, S = source.shape[:2]
        keep = mask.bind((B, 1), S, S, source).kept_keys
        if keep is None:
            raise ArgumentError("source-mask-keys", mask=mask.name)
        keep = keep.expand(B, 1, 1, S).clone()
    encoded = model.encode(source, mask=mask, attend=attend)
    attentions = (block.cross_attention for block in model.decoder.layers)
    return [attention.keys_and_values(encoded) for attention in attentions], keep  # type: ignore[union-attr, operator]


def check_evaluating(model: "Transformer") -> None:
    """Dropout would make every text differ."""
    if model.training and (model.config.dropout or model.config.attention.dropout):
        raise ArgumentError("decoding-training")
