"""Stack: positions, then block after block. An encoder is one that looks both ways, a decoder one that does not."""

from collections.abc import Sequence

from torch import Tensor, nn

from regard.config import TransformerConfig
from regard.config.transformer import Side
from regard.dispatch import attend_within
from regard.layers.cache import KeysAndValues
from regard.masks import Mask
from regard.models.block import Block
from regard.models.parts import norm_of, positions_of
from regard.models.span import Span
from regard.records import Attend


class Stack(nn.Module):
    """The left or the right half of the drawing in the 2017 paper (figure 1), without embeddings and output layer."""

    def __init__(self, config: TransformerConfig, side: Side) -> None:
        super().__init__()
        n_layers = config.layers_of(side)
        cross = side == "decoder" and config.kind == "encoder-decoder"
        self.windows = [config.attention.window_of(i) for i in range(n_layers)]
        self.positions = positions_of(config, bidirectional=side == "encoder")
        self.input_norm = norm_of(config) if config.embeddings.norm else nn.Identity()
        self.dropout = nn.Dropout(0.0 if config.vocab_size is None else config.dropout)  # it is for embeddings
        self.layers = nn.ModuleList(Block(config, kind=side, cross=cross) for _ in range(n_layers))
        self.norm = norm_of(config) if config.norm.final else nn.Identity()

    def forward(
        self,
        x: Tensor,
        span: Span,
        memory: Tensor | Sequence[KeysAndValues] | None = None,
        memory_mask: Mask | Tensor | None = None,
        attend: Attend = attend_within,
    ) -> Tensor:
        """x (B, T, D), the T columns of `span`.

        memory   what the encoder made of the source, (B, S, D), or each layer's keys and values of that
        """
        x = self.dropout(self.input_norm(self.positions.added(x, span.positions)))
        turn = self.positions.turn(span.positions, like=x)
        bias = self.positions.bias(span.positions, span.keys, like=x)
        masks = {window: span.allowed(window) for window in self.windows}
        for i, layer in enumerate(self.layers):
            x = layer(
                x,
                memory if memory is None or isinstance(memory, Tensor) else memory[i],
                mask=masks[self.windows[i]],
                memory_mask=memory_mask,
                bias=bias,
                turn=turn,
                cache=span.caches[i],
                attend=attend,
            )
        return self.norm(x)
