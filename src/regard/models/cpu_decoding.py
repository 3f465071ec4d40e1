"""Decoding on a CPU: matrices as 8-bit integers, and one id through all layers of a decoder in one compiled function.

A step of decoding reads every weight once. Rounded matrices have a quarter of the bytes; norms, biases and positions
stay float. The rest of a step is thousands of small operations, each of which costs more in PyTorch than in arithmetic:
`CompiledStep` computes them in `functional/decoding.cpp`. It is not used while the model is watched or edited.
"""

import ctypes
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.checkpoints.tensor_file import LARGE
from regard.dispatch.backend import LISTENING
from regard.functional.int8_weight import Int8Weight, compiled_library, quantised
from regard.functional.position_wise import ACTIVATIONS, ActivationName
from regard.functional.positions import rotations_at
from regard.layers.attention import MultiHeadAttention
from regard.layers.position_wise import FeedForward, LayerNorm, Linear, OutputLayer, RMSNorm, TokenEmbedding
from regard.layers.positions import LearnedPositions, NoPositions, RotaryPositions, SinusoidalPositions
from regard.models.inputs import GrowingPast

# --- 8-bit matrices ------------------------------------------------------------------------------------------


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


# --- the compiled step ---------------------------------------------------------------------------------------

SMALLEST = 2**20
"""Weights from which a step is compiled: a smaller model is read in less time than it takes to load the function."""
PLACES = ("post", "pre", "parallel", "both")
_ACTIVATIONS: tuple[ActivationName, ...] = ("relu", "gelu", "gelu_tanh", "silu")
_CACHE = slice(33, 37)
"""The fields of `Layer` that change from step to step: keys, values, cosines, sines."""


class _Settings(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_int64)
            for name in ("layers", "width", "heads", "groups", "head", "hidden", "rotated", "halves", "rms", "place")
        ),
        *((name, ctypes.c_int64) for name in ("activation", "position", "threads")),
        *((name, ctypes.c_double) for name in ("eps", "scale", "softcap")),
    )


