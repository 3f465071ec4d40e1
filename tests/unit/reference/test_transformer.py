"""The NumPy Transformer: compared with PyTorch's modules and with its parts; masks and bad input."""

from typing import Any

import numpy as np
import pytest
import torch
from models import CONFIGS, DECODERS, random_ids, random_weights
from tolerances import assert_close, assert_same_bits

from regard.config import AttentionStyle, Norm, TransformerConfig
from regard.dispatch import attend_in_model
from regard.errors import RegardError
from regard.masks import Mask
from regard.reference import Transformer, scaled_dot_product_attention


def model_called(name: str, dtype: str = "float64", **options: Any) -> Transformer:
    return Transformer(CONFIGS[name], random_weights(CONFIGS[name], dtype=dtype), **options)


def inputs_of(model: Transformer, T: int = 9, S: int = 7) -> tuple[np.ndarray, ...]:
    """Ids of two samples, and a source for an encoder-decoder."""
    ids = random_ids(model.config, (2, T), seed=1)
    source = random_ids(model.config, (2, S), seed=2, source=True)
    return (ids, source) if model.config.kind == "encoder-decoder" else (ids,)


# --- compared with PyTorch --------------------------------------------------------------------------------


def from_torch(state: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """nn.Transformer's weights under our names."""
    names = {
        "self_attn": "self_attention",
        "multihead_attn": "cross_attention",
        "out_proj": "o_proj",
        "linear1": "feed_forward.up",
        "linear2": "feed_forward.down",
    }
    ours: dict[str, np.ndarray] = {}
    for name, weight in state.items():
        norms = ["self_attention_norm", "feed_forward_norm"]
        if name.startswith("decoder"):
            norms.insert(1, "cross_attention_norm")
        for old, new in (names | {f"norm{i}": norm for i, norm in enumerate(norms, 1)}).items():
            name = name.replace(f".{old}.", f".{new}.")
        if "in_proj_" in name:
            for letter, part in zip("qkv", weight.chunk(3), strict=True):
                ours[name.replace("in_proj_", f"{letter}_proj.")] = part.detach().numpy()
        else:
            ours[name] = weight.detach().numpy()
    return ours


@pytest.mark.parametrize("place", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_it_equals_pytorchs_transformer(place: Any, activation: Any) -> None:
    torch.manual_seed(0)
    sizes = {"d_model": 12, "nhead": 3, "dim_feedforward": 20, "dropout": 0.0, "activation": activation}
    options = sizes | {"norm_first": place == "pre", "batch_first": True, "dtype": torch.float64}
    # Without nested tensors, which PyTorch warns about under pre-norm.
    encoder = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(**options), 2, torch.nn.LayerNorm(12, dtype=torch.float64), False
    )
    torch_model = torch.nn.Transformer(custom_encoder=encoder, num_decoder_layers=3, **options)
    for weight in torch_model.parameters():  # as after training: nonzero biases, norms other than 1
        torch.nn.init.normal_(weight, std=0.3)
    config = TransformerConfig(
        vocab_size=None,
        d_model=12,
        n_heads=3,
        d_ff=20,
        n_encoder_layers=2,
        n_decoder_layers=3,
        activation=activation,
        positions=None,
        norm=Norm(place=place, final=True),
        output=None,
    )
    ours = Transformer(config, from_torch(torch_model.state_dict()))
    ids, source = torch.randn(2, 5, 12, dtype=torch.float64), torch.randn(2, 7, 12, dtype=torch.float64)
    hidden = torch.arange(7) >= torch.tensor([[4], [7]])  # the first sample ends after four
    expected = torch_model(
        source,
        ids,
        tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
        src_key_padding_mask=hidden,
        memory_key_padding_mask=hidden,
    )
    mask = Mask.from_blocked(hidden.numpy(), keys=True)
    assert_close(ours(ids.numpy(), source.numpy(), source_mask=mask), expected.detach())


# --- compared with its own parts -------------------------------------------------------------------------------


def observed(model: Transformer, *inputs: np.ndarray, **options: Any) -> dict[str, np.ndarray]:
    """The output of every part by name; each name is observed once."""
    seen: dict[str, np.ndarray] = {}

    def observe(name: str, x: np.ndarray) -> None:
        assert name not in seen
        seen[name] = x

    model(*inputs, observer=observe, **options)
    return seen


def test_every_part_is_observed() -> None:
    model = model_called("llama")
    seen = observed(model, *inputs_of(model))
    first = "decoder.layers.0"
    q, k, v = (seen[f"{first}.self_attention.{letter}"] for letter in "qkv")
    assert q.shape == (2, 4, 9, 4)
    assert k.shape == v.shape == (2, 2, 9, 4)
    heads, _ = scaled_dot_product_attention(q, k, v, Mask.causal())
    assert_close(seen[f"{first}.self_attention.heads"], heads)
    between = seen["decoder.positions"] + seen[f"{first}.self_attention"]
    assert_close(seen[f"{first}.self_attention_residual"], between)
    assert_close(seen[first], between + seen[f"{first}.feed_forward"])
    gate, up = (seen[f"{first}.feed_forward.{part}"] for part in ("gate", "up"))
    assert_close(seen[f"{first}.feed_forward.activation"], gate / (1 + np.exp(-gate)) * up)
    assert_close(seen["logits"], seen["decoder.norm"] @ model.weights["embedding.weight"].T)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_model_stays_in_its_dtype(name: str, dtype: str) -> None:
    model = model_called(name, dtype)
    seen = observed(model, *inputs_of(model))
    assert {str(x.dtype) for x in seen.values()} == {dtype}
    assert all(np.isfinite(x).all() for x in seen.values())


@pytest.mark.parametrize("name", CONFIGS)
def test_another_attention_function_gives_the_same(name: str) -> None:
    model = model_called(name)
    inputs = inputs_of(model)
    called: list[tuple[str, str]] = []

    def attend(*qkv: np.ndarray, name: str, kind: Any, **options: Any) -> np.ndarray:
        called.append((name, kind))
        return attend_in_model(*qkv, name=name, kind=kind, **options)

    assert_close(model(*inputs, attend=attend), model(*inputs))
    assert [kind if "self" in name else "cross" for name, kind in called] == [kind for _, kind in called]
    assert all(f"{name}.q_proj.weight" in model.weights for name, _ in called)


def test_weights_are_not_copied() -> None:
    weights = random_weights(CONFIGS["gpt2"])
    model = Transformer(CONFIGS["gpt2"], weights)
    assert all(np.shares_memory(model.weights[name], weight) for name, weight in weights.items())


def test_nan_and_inf_cause_no_warning() -> None:
    weights = random_weights(CONFIGS["gpt2"])
    weights["decoder.layers.0.feed_forward.up.weight"][0] = np.inf
    assert not np.isfinite(Transformer(CONFIGS["gpt2"], weights)([[1, 2]])).any()


# --- masks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DECODERS)
def test_outputs_do_not_depend_on_later_tokens(name: str) -> None:
    model = model_called(name)
    ids, *source = inputs_of(model)
    changed = ids.copy()
    changed[:, 5:] = (changed[:, 5:] + 1) % 20
    before, after = model(ids, *source), model(changed, *source)
    assert_same_bits(before[:, :5], after[:, :5])
    assert (before[:, 5:] != after[:, 5:]).any(-1).all()


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_a_window_has_the_given_size(kind: str) -> None:
    config = TransformerConfig(
        vocab_size=20,
        d_model=8,
        n_heads=2,
        d_ff=8,
        **{f"n_{kind}_layers": 1},  # type: ignore[arg-type]
        attention=AttentionStyle(window=3),
    )
    model = Transformer(config, random_weights(config, dtype="float64"))
    ids = random_ids(config, (1, 11))
    changed = ids.copy()
    changed[0, 5] = (ids[0, 5] + 1) % 20
    differs = (model(ids) != model(changed)).any(-1)[0]
    assert np.flatnonzero(differs).tolist() == list(range(3 if kind == "encoder" else 5, 8))


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "bloom", "relative decoder", "post-norm decoder"])
def test_padding_before_a_text_changes_nothing(name: str) -> None:
    model = model_called(name)
    ids = random_ids(model.config, (1, 6))
    padded = np.concatenate((np.zeros((1, 3), int), ids), axis=1)
    mask = Mask.from_keep(np.arange(9)[None] >= 3)
    at = np.maximum(np.arange(9) - 3, 0)
    assert_close(model(padded, mask=mask, positions=at)[:, 3:], model(ids))
    assert_close(model(padded, mask=mask, positions=at[None])[:, 3:], model(ids))


