"""Conversion of PyTorch's own attention and Transformer modules to ours and back, weights included.

Tables of names and one operation on weights: nn.MultiheadAttention stores W_q, W_k and W_v in one stacked matrix.
Anything that the target does not support raises an error before the module is built.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, get_args, overload

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from regard.arrays import check_counts
from regard.config import AttentionStyle, Biases, Norm, TransformerConfig
from regard.errors import ArgumentError
from regard.functional.position_wise import ACTIVATIONS
from regard.layers import FeedForward, LayerNorm, MultiHeadAttention, NoPositions
from regard.layers.position_wise import Linear
from regard.messages import Listed
from regard.models.transformer import Block, Stack, Transformer

TheirLayer = nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
Theirs = nn.MultiheadAttention | TheirLayer | nn.Transformer
Ours = MultiHeadAttention | Block | Transformer
T = TypeVar("T")
M = TypeVar("M", bound=nn.Module)

# --- tables of names ------------------------------------------------------------------------------------------

NAMES: dict[type[nn.Module], dict[str, str]] = {
    nn.MultiheadAttention: {"out_proj": "o_proj"},
    nn.TransformerEncoderLayer: {
        "self_attn": "self_attention",
        "norm1": "self_attention_norm",
        "linear1": "feed_forward.up",
        "linear2": "feed_forward.down",
        "norm2": "feed_forward_norm",
    },
    nn.TransformerDecoderLayer: {
        "self_attn": "self_attention",
        "norm1": "self_attention_norm",
        "multihead_attn": "cross_attention",
        "norm2": "cross_attention_norm",
        "linear1": "feed_forward.up",
        "linear2": "feed_forward.down",
        "norm3": "feed_forward_norm",
    },
}
"""PyTorch's name of each part and ours; all other names are the same: encoder, layers.0, norm, weight."""

STACKED: dict[str, tuple[str, ...]] = {
    f"in_proj_{kind}": tuple(f"{part}_proj.{kind}" for part in "qkv") for kind in ("weight", "bias")
}
"""PyTorch's stacked weight, and our weights that it consists of, in order."""

ACTIVATION_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "relu": (F.relu, torch.relu, nn.ReLU),
    "gelu": (F.gelu,),  # nn.GELU: see `_activation`
    "gelu_tanh": (ACTIVATIONS["gelu_tanh"],),  # given nn.GELU("tanh"), their layers compute "gelu" when not training
    "silu": (F.silu, nn.SiLU),
}
"""The functions and classes of each activation; `to_torch` uses the first."""

SUPPORTED: set[type[nn.Module]] = {
    *(nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer),
    *(nn.Transformer, nn.TransformerEncoder, nn.TransformerDecoder),
    *(MultiHeadAttention, Block, Transformer, Stack, NoPositions, FeedForward, LayerNorm),
    *(nn.ModuleList, nn.Linear, Linear, NonDynamicallyQuantizableLinear, nn.LayerNorm, nn.Dropout),
}
"""Classes that have a counterpart. Subclasses are not included: they may compute something else."""


# --- conversion --------------------------------------------------------------------------------------


@overload
def from_torch(module: nn.MultiheadAttention) -> MultiHeadAttention: ...
@overload
def from_torch(module: TheirLayer) -> Block: ...
@overload
def from_torch(module: nn.Transformer) -> Transformer: ...
def from_torch(module: Theirs) -> Ours:
    """PyTorch's module as ours, with copied weights, dtype, device, requires_grad, dropout and mode.

    Ours takes (B, T, D), whatever `batch_first` was, and masks that are True where visible. A Transformer's decoder
    is always causal, and source_mask applies to encoder and cross-attention: the same as nn.Transformer with a causal
    tgt_mask and one padding mask for source and memory.
    Raises ArgumentError for unsupported settings: add_bias_kv, other activations, custom parts.

    The decoder's input comes first; in nn.Transformer it comes second. Without a vocabulary both are vectors
    (B, T, D), although the first is called `ids`. Pass `source=` by name to avoid confusion:

    >>> theirs = nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval()
    >>> src, tgt = torch.ones(1, 4, 8), torch.zeros(1, 3, 8)
    >>> ours = from_torch(theirs)(tgt, source=src)
    >>> torch.allclose(ours, theirs(src, tgt, tgt_mask=nn.Transformer.generate_square_subsequent_mask(3)), atol=1e-5)
    True
    """
    _check_theirs(module)
    with torch.device("meta"):  # shapes only: no memory, no random numbers
        ours = _our_empty_module(module)
    theirs = dict(module.named_parameters())
    weights = {
        own: nn.Parameter(part.detach().clone(), theirs[name].requires_grad)
        for name, owns in _names(module)
        for own, part in zip(owns, theirs[name].chunk(len(owns)), strict=True)
    }
    _fill(ours, weights, module)
    return ours.train(_same(module, "training", (part.training for part in module.modules())))


