"""`Decoding`: the state of step-by-step decoding (cached keys and values); each step takes ids and returns logits.

A one-token step can be compiled, and on a GPU captured as a CUDA graph.
"""

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard.arrays import check_counts
from regard.config import inputs
from regard.cuda_graph import WARM_UP, CudaGraph
from regard.dispatch import attend_in_model
from regard.errors import ArgumentError
from regard.layers.attention import KeysAndValues, select_rows, select_rows_in_place
from regard.masks import Mask
from regard.models.cpu_decoding import CompiledStep, compiled_step
from regard.models.inputs import GrowingPast, Past, StaticPast, checked_ids, on_device
from regard.records import Attend
from regard.reference.inputs import as_array, padding_after

if TYPE_CHECKING:
    from regard.models.transformer import Transformer


DecodeStep = Callable[[Tensor], Tensor]
"""Ids (B, T) to logits (B, W)."""


class Decoding:
    """Reads ids, any number per step, and returns the logits of the next token. Created by `Transformer.begin`.

    memory        each layer's keys and values of the source; None without an encoder
    memory_keep   which of these are not padding, B 1 1 S

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
        """The number of columns read so far."""
        self._model, self._past, self._attend = model, past, attend
        self._memory, self._memory_keep = memory, memory_keep
        self._initial_memory = memory, memory_keep
        self._samples = self._initial_samples = None if memory is None else len(memory[0][0])
        self._source_rows = list(range(self._samples or 0))
        """The source that each sample attends to."""
        self._padding: np.ndarray | None = None
        """The number of padding columns before each text, (B,); `past` has the same on the device."""
        self._compile = compile
        self._device = next(model.parameters()).device
        self._one_token_step = self._make_step()
        self._cpu_step: CompiledStep | Literal[False] | None = False
        """Compiled for the first id that follows others; None for a model that it does not compute."""

    @property
    def vocab_size(self) -> int:
        """W, the number of logits per sample."""
        assert self._model.config.vocab_size is not None
        return self._model.config.vocab_size

    @torch.inference_mode(False)  # caches outlive the caller's inference_mode
    @torch.no_grad()
    def step(self, ids: Any, keep: Any = None) -> Tensor:
        """Read ids (B, T); return the logits after the last one, (B, W).

        keep (B, T) is False for padding before a text. Padding is masked, and positions do not count it.
        """
        return self._checked_step(ids, keep)

    @torch.inference_mode(False)
    @torch.no_grad()
    def step_each(self, ids: Any) -> Tensor:
        """Read ids (B, T) without padding; return the logits after each of them, (B, T, W)."""
        return self._checked_step(ids, None, each=True)

    def _checked_step(self, ids: Any, keep: Any, each: bool = False) -> Tensor:
        check_evaluating(self._model)
        ids = checked_ids(self._model.config, on_device("ids", ids, self._device))
        if self._samples is not None:
            inputs.check_samples("ids", ids.shape[0], self._samples)
        inputs.check_capacity(self.length + ids.shape[1], self.max_len)
        before = self._padding
        if keep is not None:
            self._set_padding(padding_after(as_array("keep", keep), tuple(ids.shape), self.length, before))
        try:
            if each:
                logits = self._read(ids, each=True)
            else:
                logits = self._one_token_step(ids) if ids.shape[1] == 1 else self._read(ids)
        except BaseException:  # interrupted: some layers have read the ids, others have not
            self._past.crop(self.length)
            self._set_padding(before)
            raise
        if self.length == 0:
            self._initial_samples = ids.shape[0]
        self._samples, self.length = ids.shape[0], self.length + ids.shape[1]
        return logits

    @torch.inference_mode(False)
    def select(self, rows: Sequence[int]) -> None:
        """Continue with these samples in this order; rows may repeat or be left out."""
        rows = inputs.checked_rows(rows, self._samples)
        index = torch.tensor(rows, device=self._device)
        self._past.select(index)
        if self._memory is not None and (source_rows := [self._source_rows[row] for row in rows]) != self._source_rows:
            # Beams of one source may be reordered without a copy: each still attends to the same source.
            self._source_rows = source_rows
            is_initial = self._memory is self._initial_memory[0]  # kept unchanged, `crop(0)` restores it
            selected = select_rows if is_initial else select_rows_in_place
            self._memory = [(selected(k, index), selected(v, index)) for k, v in self._memory]
            self._memory_keep = None if self._memory_keep is None else selected(self._memory_keep, index)
            if is_initial:
                self._one_token_step = self._make_step()
        self._padding = None if self._padding is None else self._padding[rows]
        if len(rows) != self._samples:  # other shapes, other memory
            self._one_token_step = self._make_step()
        self._samples = len(rows)

    def crop(self, length: int) -> None:
        """Drop the columns from `length` on; `crop(0)` also undoes `select`."""
        inputs.check_crop(length, self.length)
        self._past.crop(length)
        self._set_padding(None if self._padding is None else np.minimum(self._padding, length))
        self.length = length
        if length == 0:
            self._restart()

    def _restart(self) -> None:
        """Restore the initial number of samples, each with its own source."""
        if self._memory is not self._initial_memory[0]:
            self._memory, self._memory_keep = self._initial_memory
            self._source_rows = list(range(self._initial_samples or 0))
            self._one_token_step = self._make_step()
        if self._samples != self._initial_samples:
            self._set_padding(None)
            self._samples = None if self._memory is None else self._initial_samples
            self._one_token_step = self._make_step()

    def _read(self, ids: Tensor, each: bool = False) -> Tensor:
        model = self._model
        assert model.decoder is not None
        x = model.embed_checked(ids)
        if (compiled := self._compiled_step(ids)) is not None and isinstance(self._past, GrowingPast):
            x = compiled(x, self._past)
        else:
            x = model.decoder(x, self._past.span(ids), self._memory, self._memory_keep, self._attend)
        return model.logits(x if each else x[:, -1])

    def _compiled_step(self, ids: Tensor) -> CompiledStep | None:
        """The compiled step, where it computes this: one id of one text, on a CPU, neither recorded nor edited."""
        # The kind of the past first: a step that torch.compile traces, of a static one, must not depend on `length`.
        if not isinstance(self._past, GrowingPast) or self._past.padding is not None:
            return None
        if ids.shape != (1, 1) or not self.length or self._attend is not attend_in_model:
            return None
        if self._cpu_step is False:
            self._cpu_step = compiled_step(self._model)
        return self._cpu_step if self._cpu_step is not None and self._cpu_step.is_unobserved() else None

    def _make_step(self) -> Any:
        """The function that reads one token, compiled if requested; made anew when the memory it uses has changed."""
        return compile_step(self._read, self._device) if self._compile else self._read

    def _set_padding(self, padding: np.ndarray | None) -> None:
        """Set the number of padding columns before each text; in the same memory if there was padding before."""
        self._padding = padding
        there, columns = self._past.padding, None
        if padding is not None:
            columns = torch.from_numpy(padding[:, None]).to(self._device)
            if there is not None and there.shape == columns.shape:
                there.copy_(columns)
                return
        if there is not columns:
            self._past.padding = columns
            self._one_token_step = self._make_step()


@torch.inference_mode(False)
def start_decoding(
    model: "Transformer",
    source: Any,
    *,
    source_mask: Any,
    cache: str,
    max_len: int | None,
    compile: bool,
    attend: Attend,
) -> Decoding:
    """Check the arguments of `Transformer.begin`, encode the source, and return the Decoding."""
    inputs.check_decodes(model.config)
    check_evaluating(model)
    if compile and attend is not attend_in_model:
        raise ArgumentError("compile-recording")
    if max_len is not None:
        check_counts(max_len=(max_len, 1))
    limits = [limit for limit in (model.config.max_len, max_len) if limit is not None]
    longest = min(limits, default=None)
    past = _make_past(model, cache, longest, compile)
    inputs.check_sides(model.config, source, source_mask)
    memory, keep = (None, None) if source is None else _encode_source(model, source, source_mask, attend)
    return Decoding(model, past, memory=memory, memory_keep=keep, max_len=longest, compile=compile, attend=attend)


def _make_past(model: "Transformer", cache: str, max_len: int | None, compile: bool) -> Past:
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
def _encode_source(
    model: "Transformer", source: Any, source_mask: Any, attend: Attend
) -> tuple[list[KeysAndValues], Tensor | None]:
    """The source as keys and values of each cross-attention, and which of it is not padding, B 1 1 S."""
    assert model.decoder is not None
    source = checked_ids(model.config, on_device("source", source, next(model.parameters()).device), source=True)
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
    """Raise ArgumentError in training mode with dropout, which would make every result differ."""
    if model.training and (model.config.dropout or model.config.attention.dropout):
        raise ArgumentError("decoding-training")


# --- compiled steps ----------------------------------------------------------------------------------------


def compile_step(step: DecodeStep, device: torch.device) -> DecodeStep:
    """The step compiled as one graph; on a GPU its kernels are also launched as one CUDA graph."""
    compiled: DecodeStep = torch.compile(_fresh_copy(step), fullgraph=True, dynamic=False)
    return CudaGraphStep(compiled) if device.type == "cuda" else compiled


def _fresh_copy(step: DecodeStep) -> DecodeStep:
    """The same function with a new code object: PyTorch stops compiling one after eight shapes."""

    def once(ids: Tensor) -> Tensor:
        return step(ids)

    return FunctionType(once.__code__.replace(), once.__globals__, closure=once.__closure__)


class CudaGraphStep:
    """A step on a GPU, captured as a CUDA graph once it is warm and replayed afterwards."""

    def __init__(self, step: DecodeStep) -> None:
        self._step = step
        self._calls = 0
        self._graph: CudaGraph
        self._ids: Tensor

    def __call__(self, ids: Tensor) -> Tensor:
        if self._calls == 0:
            self._ids = ids.contiguous().clone()  # one address and one layout, whatever the caller's ids are a view of
        self._ids.copy_(ids)
        self._calls += 1
        if self._calls <= WARM_UP:
            return self._step(self._ids)
        if self._calls == WARM_UP + 1:
            self._graph = CudaGraph(lambda: self._step(self._ids))
        self._graph.replay()
        return self._graph.result.clone()  # the next replay writes into the same memory
