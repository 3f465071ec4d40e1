"""One optimizer step, also as a CUDA graph: AdamW, learning rate, loss, and a loss on the weights of one head.

AdamW is PyTorch's; its state is stored by parameter name. The loss on attention weights trains a head to attend to the
words that a row's target translates; the head is named by its layer and number, whatever the architecture, and its
weights come from the `attend` argument of the model's forward.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from regard.cuda_graph import WARM_UP, CudaGraph
from regard.dispatch import attend_in_model
from regard.errors import ArgumentError, FileError
from regard.functional.attention import attention_scores, attention_weights
from regard.messages import Listed
from regard.records import Kind
from regard.training.batches import IGNORED, Data, device_batch
from regard.training.plan import HeadAlignment, Plan
from regard.training.processes import Ranks, StopRequest
from regard.training.sharding import assembled, synchronise_gradients


def adamw(model: nn.Module, plan: Plan) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019), fused. Weight decay on matrices only: decayed biases and norms do not help.

    If steps are captured as CUDA graphs, the learning rate is a GPU tensor, so that a replay reads its current value.
    """
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": [weight for weight in weights if weight.ndim >= 2], "weight_decay": plan.weight_decay},
        {"params": [weight for weight in weights if weight.ndim < 2], "weight_decay": 0.0},
    ]
    device = weights[0].device
    is_captured = plan.capture and device.type == "cuda"
    optimizer: Any = torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=torch.tensor(plan.lr, device=device) if is_captured else plan.lr,
        betas=plan.betas,
        eps=plan.eps,
        fused=True,
        capturable=is_captured,
    )
    # PyTorch would warn about steps that are not captured; the first steps of every shape are not.
    optimizer._warned_capturable_if_run_uncaptured = True
    return cast(torch.optim.AdamW, optimizer)


def set_rate(optimizer: torch.optim.AdamW, lr: float) -> None:
    """Set the learning rate of the next step."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr


def skip_unless(optimizer: torch.optim.AdamW, good: Tensor) -> None:
    """Make the next step a no-op unless `good`. Decided on the device, without a synchronisation."""
    fused: Any = optimizer
    fused.grad_scale, fused.found_inf = None, (~good).float()


def optimizer_state(optimizer: torch.optim.AdamW, model: nn.Module) -> dict[str, Tensor]:
    """The optimizer's state by name, such as "embedding.weight/exp_avg". Empty before its first step."""
    return {
        f"{name}/{field}": value
        for name, weight in model.named_parameters()
        for field, value in optimizer.state.get(weight, {}).items()
    }


def load_optimizer_state(optimizer: torch.optim.AdamW, model: nn.Module, memory: dict[str, Tensor]) -> None:
    """Restore what `optimizer_state` returned. Raises FileError if a name or shape belongs to another model.

    A weight that has had no gradient has no state.
    """
    weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    fields: dict[str, dict[str, Tensor]] = {}
    for place, value in memory.items():
        name, _, field = place.rpartition("/")
        weight = weights.get(name)
        if weight is None or (field != "step" and value.shape != weight.shape):
            wanted = None if weight is None else tuple(weight.shape)
            raise FileError("run-optimizer", place=place, found=tuple(value.shape), wanted=wanted)
        fields.setdefault(name, {})[field] = value
    for name, found in fields.items():
        weight = weights[name]
        optimizer.state[weight] = {field: value.to(weight.device, copy=True) for field, value in found.items()}


def learning_rate(plan: Plan, step: int) -> float:
    """The learning rate of step 1, 2, …: it rises linearly over `warmup` steps, then follows the schedule.

    inverse-sqrt   lr · √(warmup / step) (Vaswani et al. 2017, section 5.3)
    cosine         half a cosine from lr to lr_end, reached at the last step

    >>> plan = Plan(steps=10, lr=1.0, schedule="cosine", warmup=2)
    >>> [round(learning_rate(plan, step), 2) for step in (1, 2, 6, 10)]
    [0.5, 1.0, 0.5, 0.0]
    """
    if step < plan.warmup:
        return plan.lr * step / plan.warmup
    if plan.schedule == "inverse-sqrt":
        return plan.lr * math.sqrt(max(1, plan.warmup) / step)
    if plan.schedule == "cosine":
        done = min(1.0, (step - plan.warmup) / max(1, plan.steps - plan.warmup))
        return plan.lr_end + (plan.lr - plan.lr_end) * (1 + math.cos(math.pi * done)) / 2
    return plan.lr


