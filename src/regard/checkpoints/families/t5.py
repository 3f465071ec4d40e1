"""T5: an encoder and a decoder, or an encoder alone: relative positions, no biases, unscaled scores; 1.1 has gates."""

from typing import Any

from regard.checkpoints.families.config_keys import ACTIVATIONS, GATED, ConfigKeys, their_activation
from regard.checkpoints.families.family import Family, Names, to
from regard.config import GATES, AttentionStyle, Biases, Norm, Output, Relative, TransformerConfig


def _config(keys: ConfigKeys) -> TransformerConfig:
    has_decoder = not keys.tensors or any(name.startswith("decoder.") for name in keys.tensors)
    keys.only("is_encoder_decoder", *([True] if has_decoder else [True, False]))  # T5EncoderModel writes either
    keys.take("n_positions", None)  # the length of its training texts, no limit
    projection = keys.take("feed_forward_proj", "relu")
    gate, _, name = str(projection).rpartition("-")
    # Hugging Face's "gated-gelu" is the approximation by tanh.
    name = "gelu_new" if projection == "gated-gelu" else name
    table = GATED if gate == "gated" else ACTIVATIONS
    if gate not in ("", "gated") or name not in table:
        wanted = [*ACTIVATIONS, *(f"gated-{one}" for one in GATED)]
        raise keys.invalid("feed_forward_proj", projection, ", ".join(wanted))
    for copy, value in (("dense_act_fn", name), ("is_gated_act", gate == "gated")):
        if keys.take(copy, value) != value:
            raise keys.different({"feed_forward_proj": projection, copy: keys.take(copy, value)})
    layers = keys.count("num_layers", 6, "num_hidden_layers")
    # Version 1.1 has an output layer of its own, without scaling; new files say only the latter.
    tied = keys.flag("scale_decoder_outputs", keys.flag("tie_word_embeddings", True))
    decoder_layers = keys.count("num_decoder_layers", layers)
    return TransformerConfig(
        vocab_size=keys.count("vocab_size", 32_128),
        d_model=keys.count("d_model", 512, "hidden_size"),
        n_heads=keys.count("num_heads", 8, "num_attention_heads"),
        d_head=keys.count("d_kv", 64, "head_dim"),
        d_ff=keys.count("d_ff", 2048),
        n_encoder_layers=layers,
        n_decoder_layers=decoder_layers if has_decoder else None,
        activation=table[name],
        positions=Relative(
            n_buckets=keys.count("relative_attention_num_buckets", 32),
            max_distance=keys.count("relative_attention_max_distance", 128),
        ),
        norm=Norm(kind="rms", place="pre", final=True, eps=keys.number("layer_norm_epsilon", 1e-6)),
        attention=AttentionStyle(scale=1.0),
        biases=Biases.none(),
        output=Output(tied=tied, scaled=tied) if has_decoder else None,
    )


def _settings(config: TransformerConfig) -> dict[str, Any]:
    relative = config.positions if isinstance(config.positions, Relative) else Relative()
    name = their_activation(config)
    gate = "gelu" if config.activation == "geglu_tanh" else name
    return {
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "num_heads": config.n_heads,
        "d_kv": config.head_width,
        "d_ff": config.d_ff,
        "num_layers": config.n_encoder_layers,
        "num_decoder_layers": config.n_decoder_layers or config.n_encoder_layers,
        "feed_forward_proj": f"gated-{gate}" if config.activation in GATED.values() else name,
        "relative_attention_num_buckets": relative.n_buckets,
        "relative_attention_max_distance": relative.max_distance,
        "layer_norm_epsilon": config.norm.eps,
        "tie_word_embeddings": config.output is None or config.output.tied,
        "is_encoder_decoder": config.kind == "encoder-decoder",
    }


def _is_gated(config: TransformerConfig) -> bool:
    return config.activation in GATES


def _is_plain(config: TransformerConfig) -> bool:
    return not _is_gated(config)


def _stack(side: str, last: int) -> Names:
    """`last` is the index of the feed-forward among the parts of a block."""
    block = f"{side}.block.#.layer"
    names: Names = {
        f"{side}.embed_tokens": "embedding" if side == "decoder" else "source_embedding",
        f"{block}.0.SelfAttention.relative_attention_bias": f"{side}.positions.table",
        f"{block}.{last}.layer_norm": f"{side}.layers.#.feed_forward_norm",
        f"{side}.final_layer_norm": f"{side}.norm",
    }
    parts = (("wi", "up", _is_plain), ("wi_0", "gate", _is_gated), ("wi_1", "up", _is_gated), ("wo", "down", None))
    for theirs, ours, written_if in parts:
        target = to(f"{side}.layers.#.feed_forward.{ours}", written_if=written_if)
        names[f"{block}.{last}.DenseReluDense.{theirs}"] = target
    attentions = (("SelfAttention", "self_attention"), ("EncDecAttention", "cross_attention"))
    for i, (theirs, ours) in enumerate(attentions[:last]):
        names[f"{block}.{i}.layer_norm"] = f"{side}.layers.#.{ours}_norm"
        for part in "qkvo":
            names[f"{block}.{i}.{theirs}.{part}"] = f"{side}.layers.#.{ours}.{part}_proj"
    return names


FAMILY = Family(
    config=_config,
    settings=_settings,
    names={**_stack("encoder", 1), **_stack("decoder", 2), "shared": "embedding", "lm_head": "output"},
)
