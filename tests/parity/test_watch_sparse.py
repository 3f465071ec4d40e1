"""Sparse and block attention, assembled: every weight against a direct computation.

The matrix times the module's own values must equal the module's output; and a dense softmax of its own queries and
keys, over the keys that its definition makes visible, must equal the matrix.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
import transformers
from architectures import GROUPED, PAIR, SIZES, T5, Architecture
from narrowing import present
from torch import Tensor, nn

import regard
from regard import See

LED = {key: value for key, value in PAIR.items() if key != "max_position_embeddings"}
LED |= {"attention_window": 4, "max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64}
BIRD = {"block_size": 4, "num_random_blocks": 1, "attention_type": "block_sparse", "max_position_embeddings": 128}
CALM = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "dropout": 0.0, "attention_dropout": 0.0}


def ids(N: int) -> Tensor:
    """Some tokens repeat: they must not be confused."""
    return torch.arange(2 * N).reshape(2, N) % 9 + 5


def padded(N: int) -> dict[str, Tensor]:
    keep = torch.ones(2, N, dtype=torch.long)
    keep[0, N - 5 :] = 0
    return {"input_ids": ids(N), "attention_mask": keep}


class Sparse(NamedTuple):
    model: str
    sizes: dict[str, Any]
    inputs: dict[str, Tensor]
    module: str  # the end of the class name of the sparse modules
    values: str = "value"
    training: bool = False


target = {"decoder_input_ids": ids(6)}
GLOBAL = torch.zeros(2, 22, dtype=torch.long)
GLOBAL[0, 0] = GLOBAL[1, 0] = GLOBAL[1, 7] = 1
CASES = {
    "BigBird": Sparse("BigBirdModel", SIZES | BIRD, {"input_ids": ids(64)}, "BlockSparseAttention"),
    "BigBird, training": Sparse(
        "BigBirdModel", SIZES | BIRD | CALM, {"input_ids": ids(64)}, "BlockSparseAttention", training=True
    ),
    "BigBird, padded": Sparse("BigBirdModel", SIZES | BIRD, padded(62), "BlockSparseAttention"),
    "BigBirdPegasus": Sparse(
        "BigBirdPegasusModel", PAIR | BIRD, {"input_ids": ids(64), **target}, "BlockSparseAttention"
    ),
    "LongT5": Sparse("LongT5Model", T5 | {"local_radius": 3}, padded(22) | target, "LocalAttention", "v"),
    "Longformer": Sparse("LongformerModel", SIZES | {"attention_window": 4}, padded(22), "SelfAttention"),
    "LED": Sparse("LEDModel", LED, padded(24) | target, "EncoderSelfAttention"),
}
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


class SparseCall(NamedTuple):
    """One sparse module, its input, its output, and its record."""

    module: Any
    x: Tensor
    out: Tensor
    record: Any


def run(case: Sparse) -> tuple[Any, list[SparseCall], Any]:
    torch.manual_seed(0)
    made = getattr(transformers, case.model)
    model = made(made.config_class(**case.sizes)).train(case.training)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 2 and name.split(".")[-2] in ("query", "key", "q", "k", "query_global", "key_global"):
                weight.mul_(12)  # far from uniform
    sparse = {name: m for name, m in model.named_modules() if type(m).__name__.endswith(case.module)}
    calls: dict[str, tuple[Tensor, Tensor]] = {}

    def keep(name: str) -> Callable[..., None]:
        return lambda module, args, given, out: calls.update(
            {name: (args[0] if args else given["hidden_states"], out[0])}
        )

    hooks = [m.register_forward_hook(keep(name), with_kwargs=True) for name, m in sparse.items()]
    with torch.no_grad():
        plain = model(**case.inputs)
        with regard.watch(model, see=See(map=128)) as trace:
            watched = model(**case.inputs)
    for hook in hooks:
        hook.remove()
    assert torch.equal(plain[0], watched[0])
    found = [SparseCall(m, *calls[name], trace[name]) for name, m in sparse.items() if name in calls]
    assert len(found) == 2
    return model, found, trace


def heads(x: Tensor, H: int = 4) -> Tensor:
    return x.unflatten(-1, (H, -1)).transpose(1, 2)  # B H N E


@each
def test_the_matrix_times_the_values_is_the_output(case: Sparse) -> None:
    _, found, _ = run(case)
    keep = case.inputs.get("attention_mask", torch.ones(1, 1)).bool()
    for one in found:
        v = heads(getattr(one.module, case.values)(one.x))
        out = (one.record.map @ v).transpose(1, 2).flatten(2)  # B N D
        out = one.module.o(out) if hasattr(one.module, "o") else out
        N = keep.shape[1] if keep.shape[1] > 1 else out.shape[1]
        gap = (out - one.out)[:, :N].abs().amax(-1)
        assert gap[keep.expand(2, N)].max() <= 1e-5
        assert one.record.kind == "encoder"
        assert one.record.shape[2:] == (one.x.shape[1],) * 2


def test_bigbird_equals_full_attention_under_the_same_mask() -> None:
    """In training its random blocks differ from the near and global ones, so that no key counts twice."""
    _, found, trace = run(CASES["BigBird, training"])
    assert trace.names == ["encoder.layer.0.attention.self", "encoder.layer.1.attention.self"]
    for one in found:
        weights = one.record.map
        blocks = (weights > 0).unflatten(2, (16, 4)).unflatten(4, (16, 4)).any(5).any(3)  # B H 16 16
        place = torch.arange(16)
        near = (place[:, None] - place).abs() <= 1
        near |= ((place == 0) | (place == 15)) | ((place == 0) | (place == 15))[:, None]
        assert blocks[:, :, near].all(), "all see the first and the last block and the three around them"
        assert (blocks[:, :, 2:-2].sum(-1) == 6).all(), "and one more"
        mask = blocks.repeat_interleave(4, 2).repeat_interleave(4, 3)
        q, k = heads(one.module.query(one.x)), heads(one.module.key(one.x))
        dense = (q @ k.mT * 8**-0.5).masked_fill(~mask, -torch.inf).softmax(-1)
        torch.testing.assert_close(weights, dense, atol=1e-5, rtol=1e-4)


def test_bigbird_counts_a_repeated_block_twice() -> None:
    """Out of training its random block is the first, which is global already; its softmax contains it twice."""
    _, found, _ = run(CASES["BigBird"])
    for one in found:
        q, k = heads(one.module.query(one.x)), heads(one.module.key(one.x))
        scores = (q @ k.mT * 8**-0.5).masked_fill(one.record.map == 0, -torch.inf)
        scores[:, :, 4:-4, :4] += torch.tensor(2.0).log()
        torch.testing.assert_close(one.record.map, scores.softmax(-1), atol=1e-5, rtol=1e-4)


def test_longformer_band_and_global_tokens() -> None:
    case = CASES["Longformer"]._replace(inputs={"input_ids": ids(22), "global_attention_mask": GLOBAL})
    _, found, _ = run(case)
    place = torch.arange(24)
    band = (place[:, None] - place).abs() <= 2
    real = place < 22  # the model pads to a whole number of windows
    for one in found:
        q, k = heads(one.module.query(one.x)), heads(one.module.key(one.x))
        wide, deep = heads(one.module.query_global(one.x)), heads(one.module.key_global(one.x))
        for b in range(2):
            chosen = torch.zeros(24, dtype=torch.bool)
            chosen[:22] = GLOBAL[b].bool()
            allowed = (band | chosen) & real
            scores = (q[b] @ k[b].mT * 8**-0.5).masked_fill(~allowed, -torch.inf)
            everything = (wide[b] @ deep[b].mT * 8**-0.5).masked_fill(~real, -torch.inf)
            dense = torch.where(chosen[:, None], everything, scores).softmax(-1)
            torch.testing.assert_close(one.record.map[b][:, real], dense[:, real], atol=1e-5, rtol=1e-4)


def test_longt5_summaries_are_named() -> None:
    case = CASES["LongT5"]
    sizes = case.sizes | {"encoder_attention_type": "transient-global", "global_block_size": 4}
    _, found, _ = run(case._replace(module="TransientGlobalAttention", sizes=sizes))
    for one in found:
        assert one.record.rest == "summaries"
        assert (one.record.map.sum(-1) < 1).any()
        place = torch.arange(22)
        near = (place[:, None] // 4 - place // 4).abs() <= 1
        assert (one.record.map[..., ~near] == 0).all()


def test_pegasus_x() -> None:
    sizes: dict[str, Any] = PAIR | {"block_size": 4, "num_global_tokens": 2, "stagger_local_blocks": True}
    case = Sparse("PegasusXModel", sizes, {"input_ids": ids(16), **target}, "GlobalLocalAttention")
    torch.manual_seed(0)
    made: Any = transformers.PegasusXModel
    model = made(made.config_class(**sizes)).eval()
    with torch.no_grad(), regard.watch(model, see=See(map=64)) as trace:
        model(**case.inputs)
    for record in trace.select(kind="encoder"):
        assert record.rest == "summaries"
        assert (present(record.map).sum(-1) < 1).all()


# --- refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sizes", "reason"),
    (
        ("NystromformerModel", {"num_landmarks": 4, "segment_means_seq_len": 16}, "landmarks"),
        ("YosoModel", {"num_hash": 4, "hash_code_len": 4}, "hashes"),
        ("MraModel", {"block_per_row": 2}, "resolutions"),
    ),
)
def test_approximations_warn_by_name(name: str, sizes: dict[str, Any], reason: str) -> None:
    torch.manual_seed(0)
    made = getattr(transformers, name)
    model = made(made.config_class(**SIZES | sizes | {"max_position_embeddings": 64})).eval()
    with torch.no_grad(), warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        plain = model(ids(32 if name == "MraModel" else 16))[0]
        with regard.watch(model) as trace:
            watched = model(ids(32 if name == "MraModel" else 16))[0]
    assert torch.equal(plain, watched)
    assert len(trace) == 0
    (text,) = [str(one.message) for one in caught_warnings if issubclass(one.category, UserWarning)]
    assert "encoder.layer.0.attention.self, encoder.layer.1.attention.self" in text
    assert reason in text


def test_deformable_attention_warns_beside_what_is_recorded() -> None:
    torch.manual_seed(0)
    stages: dict[str, Any] = {"hidden_sizes": [8, 16], "depths": [1, 1], "out_features": ["stage1", "stage2"]}
    backbone = transformers.ResNetConfig(embedding_size=8, **stages)
    sides = ("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads")
    sizes: dict[str, Any] = {"d_model": 32, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "num_queries": 5}
    sizes |= dict.fromkeys(sides, 2) | {"num_feature_levels": 2, "use_timm_backbone": False}
    model = transformers.DeformableDetrModel(
        transformers.DeformableDetrConfig(backbone_config=backbone, **sizes)
    ).eval()
    pixels = torch.randn(1, 3, 32, 32)
    with torch.no_grad(), warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        plain = model(pixels)[0]
        with regard.watch(model) as trace:
            watched = model(pixels)[0]
    assert torch.equal(plain, watched)
    assert trace.names == [f"decoder.layers.{layer}.self_attn" for layer in range(2)]
    texts = [str(one.message) for one in caught_warnings if "encoder.layers.0.self_attn" in str(one.message)]
    assert len(texts) == 1
    assert "decoder.layers.0.encoder_attn" in texts[0]
    assert "points of the picture" in texts[0]


# --- rows that do not sum to 1 ----------------------------------------------------------------------------


class Layer(nn.Module):
    def __init__(self, use: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.use, self.num_heads = use, 2

    def forward(self, x: Tensor) -> Tensor:
        y = x.unflatten(-1, (2, 4)).transpose(1, 2)
        return self.use(y @ y.mT, y)


def with_sink(scores: Tensor, v: Tensor) -> Tensor:
    return torch.cat([scores, torch.zeros_like(scores[..., :1])], -1).softmax(-1)[..., :-1] @ v


RESTS: dict[str, tuple[str, Callable[[Tensor, Tensor], Tensor]]] = {
    "plain": ("", lambda s, v: s.softmax(-1) @ v),
    "a sink": ("sink", with_sink),
    "masked after": ("masked", lambda s, v: s.softmax(-1).tril() @ v),
    "masked and made whole": ("", lambda s, v: (w := s.softmax(-1).tril()).div(w.sum(-1, keepdim=True)) @ v),
    "a gate": ("scaled", lambda s, v: (s.softmax(-1) * 0.7) @ v),
    "a difference": ("mixed", lambda s, v: (s.softmax(-1) - 0.3 * (s * 2).softmax(-1)) @ v),
    "half precision": ("", lambda s, v: s.softmax(-1).half().float() @ v),
}


@pytest.mark.parametrize(("rest", "use"), RESTS.values(), ids=RESTS)
def test_rows_that_do_not_sum_to_1_have_a_reason(
    rest: str, use: Callable[[Tensor, Tensor], Tensor], tmp_path: Any
) -> None:
    torch.manual_seed(0)
    model = Layer(use)
    with torch.no_grad(), regard.watch(model) as trace:
        model(torch.randn(2, 5, 8))
    assert trace[0].rest == rest
    assert (f"rest='{rest}'" in repr(trace[0])) is bool(rest)
    trace.save(tmp_path / "trace.safetensors")
    assert regard.read_trace(tmp_path / "trace.safetensors")[0].rest == rest


def test_gpt_oss_has_a_sink() -> None:
    model = Architecture("GptOssModel", GROUPED, more={"num_local_experts": 4}).build()
    with torch.no_grad(), regard.watch(model) as trace:
        model(ids(12))
    assert [record.rest for record in trace] == ["sink", "sink"]
