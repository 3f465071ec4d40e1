"""What a Record keeps: exact, independent of later changes, and refused where it would not fit in memory."""

import numpy as np
import pytest
import torch
from narrowing import present, three
from tolerances import assert_close

from regard import Mask, See, attend, reference
from regard.arrays import Array
from regard.attention_call import AttentionCall, make_call
from regard.dispatch import backend_choice, observation, torch_backends
from regard.errors import TooLargeError


def same(x: Array, kind: str) -> Array:
    return x.copy() if kind == "numpy" else torch.from_numpy(x.copy())


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_later_changes_of_inputs_do_not_change_a_record(kind: str) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (same(rng.standard_normal((1, 2, 5, 4)), kind) for _ in range(3))
    bias, mask = same(rng.standard_normal((5, 5)), kind), same(np.tri(5, dtype=bool), kind)
    _, record = attend(q, k, v, mask=mask, bias=bias, see=See(map=2, qk=True))
    before = record.weights()
    for changed in (q, k, bias):
        changed[...] = 7
    mask[...] = False
    assert_close(record.weights(), before, "weights")


def test_changing_the_lse_does_not_change_gradients() -> None:
    q, k, v = (torch.randn(1, 2, 5, 4, requires_grad=True) for _ in range(3))
    out, record = attend(q, k, v, see=See(map=2))
    present(record.lse).add_(1)
    out.sum().backward()
    again = three(x.detach().clone().requires_grad_() for x in (q, k, v))
    attend(*again).sum().backward()
    for one, other in zip((q, k, v), again, strict=True):
        assert_close(one.grad, other.grad, "gradient")


def test_weights_that_do_not_fit_are_refused() -> None:
    x = np.zeros((2_000_000, 1), np.float32)
    _, record = attend(x, x, x, mask=Mask.window(1), see=See(map=4, qk=True))
    with pytest.raises(TooLargeError, match=r"TiB"):
        record.weights()
    assert record.weights(slice(5, 7), slice(4, 7)).tolist() == [[[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]]]


def test_record_and_scratch_must_fit_in_gpu_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Free GPU memory is a stub here; the temporary memory of a backend is counted, too."""
    x = torch.zeros(1, 300, 256, 1)  # its map has 75 MiB, its LSE 0.3 MiB
    call = make_call(x, x, x, see=See())
    for module in (backend_choice, torch_backends):
        monkeypatch.setattr(module, "free_gpu_bytes", lambda one: {id(x): 100 * 2**20}.get(id(one)))
    backend_choice.require_memory_for(call)
    with pytest.raises(TooLargeError, match=r"would take 101.3 MiB, and 100.0 MiB are free"):
        backend_choice.require_memory_for(call, scratch=26 * 2**20)
    with pytest.raises(TooLargeError, match=r"need 225.0 MiB, and 100.0 MiB are free"):
        attend(x, x, x, see=See(), backend="eager")
    backend_choice.require_memory_for(make_call(x, x, x, see=See(map=128)), scratch=45 * 2**20)


def test_small_calls_do_not_query_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The query to the GPU driver takes longer than a small call."""
    monkeypatch.setattr(backend_choice, "free_gpu_bytes", lambda _: 1 / 0)
    x = torch.zeros(1, 1, 256, 1)
    backend_choice.require_memory_for(make_call(x, x, x, see=See(top=8)), scratch=2**25)


def test_scratch_memory_of_a_backend_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object, scratch: int) -> None:
        raise TooLargeError("record-too-large", need=scratch, free=0)

    q, k = torch.zeros(2, 3, 500, 64), torch.zeros(2, 3, 700, 64)
    monkeypatch.setattr(backend_choice, "require_memory_for", refuse)
    with pytest.raises(TooLargeError, match="take 0, and"):
        attend(q, k, k, see=See(map=10), backend="chunked")
    monkeypatch.setattr(torch_backends, "refusal", lambda *_, **__: None)  # as if there were a GPU
    with pytest.raises(TooLargeError, match=f"take {4 * 2 * 3 * 10 * 2 * 10}, and"):
        attend(q, k, k, see=See(map=10))
    monkeypatch.setattr(observation, "require_memory_for", refuse)
    monkeypatch.setattr(observation, "refusal", lambda *_, **__: None)
    with pytest.raises(TooLargeError, match=f"take {4 * 2 * 3 * 10 * 11 * 2}, and"):  # tiles of 64 keys, two bins each
        observation.observe_attention(AttentionCall(q, k, k, 1.0, see=See(map=10)), torch.zeros(2, 3, 500))
    with pytest.raises(TooLargeError, match=f"take {4 * 2 * 3 * 10 * 2 * 10}, and"):
        observation.observe_attention(AttentionCall(q, k, k, 1.0, see=See(map=10)))


@pytest.mark.parametrize("backend", ["blocked", "chunked", "reference", "eager"])
def test_bias_of_minus_infinity_masks(backend: str) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 2, 5, 4)) for _ in range(3))
    bias = np.where(np.tri(5, dtype=bool), 0.3, -np.inf)
    bias[3] = -np.inf
    kind = "numpy" if backend in ("blocked", "reference") else "torch"
    see = See(map=2, entropy=True, received=True)
    out, record = attend(*three(same(x, kind) for x in (q, k, v)), bias=same(bias, kind), see=see, backend=backend)
    scores = reference.attention_scores(q, k, bias=bias)
    right = reference.statistics_of(reference.softmax(scores), reference.log_sum_exp(scores), see)
    assert (out[:, :, 3] == 0).all()
    for name in ("map", "lse", "entropy", "received"):
        assert_close(getattr(record, name), getattr(right, name), "statistic")


def test_other_byte_orders_are_computed_in_full_precision() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 2, 5, 4)) for _ in range(3))
    out, record = attend(*three(x.astype(">f8") for x in (q, k, v)), see=See())
    assert_close(out.astype(np.float64), reference.scaled_dot_product_attention(q, k, v)[0])
    assert present(record.lse).dtype == np.float64


def test_overflow_is_silent_where_the_reference_is() -> None:
    x = np.full((1, 1, 3, 4), 1e38, np.float32)
    assert np.isnan(attend(x, x, x, scale=100.0)).all()
    assert np.isnan(attend(x, x, x, scale=1e300)).all()


def test_values_near_the_largest_number_do_not_overflow() -> None:
    """exp(40) times such values would overflow, so the weights are normalised first."""
    q = k = np.full((1, 1, 3, 4), 4.0, np.float32)
    v = np.full((1, 1, 3, 2), 1e30, np.float32)
    np.testing.assert_allclose(attend(q, k, v), v, rtol=1e-5)
    np.testing.assert_allclose(attend(q, k, v * 3e8, mask=Mask.causal()), v * 3e8, rtol=1e-5)


def test_fields_that_were_not_requested_are_none() -> None:
    x = np.eye(3)
    _, record = attend(x, x, x, see=See(map=None, lse=False, sink=False, qk=True))
    assert record.map is None
    assert record.lse is None
    assert record.weights().shape == (1, 1, 3, 3)
    assert repr(record) == "Record('attention', self, shape=(1, 1, 3, 3), holds: qk)"
