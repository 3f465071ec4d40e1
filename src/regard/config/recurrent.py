"""RecurrentConfig: the description of an Elman or LSTM model, checked, and the names and shapes of its weights."""

from dataclasses import dataclass
from typing import Literal, get_args

from regard.arrays import check_counts, is_number
from regard.axes import Shape
from regard.config.styles import check_dropout
from regard.errors import ArgumentError
from regard.messages import Listed

Cell = Literal["elman", "lstm"]
RecurrentAttention = Literal["bahdanau", "luong"]
CELLS: tuple[Cell, ...] = get_args(Cell)


@dataclass(frozen=True, kw_only=True, slots=True)
class RecurrentConfig:
    """A recurrent language model, or with an encoder a recurrent translator.

    cell               "elman" or "lstm"
    d_model            the width of the embeddings
    d_state            the width of a decoder's state, and of the encoder's two directions together
    n_encoder_layers   None for a language model; each layer reads the source in both directions
    attention          from the decoder to the encoder: "bahdanau" (before each step), "luong" (after it), None
    max_len            the longest text; None for no limit
    dropout            of embeddings, between layers and before the output; in training only
    forget_bias        the first bias of an LSTM's forget gates: 1 keeps them open; None for a random one, as in PyTorch

    >>> RecurrentConfig(cell="lstm", vocab_size=9, d_model=4, d_state=8).kind
    'decoder'
    """

    cell: Cell
    vocab_size: int
    d_model: int
    d_state: int
    n_encoder_layers: int | None = None
    n_decoder_layers: int = 1
    attention: RecurrentAttention | None = None
    max_len: int | None = None
    dropout: float = 0.0
    forget_bias: float | None = None

    def __post_init__(self) -> None:
        choices = {"cell": CELLS, "attention": (*get_args(RecurrentAttention), None)}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise ArgumentError("unknown-choice", name=name, value=getattr(self, name), choices=Listed(known))
        names = ("vocab_size", "d_model", "d_state", "n_decoder_layers", "n_encoder_layers", "max_len")
        check_counts(**{name: (getattr(self, name), 1) for name in names if getattr(self, name) is not None})
        check_dropout(self.dropout)
        if self.attention is not None and self.n_encoder_layers is None:
            raise ArgumentError("recurrent-attention", attention=self.attention)
        if self.n_encoder_layers is not None and self.d_state % 2:
            raise ArgumentError("recurrent-width", d_state=self.d_state)
        if self.forget_bias is not None and (self.cell != "lstm" or not is_number(self.forget_bias)):
            raise ArgumentError("recurrent-forget-bias", value=self.forget_bias, cell=self.cell)

    @property
    def kind(self) -> Literal["decoder", "encoder-decoder"]:
        """The stacks of the model."""
        return "decoder" if self.n_encoder_layers is None else "encoder-decoder"

    @property
    def n_gates(self) -> int:
        """The number of gates of a cell: an LSTM has four."""
        return 4 if self.cell == "lstm" else 1

    @property
    def n_states(self) -> int:
        """The number of vectors in the state of a layer: h, and c of an LSTM."""
        return 2 if self.cell == "lstm" else 1


def recurrent_shapes(config: RecurrentConfig) -> dict[str, Shape]:
    """The shape of every weight by name, in the order of use.

    >>> recurrent_shapes(RecurrentConfig(cell="elman", vocab_size=9, d_model=4, d_state=8))["decoder.0.weight_x"]
    (8, 4)
    """
    D, F, W = config.d_model, config.d_state, config.vocab_size
    shapes: dict[str, Shape] = {"embedding.weight": (W, D)}
    if config.n_encoder_layers is not None:
        for i in range(config.n_encoder_layers):
            for direction in ("forwards", "backwards"):
                shapes |= _layer(f"encoder.{direction}.{i}", D if i == 0 else F, F // 2, config.n_gates)
        states = config.n_decoder_layers * config.n_states
        shapes |= {"bridge.weight": (states * F, F), "bridge.bias": (states * F,)}
    context = F if config.attention == "bahdanau" else 0
    for i in range(config.n_decoder_layers):
        shapes |= _layer(f"decoder.{i}", D + context if i == 0 else F, F, config.n_gates)
    if config.attention is not None:
        shapes |= {"attention.q_proj.weight": (F, F)}
    if config.attention == "bahdanau":
        shapes |= {"attention.k_proj.weight": (F, F), "attention.score": (F,)}
    before = F if config.attention is None else 2 * F
    return shapes | {"readout.weight": (D, before), "readout.bias": (D,), "output_bias": (W,)}


def _layer(name: str, d_input: int, d_state: int, n_gates: int) -> dict[str, Shape]:
    rows = n_gates * d_state
    parts = {"weight_x": (rows, d_input), "weight_h": (rows, d_state), "bias_x": (rows,), "bias_h": (rows,)}
    return {f"{name}.{part}": shape for part, shape in parts.items()}
