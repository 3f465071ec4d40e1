"""How well a model foresees text: loss, perplexity, and bits per byte and per character.

It knows batches of named tensors and a model that gives logits for them, no files and no tokenizers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.errors import ArgumentError
from regard.masks import Mask
from regard.training.batches import IGNORED, Data

GivesLogits = Callable[..., Tensor]
"""From a batch's inputs, by name, to logits (B, T, W)."""


@dataclass(frozen=True, slots=True)
class TextLoss:
    """Negative log-likelihood of a text in nats, and what it is divided by.

    `solved` of the `examples` (rows of batches) were foreseen without a mistake: as each token is predicted from the
    right ones before it, these are just those that the model, taking the likeliest id each time, would write itself.

    >>> told = TextLoss(nats=8 * math.log(2), tokens=4, examples=1, solved=0, bytes=2, characters=1)
    >>> round(told.perplexity, 6), told.bits_per_byte, told.bits_per_character
    (4.0, 4.0, 8.0)
    """

    nats: float
    tokens: int
    examples: int
    solved: int
    bytes: int | None = None
    characters: int | None = None

    @property
    def loss(self) -> float:
        """Nats per predicted token."""
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        """Among how many equally likely tokens the model might as well choose; infinite beyond what a float holds."""
        return math.inf if self.loss > 709 else math.exp(self.loss)

    @property
    def bits_per_byte(self) -> float | None:
        """Comparable between tokenizers; None where nobody counted the bytes."""
        return None if self.bytes is None else self.nats / math.log(2) / self.bytes

    @property
    def bits_per_character(self) -> float | None:
        """The same for characters, of which Chinese has one where UTF-8 has three bytes."""
        return None if self.characters is None else self.nats / math.log(2) / self.characters


@torch.no_grad()
def text_loss(model: GivesLogits, data: Data, *, text: str | None = None, device: Any = None) -> TextLoss:
    """The loss over one epoch of `data`: built with shuffle=False, it predicts each token once.

    text   what the tokens spell, for bits per byte and per character. The first token of blocks, which has nothing
           before it, is not predicted, but its bytes count

    Sums are float64, logarithms float32 at least. ArgumentError where nothing is predicted.
    """
    nats, tokens, examples, solved = 0.0, 0, 0, 0
    for index in range(data.batches_per_epoch):
        batch = data.batch(0, index)
        logits = model(**{name: each.to(device) for name, each in batch.inputs.items()})  # B T W
        logits = logits if logits.dtype == torch.float64 else logits.float()
        targets = batch.targets.to(logits.device)
        losses = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="none")
        nats += losses.double().sum().item()
        tokens += batch.n_targets
        examples += len(targets)
        solved += int(((logits.argmax(-1) == targets) | (targets == IGNORED)).all(-1).sum())
    if not tokens:
        raise ArgumentError("text-loss-nothing")
    if text is None:
        return TextLoss(nats, tokens, examples, solved)
    return TextLoss(nats, tokens, examples, solved, len(text.encode("utf-8", "surrogatepass")), len(text))


def translated(model: GivesLogits, ids: Tensor, source: Tensor, source_keep: Tensor, **options: Any) -> Tensor:
    """Logits of a Transformer with an encoder, whose source is padded: `source_keep`, as PairBatches gives it."""
    return model(ids, source, source_mask=Mask.from_keep(source_keep), **options)


def taking_keep(model: GivesLogits) -> GivesLogits:
    """The model as one that takes a batch's inputs, `source_keep` among them."""
    return partial(translated, model)
