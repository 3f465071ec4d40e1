"""The cost of watching a model: GPT-2's shape on the CPU, without its output layer."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.cases.case import Case
from benchmarks.measure import Contender, Ratio

if TYPE_CHECKING:
    from regard import See

PAST = 512
STEPS = 32
"""Decoding steps in one round, from the same past each time; the cache is copied once at the start."""


def sees() -> "dict[str, See]":
    """What a watch records, by name."""
    from regard import See

    return {
        "nothing": See(map=None, lse=False, sink=False),
        "map of 64 bins": See(map=64),
        "map, received, entropy": See(map=64, received=True, entropy=True),
        "default": See(),
    }


def watched(model: Any, run: Callable[[], object]) -> dict[str, Contender]:
    """The run alone, and under watches with different requests."""
    import regard

    def under(see: "See") -> Contender:
        def contender() -> object:
            with regard.watch(model, see=see) as trace:
                run()
            return trace

        return contender

    return {"unwatched": run, **{name: under(see) for name, see in sees().items()}}


def gpt2() -> tuple[Any, Any]:
    """The model, and a thousand tokens."""
    import torch
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    model = GPT2Model._from_config(GPT2Config(), attn_implementation="sdpa").eval()
    return model, torch.randint(0, 50_257, (1, 1024))


def forward() -> dict[str, Contender]:
    model, ids = gpt2()
    return watched(model, lambda: model(ids, use_cache=False))


def steps() -> dict[str, Contender]:
    model, ids = gpt2()
    cache = model(ids[:, :PAST], use_cache=True).past_key_values

    def run() -> None:
        for at in range(PAST, PAST + STEPS):
            model(ids[:, at : at + 1], past_key_values=cache, use_cache=True)
        cache.crop(-STEPS)

    return watched(model, run)


def against(over: str, must: float | None = None) -> Ratio:
    return Ratio(label=f"{over}, time over unwatched", over=over, under="unwatched", must=must)


CASES = (
    Case(
        name="watch-forward",
        what="GPT-2 124M shape without output layer, float32, 1 × 1,024 tokens, inside regard.watch",
        prepare=forward,
        rounds=9,
        ratios=(
            against("nothing", 1.04),
            against("map of 64 bins", 1.3),
            against("map, received, entropy", 1.5),
            against("default"),
        ),
    ),
    Case(
        name="watch-steps",
        what=f"the same, {STEPS} decoding steps of one token after {PAST}, with a cache",
        prepare=steps,
        rounds=15,
        ratios=(
            against("nothing"),
            against("map of 64 bins", 1.3),
            against("map, received, entropy", 1.3),
            against("default", 1.3),
        ),
    ),
)