@overload
def to_torch(module: MultiHeadAttention) -> nn.MultiheadAttention: ...
@overload
def to_torch(module: Block) -> TheirLayer: ...
@overload
def to_torch(module: Transformer) -> nn.Transformer: ...
def to_torch(module: Ours) -> Theirs:
    """Our module as PyTorch's, with batch_first=True. `from_torch(to_torch(module))` is bit-identical.

    A Block without cross-attention becomes an nn.TransformerEncoderLayer, with it an nn.TransformerDecoderLayer. The
    caller must pass a causal tgt_mask to the decoder with each call. Our `model(ids, source=x)` is `model(x, ids)` in
    PyTorch.
    Raises ArgumentError for unsupported settings: embeddings, positions, grouped heads, RMSNorm, gates.

    >>> from regard.config import TransformerConfig
    >>> type(to_torch(Block(TransformerConfig.paper_2017(d_model=8, n_heads=2, d_ff=16)))).__name__
    'TransformerEncoderLayer'
    """
    _check_ours(module)
    with torch.device("meta"):
        theirs = _their_empty_module(module)
    left = dict(module.named_parameters())
    weights = {
        name: _stack(module, owns, [left.pop(own) for own in owns])
        for name, owns in _names(theirs)
        if all(own in left for own in owns)
    }
    _fill(theirs, weights | left, module)  # raises for weights that are left over
    return theirs.train(_same(module, "training", (part.training for part in module.modules())))


def _names(theirs: nn.Module) -> Iterator[tuple[str, list[str]]]:
    """The name of each PyTorch weight, and the names of our weights that it consists of."""
    for name, _ in theirs.named_parameters(recurse=False):
        yield name, list(STACKED.get(name, (name,)))
    for name, part in theirs.named_children():
        our_name = NAMES.get(type(theirs), {}).get(name, name)
        for inner, owns in _names(part):
            yield f"{name}.{inner}", [f"{our_name}.{own}" for own in owns]


def _stack(module: nn.Module, names: list[str], weights: list[nn.Parameter]) -> nn.Parameter:
    """The weights stacked, as a copy; ArgumentError if dtype or requires_grad differ."""
    for setting in ("dtype", "requires_grad"):
        _same(module, f"{', '.join(names)}: {setting}", (getattr(weight, setting) for weight in weights))
    return nn.Parameter(torch.cat([weight.detach() for weight in weights]), weights[0].requires_grad)


def _fill(empty: nn.Module, weights: dict[str, nn.Parameter], origin: nn.Module) -> None:
    """Set the weights of an empty module; ArgumentError unless names and shapes match."""
    wanted = {(name, weight.shape) for name, weight in empty.named_parameters()}
    wrong = wanted ^ {(name, weight.shape) for name, weight in weights.items()}
    if wrong:
        names = sorted({name for name, _ in wrong})
        raise _error("interchange-weights", origin, count=len(names), names=Listed.few(names))
    for name, weight in weights.items():
        parent, _, last = name.rpartition(".")
        setattr(empty.get_submodule(parent), last, weight)


# --- modules without weights -----------------------------------------------------------------------------


