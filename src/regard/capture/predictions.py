"""What the output of a model predicts: the next token, a masked token, the class of a text or of each token.

Read off the shapes of inputs and logits, the model's own config and its class name. It runs no model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from regard.errors import ArgumentError, ShapeError
from regard.kinds import is_whole

Kind = Literal["next", "masked", "token", "class", "token-class"]
_BOTH_WAYS = ("MaskedLM", "WithLMHeadModel", "ForPreTraining")
"""Parts of the class names of Hugging Face's models that predict a token from both sides."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is predicted, and where.

    kind      next: the next token; masked: the token under a mask; token: the token at a position, seen from both
              sides; class: of the whole input; token-class: of the token at a position
    position  B: which position of the logits holds it; None for a class of the whole input
    found     whether the position is the one that moved most, for nothing named one
    """

    kind: Kind
    position: Tensor | None = None
    found: bool = False

    def of(self, logits: Tensor) -> Tensor:
        """Log-probabilities, B W, of the logits, B T W or B W."""
        if self.position is not None:
            logits = logits[torch.arange(len(logits), device=logits.device), self.position]
        return logits.double().log_softmax(-1)


def logits_of(out: Any) -> Tensor:
    """The logits, B T W or B W, of whatever a model returns. ShapeError where there are none."""
    logits = out if isinstance(out, Tensor) else None
    for name in ("logits", "prediction_logits"):
        logits = getattr(out, name, None) if logits is None else logits
    if logits is None and isinstance(out, tuple) and out:
        logits = out[0]
    if not isinstance(logits, Tensor) or logits.dim() not in (2, 3):
        found = tuple(logits.shape) if isinstance(logits, Tensor) else type(out).__name__
        raise ShapeError("effect-logits", found=found)
    if logits.shape[-1] == 1:  # the softmax of one number is 1, whatever an edit does
        raise ShapeError("effect-one-number", found=tuple(logits.shape))
    return logits


def prediction_of(
    model: nn.Module,
    given: Mapping[str, Any],
    before: Tensor,
    after: Tensor,
    *,
    position: Any = None,
    tokenizer: Any = None,
) -> Prediction:
    """What the logits of two runs of the model, `before` and `after` an edit, predict.

    given   the arguments of the call by their names
    """
    config = getattr(model, "config", None)
    if getattr(config, "problem_type", None) == "multi_label_classification":
        raise ArgumentError("effect-multi-label")
    is_token = _is_vocabulary(model, before.shape[-1], default=before.dim() == 3)
    if before.dim() == 2:
        if position is not None:
            raise ArgumentError("effect-no-position", shape=tuple(before.shape), found=position)
        return Prediction("next" if is_token else "class")
    if position is not None:
        return Prediction("token" if is_token else "token-class", _given_position(position, before))
    if not is_token:
        return Prediction("token-class", _most_moved(before, after, _keep(given, before)), found=True)
    if _reads_both_ways(model):
        masked = _masked(given, before, _mask_id(config, tokenizer))
        if masked is not None:
            return Prediction("masked", masked)
        return Prediction("token", _most_moved(before, after, _keep(given, before)), found=True)
    return Prediction("next", _last(_keep(given, before), before))


def kl_divergence(before: Tensor, after: Tensor) -> Tensor:
    """Σ p log(p / p′) over the last axis, in nats, of log-probabilities; what was impossible counts nothing."""
    p = before.exp()
    return torch.where(p > 0, p * (before - after), 0.0).sum(-1)


def label_speller(model: nn.Module) -> Callable[[int], str]:
    """Names of classes as the model's config has them, else their numbers."""
    labels = getattr(getattr(model, "config", None), "id2label", None)
    names = labels if isinstance(labels, Mapping) else {}
    return lambda number: repr(str(names[number])) if number in names else str(number)


def _is_vocabulary(model: nn.Module, width: int, default: bool) -> bool:
    """Whether logits of this width are one score for each token, not for each class."""
    config: Any = getattr(model, "config", None)
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    size: Any = getattr(text, "vocab_size", None)
    if is_whole(size):
        return bool(width >= size)
    tables = [module.num_embeddings for module in model.modules() if isinstance(module, nn.Embedding)]
    return width in tables if tables else default


def _reads_both_ways(model: nn.Module) -> bool:
    config = getattr(model, "config", None)
    if getattr(config, "is_encoder_decoder", False) or getattr(config, "is_decoder", False):
        return False
    name = type(getattr(model, "_orig_mod", model)).__name__
    return getattr(config, "kind", None) == "encoder" or any(part in name for part in _BOTH_WAYS)


def _mask_id(config: Any, tokenizer: Any) -> int | None:
    for holder in (tokenizer, config):
        found: Any = getattr(holder, "mask_token_id", None)
        if is_whole(found):
            return int(found)
    return None


def _masked(given: Mapping[str, Any], logits: Tensor, mask_id: int | None) -> Tensor | None:
    """The first masked position of each sample; None where no mask is known, or none is in the text."""
    ids = next((x for x in given.values() if isinstance(x, Tensor) and x.shape == logits.shape[:2]), None)
    if isinstance(named := given.get("input_ids"), Tensor):
        ids = named
    if mask_id is None or ids is None or ids.shape != logits.shape[:2]:
        return None
    is_mask = ids == mask_id
    has_mask = is_mask.any(-1)
    if not has_mask.any():
        return None
    if not has_mask.all():
        raise ArgumentError("effect-unmasked", sample=int((~has_mask).nonzero()[0]), mask=mask_id)
    return is_mask.int().argmax(-1).to(logits.device)


def _given_position(position: Any, logits: Tensor) -> Tensor:
    B, T = logits.shape[:2]
    asked = [position] * B if is_whole(position) else position.tolist() if isinstance(position, Tensor) else position
    is_list = isinstance(asked, list | tuple) and len(asked) == B
    if not is_list or not all(is_whole(at) and -T <= at < T for at in asked):
        raise ArgumentError("effect-position", found=position, B=B, last=T - 1)
    return torch.tensor([int(at) % T for at in asked], device=logits.device)


def _keep(given: Mapping[str, Any], logits: Tensor) -> Tensor:
    """Which positions of the logits are no padding, B T."""
    B, T = logits.shape[:2]
    keep = given.get("decoder_attention_mask" if "decoder_input_ids" in given else "attention_mask")
    if not isinstance(keep, Tensor) or keep.shape != (B, T):
        return torch.ones(B, T, dtype=torch.bool, device=logits.device)
    return (keep != 0).to(logits.device)


def _last(keep: Tensor, logits: Tensor) -> Tensor:
    """The last position of each sample that is no padding."""
    return (keep * torch.arange(logits.shape[1], device=keep.device)).argmax(-1)


def _most_moved(before: Tensor, after: Tensor, keep: Tensor) -> Tensor:
    """The position of each sample whose probabilities moved most, by KL; padding left out."""
    kl = kl_divergence(*(logits.double().log_softmax(-1) for logits in (before, after)))  # B T
    return kl.masked_fill(~keep, -torch.inf).argmax(-1)
