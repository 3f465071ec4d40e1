"""Whatever runs without watch also runs with it: what cannot be observed is skipped, with one warning that names it.

Every kernel of `scaled_dot_product_attention`, against the formula.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from capturing import assert_unchanged, captured_in, records_of
from hypothesis import given
from hypothesis import strategies as st
from narrowing import present
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves

import regard
from regard.capture import watching
from regard.capture.operators import CapturedCall, named

IDS = torch.arange(18).reshape(3, 6) % 7
X = torch.linspace(-1, 1, 3 * 6 * 8).reshape(3, 6, 8)


class Reader(nn.Module):
    """Two heads over embeddings, or over the input; fused, or by hand."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.fused, self.num_heads = fused, 2
        self.embedding, self.qkv, self.out = nn.Embedding(20, 8), nn.Linear(8, 24), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = x if x.is_floating_point() else self.embedding(x)
        q, k, v = (y.unflatten(-1, (2, 4)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v) if self.fused else (q @ k.mT * 0.5).softmax(-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.reader = Reader(fused)

    def forward(self, x: Tensor) -> Tensor:
        return self.reader(x)


class Own(Tensor):
    """A subclass that leaves its operators to PyTorch."""


class Wrapped(Tensor):
    """A subclass that handles operators itself, as distributed and quantised tensors do."""

    inner: Tensor  # type: ignore[assignment]  # a method of Tensor, never called here

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Wrapped":
        made = Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        plain = torch.utils._pytree.tree_map_only(Wrapped, lambda x: x.inner, (args, kwargs or {}))
        return torch.utils._pytree.tree_map_only(Tensor, Wrapped, func(*plain[0], **plain[1]))


def sensitivity(model: nn.Module, weights: dict[str, Tensor], ids: Tensor) -> Tensor:
    return functional_call(model, weights, (ids[None],)).pow(2).sum()


def forward_mode(model: nn.Module) -> Tensor:
    import torch.autograd.forward_ad as forward

    with forward.dual_level():
        return forward.unpack_dual(model(forward.make_dual(X, torch.ones_like(X)))).tangent.clone()


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach() for name, weight in model.named_parameters()}


def faked(model: nn.Module) -> list[int]:
    with FakeTensorMode(allow_non_fake_inputs=True):
        return list(model(torch.empty(3, 6, 8)).shape)


def on_meta(model: nn.Module) -> list[int]:
    elsewhere = {name: weight.to("meta") for name, weight in weights_of(model).items()}
    return list(functional_call(model, elsewhere, (IDS.to("meta"),)).shape)


def inferred(model: nn.Module) -> Tensor:
    with torch.inference_mode():
        return model(X.clone())


def traced(model: nn.Module) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.trace(model, (IDS,))(IDS)


SEEN: dict[str, Callable[[nn.Module], Any]] = {
    "vmap": lambda model: vmap(lambda ids: model(ids[None])[0])(IDS),
    "vmap in chunks": lambda model: vmap(lambda x: model(x[None])[0], chunk_size=2)(X),
    "vmap of grad": lambda model: vmap(grad(lambda w, ids: sensitivity(model, w, ids)), (None, 0))(
        weights_of(model), IDS
    ),
    "grad": lambda model: grad(lambda w: sensitivity(model, w, IDS[0]))(weights_of(model)),
    "vjp": lambda model: vjp(model, X)[1](torch.ones(3, 6, 5)),
    "jacrev": lambda model: jacrev(model)(X[:1]),
    "functional_call": lambda model: functional_call(model, weights_of(model), (IDS,)),
    "make_fx": lambda model: make_fx(model)(X)(X),
    "jit.trace": traced,
    "inference": inferred,
    "subclass": lambda model: model(X.as_subclass(Own)).as_subclass(Tensor),
}
BY_HAND: dict[str, Callable[[nn.Module], Any]] = {  # PyTorch has no forward-mode derivative of its fused attention
    "jvp": lambda model: jvp(model, (X,), (torch.ones_like(X),)),
    "jacfwd": lambda model: jacfwd(model)(X[:1]),
    "hessian": lambda model: hessian(lambda x: model(x).sum())(X[:1, :2]),
    "forward mode": forward_mode,
}
UNSEEN: dict[str, Callable[[nn.Module], Any]] = {
    "fake": faked,
    "meta": on_meta,
    "export": lambda model: torch.export.export(model, (IDS,)).module()(IDS),
    "wrapper": lambda model: model(Wrapped(X)).inner,
}

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")


@pytest.fixture(params=[True, False], ids=["fused", "by hand"])
def model(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(0)
    return Model(request.param).eval()


def assert_same(found: Any, wanted: Any) -> None:
    assert len(tree_leaves(found)) == len(tree_leaves(wanted)) > 0
    for one, other in zip(tree_leaves(found), tree_leaves(wanted), strict=True):
        if isinstance(one, Tensor):
            assert_same_bits(one.detach(), other.detach())
        else:
            assert one == other


def assert_recorded(run: Callable[[nn.Module], Any], model: nn.Module) -> None:
    plain = run(model)
    with regard.watch(model) as trace:
        found = run(model)
    assert_same(found, plain)
    assert len(trace)
    for record in trace:
        torch.testing.assert_close(present(record.map).sum(-1), torch.ones(present(record.map).shape[:-1]))


@pytest.mark.parametrize("run", SEEN.values(), ids=SEEN)
def test_watched_models_run_and_are_recorded(model: nn.Module, run: Callable[[nn.Module], Any]) -> None:
    assert_recorded(run, model)


@pytest.mark.parametrize("run", BY_HAND.values(), ids=BY_HAND)
def test_forward_derivatives(run: Callable[[nn.Module], Any]) -> None:
    torch.manual_seed(0)
    assert_recorded(run, Model(fused=False).eval())


@pytest.mark.parametrize("run", UNSEEN.values(), ids=UNSEEN)
def test_tensors_without_data_are_skipped_with_one_warning(model: nn.Module, run: Callable[[nn.Module], Any]) -> None:
    plain = run(model)
    with warnings.catch_warnings(record=True) as caught_warnings, regard.watch(model) as trace:
        warnings.simplefilter("always")
        found = run(model)
    assert [str(one.message)[:49] for one in caught_warnings] == ["the attention of reader could not be observed and"]
    assert len(trace) == 0
    assert_same(found, plain)


def test_a_model_of_fake_tensors() -> None:
    mode = FakeTensorMode()
    with mode:
        model = Model(fused=False)
    x = mode.from_tensor(X)
    with pytest.warns(UserWarning, match="FakeTensor"), regard.watch(model):
        assert model(x).shape == (3, 6, 5)


def test_our_own_error_becomes_a_warning(model: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*anything: Any) -> None:
        raise ZeroDivisionError("a mistake of ours")

    plain = model(IDS)
    monkeypatch.setattr(watching, "record_of_call", fail)
    with warnings.catch_warnings(record=True) as caught_warnings, regard.watch(model) as trace:
        warnings.simplefilter("always")
        model(IDS)
        found = model(IDS)
    assert len(caught_warnings) == 1
    assert "reader" in str(caught_warnings[0].message)
    assert "ZeroDivisionError: a mistake of ours" in str(caught_warnings[0].message)
    assert len(trace) == 0
    assert_same_bits(found, plain)


NOTHING = nn.Identity()


def formula(q: Tensor, k: Tensor, visible: Tensor | None = None, scale: float | None = None) -> Tensor:
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    return scores.softmax(-1).nan_to_num(0.0)


@given(T=st.integers(1, 9), S=st.integers(1, 9), grouped=st.booleans(), causal=st.booleans(), seed=st.integers(0, 99))
def test_fused_attention_is_captured_with_its_weights(T: int, S: int, grouped: bool, causal: bool, seed: int) -> None:
    torch.manual_seed(seed)
    q, k, v = (
        torch.randn(2, 4, T, 8),
        torch.randn(2, 2 if grouped else 4, S, 8),
        torch.randn(2, 2 if grouped else 4, S, 8),
    )
    records = records_of(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped), NOTHING)
    visible = torch.ones(T, S, dtype=torch.bool).tril() if causal else None
    assert len(records) == 1
    assert_close(records[0].weights(), formula(q, k, visible), "weights")
    assert_close(records[0].map, formula(q, k, visible), "weights")


@pytest.mark.parametrize("shape", [(5, 6), (2, 1, 1, 6), (2, 1, 5, 6), (1, 4, 5, 6)], ids=str)
@pytest.mark.parametrize("boolean", [True, False])
def test_masks_of_every_shape(shape: tuple[int, ...], boolean: bool) -> None:
    torch.manual_seed(0)
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 6, 8)
    visible = torch.rand(shape) < 0.6
    mask = visible if boolean else torch.zeros(shape).masked_fill(~visible, -torch.inf)
    (record,) = records_of(lambda: F.scaled_dot_product_attention(q, k, k, attn_mask=mask), NOTHING)
    assert_close(record.weights(), formula(q, k, visible), "weights")


