"""The other door into Hugging Face's models: an attention implementation called "regard".

    regard.capture.huggingface.register()
    model.set_attn_implementation("regard")
    trace = regard.Trace(model(**inputs, output_attentions=True).attentions)

It computes what "sdpa" computes, by the same kernels, unless `See(fused=True)` allows ours as it does in `watch`; where
others hand out a matrix of weights it hands out a Record. `watch` needs none of this, and sees models that never ask
for an implementation.
"""

from typing import Any

from torch import Tensor, nn

from regard.capture.additive_masks import Lowering
from regard.capture.attention_kinds import seen_kind, told_kind
from regard.capture.captured import Caught, CaughtWeights
from regard.capture.dispatch_mode import Catching
from regard.capture.layouts import sizes_of
from regard.capture.module_names import at_work
from regard.capture.padding import by_mask
from regard.capture.recording import recorded
from regard.errors import ArgumentError, MissingPackageError
from regard.records import Record, See

UNKNOWN_TO_SDPA = ("softcap", "s_aux")
"""What "sdpa" would leave out without a word, or refuse: caps on scores, and sinks."""


def register(see: See | None = None, name: str = "regard") -> None:
    """Make `attn_implementation=name` known to transformers; `see` says what its Records hold."""
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask
    except ImportError as error:
        raise MissingPackageError(
            "missing-package", what="regard.capture.huggingface", package="transformers", extra="test"
        ) from error
    if see is not None and not isinstance(see, See):
        raise ArgumentError("watch-see", found=type(see).__name__)
    if see is not None and see.differentiable:
        raise ArgumentError("watch-differentiable")
    AttentionInterface.register(name, Implementation(See() if see is None else see, name))
    # Without this one, every mask would silently be None.
    AttentionMaskInterface.register(name, sdpa_mask)


class Implementation:
    """Attention as transformers calls it: the output as "sdpa" has it, and a Record where somebody collects them."""

    def __init__(self, see: See, name: str = "regard") -> None:
        self.see, self.name = see, name

    def __call__(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **more: Any
    ) -> tuple[Tensor, Record | None]:
        """The output (B, T, H, Ev) for q, k and v in heads, (B, H, T, E)."""
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        for word in UNKNOWN_TO_SDPA:
            if more.get(word) is not None:
                raise ArgumentError("door-unsupported", name=self.name, what=word, module=type(module).__name__)
        asked = bool(more.pop("output_attentions", False)) or _is_collecting(module)
        if not asked:
            return sdpa_attention_forward(module, query, key, value, attention_mask, **more)
        records: list[Record] = []

        def tell(caught: Caught | CaughtWeights) -> None:
            records.append(self._record(module, caught))

        with Catching(tell, answer=self.see.fused) as catching:
            out, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **more)
        if not records:
            raise catching.unseen.errors[0]
        return out, records[-1]

    def _record(self, module: nn.Module, caught: Caught | CaughtWeights) -> Record:
        caught = Lowering().lowered(caught) if isinstance(caught, Caught) else caught
        sizes = sizes_of(caught, module)
        name, around = _placed(module)
        kind = told_kind(name, around)
        kind = seen_kind(caught, sizes) if kind == "self" else kind
        padding = by_mask(caught, sizes, module, across=kind == "cross")
        return recorded(caught, module, self.see, padding).named(name, kind)


def _placed(module: nn.Module) -> tuple[str, list[nn.Module]]:
    """The name of a module in the model that is running, and the modules around it, from the model to itself."""
    around = [module]
    names: list[str] = []
    for outer in at_work():
        inside = (name for name, inner in outer.named_modules() if inner is around[0] and name)
        name = next(inside, None)
        if name is not None:
            names.insert(0, name)
            around.insert(0, outer)
    return ".".join(names) or type(module).__name__, around


def _is_collecting(module: nn.Module) -> bool:
    """Whether the model was called with `output_attentions`, which newer versions tell nobody on the way down."""
    try:
        from transformers.utils.output_capturing import _active_collector
    except ImportError:
        return True
    collected = _active_collector.get()
    return collected is not None and any("attentions" in key for key in collected)
