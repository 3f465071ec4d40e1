"""The names and shapes of a model's weights, computed from its config.

The names are those of `models.Transformer`'s state_dict, the shapes those of `nn.Linear` (out, in). Files, the NumPy
model and the torch modules are all checked against this list. No arrays here.
"""

from collections.abc import Iterable, Mapping

from regard.axes import Shape
from regard.config.recurrent import RecurrentConfig, recurrent_shapes
from regard.config.styles import Learned, Relative
from regard.config.transformer import GATES, TransformerConfig
from regard.errors import ShapeError, UnknownNameError
from regard.messages import Listed

Shapes = dict[str, Shape]
ModelConfig = TransformerConfig | RecurrentConfig


def weight_shapes(config: ModelConfig) -> Shapes:
    """The shape of every weight by name, in the order of use.

    >>> shapes = weight_shapes(TransformerConfig.gpt2())
    >>> shapes["decoder.layers.0.feed_forward.up.weight"]
    (3072, 768)
    """
    if isinstance(config, RecurrentConfig):
        return recurrent_shapes(config)
    shapes = _embeddings(config)
    if config.n_encoder_layers is not None:
        shapes |= _stack("encoder", config.n_encoder_layers, config)
    if config.n_decoder_layers is not None:
        shapes |= _stack("decoder", config.n_decoder_layers, config)
    return shapes | _output(config)


def check_weights(found: Mapping[str, Shape], config: ModelConfig) -> None:
    """Raise if weights are missing, unexpected, or of another shape; the message names the first few.

    >>> check_weights(weight_shapes(TransformerConfig.bert()), TransformerConfig.bert())
    """
    wanted = weight_shapes(config)
    check_weight_names(found, config)
    wrong = [name for name, shape in wanted.items() if tuple(found[name]) != shape]
    if wrong:
        spelled = (f"{name} {tuple(found[name])} ≠ {wanted[name]}" for name in wrong)
        raise ShapeError("weights-shape", count=len(wrong), names=Listed.few(spelled))


def check_weight_names(found: Iterable[str], config: ModelConfig) -> None:
    """Raise if weights are missing or unexpected; shapes are not checked."""
    wanted, names = weight_shapes(config), list(found)
    there = set(names)
    missing = [name for name in wanted if name not in there]
    if missing:
        raise UnknownNameError("weights-missing", count=len(missing), names=Listed.few(missing))
    unexpected = [name for name in names if name not in wanted]
    if unexpected:
        raise UnknownNameError("weights-unexpected", count=len(unexpected), names=Listed.few(unexpected))


def _embeddings(config: TransformerConfig) -> Shapes:
    rows = {
        "embedding.weight": config.vocab_size,
        "source_embedding.weight": config.embeddings.source_vocab_size,
        "segment_embedding.weight": config.embeddings.n_segments,
    }
    return {name: (count, config.d_model) for name, count in rows.items() if count is not None}


def _stack(side: str, n_layers: int, config: TransformerConfig) -> Shapes:
    shapes: Shapes = {}
    if isinstance(config.positions, Learned):
        assert config.max_len is not None  # checked by the config
        shapes[f"{side}.positions.table"] = (config.max_len, config.d_model)
    if isinstance(config.positions, Relative):
        shapes[f"{side}.positions.table"] = (config.positions.n_buckets, config.n_heads)
    if config.embeddings.norm:
        shapes |= _norm(f"{side}.input_norm", config.d_model, config)
    has_cross = side == "decoder" and config.kind == "encoder-decoder"
    for i in range(n_layers):
        shapes |= _layer(f"{side}.layers.{i}", config, has_cross)
    if config.norm.final:
        shapes |= _norm(f"{side}.norm", config.d_model, config)
    return shapes


def _layer(name: str, config: TransformerConfig, has_cross: bool) -> Shapes:
    shapes: Shapes = {}
    for part in ("self_attention", "cross_attention") if has_cross else ("self_attention",):
        shapes |= _attention(f"{name}.{part}", config)
        shapes |= _norms(f"{name}.{part}", config)
    shapes |= _feed_forward(f"{name}.feed_forward", config)
    return shapes | _norms(f"{name}.feed_forward", config)


def _norms(part: str, config: TransformerConfig) -> Shapes:
    """The norms of one part of a layer; with norms before and after it, the second has the output."""
    shapes = _norm(f"{part}_norm", config.d_model, config)
    if config.norm.place == "both":
        shapes |= _norm(f"{part}_output_norm", config.d_model, config)
    return shapes


def _attention(name: str, config: TransformerConfig) -> Shapes:
    D, E, biases = config.d_model, config.head_width, config.biases
    queries, keys = config.n_heads * E, config.key_value_heads * E
    shapes = (
        _linear(f"{name}.q_proj", queries, D, biases.attention)
        | _linear(f"{name}.k_proj", keys, D, biases.attention)
        | _linear(f"{name}.v_proj", keys, D, biases.attention)
        | _linear(f"{name}.o_proj", D, queries, biases.attention_output)
    )
    if config.attention.qk_norm:
        shapes |= _norm(f"{name}.q_norm", E, config) | _norm(f"{name}.k_norm", E, config)
    return shapes


def _feed_forward(name: str, config: TransformerConfig) -> Shapes:
    D, F, bias = config.d_model, config.d_ff, config.biases.feed_forward
    gate = _linear(f"{name}.gate", F, D, bias) if config.activation in GATES else {}
    return gate | _linear(f"{name}.up", F, D, bias) | _linear(f"{name}.down", D, F, bias)


def _output(config: TransformerConfig) -> Shapes:
    if config.output is None or config.vocab_size is None:
        return {}
    D, W = config.d_model, config.vocab_size
    shapes: Shapes = {}
    if config.output.transform:
        shapes |= _linear("output.transform", D, D, config.biases.output)
        shapes |= _norm("output.transform_norm", D, config)
    if not config.output.tied:
        shapes["output.weight"] = (W, D)
    if config.biases.output:
        shapes["output.bias"] = (W,)
    return shapes


def _linear(name: str, n_out: int, n_in: int, bias: bool) -> Shapes:
    return _pair(name, (n_out, n_in), (n_out,) if bias else None)


def _norm(name: str, width: int, config: TransformerConfig) -> Shapes:
    """RMSNorm has no bias, whatever `biases` says."""
    bias = config.norm.kind == "layer" and config.biases.norm
    return _pair(name, (width,), (width,) if bias else None)


def _pair(name: str, weight: Shape, bias: Shape | None) -> Shapes:
    return {f"{name}.weight": weight} if bias is None else {f"{name}.weight": weight, f"{name}.bias": bias}