def test_the_scale_and_the_lse_of_the_call() -> None:
    q = torch.randn(1, 2, 5, 8)
    (record,) = records_of(lambda: F.scaled_dot_product_attention(q, q, q, scale=0.3), NOTHING)
    assert_close(record.weights(), formula(q, q, scale=0.3), "weights")
    assert_close(record.lse, (q @ q.mT * 0.3).logsumexp(-1), "statistic")


@pytest.mark.parametrize(
    ("what", "options"), [("dropout", {"dropout_p": 0.4}), ("narrow values", {}), ("three axes", {}), ("float64", {})]
)
def test_the_math_kernel_is_captured_before_dropout(what: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    q = torch.randn((3, 5, 8) if what == "three axes" else (2, 3, 5, 8))
    q = q.double() if what == "float64" else q
    v = q[..., :3] if what == "narrow values" else q
    found = captured_in(lambda: F.scaled_dot_product_attention(q, q, v, is_causal=True, **options))
    assert len(found) == 1
    (record,) = records_of(lambda: F.scaled_dot_product_attention(q, q, v, is_causal=True, **options), NOTHING)
    four = q if q.dim() == 4 else q[:, None]
    assert_close(record.weights(), formula(four, four, torch.ones(5, 5, dtype=torch.bool).tril()), "weights")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_training_is_unchanged(dtype: torch.dtype) -> None:
    project = nn.Linear(8, 24).to(dtype)
    x = torch.randn(2, 5, 8, dtype=dtype)

    def run() -> Tensor:
        q, k, v = project(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.2)

    assert len(assert_unchanged(run, project)) == 1


def test_default_arguments_are_named() -> None:
    func = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    found = named(func, (1, 2, 3), {"scale": 4})
    assert found == {
        "query": 1,
        "key": 2,
        "value": 3,
        "dropout_p": 0.0,
        "is_causal": False,
        "attn_mask": None,
        "scale": 4,
    }


def test_the_lse_of_the_kernel_is_used() -> None:
    q = torch.randn(1, 2, 5, 8)
    (found,) = captured_in(lambda: F.scaled_dot_product_attention(q, q, q))
    assert isinstance(found, CapturedCall)
    assert found.lse is not None
    assert found.q.data_ptr() == q.data_ptr()
