"""`edit(mean=)` and `edit(resample=)` against the same change by hand, on fused and on explicit attention."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from architectures import ARCHITECTURES
from narrowing import present
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

import regard
from regard import See, edit, effect
from regard.errors import ArgumentError, NotKeptError, ShapeError, UnknownNameError
from regard.trace import Trace
from small_models import ROADS, D, H, Model, inputs

KEPT = See(outputs=True)
NAME = "layers.1.attn"


@pytest.fixture(autouse=True)
def _seed() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.fixture(params=ROADS)
def model(request: pytest.FixtureRequest) -> Model:
    return Model(request.param).eval()


def run(model: Model, x: Tensor) -> tuple[Trace, Tensor]:
    with torch.no_grad(), regard.watch(model, see=KEPT) as trace:
        out = model(x)
    return trace, out


def by_hand(model: Model, x: Tensor, outputs: Tensor) -> Tensor:
    """The output of the model if the heads of its second layer had these outputs, B H T Ev."""
    with torch.no_grad():
        x = x + model.attention(0)(x)
        return x + model.attention(1).out(outputs.transpose(1, 2).flatten(2))


def test_outputs_are_weights_times_values(model: Model) -> None:
    x = inputs()
    trace, out = run(model, x)
    outputs = present(trace[NAME].outputs)
    assert outputs.shape == (2, H, 7, D // H)
    assert_close(by_hand(model, x, outputs), out)
    with torch.no_grad(), regard.watch(model, see=See(qk=True, v=True)) as exact:
        model(x)
    assert exact[NAME].outputs is None
    assert_close(exact[NAME].with_outputs().outputs, outputs)


def test_a_head_becomes_its_mean(model: Model) -> None:
    x = inputs()
    outputs = present(run(model, x)[0][NAME].outputs).clone()
    outputs[:, 2] = outputs[:, 2].mean(1, keepdim=True)
    with torch.no_grad(), edit(model, mean={NAME: [2]}):
        found = model(x)
    assert_close(found, by_hand(model, x, outputs))


def test_heads_of_another_run(model: Model) -> None:
    x, other = inputs(), inputs()
    outputs, theirs = present(run(model, x)[0][NAME].outputs).clone(), run(model, other)[0][NAME]
    outputs[:, [0, 3]] = present(theirs.outputs)[:, [0, 3]]
    with torch.no_grad(), edit(model, resample={NAME: (theirs, [0, 3])}):
        found = model(x)
    assert_close(found, by_hand(model, x, outputs))
    with torch.no_grad(), edit(model, resample={NAME: theirs}):
        assert_close(model(x), by_hand(model, x, present(theirs.outputs)))


def test_all_of_another_run(model: Model) -> None:
    """With every head's output, or every pattern, of its own run, a model computes what it computed."""
    x = inputs()
    trace, out = run(model, x)
    with torch.no_grad(), edit(model, resample=trace):
        assert_close(model(x), out)
    with torch.no_grad(), edit(model, freeze=trace):
        assert_close(model(x), out)


def test_what_is_not_named_is_unchanged(model: Model) -> None:
    x, theirs = inputs(), run(model, inputs())[0]
    seen: list[Tensor] = []
    handle = model.attention(0).register_forward_hook(lambda module, args, out: seen.append(out))
    with torch.no_grad():
        model(x)
        with edit(model, resample={NAME: theirs[NAME]}):
            model(x)
    handle.remove()
    assert_same_bits(seen[0], seen[1])


def test_gradients_flow_to_the_other_heads(model: Model) -> None:
    x, theirs = inputs(), run(model, inputs())[0][NAME]
    with edit(model, resample={NAME: (theirs, [1])}):
        model(x).sum().backward()
    qkv = model.attention(1).qkv.weight.grad
    assert qkv is not None
    by_head = qkv[2 * D :].unflatten(0, (H, -1)).abs().amax((1, 2))
    assert by_head[1] == 0
    assert (by_head[[0, 2, 3]] > 0).all()


def test_invalid_input(model: Model) -> None:
    x = inputs()
    trace, _ = run(model, x)
    with torch.no_grad(), regard.watch(model) as plain:
        model(x)
    with pytest.raises(NotKeptError, match=r"See\(outputs=True\)"):
        edit(model, resample={NAME: plain[NAME]})
    with pytest.raises(ArgumentError, match="resample needs a Record"):
        edit(model, resample={NAME: 3})
    with pytest.raises(ArgumentError, match="heads are whole numbers"):
        edit(model, mean={NAME: [-1]})
    with pytest.raises(ShapeError, match="same length"), edit(model, resample={NAME: trace[NAME]}):
        model(inputs(5))
    with pytest.raises(ArgumentError, match="mean, resample"):
        edit(model, replace={NAME: [0]})


def test_a_mean_over_several_calls_leaves_padding_out() -> None:
    layer = nn.MultiheadAttention(D, H, batch_first=True).eval()
    long, short = torch.randn(2, 7, D), torch.randn(1, 5, D)
    hidden = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])
    with torch.no_grad(), regard.watch(layer, see=KEPT) as trace:
        layer(long, long, long, key_padding_mask=hidden, need_weights=False)
        layer(short, short, short, need_weights=False)
    parts = [present(record.outputs) for record in trace]
    every = torch.cat([parts[0][0], parts[0][1, :, :4], parts[1][0]], 1)  # H queries Ev
    with torch.no_grad(), edit(layer, mean={"attention": trace}):
        found, _ = layer(short, short, short, need_weights=False)
        wanted = layer.out_proj(every.mean(1).flatten())
        assert_close(found, wanted.expand(found.shape))


