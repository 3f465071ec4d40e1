"""Stack: positions, then block after block. An encoder is one that looks both ways, a decoder one that does not."""

from torch import Tensor, nn

from regard.config import TransformerConfig
from regard.dispatch import attend_within
from regard.layers.positions import positions_of
from regard.layers.span import Span
from regard.masks import Mask
from regard.models.block import Block, wide_norm_of
from regard.records import Attend


class Stack(nn.Module):
    """The left or the right half of the drawing in the 2017 paper (figure 1), without embeddings and output layer."""

    def __init__(self, config: TransformerConfig, *, n_layers: int, decoder: bool) -> None:
        super().__init__()
        cross = decoder and config.kind == "encoder-decoder"
        self.positions = positions_of(config, bidirectional=not decoder)
        self.input_norm = wide_norm_of(config) if config.embeddings.norm else nn.Identity()
        self.dropout = nn.Dropout(0.0 if config.vocab_size is None else config.dropout)  # it is for embeddings
        self.windows = [config.attention.window_of(i) for i in range(n_layers)]
        self.layers = nn.ModuleList(
            Block(config, kind="decoder" if decoder else "encoder", cross=cross) for _ in range(n_layers)
        )
        self.norm = wide_norm_of(config) if config.norm.final else nn.Identity()

    def forward(
        self,
        x: Tensor,
        span: Span,
        memory: Tensor | None = None,
        memory_mask: Mask | Tensor | None = None,
        attend: Attend = attend_within,
    ) -> Tensor:
        """x (B, T, D), the T columns of `span`; `memory` (B, S, D) is what the encoder made of the source."""
        x = self.dropout(self.input_norm(self.positions.added(x, span.positions)))
        turn = self.positions.turn(span.positions, like=x)
        bias = self.positions.bias(span.columns, span.keys, like=x)
        masks = {window: span.rule(window) for window in self.windows}
        for i, layer in enumerate(self.layers):
            x = layer(
                x,
                memory,
                mask=masks[self.windows[i]],
                memory_mask=memory_mask,
                bias=bias,
                turn=turn,
                cache=span.own[i],
                memory_cache=span.memory[i],
                attend=attend,
            )
        return self.norm(x)
