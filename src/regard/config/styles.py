"""Settings in which model families differ: norm, attention, biases, embeddings and output layer."""

from dataclasses import dataclass
from typing import Literal, get_args

from regard.arrays import check_counts, is_number
from regard.errors import ArgumentError
from regard.messages import Listed

Window = int | None | tuple[int | None, ...]
NormPlace = Literal["pre", "post", "both", "parallel"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Norm:
    """The kind of norms, and their place beside the residual connections.

    kind       "layer" (mean and variance) or "rms" (root mean square)
    place      "pre": x + f(norm(x)), as most current models; "post": norm(x + f(x)), the 2017 paper and BERT;
               "both": x + norm(f(norm(x))), as Gemma 2; "parallel": x + f(norm(x)) + g(norm(x)), as GPT-NeoX
    final      one more norm after the last layer; needed unless place is "post": nothing else bounds the output
    plus_one   RMSNorm multiplies by 1 + weight instead of weight, as Gemma
    """

    kind: Literal["layer", "rms"] = "layer"
    place: NormPlace = "post"
    eps: float = 1e-5
    final: bool = False
    plus_one: bool = False

    def __post_init__(self) -> None:
        _check_choice("norm.kind", self.kind, ("layer", "rms"))
        _check_choice("norm.place", self.place, get_args(NormPlace))
        if not (is_number(self.eps) and self.eps >= 0):
            raise ArgumentError("eps-value", value=self.eps)
        _check_bools(self, "final", "plus_one")
        if self.plus_one and self.kind != "rms":
            raise ArgumentError("norm-plus-one", found=self.kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionStyle:
    """Variations of scaled dot-product attention.

    scale     the factor of q · k; None for 1/√d_head, 1.0 in T5
    softcap   scores bounded to ± this value; None for no bound
    window    a token sees itself and the window − 1 before it (in an encoder also after it); None for no bound.
              A tuple is repeated over the layers: (4096, None) is local, global, local, …
    qk_norm   norm the queries and keys of each head
    dropout   of the attention weights, in training
    """

    scale: float | None = None
    softcap: float | None = None
    window: Window = None
    qk_norm: bool = False
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.scale is not None and not is_number(self.scale):
            raise ArgumentError("scale-value", value=self.scale)
        _check_softcap(self.softcap)
        if self.window == ():
            raise ArgumentError("count-wanted", name="window", value=self.window, least=1)
        for window in self.window if isinstance(self.window, tuple) else (self.window,):
            if window is not None:
                check_counts(window=(window, 1))
        check_dropout(self.dropout)
        _check_bools(self, "qk_norm")

    def window_of(self, layer: int) -> int | None:
        """The window of that layer."""
        return self.window[layer % len(self.window)] if isinstance(self.window, tuple) else self.window


@dataclass(frozen=True, kw_only=True, slots=True)
class Biases:
    """Which parts have a bias. `attention` is for W_q, W_k and W_v, `attention_output` for W_o."""

    attention: bool = True
    attention_output: bool = True
    feed_forward: bool = True
    norm: bool = True
    output: bool = False

    def __post_init__(self) -> None:
        _check_bools(self, "attention", "attention_output", "feed_forward", "norm", "output")

    @classmethod
    def none(cls) -> "Biases":
        """No bias anywhere, as in Llama and T5."""
        return cls(attention=False, attention_output=False, feed_forward=False, norm=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Embeddings:
    """From ids to vectors.

    scaled              × √d_model, so that the vectors are not small beside the positions added to them
    rounded_scale       √d_model is rounded to the dtype of the weights first, as Gemma
    norm                norm after positions are added, as BERT
    n_segments          the number of segments, each with a learned vector, 2 in BERT; None for none
    source_vocab_size   the size of the encoder's own vocabulary; None for a shared vocabulary
    """

    scaled: bool = False
    norm: bool = False
    n_segments: int | None = None
    source_vocab_size: int | None = None
    rounded_scale: bool = False

    def __post_init__(self) -> None:
        for name in ("n_segments", "source_vocab_size"):
            value = getattr(self, name)
            if value is not None:
                check_counts(**{name: (value, 1)})
        _check_bools(self, "scaled", "norm", "rounded_scale")


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """From vectors to logits.

    tied        the output layer uses the embedding's weight
    scaled      vectors × 1/√d_model first, as T5 with tied weights
    transform   linear, activation and norm first, as BERT's masked-language head
    softcap     logits bounded to ± this value by tanh, as Gemma 2; None for no bound
    """

    tied: bool = True
    scaled: bool = False
    transform: bool = False
    softcap: float | None = None

    def __post_init__(self) -> None:
        _check_bools(self, "tied", "scaled", "transform")
        _check_softcap(self.softcap)


def check_dropout(value: float) -> None:
    """Raise ArgumentError unless 0 ≤ value < 1."""
    if not (is_number(value) and 0 <= value < 1):
        raise ArgumentError("dropout-value", value=value)


def _check_softcap(value: float | None) -> None:
    if value is not None and not (is_number(value) and value > 0):
        raise ArgumentError("softcap-value", value=value)


def _check_bools(style: object, *names: str) -> None:
    """Raise ArgumentError unless each is a bool: the string "no" would count as True."""
    for name in names:
        if not isinstance(getattr(style, name), bool):
            where = f"{type(style).__name__}.{name}"
            raise ArgumentError("unknown-choice", name=where, value=getattr(style, name), choices="True, False")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ArgumentError("unknown-choice", name=name, value=value, choices=Listed(choices))
