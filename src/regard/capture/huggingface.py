"""An attention implementation for Hugging Face models, called "regard", that returns Records.

    regard.capture.huggingface.register()
    model.set_attn_implementation("regard")
    trace = regard.Trace(model(**inputs, output_attentions=True).attentions)

It computes what "sdpa" computes, with the same kernels, unless `See(fused=True)` allows ours as in `watch`. Instead of
a matrix of weights it returns a Record. `watch` does not need it, and also observes models that use no implementation.
"""

from typing import Any

from torch import Tensor, nn

from regard.capture.attention_kinds import kind_by_call, kind_by_name
from regard.capture.call_masks import MaskRecognizer, padding_by_mask
from regard.capture.dispatch_mode import CaptureMode
from regard.capture.layouts import sizes_of
from regard.capture.module_names import running_modules
from regard.capture.operators import CapturedCall, CapturedWeights
from regard.capture.recording import record_of_call
from regard.errors import ArgumentError, MissingPackageError
from regard.records import Record, See

UNKNOWN_TO_SDPA = ("softcap", "s_aux")
"""Arguments that "sdpa" would ignore or reject: caps on scores, and sinks."""


def register(see: See | None = None, name: str = "regard") -> None:
    """Register `attn_implementation=name` with transformers; `see` selects what its Records hold."""
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask
    except ImportError as error:
        raise MissingPackageError(
            "missing-package", what="regard.capture.huggingface", package="transformers", extra="hub"
        ) from error
    if see is not None and not isinstance(see, See):
        raise ArgumentError("watch-see", found=type(see).__name__)
    if see is not None and see.differentiable:
        raise ArgumentError("watch-differentiable")
    AttentionInterface.register(name, Implementation(See() if see is None else see, name))
    # Without this call every mask would silently be None.
    AttentionMaskInterface.register(name, sdpa_mask)


class Implementation:
    """Attention as transformers calls it: the output of "sdpa", and a Record if attention outputs are collected."""

    def __init__(self, see: See, name: str = "regard") -> None:
        self.see, self.name = see, name

    def __call__(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **more: Any
    ) -> tuple[Tensor, Record | None]:
        """The output (B, T, H, Ev) for q, k and v, (B, H, T, E)."""
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        for argument in UNKNOWN_TO_SDPA:
            if more.get(argument) is not None:
                raise ArgumentError(
                    "implementation-unsupported", name=self.name, what=argument, module=type(module).__name__
                )
        wants_record = bool(more.pop("output_attentions", False)) or _is_collecting(module)
        if not wants_record:
            return sdpa_attention_forward(module, query, key, value, attention_mask, **more)
        records: list[Record] = []

        def add(captured: CapturedCall | CapturedWeights) -> None:
            records.append(self._record(module, captured))

        with CaptureMode(add, replaces=self.see.fused) as mode:
            out, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **more)
        if not records:
            raise mode.unobserved.errors[0]
        return out, records[-1]

    def _record(self, module: nn.Module, captured: CapturedCall | CapturedWeights) -> Record:
        captured = MaskRecognizer().with_mask(captured) if isinstance(captured, CapturedCall) else captured
        sizes = sizes_of(captured, module)
        name, ancestors = _placed(module)
        kind = kind_by_name(name, ancestors)
        kind = kind_by_call(captured, sizes) if kind == "self" else kind
        padding = padding_by_mask(captured, sizes, module, across=kind == "cross")
        return record_of_call(captured, module, self.see, padding).named(name, kind)


def _placed(module: nn.Module) -> tuple[str, list[nn.Module]]:
    """The name of a module in the running model, and the modules from the model to it."""
    ancestors = [module]
    names: list[str] = []
    for outer in running_modules():
        inside = (name for name, inner in outer.named_modules() if inner is ancestors[0] and name)
        name = next(inside, None)
        if name is not None:
            names.insert(0, name)
            ancestors.insert(0, outer)
    return ".".join(names) or type(module).__name__, ancestors


def _is_collecting(module: nn.Module) -> bool:
    """Whether the model was called with `output_attentions`, which newer versions do not pass to attention."""
    try:
        from transformers.utils.output_capturing import _active_collector
    except ImportError:
        return True
    collected = _active_collector.get()
    return collected is not None and any("attentions" in key for key in collected)
