"""Weight that goes to no key: learned sink logits, softmax plus one, added keys. A row and its sink mass sum to 1."""

from io import StringIO
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from matplotlib.text import Text
from narrowing import present
from torch import Tensor, nn
from transformers import GptOssConfig, GptOssForCausalLM

import regard
from regard import See
from regard.arrays import to_numpy
from regard.records import Record
from regard.trace import Trace
from stored_pages import overview_in

EVERYTHING = See(map=64, max_score=True, entropy=True, received=True, top=2, distance=True, qk=True)


def assert_whole(record: Record) -> None:
    """Assert by definition that weights and sink mass are one distribution."""
    weights, mass = to_numpy(record.weights()), to_numpy(record.sink_mass)
    np.testing.assert_allclose(weights.sum(-1) + mass, 1, atol=1e-5)
    whole = np.concatenate([weights, mass[..., None]], -1).astype(np.float64)
    entropy = -(whole * np.log(np.where(whole > 0, whole, 1))).sum(-1)
    np.testing.assert_allclose(to_numpy(record.entropy), entropy, atol=1e-5)


class Small(nn.Module):
    """Hand-written attention with a score that belongs to no key."""

    def __init__(self, how: str, sinks: int = 1) -> None:
        super().__init__()
        self.how, self.num_heads = how, 2
        self.qkv = nn.Linear(8, 24, bias=False)
        self.sinks = nn.Parameter(torch.randn(2, sinks))

    def scores(self, x: Tensor) -> Tensor:
        q, k, _ = self.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        return q @ k.mT / 2  # B H T T

    def forward(self, x: Tensor) -> Tensor:
        scores, v = self.scores(x), self.qkv(x)[..., 16:].unflatten(-1, (2, 4)).transpose(1, 2)
        if self.how == "plus one":
            weights = F.softmax(F.pad(scores, (0, 1)), -1)[..., :-1]
        else:
            sinks = self.sinks[None, :, None].expand(*scores.shape[:3], -1)
            parts = [sinks, scores] if self.how == "before" else [scores, sinks]
            weights = F.softmax(torch.cat(parts, -1), -1)
            cut = sinks.shape[-1]
            weights = weights[..., cut:] if self.how == "before" else weights[..., :-cut]
        return weights @ v

    def right(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and sink mass, by definition."""
        scores = self.scores(x).double()
        logits = torch.zeros(2, 1) if self.how == "plus one" else self.sinks
        powers, more = scores.exp(), logits.double().exp().sum(-1)[None, :, None]
        total = powers.sum(-1) + more
        return powers / total[..., None], more / total


@pytest.mark.parametrize(("how", "sinks"), [("plus one", 1), ("before", 1), ("behind", 1), ("behind", 3)])
def test_a_score_that_belongs_to_no_key(how: str, sinks: int) -> None:
    torch.manual_seed(0)
    model, x = Small(how, sinks).eval(), torch.randn(3, 5, 8)
    with torch.no_grad(), regard.watch(model, see=EVERYTHING) as trace:
        model(x)
    weights, mass = model.right(x)
    record = trace[0]
    assert record.shape == (3, 2, 5, 5)
    np.testing.assert_allclose(to_numpy(record.weights()), weights.detach(), atol=1e-6)
    np.testing.assert_allclose(to_numpy(record.sink_mass), mass.detach(), atol=1e-6)
    assert_whole(record)


def gpt_oss() -> Any:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    more: dict[str, Any] = {"num_key_value_heads": 2, "head_dim": 8, "num_local_experts": 2, "num_experts_per_tok": 1}
    made = GptOssForCausalLM(GptOssConfig(vocab_size=50, sliding_window=4, **sizes, **more))
    for layer in made.model.layers:
        layer.self_attn.sinks.data.normal_()
    return made.eval()


def test_gpt_oss_alone_and_in_a_padded_batch() -> None:
    made = gpt_oss()
    text = torch.tensor([[5, 6, 7, 8, 9, 5]])
    with torch.no_grad(), regard.watch(made, see=EVERYTHING) as alone:
        attentions = made(text, output_attentions=True).attentions
    for record, weights in zip(alone, attentions, strict=True):
        np.testing.assert_allclose(to_numpy(record.weights()), weights, atol=1e-6)
        assert_whole(record)
        assert (present(record.sink_mass) > 0).all()
    ids = F.pad(text.repeat(2, 1), (0, 3))
    ids[0] = torch.arange(10, 19)
    with torch.no_grad(), regard.watch(made, see=EVERYTHING) as batch:
        made(ids, attention_mask=(ids != 0).long())
    for record, right in zip(batch, alone, strict=True):
        for name in ("sink_mass", "entropy"):
            np.testing.assert_allclose(getattr(record, name)[1, :, :6], getattr(right, name)[0], atol=1e-5)
            assert not getattr(record, name)[1, :, 6:].any()


def test_sink_mass_is_stitched_saved_measured_and_merged(tmp_path: Any) -> None:
    made = gpt_oss()
    need_weights: dict[str, Any] = {"max_new_tokens": 3, "min_new_tokens": 3, "do_sample": False, "pad_token_id": 0}
    see = See(map=64, entropy=True)
    with torch.no_grad(), regard.watch(made, tokenizer=lambda ids: [f" w{i}" for i in ids], see=see) as trace:
        text = made.generate(torch.tensor([[5, 6, 7, 8, 9]]), **need_weights)
    whole = trace.stitched(text)
    for record in whole:
        assert_whole(record)
    whole.save(tmp_path / "sinks.safetensors")
    again = regard.read_trace(tmp_path / "sinks.safetensors")
    np.testing.assert_array_equal(again[0].sink_mass, to_numpy(whole[0].sink_mass))
    without = Trace([record.changed(entropy=None, lse=None) for record in whole])
    np.testing.assert_allclose(without.measure("entropy"), whole.measure("entropy"), atol=1e-5)
    merged = whole.merged("words")[0]
    np.testing.assert_allclose(to_numpy(merged.weights()).sum(-1) + to_numpy(merged.sink_mass), 1, atol=1e-5)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("need_weights", [False, True], ids=["fused", "weights"])
@pytest.mark.parametrize(
    "keys", [{"add_zero_attn": True}, {"add_bias_kv": True}, {"add_zero_attn": True, "add_bias_kv": True}], ids=str
)
def test_keys_that_torch_adds(keys: dict[str, bool], need_weights: bool, gradient: bool) -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(8, 2, batch_first=True, **keys).eval()
    x, blocked = torch.randn(2, 5, 8), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.set_grad_enabled(gradient), regard.watch(layer, see=EVERYTHING) as trace:
        layer(x, x, x, key_padding_mask=blocked, need_weights=need_weights)
    _, right = layer(x, x, x, key_padding_mask=blocked, average_attn_weights=False)
    record, text = trace[0], ~blocked
    assert record.shape == (2, 2, 5, 5)
    for sample in range(2):
        rows = text[sample]
        mine = to_numpy(record.weights())[sample][:, rows]
        np.testing.assert_allclose(mine, right[sample, :, rows, :5].detach(), atol=1e-6)
        mass = right[sample, :, rows, 5:].sum(-1).detach()
        np.testing.assert_allclose(to_numpy(record.sink_mass)[sample][:, rows], mass, atol=1e-6)
        assert not to_numpy(record.sink_mass)[sample][:, ~rows].any()
    assert_whole(
        record.changed(
            map=present(record.map)[:1],
            entropy=present(record.entropy)[:1],
            sink_mass=present(record.sink_mass)[:1],
            exact=None,
            shape=(1, 2, 5, 5),
        )
    )


def test_x_transformers() -> None:
    from x_transformers import Decoder, TransformerWrapper

    for options in (
        {"attn_head_learned_sink": True},
        {"attn_add_zero_kv": True},
        {"attn_add_zero_kv": True, "attn_flash": True},
    ):
        torch.manual_seed(0)
        layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=8, **options)
        model = TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=layers).eval()
        with torch.no_grad(), regard.watch(model, see=EVERYTHING) as trace:
            model(torch.arange(1, 7)[None])
        record = trace[0]
        assert record.shape == (1, 2, 6, 6), options
        assert_whole(record)
        assert (present(record.sink_mass) > 0).all()


def test_attention_without_sinks_has_none() -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(1, 4, 8)
    with regard.watch(layer) as trace:
        layer(x, x, x)
    assert trace[0].sink_mass is None


def test_a_figure_states_the_weight_that_went_to_no_key(tmp_path: Any) -> None:
    made = gpt_oss()
    with torch.no_grad(), regard.watch(made) as trace:
        made(torch.tensor([[5, 6, 7, 8, 9, 5]]))
    share = round(100 * float(present(trace[0].sink_mass)[0, 1].mean()))
    written = StringIO()
    trace.show(layer=0, head=1, lang="en", file=written)
    assert f"learned sink receives {share} %" in written.getvalue()
    figure = trace.plot(layer=0, head=1)
    assert any(f"learned sink receives {share} %" in text.get_text() for text in figure.findobj(Text))
    trace.html(tmp_path / "page.html")
    assert round(100 * overview_in(tmp_path / "page.html")["records"][0]["noKey"][1]) == share
