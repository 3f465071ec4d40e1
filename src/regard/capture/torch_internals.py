"""The private names of PyTorch that capture needs, in one place. Tried with torch 2.11 and 2.13.

Public names do not give these facts, or only at a cost that every operator of a watched model would pay. After a new
version of torch has passed `make test` and `make test-gpu`, the upper bound of torch in pyproject.toml moves.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.utils._python_dispatch as python_dispatch
from torch._C import DispatchKey
from torch._C import _len_torch_dispatch_stack as dispatch_mode_count
from torch._C._functorch import is_functorch_wrapped_tensor
from torch._higher_order_ops.flex_attention import _math_attention_inner as flex_attention_scores
from torch._higher_order_ops.flex_attention import flex_attention
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes as without_dispatch_modes
from torch.utils._pytree import tree_map_only

from regard.dispatch.backend import LISTENING

__all__ = [
    "ATTENTION_MATH",
    "COPY_TO",
    "FUSED_ATTENTION",
    "FUSED_LAYERS",
    "INDEX_PUT_INSIDE",
    "LISTENING",
    "LOG_SOFTMAX",
    "SOFTMAXES",
    "SOFTMAX_BACKWARD",
    "DispatchKey",
    "Isolated",
    "ListenersPaused",
    "OpOverload",
    "TorchDispatchMode",
    "current_backward_task",
    "dispatch_mode_count",
    "exit_mode",
    "flex_attention_kernel",
    "flex_attention_scores",
    "has_kernel_for",
    "has_storage",
    "is_any_autocast_enabled",
    "is_being_compiled",
    "is_functorch_wrapped_tensor",
    "is_key_excluded",
    "is_operator",
    "outer_dispatch_state",
    "python_kernels",
    "safe_softmax",
    "set_flex_attention_kernel",
    "set_key_excluded",
    "tree_map_only",
]

_C: Any = torch._C

# --- dispatch: keys, kernels, and the state around the outermost operator ---------------------------------

is_key_excluded = _C._dispatch_tls_is_dispatch_key_excluded
set_key_excluded = _C._dispatch_tls_set_dispatch_key_excluded
has_kernel_for = _C._dispatch_has_kernel_for_dispatch_key
is_operator = _C._dispatch_has_kernel
"""Whether there is an operator of this name, with or without kernels."""
outer_dispatch_state = _C._RestorePythonTLSSnapshot


_MODE_FLAGS = (
    "_is_in_torch_dispatch_mode",
    "_is_in_non_infra_torch_dispatch_mode",
    "_is_in_any_mode_without_ignore_compile_internals",
)


def exit_mode(mode: TorchDispatchMode, *raised: Any) -> None:
    """Exit a dispatch mode that may have been entered while an operator ran inside another mode.

    PyTorch's flags of modes, which compiled models check, are restored to those of the beginning. If another mode of
    this thread was active then and ended first, they would stay set, and each model would be compiled once more.
    """
    mode.__exit__(*raised)
    if dispatch_mode_count() == 0:
        for name in _MODE_FLAGS:
            if getattr(python_dispatch, name, False):
                setattr(python_dispatch, name, False)
        set_flag = getattr(python_dispatch, "set_is_in_mode_without_ignore_compile_internals", None)
        if set_flag is not None:
            set_flag(False)


def python_kernels() -> set[str]:
    """The names and dispatch keys of the kernels that libraries have registered in Python: PyTorch's own set."""
    found: set[str] = torch.library._impls
    return found


# --- operators whose names begin with an underscore -------------------------------------------------------

_aten = torch.ops.aten
FUSED_ATTENTION = (
    _aten._scaled_dot_product_flash_attention_for_cpu.default,
    _aten._scaled_dot_product_flash_attention.default,
    _aten._scaled_dot_product_efficient_attention.default,
    _aten._scaled_dot_product_cudnn_attention.default,
)
ATTENTION_MATH = _aten._scaled_dot_product_attention_math.default
FUSED_LAYERS = (_aten._native_multi_head_attention.default, _aten._transformer_encoder_layer_fwd.default)
"""`nn.MultiheadAttention` with its projections, and a whole `nn.TransformerEncoderLayer`."""
SOFTMAXES = (_aten._softmax.default, _aten._safe_softmax.default)
LOG_SOFTMAX = _aten._log_softmax.default
SOFTMAX_BACKWARD = _aten._softmax_backward_data.default
COPY_TO = _aten._to_copy.default
"""`Tensor.to` with a copy."""
INDEX_PUT_INSIDE = _aten._index_put_impl_.default
"""What `index_put_` calls."""


def flex_attention_kernel() -> Callable[..., Any]:
    """The function that computes flex_attention outside of compiled code."""
    found: Callable[..., Any] = flex_attention.py_kernels[DispatchKey.CompositeExplicitAutograd]
    return found


def set_flex_attention_kernel(kernel: Callable[..., Any]) -> None:
    """Replace the function that computes flex_attention outside of compiled code."""
    flex_attention.py_kernels[DispatchKey.CompositeExplicitAutograd] = kernel
    flex_attention._dispatch_cache.clear()


# --- autograd and autocast --------------------------------------------------------------------------------

set_grad_enabled = _C._set_grad_enabled
without_autocast = _C._DisableAutocast
is_any_autocast_enabled = _C._is_any_autocast_enabled
current_backward_task = _C._current_graph_task_id
"""The number of the backward pass that is running; -1 for none."""


def is_being_compiled() -> bool:
    """Whether torch.compile traces the running code with tensors without data; it will run later."""
    return torch._guards.TracingContext.try_get() is not None and not torch.compiler.is_exporting()


# --- tensors ----------------------------------------------------------------------------------------------

has_storage = _C._has_storage
safe_softmax = torch._safe_softmax
"""The softmax of PyTorch's own attention: 0 in rows of -inf."""


# --- observation without side effects ---------------------------------------------------------------------


class ListenersPaused:
    """Context in which this thread's listeners receive nothing."""

    __slots__ = ("_active",)

    def __enter__(self) -> None:
        self._active, LISTENING.active = LISTENING.active, ()

    def __exit__(self, *raised: Any) -> None:
        LISTENING.active = self._active


class Isolated:
    """Context in which other dispatch modes, listeners, autograd and autocast are off.

    A class, not a generator, because it is entered for every attention of every step.
    """

    __slots__ = ("_active", "_autocast", "_grad", "_modes")

    def __enter__(self) -> None:
        self._active, LISTENING.active = LISTENING.active, ()
        self._modes = without_dispatch_modes() if dispatch_mode_count() else None
        if self._modes is not None:
            self._modes.__enter__()
        self._grad = torch.is_grad_enabled()
        if self._grad:
            set_grad_enabled(False)
        self._autocast = without_autocast() if is_any_autocast_enabled() else None
        if self._autocast is not None:
            self._autocast.__enter__()

    def __exit__(self, *raised: Any) -> None:
        if self._autocast is not None:
            self._autocast.__exit__(*raised)
        if self._grad:
            set_grad_enabled(True)
        if self._modes is not None:
            self._modes.__exit__(*raised)
        LISTENING.active = self._active