def test_invalid_means(model: Model) -> None:
    x = inputs()
    trace, _ = run(model, x)
    with pytest.raises(UnknownNameError, match=r"no record of that module; it has layers\.1\.attn"):
        edit(model, mean={"layers.0.attn": (trace[1:], [0])})
    with pytest.raises(ShapeError, match="H Ev"):
        edit(model, mean={NAME: torch.zeros(3)})
    with (
        pytest.raises(ShapeError, match=r"mean has H Ev = \(4, 3\), but .* have \(4, 4\)"),
        edit(model, mean={NAME: torch.zeros(H, 3)}),
    ):
        model(x)


def test_the_mean_over_one_query_is_refused() -> None:
    """A step of a generation has one query: its mean is itself, so the edit would do nothing."""
    llama: Any = next(one for one in ARCHITECTURES if one.name == "LlamaModel").build().eval()
    ids = torch.tensor([[3, 4, 5, 6]])
    with torch.no_grad():
        past = llama(ids[:, :3], use_cache=True).past_key_values
        wanted = r"layers.0.self_attn.*one query and 4 keys.*mean=\{'layers.0.self_attn': \(trace, heads\)\}"
        with pytest.raises(ArgumentError, match=wanted), edit(llama, mean={"layers.0.self_attn": [0]}):
            llama(ids[:, 3:], past_key_values=past)


def test_a_product_that_is_not_found() -> None:
    class Summed(Model):
        def forward(self, x: Tensor) -> Tensor:
            weights = (x @ x.mT).softmax(-1)
            return (weights[..., None] * x[:, None]).sum(2)

    model, x = Summed(), torch.randn(2, 7, D)
    record = run(Model("sdpa"), x)[0][NAME]
    with pytest.raises(ArgumentError, match="attn_implementation='sdpa'"), edit(model, resample={"": (record, [0])}):
        model(x)


def test_effect_takes_them(model: Model) -> None:
    x, theirs = inputs(), run(model, inputs())[0][NAME]
    assert float(effect(model, x, resample={NAME: theirs}).kl.sum()) > 0
    assert float(effect(model, x, mean={NAME: [0]}).kl.sum()) > 0


@pytest.mark.parametrize("name", ["GPT2Model", "LlamaModel", "BertModel", "T5Model", "BartModel"])
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_hugging_face_models_keep_their_own_outputs(name: str, implementation: str) -> None:
    architecture = next(one for one in ARCHITECTURES if one.name == name)
    model = architecture.build().eval()
    if implementation == "eager" or architecture.fused:
        model.set_attn_implementation(implementation)
    given = architecture.inputs()
    given.pop("attention_mask", None)
    given = {key: ids.clamp_min(3) for key, ids in given.items()}  # without padding, whose queries have no weights
    with torch.no_grad(), regard.watch(model, see=KEPT) as trace:
        wanted = model(**given).last_hidden_state
    with torch.no_grad(), edit(model, resample=trace):
        assert_close(model(**given).last_hidden_state, wanted)
    last = trace[-1]
    with torch.no_grad(), edit(model, mean={last.name: [0]}):
        assert not torch.equal(model(**given).last_hidden_state, wanted)


def test_a_path_is_cut_for_one_head_alone(model: Model) -> None:
    x = inputs()
    head, reader = 1, 2
    trace, out = run(model, x)
    silent = present(trace["layers.0.attn"].outputs).clone()
    silent[:, head] = 0
    with torch.no_grad():
        between = x + model.attention(0).out(silent.transpose(1, 2).flatten(2))  # the residual stream without the head
        with regard.watch(model, see=KEPT) as changed:
            model.attention(1)(between)
    outputs = present(trace[NAME].outputs).clone()
    outputs[:, reader] = present(changed[0].outputs)[:, reader]
    wanted = by_hand(model, x, outputs)
    moved = effect(model, x, path=(("layers.0.attn", head), (NAME, reader)))
    assert_close(moved.before.float(), out[:, -1].log_softmax(-1))
    assert_close(moved.after.float(), wanted[:, -1].log_softmax(-1))


def test_invalid_paths(model: Model) -> None:
    x = inputs()
    with pytest.raises(ArgumentError, match="pair of heads"):
        effect(model, x, path=("layers.0.attn", 3))
    with pytest.raises(ArgumentError, match="earlier attention"):
        effect(model, x, path=((NAME, 0), ("layers.0.attn", 1)))
    with pytest.raises(UnknownNameError, match="7"):
        effect(model, x, path=((0, 0), (7, 1)))


def test_the_ends_of_a_path_may_be_numbers_of_layers(model: Model) -> None:
    x = inputs()
    by_name, by_number = (
        effect(model, x, path=((one, 1), (other, 2))) for one, other in (("layers.0.attn", NAME), (0, 1))
    )
    assert_close(by_number.after, by_name.after)
    assert float(by_name.kl.max()) > 0