def test_a_masked_source_equals_a_shorter_source() -> None:
    model = model_called("t5")
    ids, source = inputs_of(model)
    mask = Mask.from_keep(np.arange(7) < 4)
    assert_close(model(ids, source, source_mask=mask), model(ids, source[:, :4]))


def test_segments_change_the_output() -> None:
    model = model_called("bert")
    ids = random_ids(model.config, (2, 5))
    assert_same_bits(model(ids), model(ids, segments=np.zeros((2, 5), int)))
    assert (model(ids) != model(ids, segments=np.ones((2, 5), int))).all()


# --- bad input -------------------------------------------------------------------------------------------

IDS = np.zeros((2, 5), int)
WRONG: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "ids-kind": ("gpt2", (IDS.astype(float),), {}),
    "ids-axes": ("gpt2", (IDS[0],), {}),
    "ids-out-of-range": ("gpt2", (IDS + 31,), {}),
    "ids-too-long": ("gpt2", (np.zeros((1, 30), int),), {}),
    "vectors-wanted": ("vectors", (IDS, IDS), {}),
    "source-missing": ("t5", (IDS,), {}),
    "source-unneeded": ("gpt2", (IDS, IDS), {}),
    "batches-of-source": ("t5", (IDS, IDS[:1]), {}),
    "segments-unneeded": ("gpt2", (IDS,), {"segments": IDS}),
    "segments-shape": ("bert", (IDS,), {"segments": IDS[:1]}),
    "positions-of-ids": ("gpt2", (IDS,), {"positions": np.arange(4)}),
    "mask-dtype-float": ("gpt2", (IDS,), {"mask": np.ones((5, 5))}),
    "mask-shape": ("gpt2", (IDS,), {"mask": np.ones((4, 4), bool)}),
    "mask-samples": ("gpt2", (IDS,), {"mask": Mask.from_keep(np.ones((3, 5), bool))}),
}


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("something ran before the input was checked")


