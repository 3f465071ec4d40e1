"""The training plan: all training settings as plain values. Independent of data and architecture."""

from dataclasses import dataclass
from typing import Literal, get_args

from regard.arrays import check_counts, is_number
from regard.errors import ArgumentError
from regard.messages import Listed

ScheduleName = Literal["constant", "inverse-sqrt", "cosine"]
Precision = Literal["float32", "bfloat16"]
FinalModel = Literal["last", "best"]


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadAlignment:
    """A head that is trained to align words: the pairs of the training data carry word links.

    layer    the name of its attention layer, such as "decoder.layers.1.cross_attention"
    head     its number in that layer, from 0
    weight   of the loss on its attention weights, relative to the loss of the targets
    """

    layer: str
    head: int
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_counts(**{"training.alignment.head": (self.head, 0)})
        if not (is_number(self.weight) and 0 < self.weight <= 1e6):
            raise ArgumentError("plan-alignment-weight", value=self.weight)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The settings of a training run.

    steps           the largest number of optimizer updates
    lr              the highest learning rate
    schedule        constant; inverse-sqrt: falls like 1/√step; cosine: falls to lr_end at the last step
    warmup          steps over which the rate rises to lr
    lr_end          the last rate of the cosine schedule
    betas, eps      of AdamW
    weight_decay    on matrices, never on biases, norms and other vectors
    clip            the largest norm of the gradient; None for no clipping
    accumulate      micro-batches per step
    smoothing       label smoothing: the share of probability spread evenly over all tokens
    agreement       weight of the divergence between two passes under different dropout (R-Drop's α); None for one pass
    alignment       a head that is trained to attend to the source words that each target translates; None for none
    precision       float32, or bfloat16 with autocast
    compile         use torch.compile: a slow first step, then faster steps
    capture         on one GPU, run a step as one CUDA graph per batch shape: small models save launch time
    shard           divide weights, gradients and optimizer state among several processes (FSDP2) instead of keeping
                    all of them in each (DDP); every process writes its part of a checkpoint
    seed            of the weights, the order of the data and dropout
    valid_every     steps between two validations; None for the last step only
    save_every      steps between two checkpoints
    keep            the number of checkpoints to keep
    final           the final model: the last one, or the best on the validation set
    average         the number of newest checkpoints whose mean is the last model
    patience        validations without improvement before the run ends; None for no limit
    bad_steps       non-finite steps in a row before the run stops with an error
    """

    steps: int
    lr: float
    schedule: ScheduleName = "constant"
    warmup: int = 0
    lr_end: float = 0.0
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-8
    weight_decay: float = 0.0
    clip: float | None = 1.0
    accumulate: int = 1
    smoothing: float = 0.0
    agreement: float | None = None
    alignment: HeadAlignment | None = None
    precision: Precision = "float32"
    compile: bool = False
    capture: bool = False
    shard: bool = False
    seed: int = 0
    valid_every: int | None = None
    save_every: int = 1000
    keep: int = 2
    final: FinalModel = "last"
    average: int = 1
    patience: int | None = None
    bad_steps: int = 10

    def __post_init__(self) -> None:
        """Check all values."""
        counts = {"steps": 1, "warmup": 0, "accumulate": 1, "seed": 0, "save_every": 1, "keep": 2, "average": 1}
        counts |= {"bad_steps": 1}
        counts |= {name: 1 for name in ("valid_every", "patience") if getattr(self, name) is not None}
        check_counts(**{f"training.{name}": (getattr(self, name), least) for name, least in counts.items()})
        for name, kind in (("schedule", ScheduleName), ("precision", Precision), ("final", FinalModel)):
            if (value := getattr(self, name)) not in get_args(kind):
                choices = Listed(get_args(kind))
                raise ArgumentError("unknown-choice", name=f"training.{name}", value=value, choices=choices)
        for name, low, high in (
            ("lr", 0.0, 100.0),
            ("lr_end", 0.0, 100.0),
            ("eps", 0.0, 1.0),
            ("weight_decay", 0.0, 100.0),
            ("smoothing", 0.0, 0.999),
            ("clip", 0.0, 1e9),
            ("agreement", 0.0, 1e6),
        ):
            value = getattr(self, name)
            is_left_out = value is None and name in ("clip", "agreement")
            if not is_left_out and not (is_number(value) and low <= value <= high):
                raise ArgumentError("plan-range", name=name, value=value, low=low, high=high)
        if len(self.betas) != 2 or not all(is_number(beta) and 0 <= beta < 1 for beta in self.betas):
            raise ArgumentError("plan-betas", value=self.betas)
        if self.patience is not None and self.valid_every is None:
            raise ArgumentError("plan-patience", patience=self.patience)
        if self.clip == 0:
            raise ArgumentError("plan-clip")
        if self.keep < self.average:
            raise ArgumentError("plan-keep", keep=self.keep, average=self.average)
        if self.average > 1 and self.final == "best":
            raise ArgumentError("plan-final", average=self.average)