def _our_empty_module(theirs: Theirs) -> Ours:
    if isinstance(theirs, nn.MultiheadAttention):
        bias = theirs.in_proj_bias is not None
        return MultiHeadAttention(theirs.embed_dim, theirs.num_heads, bias=bias, dropout=theirs.dropout)
    if isinstance(theirs, nn.TransformerEncoderLayer):
        return Block(_config_of(theirs, [theirs]), kind="encoder")
    if isinstance(theirs, nn.TransformerDecoderLayer):
        return Block(_config_of(theirs, [theirs]), kind="decoder", cross=True)
    encoder, decoder = theirs.encoder, theirs.decoder
    check_counts(num_encoder_layers=(len(encoder.layers), 1), num_decoder_layers=(len(decoder.layers), 1))
    layers = [*encoder.layers, *decoder.layers]
    return Transformer(_config_of(theirs, layers, len(encoder.layers), len(decoder.layers), encoder.norm is not None))


def _config_of(
    theirs: nn.Module, layers: list[Any], n_encoder: int = 1, n_decoder: int | None = None, final: bool = False
) -> TransformerConfig:
    """The config that all layers share; ArgumentError if they differ."""
    attentions = _parts(theirs, nn.MultiheadAttention)
    pre_norm = _same(theirs, "norm_first", (layer.norm_first for layer in layers))
    return TransformerConfig(
        vocab_size=None,
        d_model=layers[0].self_attn.embed_dim,
        n_heads=_same(theirs, "num_heads", (part.num_heads for part in attentions)),
        d_ff=layers[0].linear1.out_features,
        n_encoder_layers=n_encoder,
        n_decoder_layers=n_decoder,
        activation=_same(theirs, "activation", (_activation(theirs, layer.activation) for layer in layers)),
        positions=None,
        norm=Norm(
            place="pre" if pre_norm else "post",
            eps=_same(theirs, "layer_norm_eps", (part.eps for part in _parts(theirs, nn.LayerNorm))),
            final=final,
        ),
        attention=AttentionStyle(dropout=_same(theirs, "attention dropout", (part.dropout for part in attentions))),
        biases=Biases.none() if layers[0].linear1.bias is None else Biases(),
        output=None,
        dropout=_same(theirs, "dropout", (part.p for part in _parts(theirs, nn.Dropout))),
    )


def _activation(module: nn.Module, given: Any) -> Any:
    """Our name of an activation; ArgumentError if it has no counterpart."""
    if type(given) is nn.GELU:
        return "gelu" if given.approximate == "none" else "gelu_tanh"
    for name, known in ACTIVATION_FUNCTIONS.items():
        if any(given is one or type(given) is one for one in (*known, ACTIVATIONS[name])):  # type: ignore[index]
            return name
    found = getattr(given, "__name__", type(given).__name__)
    raise _error("interchange-value", module, name="activation", found=found, wanted=Listed(ACTIVATION_FUNCTIONS))


def _their_empty_module(ours: Ours) -> Theirs:
    if isinstance(ours, MultiHeadAttention):
        bias = ours.q_proj.bias is not None
        return nn.MultiheadAttention(ours.q_proj.in_features, ours.n_heads, ours.dropout, bias, batch_first=True)
    if isinstance(ours, Block):
        return _their_layer(ours)
    assert ours.encoder is not None
    assert ours.decoder is not None
    D, n_heads = ours.config.d_model, ours.config.n_heads
    # Nested tensors only skip padding, and cause a warning for many configurations.
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, n_heads), 0, enable_nested_tensor=False)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(D, n_heads), 0)
    for theirs, stack in ((encoder, ours.encoder), (decoder, ours.decoder)):
        theirs.layers = nn.ModuleList(_their_layer(block) for block in stack.layers)  # type: ignore[arg-type]
        theirs.num_layers = len(stack.layers)
        if isinstance(stack.norm, LayerNorm):
            theirs.norm = nn.LayerNorm(D, stack.norm.eps, bias=stack.norm.bias is not None)
    return nn.Transformer(D, n_heads, custom_encoder=encoder, custom_decoder=decoder, batch_first=True)