ALIGNMENT = "alignment"
"""The input of a batch that holds the wanted weights, (B, T, S): rows sum to 1, or are 0 where nothing is wanted."""


class HeadWeights:
    """An Attend that computes what the model's own does, and keeps one head's weights (B, T, S) with gradients.

    The weights are computed a second time, by eager operations for this head alone: they branch on no value, so that a
    training step with them can be captured as a CUDA graph.
    """

    def __init__(self, layer: str, head: int) -> None:
        self.layer, self.head = layer, head
        self.names: list[str] = []
        self._weights: Tensor | None = None

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, name: str, kind: Kind, **options: Any) -> Tensor:
        self.names.append(name)
        if name == self.layer:
            if self.head >= q.shape[1]:
                raise ArgumentError("alignment-head", layer=name, head=self.head, last=q.shape[1] - 1)
            self._weights = self._of_head(q, k, **options)
        return attend_in_model(q, k, v, name=name, kind=kind, **options)

    def _of_head(self, q: Tensor, k: Tensor, *, mask: Any = None, bias: Tensor | None = None, **options: Any) -> Tensor:
        """The weights of the head, before dropout: those which the loss is about."""
        one, group = slice(self.head, self.head + 1), self.head * k.shape[1] // q.shape[1]
        if bias is not None and bias.ndim == 4 and bias.shape[1] > 1:
            bias = bias[:, one]
        scores = attention_scores(
            q[:, one], k[:, group : group + 1], mask, bias, options.get("scale"), options.get("softcap")
        )
        return attention_weights(scores)[:, 0]

    @property
    def weights(self) -> Tensor:
        """The weights of the last forward pass. Raises ArgumentError if the model has no such layer."""
        if self._weights is None:
            raise ArgumentError("alignment-layer", layer=self.layer, names=Listed(dict.fromkeys(self.names)))
        return self._weights


def alignment_loss(weights: Tensor, wanted: Tensor) -> Tensor:
    """−Σ wanted · log weights over all rows (Garg et al. 2019, section 3.2), for both (B, T, S).

    >>> alignment_loss(torch.tensor([[[0.5, 0.5]]]), torch.tensor([[[1.0, 0.0]]])).item() == torch.tensor(2.0).log()
    tensor(True)
    """
    least = torch.finfo(weights.dtype).tiny  # a weight of 0 has no finite logarithm
    return -(wanted.to(weights.dtype) * weights.clamp_min(least).log()).sum()


MicroBatch = tuple[dict[str, Tensor], Tensor]
"""The inputs and targets of one micro-batch."""
MOST_GRAPHS = 256
"""Shapes of batches with a CUDA graph; further shapes run without one."""


