"""Models whose large matrices are 8-bit integers with a scale for each row; norms, biases and positions stay float."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from regard.checkpoints.tensor_file import LARGE
from regard.functional.int8_weight import Int8Weight, quantised
from regard.layers.position_wise import Linear, OutputLayer, TokenEmbedding


def round_weights(model: nn.Module) -> nn.Module:
    """Replace the large matrices of a model by `Int8Weight`, in place; it cannot be trained afterwards.

    >>> from regard.config import TransformerConfig
    >>> from regard.models import Transformer
    >>> model = Transformer(TransformerConfig.gpt2(vocab_size=70, d_model=64, n_heads=2, d_ff=64, n_layers=1))
    >>> round_weights(model).embedding.weight.numbers.dtype
    torch.int8
    """
    with torch.no_grad():
        for name, layer, weight in list(_large_layers(model)):
            if weight.is_meta:
                rounded = Int8Weight(torch.empty_like(weight, dtype=torch.int8), weight.new_empty(len(weight)))
            else:
                rounded = Int8Weight.of(weight.detach(), name)
            del layer.weight
            layer.weight = rounded
    return model.requires_grad_(False)


def _large_layers(model: nn.Module) -> Iterator[tuple[str, nn.Module, Tensor]]:
    """The layers with a matrix that is rounded, the name of the matrix, and the matrix."""
    for name, layer in model.named_modules():
        if isinstance(layer, Linear | TokenEmbedding | OutputLayer):
            weight = layer.weight
            if isinstance(weight, Tensor) and weight.numel() >= LARGE:
                yield f"{name}.weight", layer, weight


def rounded_names(model: nn.Module) -> frozenset[str]:
    """The names of the matrices that are 8-bit integers."""
    return frozenset(name for name, module in model.named_modules() if isinstance(module, Int8Weight))


def rounded_tensor(name: str, weight: Tensor) -> dict[str, Tensor]:
    """The tensors of a model that stand for one of its rounded matrices."""
    numbers, scale = quantised(weight, name)
    return {f"{name}.numbers": numbers, f"{name}.scale": scale}


def float_weights(model: nn.Module) -> Mapping[str, Tensor]:
    """The weights of a model by name, rounded ones as floating-point numbers."""
    found = dict(model.state_dict())
    for name, module in model.named_modules():
        if isinstance(module, Int8Weight):
            del found[f"{name}.numbers"], found[f"{name}.scale"]
            found[name] = module.dequantised()
    return found
