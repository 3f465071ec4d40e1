"""Names and shapes of a config's weights, and the messages about wrong ones."""

import numpy as np
import pytest

from regard.config import AttentionStyle, Biases, Embeddings, Norm, Output, Relative, TransformerConfig
from regard.config.weights import check_weight_names, check_weights, weight_shapes
from regard.errors import RegardError, ShapeError, UnknownNameError


def test_all_names_of_a_small_model() -> None:
    config = TransformerConfig(
        vocab_size=11,
        d_model=6,
        n_heads=4,
        n_kv_heads=2,
        d_head=5,
        d_ff=7,
        n_decoder_layers=1,
        activation="swiglu",
        positions=Relative(n_buckets=8),
        norm=Norm(kind="rms", place="pre", final=True),
        attention=AttentionStyle(qk_norm=True),
        biases=Biases(attention_output=False),
        embeddings=Embeddings(norm=True, n_segments=3),
        output=Output(tied=False, transform=True),
    )
    layer = "decoder.layers.0"
    assert weight_shapes(config) == {
        "embedding.weight": (11, 6),
        "segment_embedding.weight": (3, 6),
        "decoder.positions.table": (8, 4),
        "decoder.input_norm.weight": (6,),
        f"{layer}.self_attention.q_proj.weight": (20, 6),
        f"{layer}.self_attention.q_proj.bias": (20,),
        f"{layer}.self_attention.k_proj.weight": (10, 6),
        f"{layer}.self_attention.k_proj.bias": (10,),
        f"{layer}.self_attention.v_proj.weight": (10, 6),
        f"{layer}.self_attention.v_proj.bias": (10,),
        f"{layer}.self_attention.o_proj.weight": (6, 20),
        f"{layer}.self_attention.q_norm.weight": (5,),
        f"{layer}.self_attention.k_norm.weight": (5,),
        f"{layer}.self_attention_norm.weight": (6,),
        f"{layer}.feed_forward.gate.weight": (7, 6),
        f"{layer}.feed_forward.gate.bias": (7,),
        f"{layer}.feed_forward.up.weight": (7, 6),
        f"{layer}.feed_forward.up.bias": (7,),
        f"{layer}.feed_forward.down.weight": (6, 7),
        f"{layer}.feed_forward.down.bias": (6,),
        f"{layer}.feed_forward_norm.weight": (6,),
        "decoder.norm.weight": (6,),
        "output.transform.weight": (6, 6),
        "output.transform_norm.weight": (6,),
        "output.weight": (11, 6),
    }


def test_cross_attention_exists_only_in_an_encoder_decoder() -> None:
    names = weight_shapes(TransformerConfig.paper_2017(n_layers=1))
    assert [name.split(".")[0] for name in names if "cross" in name] == ["decoder"] * 10
    assert not [name for name in weight_shapes(TransformerConfig.gpt2(n_layers=1)) if "cross" in name]


def test_messages_name_at_most_five_weights() -> None:
    config = TransformerConfig.gpt2(n_layers=1, d_model=8, n_heads=2, d_ff=16, vocab_size=10)
    shapes = weight_shapes(config)
    with pytest.raises(UnknownNameError, match=r"^20 weights of this model are missing: (\S+, ){5}…;"):
        check_weight_names([], config)
    with pytest.raises(UnknownNameError, match=r"^2 weights belong to no part of this model: a, b;"):
        check_weight_names([*shapes, "a", "b"], config)
    with pytest.raises(ShapeError, match=r"embedding.weight \(8, 10\) ≠ \(10, 8\)$"):
        check_weights(shapes | {"embedding.weight": (8, 10)}, config)


def test_names_are_checked_before_shapes() -> None:
    config = TransformerConfig.gpt2(n_layers=1)
    shapes = dict.fromkeys(weight_shapes(config), np.shape(0))
    del shapes["embedding.weight"]
    with pytest.raises(RegardError) as caught:
        check_weights(shapes, config)
    assert caught.value.key == "weights-missing"
