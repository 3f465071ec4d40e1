"""RecurrentModel: an Elman or LSTM language model, or a translator with Bahdanau's, Luong's or no attention.

It takes the same arguments as `Transformer` and returns the same logits, so that training, generation and evaluation
do not distinguish the two. Padding of a source is on the right, as in training batches.
"""

import os
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.checkpoints import read_recurrent, save_model
from regard.config import RecurrentConfig
from regard.dispatch import attend_in_model
from regard.errors import ArgumentError
from regard.functional.recurrent import LSTMState
from regard.layers import LSTM, AdditiveAttention, Elman, MultiplicativeAttention, TokenEmbedding
from regard.masks import Mask
from regard.records import Attend

State = tuple[Tensor, ...]
"""The state of one layer: h, and c of an LSTM, each (B, F)."""


class RecurrentModel(nn.Module):
    """A recurrent decoder, with an encoder a translator. The output layer shares the embedding's weights.

    >>> config = RecurrentConfig(cell="lstm", vocab_size=10, d_model=8, d_state=8, n_encoder_layers=1)
    >>> RecurrentModel(config)(torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5]])).shape
    torch.Size([1, 3, 10])
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        D, width, layers = config.d_model, config.d_state, config.n_decoder_layers
        self.embedding = TokenEmbedding(config.vocab_size, D)
        nn.init.normal_(self.embedding.weight, std=D**-0.5)
        self.encoder = Encoder(config) if config.n_encoder_layers is not None else None
        states = layers * config.n_states
        self.bridge = nn.Linear(width, states * width) if self.encoder is not None else None
        context = width if config.attention == "bahdanau" else 0
        self.decoder = nn.ModuleList(_layer(config, D + context if i == 0 else width, width) for i in range(layers))
        self.attention: AdditiveAttention | MultiplicativeAttention | None = None
        if config.attention == "bahdanau":
            self.attention = AdditiveAttention(width, width, width)
        elif config.attention == "luong":
            self.attention = MultiplicativeAttention(width, width)
        self.readout = nn.Linear(width if config.attention is None else 2 * width, D)
        self.output_bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        ids: Tensor,
        source: Tensor | None = None,
        *,
        source_mask: Mask | Tensor | None = None,
        attend: Attend = attend_in_model,
    ) -> Tensor:
        """Logits (B, T, W) for ids (B, T); a translator also reads `source` (B, S).

        source_mask   visible source tokens
        attend        the attention function: a `regard.trace.Recorder` also records the attention
        """
        memory, keep, states = self.read_source(source, source_mask, len(ids))
        return self.decode(ids, states, memory, keep, attend)[0]

    def read_source(
        self, source: Tensor | None, source_mask: Mask | Tensor | None, B: int
    ) -> tuple[Tensor | None, Tensor | None, list[State]]:
        """The encoder's states (B, S, F), which of them are visible, and the decoder's initial states."""
        if (source is None) != (self.encoder is None):
            raise ArgumentError("source-missing" if source is None else "source-unneeded", kind=self.config.kind)
        if source is None or self.encoder is None or self.bridge is None:
            zeros = self.embedding.weight.new_zeros(B, self.config.d_state)
            return None, None, [(zeros,) * self.config.n_states for _ in self.decoder]
        keep = _kept(source_mask, source)
        memory, last = self.encoder(self.dropout(self.embedding(source)), keep)
        n = self.config.n_states
        initial = torch.tanh(self.bridge(last)).chunk(n * len(self.decoder), dim=-1)
        return memory, keep, [initial[n * i : n * (i + 1)] for i in range(len(self.decoder))]

    def decode(
        self,
        ids: Tensor,
        states: Sequence[State],
        memory: Tensor | None = None,
        keep: Tensor | None = None,
        attend: Attend = attend_in_model,
    ) -> tuple[Tensor, list[State]]:
        """Logits (B, T, W) for ids (B, T) read after `states`, and the states after them."""
        x = self.dropout(self.embedding(ids))
        mask = None if keep is None else Mask.from_keep(keep)
        if isinstance(self.attention, AdditiveAttention):
            assert memory is not None
            x, after = self._attend_before_each_step(x, list(states), memory, mask, attend)
        else:
            x, after = self._run(x, states)
            if self.attention is not None:
                assert memory is not None
                x = torch.cat([x, self.attention(x, memory, mask=mask, attend=attend)], dim=-1)
        x = self.dropout(torch.tanh(self.readout(x)))
        return F.linear(x, self.embedding.weight, self.output_bias), after

    def begin(self, source: Any = None, *, source_mask: Any = None) -> "RecurrentDecoding":
        """Start decoding: read a text and continue it step by step, as `generation` does."""
        return RecurrentDecoding(self, source, source_mask)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write config.json and model.safetensors; load them with `read`."""
        save_model(folder, self.config, self.state_dict())

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> "RecurrentModel":
        """The model that `save` wrote, on the CPU, in evaluation mode."""
        config, tensors = read_recurrent(folder)
        model = cls(config)
        model.load_state_dict({name: torch.from_numpy(x) for name, x in tensors.arrays().items()})
        return model.eval()

    def _run(self, x: Tensor, states: Sequence[State]) -> tuple[Tensor, list[State]]:
        """All steps of each layer in one call of PyTorch's kernel."""
        after = []
        for i, layer in enumerate(self.decoder):
            x, state = _run_layer(layer, x if i == 0 else self.dropout(x), states[i])
            after.append(state)
        return x, after

    def _attend_before_each_step(
        self, x: Tensor, states: list[State], memory: Tensor, mask: Mask | None, attend: Attend
    ) -> tuple[Tensor, list[State]]:
        """Bahdanau's decoder: the previous state is the query, and the context is part of the step's input.

        Each step needs the one before, so no kernel can take all steps. Attention is recorded once for the whole text.
        """
        assert isinstance(self.attention, AdditiveAttention)
        keys = self.attention.k_proj(memory)
        queries, outputs = [], []
        for t in range(x.shape[1]):
            queries.append(states[-1][0])
            context = self.attention(queries[-1][:, None], memory, keys=keys, mask=mask)[:, 0]
            h = torch.cat([x[:, t], context], dim=-1)
            for i, layer in enumerate(self.decoder):
                output, states[i] = _run_layer(layer, (h if i == 0 else self.dropout(h))[:, None], states[i])
                h = output[:, 0]
            outputs.append(torch.cat([h, context], dim=-1))
        if attend is not attend_in_model:
            self.attention(torch.stack(queries, 1), memory, keys=keys, mask=mask, attend=attend)
        return torch.stack(outputs, 1), states


