"""What the four families do differently, as small values: norms, attention, biases, both ends of the model."""

from dataclasses import dataclass
from typing import Literal

from regard.errors import ArgumentError
from regard.messages import Listed
from regard.position_rules import check_counts, is_number

Window = int | None | tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Norm:
    """How and where activations are normed.

    kind    "layer" (mean and variance) or "rms" (length alone)
    place   "pre": x + f(norm(x)), today's models; "post": norm(x + f(x)), the 2017 paper and BERT
    final   one more norm after the last layer; pre-norm needs it, or nothing bounds what leaves the stack
    """

    kind: Literal["layer", "rms"] = "layer"
    place: Literal["pre", "post"] = "post"
    eps: float = 1e-5
    final: bool = False

    def __post_init__(self) -> None:
        _check_choice("norm.kind", self.kind, ("layer", "rms"))
        _check_choice("norm.place", self.place, ("pre", "post"))
        if not (is_number(self.eps) and self.eps >= 0):
            raise ArgumentError("eps-value", value=self.eps)
        _check_switches(self, "final")


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionStyle:
    """What is done to scores, beside the formula of 2017.

    scale     what q · k is multiplied by; None for 1/√d_head, T5 has 1.0
    softcap   scores bounded to ± so much; None for no bound
    window    a token sees itself and the window − 1 before it (in an encoder also after it); None for no bound.
              Several are taken in turn by the layers: (4096, None) is local, global, local, …
    qk_norm   the queries and keys of each head normed before they meet
    dropout   on the weights, in training
    """

    scale: float | None = None
    softcap: float | None = None
    window: Window = None
    qk_norm: bool = False
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.scale is not None and not is_number(self.scale):
            raise ArgumentError("scale-value", value=self.scale)
        if self.softcap is not None and not (is_number(self.softcap) and self.softcap > 0):
            raise ArgumentError("softcap-value", value=self.softcap)
        if self.window == ():
            raise ArgumentError("count-wanted", name="window", value=self.window, least=1)
        for window in self.window if isinstance(self.window, tuple) else (self.window,):
            if window is not None:
                check_counts(window=(window, 1))
        check_dropout(self.dropout)
        _check_switches(self, "qk_norm")

    def window_of(self, layer: int) -> int | None:
        """The window of the layer with that number."""
        return self.window[layer % len(self.window)] if isinstance(self.window, tuple) else self.window


@dataclass(frozen=True, kw_only=True, slots=True)
class Biases:
    """Which parts have a bias. `attention` is that of W_q, W_k and W_v, `attention_output` that of W_o."""

    attention: bool = True
    attention_output: bool = True
    feed_forward: bool = True
    norm: bool = True
    output: bool = False

    def __post_init__(self) -> None:
        _check_switches(self, "attention", "attention_output", "feed_forward", "norm", "output")

    @classmethod
    def none(cls) -> "Biases":
        """No bias anywhere, as in Llama and T5."""
        return cls(attention=False, attention_output=False, feed_forward=False, norm=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Embeddings:
    """From ids to vectors.

    scaled              × √d_model, so that the vectors do not drown in the positions added to them
    norm                normed once positions are added, as BERT
    n_segments          a learned vector for each of so many kinds of sentence, as BERT's two; None for none
    source_vocab_size   a vocabulary of its own for the encoder's side; None for one that both sides share
    """

    scaled: bool = False
    norm: bool = False
    n_segments: int | None = None
    source_vocab_size: int | None = None

    def __post_init__(self) -> None:
        for name in ("n_segments", "source_vocab_size"):
            value = getattr(self, name)
            if value is not None:
                check_counts(**{name: (value, 1)})
        _check_switches(self, "scaled", "norm")


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """From vectors to one score per token of the vocabulary.

    tied        the embedding's own rows are what vectors are compared with
    scaled      × 1/√d_model before the comparison, as T5 where it is tied
    transform   linear, activation and norm first, as BERT's masked-word head
    """

    tied: bool = True
    scaled: bool = False
    transform: bool = False

    def __post_init__(self) -> None:
        _check_switches(self, "tied", "scaled", "transform")


def check_dropout(value: float) -> None:
    """A share of at least 0 and less than 1."""
    if not (is_number(value) and 0 <= value < 1):
        raise ArgumentError("dropout-value", value=value)


def _check_switches(style: object, *names: str) -> None:
    """Each is True or False: "no" would count as yes."""
    for name in names:
        if not isinstance(getattr(style, name), bool):
            where = f"{type(style).__name__}.{name}"
            raise ArgumentError("unknown-choice", name=where, value=getattr(style, name), choices="True, False")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ArgumentError("unknown-choice", name=name, value=value, choices=Listed(choices))