class CompiledStep:
    """One id of one text through all layers of a decoder; `compiled_step` builds it.

    The memory of weights and caches is passed by address, so this object keeps the tensors.
    """

    def __init__(self, model: nn.Module, function: Any) -> None:
        stack: Any = model.decoder
        self._stack = stack
        self._function = function
        self._modules = list(model.modules())
        self._kept: list[Tensor] = []
        first = stack.layers[0]
        attention, norm, rotary = first.self_attention, first.self_attention_norm, stack.positions
        head = attention.q_proj.out_features // attention.n_heads
        is_rotary = isinstance(rotary, RotaryPositions)
        self._settings = _Settings(
            layers=len(stack.layers),
            width=attention.q_proj.in_features,
            heads=attention.n_heads,
            groups=attention.n_kv_heads,
            head=head,
            hidden=first.feed_forward.up.out_features,
            rotated=rotary.width if is_rotary else 0,
            halves=is_rotary and rotary.pairing == "halves",
            rms=isinstance(norm, RMSNorm),
            place=PLACES.index(first.place),
            activation=_activation_number(first.feed_forward),
            eps=norm.eps,
            scale=head**-0.5 if attention.scale is None else attention.scale,
            softcap=attention.softcap or 0.0,
        )
        rows = [self._row(layer, window) for layer, window in zip(stack.layers, stack.windows, strict=True)]
        self._layers = np.array(rows, np.int64)

    def _row(self, layer: Any, window: int | None) -> list[int]:
        """One `Layer`, in the order of its fields."""
        attention, feed_forward = layer.self_attention, layer.feed_forward
        norms = (layer.self_attention_norm, layer.self_attention_output_norm, attention.q_norm, attention.k_norm)
        parts = (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj)
        last_norms = (layer.feed_forward_norm, layer.feed_forward_output_norm)
        last_parts = (feed_forward.gate, feed_forward.up, feed_forward.down)
        return [
            *(address for norm in norms for address in self._norm(norm)),
            *(address for part in parts for address in self._matrix(part)),
            *(address for norm in last_norms for address in self._norm(norm)),
            *(address for part in last_parts for address in self._matrix(part)),
            *(0, 0, 0, 0),
            window or 0,
            0,
        ]

    def _norm(self, norm: Any) -> tuple[int, int]:
        if norm is None:
            return 0, 0
        weight = 1 + norm.weight if getattr(norm, "plus_one", False) else norm.weight
        return self._address(weight), self._address(getattr(norm, "bias", None))

    def _matrix(self, part: Any) -> tuple[int, int, int]:
        if part is None:
            return 0, 0, 0
        weight, bias = part.weight, self._address(part.bias)
        if isinstance(weight, Int8Weight):
            return self._address(weight.numbers), self._address(weight.scale), bias
        return self._address(weight), 0, bias

    def _address(self, tensor: Tensor | None) -> int:
        if tensor is None:
            return 0
        self._kept.append(tensor)
        return tensor.data_ptr()

    def is_unobserved(self) -> bool:
        """Whether neither this thread's operators nor the calls of the model's modules are watched or edited."""
        return not (
            LISTENING.active
            or torch._C._len_torch_dispatch_stack()
            or torch._C._len_torch_function_stack()
            or torch.is_autocast_enabled("cpu")
            or torch.nn.modules.module._has_any_global_hook()
            or any(module._forward_hooks or module._forward_pre_hooks for module in self._modules)
        )

    def _rotation(self, positions: NoPositions | None, position: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines of the position; empty without rotary positions."""
        if not isinstance(positions, RotaryPositions):
            return like.new_empty(0), like.new_empty(0)
        cos, sin = rotations_at(position, positions.width, positions.base, positions.scaling, like)
        return cos.contiguous(), sin.contiguous()

    def __call__(self, x: Tensor, past: GrowingPast) -> Tensor:
        """The vector (1, 1, D) of the id after those of `past`, through the stack."""
        memory, stack = past.memory_for_next(), self._stack
        assert memory is not None
        position = torch.tensor([past.length])
        x = stack.input_norm(stack.positions.add_to(x, position)).contiguous().clone()
        table, fields = self._layers, []
        rotations = [self._rotation(one, position, x) for one in (stack.positions, stack.local_positions)]
        for (keys, values), window in zip(memory, stack.windows, strict=True):
            cos, sin = rotations[0 if window is None or stack.local_positions is None else 1]
            fields.append((keys.data_ptr(), values.data_ptr(), cos.data_ptr(), sin.data_ptr()))
        table[:, _CACHE] = fields
        table[:, -1] = memory[0][0].shape[2]
        self._settings.position, self._settings.threads = past.length, torch.get_num_threads()
        self._function(ctypes.byref(self._settings), table.ctypes.data, x.data_ptr())
        past.append()
        found: Tensor = stack.norm(x)
        return found


def compiled_step(model: nn.Module) -> CompiledStep | None:
    """The compiled step of a model on a CPU; None where it computes something else, or without a C++ compiler."""
    if not _is_computed(model) or (library := compiled_library()) is None:
        return None
    library.decoder_step.argtypes = [ctypes.c_void_p] * 3
    library.decoder_step.restype = None
    return CompiledStep(model, library.decoder_step)


def _is_computed(model: nn.Module) -> bool:
    """Whether this is a decoder of our own layers, without a bias of the scores, whose weights are plain float32."""
    stack: Any = getattr(model, "decoder", None)
    if stack is None or getattr(model, "encoder", None) is not None:
        return False
    sizes = sum(each.numel() for each in (*model.parameters(), *model.buffers()))
    tensors = [*stack.layers.parameters(), *stack.layers.buffers()]
    is_plain = all(
        type(module) in _KINDS or (type(module) is FeedForward and _activation_number(module) >= 0)
        for layer in stack.layers
        for module in layer.children()
        for module in module.modules()
    )
    return (
        sizes >= SMALLEST
        and is_plain
        and type(stack.positions) in (NoPositions, SinusoidalPositions, LearnedPositions, RotaryPositions)
        and all(each.is_cpu and each.is_contiguous() and each.dtype in (torch.float32, torch.int8) for each in tensors)
        and not any(type(each) is not Tensor and type(each) is not nn.Parameter for each in tensors)
    )


_KINDS = (MultiHeadAttention, Linear, LayerNorm, RMSNorm, Int8Weight, nn.Dropout)


def _activation_number(feed_forward: FeedForward) -> int:
    """The number of the activation in `decoding.cpp`; -1 where it has none."""
    names = {ACTIVATIONS[name]: number for number, name in enumerate(_ACTIVATIONS)}
    return names.get(feed_forward.activation, -1)