class Update:
    """update(micro-batches) returns loss per target, gradient norm, whether both are finite, and whether to stop.

    learner   an Objective, optionally compiled, optionally in DistributedDataParallel
    request   the stop request of this process; several processes exchange it, so that all stop after the same step
    """

    def __init__(
        self,
        learner: Any,
        model: nn.Module,
        optimizer: torch.optim.AdamW,
        plan: Plan,
        ranks: Ranks,
        request: StopRequest,
    ) -> None:
        self.learner, self.model, self.optimizer, self.plan = learner, model, optimizer, plan
        self.ranks, self.request = ranks, request
        self._share = torch.ones((), device=ranks.device)  # the weight of one target in the loss

    def prepare(self, *, lr: float, n_targets: int) -> None:
        """Set the learning rate of the next step and the number of its targets in all processes."""
        set_rate(self.optimizer, lr)
        self._share.fill_(1 / max(1, n_targets))

    def __call__(self, micro: Sequence[MicroBatch]) -> Tensor:
        ranks = self.ranks
        total = torch.zeros((), dtype=torch.float64, device=ranks.device)
        for i, (inputs, targets) in enumerate(micro):
            with self._unsynced(i < len(micro) - 1):
                with autocast(self.plan, ranks):
                    loss = self.learner(inputs, targets) * self._share
                # Gradients are averaged over the processes; times their number, the mean is the sum.
                (loss * ranks.world).backward()
            total += loss.detach()
        stop = torch.full_like(total, float(ranks.world > 1 and self.request.is_set))
        total, stop = ranks.summed(torch.stack([total, stop]))
        most = math.inf if self.plan.clip is None else self.plan.clip
        norm = assembled(nn.utils.clip_grad_norm_(self.model.parameters(), most))
        good = norm.isfinite() & total.isfinite()
        skip_unless(self.optimizer, good)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return torch.stack([total, norm.double(), good.double(), stop])

    def without_graph(self, micro: Sequence[MicroBatch]) -> Tensor:
        """The same step; here it is never a CUDA graph."""
        return self(micro)

    def _unsynced(self, wanted: bool) -> AbstractContextManager[Any]:
        """Gradients are synchronised once per step, with the last micro-batch."""
        synchronise_gradients(self.model, not wanted)
        module = getattr(self.learner, "_orig_mod", self.learner)
        return module.no_sync() if wanted and isinstance(module, DistributedDataParallel) else nullcontext()


def autocast(plan: Plan, ranks: Ranks) -> AbstractContextManager[Any]:
    """Autocast to bfloat16 if the plan requires it. Without a cache: a captured graph must contain its own casts."""
    return torch.autocast(ranks.device.type, torch.bfloat16, enabled=plan.precision == "bfloat16", cache_enabled=False)


# --- steps as CUDA graphs --------------------------------------------------------------------------------


class _CapturedStep(NamedTuple):
    """A captured step: its input tensors, its output tensor, and the function that replays it."""

    micro: Sequence[MicroBatch]
    numbers: Tensor
    replay: Callable[[], None]


class GraphedUpdate:
    """Computes the same as `update`, with one CUDA graph for each shape of batches that repeats.

    One launch replaces about a thousand for a small model. The first batches of a shape run normally, which warms up
    lazy initialisation. The next one is captured, later ones replay the graph. Batches are first padded so that all
    tensors are equally wide, which leaves few shapes. Padding is neither a target nor a visible key.
    """

    def __init__(self, update: Update) -> None:
        self.update = update
        self.prepare = update.prepare
        self._counts: Counter[Any] = Counter()
        self._graphs: dict[Any, _CapturedStep] = {}
        self._pool: Any = None

    def __call__(self, micro: Sequence[MicroBatch]) -> Tensor:
        micro = [padded_to_widest(*each) for each in micro]
        shapes = tuple(
            (tuple(targets.shape), *sorted((n, tuple(x.shape)) for n, x in ins.items())) for ins, targets in micro
        )
        if self._counts[shapes] < WARM_UP:
            if shapes in self._counts or len(self._counts) < MOST_GRAPHS:
                self._counts[shapes] += 1
            return self.update(micro)
        if shapes not in self._graphs:
            self._graphs[shapes] = self._record(micro)
        graph = self._graphs[shapes]
        for (inputs, targets), (own_inputs, own_targets) in zip(micro, graph.micro, strict=True):
            own_targets.copy_(targets, non_blocking=True)
            for name, each in inputs.items():
                own_inputs[name].copy_(each, non_blocking=True)
        graph.replay()
        return graph.numbers

    def without_graph(self, micro: Sequence[MicroBatch]) -> Tensor:
        """The same step, without a CUDA graph, whose operators nothing can observe."""
        return self.update([padded_to_widest(*each) for each in micro])

    def _record(self, micro: Sequence[MicroBatch]) -> _CapturedStep:
        """Capture the update for this shape. All graphs share one memory pool: one runs at a time."""
        own = [({name: each.clone() for name, each in inputs.items()}, targets.clone()) for inputs, targets in micro]
        # Another thread copies the next batch to the device meanwhile.
        graph = CudaGraph(lambda: self.update(own), pool=self._pool, errors="thread_local")
        self._pool = graph.pool
        return _CapturedStep(own, graph.result, graph.replay)


