"""A single Block: memory is required with cross-attention and refused without it."""

import pytest
import torch

from regard import Mask
from regard.config import TransformerConfig
from regard.errors import RegardError
from regard.layers import MultiHeadAttention
from regard.models import Block
from regard.trace import Recorder

CONFIG = TransformerConfig.paper_2017(d_model=8, n_heads=2, d_ff=16, dropout=0.0)


def refused(key: str, *args: object, cross: bool = True) -> None:
    with pytest.raises(RegardError) as caught:
        Block(CONFIG, cross=cross)(*args)
    assert caught.value.key == key


def test_memory_is_required_exactly_with_cross_attention() -> None:
    x, memory = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    refused("memory-missing", x)
    refused("memory-unneeded", x, memory, cross=False)
    refused("batches-differ", x, torch.randn(1, 5, 8))
    recorder = Recorder()
    Block(CONFIG, kind="decoder", cross=True)(x, memory, mask=Mask.causal(), attend=recorder)
    assert [(record.name, record.kind, record.shape) for record in recorder.trace] == [
        ("self_attention", "decoder", (2, 2, 3, 3)),
        ("cross_attention", "cross", (2, 2, 3, 5)),
    ]


@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 7), (1, 2, 3, 8)])
def test_vectors_have_three_axes(shape: tuple[int, ...]) -> None:
    with pytest.raises(RegardError) as caught:
        MultiHeadAttention(8, 2)(torch.randn(*shape))
    assert caught.value.key == "vectors-shape"
