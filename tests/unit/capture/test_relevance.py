"""`Trace.relevance`: max(0, A ⊙ dA), its map and its rollout, against brute force; and invalid input."""

import pytest
import torch
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

import regard
from regard import See
from regard.attention_call import WeightsFromQK
from regard.capture.relevance import RecordGradients
from regard.config import TransformerConfig
from regard.errors import ArgumentError, NotKeptError
from regard.models import Transformer
from regard.trace import Trace
from regard.trace.file import trace_bytes, trace_from_bytes

KEPT = See(qk=True)


@pytest.fixture(scope="module")
def model() -> Transformer:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = TransformerConfig.gpt2(vocab_size=11, d_model=16, n_heads=2, d_ff=32, n_layers=3, max_len=512)
        model = Transformer(config).eval()
        for weight in model.parameters():
            nn.init.normal_(weight, std=0.3)
        return model


def watched(model: Transformer, length: int, see: See = KEPT) -> tuple[Trace, Tensor]:
    """A trace of random ids, and the largest logit of the last position."""
    ids = torch.randint(0, 11, (2, length), generator=torch.Generator().manual_seed(1))
    with regard.watch(model, see=see) as trace:
        logits = model(ids)
    return trace, logits[:, -1].max(-1).values.sum()


class Eager(nn.Module):
    """Two layers of attention that keep their weights, so that autograd can differentiate by them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 24) for _ in range(2))
        self.kept: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.kept.clear()
        for layer in self.layers:
            q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in layer(x).chunk(3, -1))
            hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
            weights = (q @ k.mT / 2).masked_fill(hidden, -torch.inf).softmax(-1)
            self.kept.append(weights)
            x = x + (weights @ v).transpose(1, 2).flatten(2)
        return x


def brute_force(model: Eager, loss: Tensor) -> list[Tensor]:
    gradients = torch.autograd.grad(loss, model.kept, retain_graph=True)
    return [(one * d).clamp_min(0).detach() for one, d in zip(model.kept, gradients, strict=True)]


@pytest.fixture
def eager() -> tuple[Eager, Trace, Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, x = Eager(), torch.randn(2, 7, 8)
    with regard.watch(model, see=KEPT) as trace:
        loss = model(x)[:, -1].square().sum()
    return model, trace, loss


def test_a_softmax_of_the_model_itself(eager: tuple[Eager, Trace, Tensor]) -> None:
    model, trace, loss = eager
    for record, wanted in zip(trace.relevance(loss), brute_force(model, loss), strict=True):
        assert_close(record.map, wanted, "output")
        assert record.rest == "relevance"


def test_rollout_multiplies_the_layers(eager: tuple[Eager, Trace, Tensor]) -> None:
    model, trace, loss = eager
    first, second = (one.mean(1) for one in brute_force(model, loss))
    own = torch.eye(7)
    wanted = (own + second) @ (own + first) - own
    rolled = trace.relevance(loss).rollout()[0]
    assert_close(torch.from_numpy(rolled.weights())[:, 0], wanted, "output")
    assert_close(
        torch.from_numpy(trace.relevance(loss).rollout(slice(5, 7))[0].weights())[:, 0], wanted[:, 5:], "output"
    )


def test_the_map_of_a_long_text_pools_the_weights(model: Transformer) -> None:
    trace, loss = watched(model, 333)
    record = trace.relevance(loss, map=50)[1]
    weights = record.weights()
    padded = torch.nn.functional.pad(weights, (0, 350 - 333, 0, 350 - 333))
    rows = torch.tensor([7] * 47 + [4, 1, 1])  # 333 = 47 · 7 + 4; two bins are empty
    wanted = padded.unflatten(-1, (50, 7)).sum(-1).unflatten(-2, (50, 7)).sum(-2) / rows[:, None]
    assert record.map is not None
    assert tuple(record.map.shape) == (2, 2, 48, 48)
    assert_close(record.map, wanted[..., :48, :48], "output")
    assert_close(record.weights(rows=slice(300, 333), cols=slice(3, 9), head=1), weights[:, 1, 300:, 3:9], "output")


def test_the_backward_pass_changes_nothing(model: Transformer) -> None:
    trace, loss = watched(model, 9)
    first = trace.relevance(loss)
    assert all(weight.grad is None for weight in model.parameters())
    assert_same_bits(trace.relevance(loss)[0].map, first[0].map)  # the graph is kept
    loss.backward()
    assert all(weight.grad is not None for weight in model.parameters())
    model.zero_grad(set_to_none=True)


def test_relevance_is_drawn_and_saved(model: Transformer, tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    trace, loss = watched(model, 9)
    relevance = trace.relevance(loss)
    relevance.show(0, head=0, lang="en")
    relevance.show(0, head=0, lang="zh")
    assert "█" in capsys.readouterr().out
    relevance.save(f"{tmp_path}/r.safetensors", qk=True)
    read = regard.read_trace(f"{tmp_path}/r.safetensors")
    assert read[0].rest == "relevance"
    assert_close(torch.from_numpy(read[0].weights()), relevance[0].weights(), "statistic")
    relevance.html(f"{tmp_path}/r.html")


def test_relevance_of_a_checkpointed_layer() -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)

    def run(x: Tensor) -> Tensor:
        out: Tensor = layer(x, x, x, need_weights=False)[0]
        return out

    with regard.watch(layer, see=KEPT) as trace:
        wanted = trace.relevance(run(x).square().sum())
    with regard.watch(layer, see=KEPT) as trace:
        out = torch.utils.checkpoint.checkpoint(run, x, use_reentrant=False)
    assert_same_bits(trace.relevance(out.square().sum())[0].map, wanted[0].map)


def test_invalid_input(model: Transformer) -> None:
    trace, loss = watched(model, 5)
    with pytest.raises(ArgumentError, match="one number"):
        trace.relevance(loss.expand(2))
    with pytest.raises(ArgumentError, match="requires_grad=False"):
        trace.relevance(loss.detach())
    with pytest.raises(ArgumentError, match="as a tensor"):
        trace.relevance(3.0)
    with pytest.raises(ArgumentError, match="holds no records"):
        Trace().relevance(loss)
    plain, its_loss = watched(model, 5, See())
    with pytest.raises(NotKeptError, match=r"See\(qk=True\)"):
        plain.relevance(its_loss)
    for elsewhere in (Trace(list(trace)), trace_from_bytes(trace_bytes(trace), "a file")):
        with pytest.raises(ArgumentError, match="read from a file or made of records"):
            elsewhere.relevance(loss)
    assert len(trace[:1].relevance(loss)) == 1
    loss.backward()
    with pytest.raises(ArgumentError, match="retain_graph=True"):
        trace.relevance(loss)
    trace, loss = watched(model, 5)
    other = watched(model, 6)[1]
    with pytest.raises(ArgumentError, match="3 of 3 records"):
        trace.relevance(other)


def test_dropout_is_refused(model: Transformer) -> None:
    trace, _ = watched(model, 5)
    exact = trace[0].exact
    assert isinstance(exact, WeightsFromQK)
    given = {"query": exact.q, "key": exact.k, "value": exact.k, "grad_out": exact.q, "dropout_p": 0.1}
    with pytest.raises(ArgumentError, match=r"model\.eval"):
        RecordGradients(list(trace)).add_fused(given)
