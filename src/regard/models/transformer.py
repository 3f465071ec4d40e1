"""Transformer: one model for the 2017 paper, BERT, GPT-2 and Llama. Its config says which; its forward is the drawing.

It knows neither tokenizers nor training nor generation. What it needs to go on with a text, `begin` gives.
"""

import os
from typing import Any, Literal

import torch
from torch import Tensor, nn

from regard.checkpoints import read_model, save_model
from regard.config import GATES, TransformerConfig, inputs
from regard.dispatch import attend_within
from regard.functional.activations import activation_called
from regard.layers import MultiHeadAttention, OutputLayer, TokenEmbedding
from regard.layers.span import whole
from regard.masks import Mask
from regard.models.block import wide_norm_of
from regard.models.decoding import Decoding
from regard.models.inputs import check_ids, check_positions, check_segments
from regard.models.stacks import Stack
from regard.models.weights import initialise
from regard.records import Attend


class Transformer(nn.Module):
    """Encoder, decoder or both, as `config` says.

    >>> model = Transformer(TransformerConfig.gpt2(vocab_size=10, d_model=8, n_heads=2, d_ff=16, n_layers=2))
    >>> model(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 10])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        given, D = config.embeddings, config.d_model

        def embedding(rows: int | None) -> TokenEmbedding | None:
            return None if rows is None else TokenEmbedding(rows, D, given.scaled)

        self.embedding = embedding(config.vocab_size)
        self.source_embedding = embedding(given.source_vocab_size)
        self.segment_embedding = None if given.n_segments is None else TokenEmbedding(given.n_segments, D)
        layers = (config.n_encoder_layers, config.n_decoder_layers)
        self.encoder, self.decoder = (
            None if n is None else Stack(config, n_layers=n, decoder=side == 1) for side, n in enumerate(layers)
        )
        self.output = _output_of(config)
        for name, module in self.named_modules():
            if isinstance(module, MultiHeadAttention):
                module.name = name
        initialise(self)

    def forward(
        self,
        ids: Tensor,
        source: Tensor | None = None,
        *,
        mask: Mask | Tensor | None = None,
        source_mask: Mask | Tensor | None = None,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
        attend: Attend = attend_within,
    ) -> Tensor:
        """Logits (B, T, W) for ids (B, T); of an encoder-decoder for ids that continue, given `source` (B, S).

        mask          who may look where among the ids, beside what the model itself forbids
        source_mask   the same among the source, and for the decoder that looks at it
        segments      which kind of sentence each id belongs to, (B, T), where the model tells them apart
        positions     where the ids stand, (T,) or (B, T); None for 0 … T − 1
        attend        who computes: `regard.trace.Looking(...)` also remembers where was looked

        Without a vocabulary, ids and source are vectors (B, T, D), and vectors come back.
        """
        inputs.check_sides(self.config, ids.shape, None if source is None else source.shape, source_mask is not None)
        check_positions(self.config, positions, ids)
        x = self.embed(ids, segments)
        if self.decoder is None:
            return self.scores(self.encode(x, mask=mask, positions=positions, attend=attend))
        memory = None
        if source is not None:
            memory = self.encode(self.embed(source, source=True), mask=source_mask, attend=attend)
        span = whole(x, len(self.decoder.layers), causal=True, mask=mask, positions=positions)
        return self.scores(self.decoder(x, span, memory, source_mask, attend))

    def embed(self, ids: Tensor, segments: Tensor | None = None, *, source: bool = False) -> Tensor:
        """Ids (B, T) as vectors (B, T, D); vectors as they are where the model has no vocabulary."""
        check_ids(self.config, ids, source=source)
        check_segments(self.config, segments, ids)
        table = self.source_embedding if source and self.source_embedding is not None else self.embedding
        x = ids if table is None else table(ids)
        if self.segment_embedding is None:
            return x
        return x + self.segment_embedding(torch.zeros_like(ids) if segments is None else segments)

    def encode(
        self,
        x: Tensor,
        *,
        mask: Mask | Tensor | None = None,
        positions: Tensor | None = None,
        attend: Attend = attend_within,
    ) -> Tensor:
        """What the encoder makes of vectors (B, S, D): as many, of the same width."""
        assert self.encoder is not None
        span = whole(x, len(self.encoder.layers), causal=False, mask=mask, positions=positions)
        return self.encoder(x, span, attend=attend)

    def scores(self, x: Tensor) -> Tensor:
        """Logits (…, W) for vectors (…, D), where the model has an output layer."""
        return x if self.output is None or self.embedding is None else self.output(x, self.embedding.weight)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write config.json and model.safetensors, which `read`, and NumPy through `checkpoints.read_model`, read."""
        save_model(folder, self.config, self.state_dict())

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> "Transformer":
        """The model that `save` wrote, ready to be used: on the CPU, in evaluation mode."""
        stored = read_model(folder)
        with torch.device("meta"):  # no memory is filled with numbers that are replaced at once
            model = cls(stored.config)
        weights = {name: torch.from_numpy(array) for name, array in stored.tensors.arrays().items()}
        model.load_state_dict(weights, assign=True)
        return model.eval()

    def begin(
        self,
        source: Any = None,
        *,
        source_mask: Any = None,
        cache: Literal["growing", "static"] = "growing",
        max_len: int | None = None,
        compile: bool = False,
        attend: Attend = attend_within,
    ) -> Decoding:
        """A text to be read and continued step by step; see `Decoding`."""
        return Decoding(
            self, source, source_mask=source_mask, cache=cache, max_len=max_len, compile=compile, attend=attend
        )


def _output_of(config: TransformerConfig) -> OutputLayer | None:
    if config.output is None or config.vocab_size is None:
        return None
    bend = activation_called(GATES.get(config.activation, config.activation))  # type: ignore[arg-type]
    return OutputLayer(
        config.vocab_size,
        config.d_model,
        tied=config.output.tied,
        scaled=config.output.scaled,
        bias=config.biases.output,
        transform=(bend, wide_norm_of(config)) if config.output.transform else None,
    )