class Encoder(nn.Module):
    """Layers that read the source in both directions, each with half of the width (Schuster and Paliwal 1997)."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        n, width = config.n_encoder_layers or 0, config.d_state
        widths = [config.d_model if i == 0 else width for i in range(n)]
        self.forwards = nn.ModuleList(_layer(config, each, width // 2) for each in widths)
        self.backwards = nn.ModuleList(_layer(config, each, width // 2) for each in widths)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        """The states (B, S, F), and the last state of each direction, (B, F)."""
        lengths = keep.sum(1, keepdim=True)  # B 1
        places = torch.arange(x.shape[1], device=x.device)
        backwards = torch.where(places < lengths, lengths - 1 - places, places)  # padding stays on the right
        for i, (left, right) in enumerate(zip(self.forwards, self.backwards, strict=True)):
            x = x if i == 0 else self.dropout(x)
            after, _ = _run_layer(left, x, None)
            before, _ = _run_layer(right, _in_order(x, backwards), None)
            x = torch.cat([after, _in_order(before, backwards)], dim=-1)
        last = (lengths - 1).clamp(min=0)
        return x, torch.cat([_in_order(after, last), _in_order(before, last)], dim=-1)[:, 0]


class RecurrentDecoding:
    """The state of step-by-step decoding: one state per layer, whatever the length of the text."""

    def __init__(self, model: RecurrentModel, source: Any = None, source_mask: Any = None) -> None:
        self._model, self._device = model, model.embedding.weight.device
        source = None if source is None else torch.as_tensor(source, device=self._device)
        with torch.no_grad():
            read = model.read_source(source, source_mask, 1 if source is None else len(source))
        self._memory, self._keep, self._states = read
        self._initial = read
        self.length = 0
        """The number of columns read so far."""

    @property
    def vocab_size(self) -> int:
        """W, the number of logits per sample."""
        return self._model.config.vocab_size

    @property
    def max_len(self) -> int | None:
        """The model's max_len."""
        return self._model.config.max_len

    @torch.no_grad()
    def step(self, ids: Any, keep: Any = None) -> Tensor:
        """Read ids (B, T); return the logits after the last one, (B, W). Padding before a text is refused."""
        ids = torch.as_tensor(ids, device=self._device)
        if keep is not None and not torch.as_tensor(keep).all():
            raise ArgumentError("recurrent-padding")
        if self.length == 0 and self._memory is None and len(ids) != len(self._states[0][0]):
            self.select([0] * len(ids))
        logits, self._states = self._model.decode(ids, self._states, self._memory, self._keep)
        self.length += ids.shape[1]
        return logits[:, -1]

    def select(self, rows: Sequence[int]) -> None:
        """Continue with these samples in this order; rows may repeat or be left out."""
        index = torch.tensor(rows, device=self._device)
        self._states = [tuple(each[index] for each in state) for state in self._states]
        self._memory = None if self._memory is None else self._memory[index]
        self._keep = None if self._keep is None else self._keep[index]

    def crop(self, length: int) -> None:
        """Return to the state before the text (`length` 0). A state cannot forget a part of what it has read."""
        if length == 0:
            (self._memory, self._keep, self._states), self.length = self._initial, 0
        elif length != self.length:
            raise ArgumentError("recurrent-crop", length=length, found=self.length)


def _layer(config: RecurrentConfig, d_input: int, d_state: int) -> nn.Module:
    return LSTM(d_input, d_state, config.forget_bias) if config.cell == "lstm" else Elman(d_input, d_state)


def _run_layer(layer: nn.Module, x: Tensor, state: State | None) -> tuple[Tensor, State]:
    """The outputs (B, T, F) and the last state of either kind of layer."""
    if isinstance(layer, LSTM):
        return layer(x, None if state is None else LSTMState(*state))
    output = layer(x, None if state is None else state[0])
    return output, (output[:, -1],)


def _in_order(x: Tensor, places: Tensor) -> Tensor:
    """The columns of x (B, S, F) at `places` (B, n)."""
    return x.gather(1, places[..., None].expand(-1, -1, x.shape[-1]))


def _kept(mask: Mask | Tensor | None, source: Tensor) -> Tensor:
    """Which source tokens are visible, (B, S)."""
    B, S = source.shape
    if mask is None:
        return torch.ones(B, S, dtype=torch.bool, device=source.device)
    mask = Mask.of(mask)
    keep = mask.bind((B, 1), S, S).kept_keys
    if keep is None:
        raise ArgumentError("source-mask-keys", mask=mask.name)
    return torch.as_tensor(keep, device=source.device)[:, 0, 0].expand(B, S)