@pytest.mark.parametrize("key", WRONG)
def test_bad_input_is_refused_before_anything_runs(key: str) -> None:
    name, inputs, options = WRONG[key]
    with pytest.raises(RegardError) as caught:
        model_called(name)(*inputs, **options, attend=never, observer=never)
    assert caught.value.key == key


def test_a_source_mask_must_fit_both_stacks() -> None:
    with pytest.raises(RegardError) as caught:
        model_called("t5")(IDS[:, :3], IDS, source_mask=np.ones((5, 5), bool), attend=never)
    assert caught.value.key == "mask-shape"


def test_ids_out_of_range_are_reported() -> None:
    ids = IDS.copy()
    ids[1, 3] = -1
    with pytest.raises(RegardError, match=r"ids\[1, 3\] is -1, .* ids 0 to 30"):
        model_called("gpt2")(ids)
    with pytest.raises(RegardError, match=r"source\[0, 0\] is 41, .* ids 0 to 40"):
        model_called("pre-norm translator")(IDS, IDS + 41)
    with pytest.raises(RegardError, match=r"segments\[0, 0\] is 2"):
        model_called("bert")(IDS, segments=IDS + 2)
    with pytest.raises(RegardError, match=r"positions\[0\] is 29"):
        model_called("gpt2")(IDS, positions=np.arange(5) + 29 - np.arange(5))


def test_weights_must_match_the_config() -> None:
    config, weights = CONFIGS["gpt2"], random_weights(CONFIGS["gpt2"])
    without = {name: weight for name, weight in weights.items() if ".v_proj." not in name}
    for wrong, key in (
        (without, "weights-missing"),
        (weights | {"lm_head.weight": weights["embedding.weight"]}, "weights-unexpected"),
        (weights | {"embedding.weight": weights["embedding.weight"].T}, "weights-shape"),
        (weights | {"embedding.weight": weights["embedding.weight"].astype(float)}, "weights-dtype"),
        ({name: weight.astype(int) for name, weight in weights.items()}, "weights-dtype"),
    ):
        with pytest.raises(RegardError) as caught:
            Transformer(config, wrong)
        assert caught.value.key == key
