"""The cost of `regard.monitor` in a training step: forward, backward, clipping, AdamW."""

from typing import TYPE_CHECKING, Any

from benchmarks.cases.case import Case
from benchmarks.measure import Contender, Measured, Ratio

if TYPE_CHECKING:
    import torch

EVERY_100 = "every=100, computed from both, time over unmonitored"
NEVER = 2**40
STEPS = 10
"""Steps of one run: the distance is measured at one of them."""


def contenders(objective: "torch.nn.Module", compiled: bool, **options: Any) -> dict[str, Contender]:
    """Steps of the same model: alone, with a monitor between two samples, and sampled at every step."""
    import torch

    import regard
    from regard.training.plan import Plan
    from regard.training.step import adamw

    class Loss(torch.nn.Module):
        """The loss of a model."""

        def __init__(self, inner: torch.nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, **options: Any) -> Any:
            return self.inner(**options).loss

    device = next(objective.parameters()).device
    optimizer = adamw(objective, Plan(steps=1, lr=1e-6))

    loss_of = Loss(objective)

    def stepping(every: int | None) -> Contender:
        # Each wrapper has hooks of its own; the compiled code is shared.
        call: Any = torch.compile(loss_of) if compiled else Loss(objective)
        if every is not None:
            regard.monitor(call, every=every)

        def step() -> None:
            for _ in range(STEPS):  # as in a training loop, the device is not waited for after each step
                with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                    loss = call(**options)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(objective.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            if device.type == "cuda":
                torch.cuda.synchronize()

        return step

    return {"unmonitored": stepping(None), "between samples": stepping(NEVER), "every=1": stepping(1)}


def small() -> dict[str, Contender]:
    """A GPT-2 of four layers on the CPU."""
    import torch

    torch.manual_seed(0)
    model, ids = gpt2(n_layer=4, n_embd=256, n_head=8, n_positions=256), torch.randint(0, 5000, (4, 256))
    return contenders(model, compiled=False, input_ids=ids, labels=ids)


def large(compiled: bool) -> dict[str, Contender]:
    """GPT-2 124M on a GPU, 32 × 1,024 tokens in bfloat16."""
    import torch

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model, ids = gpt2(vocab_size=50_304).cuda(), torch.randint(0, 50_257, (32, 1024), device="cuda")
    return contenders(model, compiled, input_ids=ids, labels=ids)


def gpt2(**changes: Any) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes: dict[str, Any] = {"vocab_size": 5000, "bos_token_id": 0, "eos_token_id": 0, "use_cache": False}
    still = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
    return GPT2LMHeadModel._from_config(GPT2Config(**sizes | still | changes), attn_implementation="sdpa").train()


def share(measured: Measured) -> dict[str, float]:
    """The cost of one sampled step in a hundred."""
    times = {name: measured.median(name) for name in measured.times}
    return {EVERY_100: (99 * times["between samples"] + times["every=1"]) / 100 / times["unmonitored"]}


def case(name: str, what: str, prepare: Any, must: bool, gpu: bool) -> Case:
    ratios = (
        Ratio(label="between samples, time over unmonitored", over="between samples", under="unmonitored"),
        Ratio(
            label="every=1, time over unmonitored",
            over="every=1",
            under="unmonitored",
            must=1.10 if must else None,
        ),
    )
    bounds = ((EVERY_100, "", 1.01 if must else None),)
    return Case(
        name=name,
        what=f"{what}; {STEPS} steps a run",
        prepare=prepare,
        rounds=11,
        warm_up=2,
        gpu=gpu,
        ratios=ratios,
        facts=share,
        fact_bounds=bounds,
    )


SHAPE = "a training step of GPT-2 124M, 32 × 1,024 tokens, bfloat16"
CASES = (
    case("monitor", "a training step of 4 layers, width 256, 4 × 256 tokens, float32", small, must=False, gpu=False),
    case("monitor-gpu", SHAPE, lambda: large(False), must=True, gpu=True),
    case("monitor-gpu-compiled", f"{SHAPE}, compiled", lambda: large(True), must=True, gpu=True),
)