def padded_to_widest(inputs: dict[str, Tensor], targets: Tensor) -> MicroBatch:
    """All tensors padded to the width of the widest: ids with 0, keep masks with False, targets with IGNORED.

    The wanted weights of a head, (B, T, S), are padded with 0 along both T and S.
    """
    width = max(each.shape[-1] for each in (*inputs.values(), targets))

    def padded(x: Tensor, value: int) -> Tensor:
        missing = [part for size in reversed(x.shape[1:]) for part in (0, width - size)]
        return F.pad(x, missing, value=value) if any(missing) else x

    return {name: padded(each, 0) for name, each in inputs.items()}, padded(targets, IGNORED)


# --- the loss --------------------------------------------------------------------------------------------


Forward = Callable[..., Tensor]
"""forward(model, **inputs) → logits (B, T, W). Training needs nothing else from a model."""


class Objective(nn.Module):
    """A model with its loss: forward(inputs, targets) is the sum of the losses of all targets.

    smoothing   label smoothing (Szegedy et al. 2016)
    agreement   R-Drop's α (Wu et al. 2021): each row passes twice, under different dropout; α times the mean of both
                Kullback–Leibler divergences is added to the loss
    alignment   a head whose attention weights are compared with the input "alignment"; that loss is added
    """

    def __init__(
        self,
        model: nn.Module,
        forward: Forward,
        *,
        smoothing: float = 0.0,
        agreement: float | None = None,
        alignment: HeadAlignment | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.predict = forward
        self.smoothing, self.agreement, self.alignment = smoothing, agreement, alignment

    def forward(self, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        if self.agreement is None:
            return self._losses(inputs, targets)[0]
        twice = {name: torch.cat([each, each]) for name, each in inputs.items()}
        loss, logits = self._losses(twice, torch.cat([targets, targets]))
        one, other = logits.float().chunk(2)
        return loss / 2 + self.agreement * mean_divergence(one, other, targets) / 2

    def _losses(self, inputs: dict[str, Tensor], targets: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of the targets and of the aligned head, and the logits."""
        others = {name: each for name, each in inputs.items() if name != ALIGNMENT}
        if self.alignment is None:
            logits = self.predict(self.model, **others)
            return cross_entropy(logits, targets, self.smoothing), logits
        if ALIGNMENT not in inputs:
            raise ArgumentError("alignment-no-links")
        attend = HeadWeights(self.alignment.layer, self.alignment.head)
        logits = self.predict(self.model, **others, attend=attend)
        loss = cross_entropy(logits, targets, self.smoothing)
        return loss + self.alignment.weight * alignment_loss(attend.weights, inputs[ALIGNMENT]), logits


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """−Σ log p(target) over all targets that are not IGNORED, in float32 for logits of any dtype."""
    options: dict[str, Any] = {"ignore_index": IGNORED, "label_smoothing": smoothing, "reduction": "sum"}
    return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten(), **options)


def mean_divergence(one: Tensor, other: Tensor, targets: Tensor) -> Tensor:
    """(KL(p‖q) + KL(q‖p)) / 2, summed over the targets; 0 if both distributions are equal."""
    log_p, log_q = one.log_softmax(-1), other.log_softmax(-1)
    both = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)  # B T: the two divergences added
    return (both * (targets != IGNORED)).sum() / 2


@torch.no_grad()
def validation_loss(
    model: nn.Module, forward: Forward, data: Data, ranks: Ranks, autocast: Callable[[], AbstractContextManager[Any]]
) -> float:
    """The mean loss in nats per target, without smoothing and dropout."""
    model.eval()
    total = torch.zeros((), dtype=torch.float64, device=ranks.device)
    n_targets = 0
    for index in range(data.batches_per_epoch):
        batch = device_batch(data.batch(0, index), ranks)
        n_targets += batch.n_targets
        with autocast():  # without rows too: the processes of a divided model run together
            logits = forward(model, **batch.inputs)
        total += cross_entropy(logits, batch.targets)
    return (ranks.summed(total) / max(1, n_targets)).item()
