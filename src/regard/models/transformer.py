"""Transformer: one model for the 2017 paper, BERT, GPT-2 and Llama. Its config says which; its forward is the drawing.

It knows neither tokenizers nor training nor generation. What it needs to go on with a text, `begin` gives.
"""

import os
from typing import Any, Literal

import torch
from torch import Tensor, nn

from regard.checkpoints import read_model, save_model
from regard.config import TransformerConfig, inputs
from regard.dispatch import attend_within
from regard.errors import ArgumentError
from regard.layers import MultiHeadAttention, TokenEmbedding
from regard.masks import Mask
from regard.models.decoding import Decoding, begun
from regard.models.inputs import given_ids, given_positions, given_segments
from regard.models.parts import output_of
from regard.models.span import whole
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
        if not isinstance(config, TransformerConfig):
            raise ArgumentError("config-kind", name="config", found=type(config).__name__, choices="TransformerConfig")
        self.config = config
        D, tables = config.d_model, config.embeddings

        def embedding(rows: int | None, scaled: bool = tables.scaled) -> TokenEmbedding | None:
            return None if rows is None else TokenEmbedding(rows, D, scaled)

        self.embedding = embedding(config.vocab_size)
        self.source_embedding = embedding(tables.source_vocab_size)
        self.segment_embedding = embedding(tables.n_segments, scaled=False)
        self.encoder = None if config.n_encoder_layers is None else Stack(config, "encoder")
        self.decoder = None if config.n_decoder_layers is None else Stack(config, "decoder")
        self.output = output_of(config)
        for name, module in self.named_modules():
            if isinstance(module, MultiHeadAttention):
                module.name = name  # a Record is called what its weights are called
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
        attend        who computes: a `regard.trace.Looking` also records where it looked

        Without a vocabulary, ids and source are vectors (B, T, D), and vectors come back. Ids outside the vocabulary
        are told where looking at values costs nothing: on the CPU, outside of a traced graph.
        """
        inputs.check_sides(self.config, source, source_mask)
        if self.decoder is None:
            return self.logits(self.encode(ids, segments=segments, mask=mask, positions=positions, attend=attend))
        memory = None if source is None else self.encode(source, mask=source_mask, attend=attend)
        x = self.embed(ids, segments)
        if memory is not None:
            inputs.check_samples("source", len(memory), len(x))
        positions = given_positions(self.config, positions, x)
        span = whole(x, len(self.decoder.layers), causal=True, mask=mask, positions=positions)
        return self.logits(self.decoder(x, span, memory, source_mask, attend))

    def embed(self, ids: Tensor, segments: Tensor | None = None, *, source: bool = False) -> Tensor:
        """Ids (B, T) as vectors (B, T, D); vectors as they are where the model has no vocabulary."""
        ids = given_ids(self.config, ids, source=source, like=next(self.parameters()))
        return self.vectors(ids, given_segments(self.config, segments, ids), source=source)

    def vectors(self, ids: Tensor, segments: Tensor | None = None, *, source: bool = False) -> Tensor:
        """What `embed` gives, of ids that have been looked at."""
        table = self.source_embedding if source and self.source_embedding is not None else self.embedding
        x = ids if table is None else table(ids)
        if self.segment_embedding is None:
            return x
        return x + self.segment_embedding(torch.zeros_like(ids) if segments is None else segments)

    def encode(
        self,
        ids: Tensor,
        *,
        segments: Tensor | None = None,
        mask: Mask | Tensor | None = None,
        positions: Tensor | None = None,
        attend: Attend = attend_within,
    ) -> Tensor:
        """What the encoder makes of ids (B, S), or of the source where there is a decoder too: vectors (B, S, D)."""
        if self.encoder is None:
            raise ArgumentError("no-encoder")
        x = self.embed(ids, segments, source=self.decoder is not None)
        positions = given_positions(self.config, positions, x)
        span = whole(x, len(self.encoder.layers), causal=False, mask=mask, positions=positions)
        return self.encoder(x, span, attend=attend)

    def logits(self, x: Tensor) -> Tensor:
        """How well each token goes with vectors (…, D), (…, W); the vectors where the model has no output layer."""
        return x if self.output is None or self.embedding is None else self.output(x, self.embedding.weight)

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
        """A text to be read and continued step by step, as `generation` does.

        source, source_mask   what the encoder reads, (B, S), and which of it is padding: `Mask.padding(source, pad=0)`
        cache                 "growing" takes any length; "static" has room for `max_len` columns from the start and
                              does every step in the same memory
        max_len               how many columns there may be, at most the model's own limit, which it is unless told
        compile               one-token steps are compiled (static cache only); on a GPU also captured as one graph

        Raises ArgumentError where the model cannot write, and in training mode, where dropout would.
        """
        return begun(
            self, source, source_mask=source_mask, cache=cache, max_len=max_len, compile=compile, attend=attend
        )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write config.json and model.safetensors, which `read`, and NumPy through `checkpoints.read_model`, read."""
        save_model(folder, self.config, self.state_dict())

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> "Transformer":
        """The model that `save` wrote, ready to be used: on the CPU, in evaluation mode."""
        stored = read_model(folder)
        with torch.device("meta"):  # no memory is filled with numbers that are replaced at once
            model = cls(stored.config)
        dtypes = {name: getattr(torch, dtype) for name, dtype in stored.tensors.dtypes.items()}
        arrays = stored.tensors.arrays()  # NumPy has no bfloat16 and gives float32
        model.load_state_dict({n: torch.from_numpy(x).to(dtypes[n]) for n, x in arrays.items()}, assign=True)
        return model.eval()