def _their_layer(block: Block) -> TheirLayer:
    own, cross, feed_forward = block.self_attention, block.cross_attention, block.feed_forward
    kind = nn.TransformerEncoderLayer if cross is None else nn.TransformerDecoderLayer
    layer = kind(
        own.q_proj.in_features,
        _same(block, "n_heads", (part.n_heads for part in _parts(block, MultiHeadAttention))),
        feed_forward.up.out_features,
        dropout=_same(block, "dropout", (part.p for part in _parts(block, nn.Dropout))),
        activation=ACTIVATION_FUNCTIONS[_activation(block, feed_forward.activation)][0],
        layer_norm_eps=_same(block, "eps", (part.eps for part in _parts(block, LayerNorm))),
        norm_first=block.place == "pre",
        bias=feed_forward.up.bias is not None,
        batch_first=True,
    )
    layer.self_attn.dropout = own.dropout
    if isinstance(layer, nn.TransformerDecoderLayer) and cross is not None:
        layer.multihead_attn.dropout = cross.dropout
    return layer


# --- checks of unsupported settings -------------------------------------------------------------------------


def _check_theirs(module: nn.Module) -> None:
    _check_class(module, get_args(Theirs), "from_torch")
    for part in _parts(module, nn.MultiheadAttention):
        _require(module, kdim=(part.kdim, part.embed_dim), vdim=(part.vdim, part.embed_dim))
        _require(module, add_bias_kv=(part.bias_k is not None, False), add_zero_attn=(part.add_zero_attn, False))
    if isinstance(module, nn.Transformer):
        for side, wanted in (("encoder", "TransformerEncoder"), ("decoder", "TransformerDecoder")):
            _require(module, **{side: (type(getattr(module, side)).__name__, wanted)})
    _check_parts(module)


def _check_ours(module: nn.Module) -> None:
    _check_class(module, get_args(Ours), "to_torch")
    if isinstance(module, Transformer):
        config = module.config
        _require(module, kind=(config.kind, "encoder-decoder"), vocab_size=(config.vocab_size, None))
        _require(module, positions=(config.positions, None), window=(config.attention.window, None))
    for part in _parts(module, MultiHeadAttention):
        _require(module, n_kv_heads=(part.n_kv_heads, part.n_heads), qk_norm=(part.q_norm is not None, False))
        _require(module, **{"n_heads * d_head": (part.q_proj.out_features, part.q_proj.in_features)})
        _require(module, scale=(part.scale, None), softcap=(part.softcap, None))
    for feed_forward in _parts(module, FeedForward):
        _require(module, gate=(feed_forward.gate, None))
    for block in _parts(module, Block):
        _require(module, **{"norm.place": (block.place, "post" if block.place == "post" else "pre")})
    _check_parts(module)


def _check_class(module: nn.Module, known: tuple[type, ...], call: str) -> None:
    if type(module) not in known:
        choices = Listed(kind.__name__ for kind in known)
        raise ArgumentError("interchange-class", call=call, choices=choices, found=type(module).__name__)


def _require(module: nn.Module, **values: tuple[object, object]) -> None:
    """Raise ArgumentError unless each value found is the one that the target supports: name=(found, wanted)."""
    for name, (found, wanted) in values.items():
        if found != wanted:
            raise _error("interchange-value", module, name=name, found=found, wanted=wanted)


def _check_parts(module: nn.Module) -> None:
    """Raise ArgumentError for a part without counterpart, and for shared weights."""
    for path, part in module.named_modules():
        no_norm = isinstance(part, nn.Identity) and isinstance(module, Transformer) and path.endswith("norm")
        if type(part) not in SUPPORTED and not no_norm and not path.endswith("activation"):
            raise _error("interchange-part", module, place=path, found=type(part).__name__)
    names: dict[int, list[str]] = {}
    for name, weight in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(weight), []).append(name)
    for shared in names.values():
        if len(shared) > 1:
            raise _error("interchange-shared", module, names=Listed(shared[:3]))


def _same(module: nn.Module, name: str, values: Iterable[T]) -> T:
    """The value that all parts share; ArgumentError if there are several."""
    first, *others = dict.fromkeys(values)
    if others:
        raise _error("interchange-several", module, name=name, found=Listed((first, *others)))
    return first


def _parts(module: nn.Module, kind: type[M]) -> list[M]:
    return [part for part in module.modules() if isinstance(part, kind)]


def _error(key: str, module: nn.Module, **values: object) -> ArgumentError:
    call = "from_torch" if isinstance(module, get_args(Theirs)) else "to_torch"
    return ArgumentError(key, call=call, module=type(module).__name__, **values)
