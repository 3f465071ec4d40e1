"""attend on a CUDA device: the same results, records and edge cases as on the CPU. Run by `make test-gpu`."""

from typing import Any

import numpy as np
import pytest
import torch
from narrowing import Three, present, three

from regard import Mask, See, attend, backends, reference

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

IDS = np.array([[1, 1, 2, 2, 0, 0, 3, 3, 3, 0, 1], [0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 3]])
MASKS: dict[str, Any] = {
    "none": None,
    "causal": Mask.causal(),
    "padding": Mask.padding(IDS),
    "causal and padding": Mask.causal() & Mask.padding(IDS),
    "window": Mask.window(3, 1),
    "segments": Mask.segments(IDS),
    "prefix": Mask.causal() | Mask.prefix(np.array([2, 5])),
    "array": np.random.default_rng(0).random((2, 4, 11, 11)) < 0.5,
}
CLOSE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def arrays(T: int = 11, S: int = 11, G: int = 2, Ev: int = 16) -> Three[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = ((2, 4, T, 16), (2, G, S, 16), (2, G, S, Ev))
    return three(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


def on_device(xs: Three[np.ndarray], dtype: torch.dtype = torch.float32) -> Three[torch.Tensor]:
    return three(torch.from_numpy(x).to("cuda", dtype) for x in xs)


@pytest.mark.parametrize("backend", ["sdpa", "chunked", "eager"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", CLOSE, ids=str)
def test_equals_the_reference(backend: str, mask: str, dtype: torch.dtype) -> None:
    xs = arrays()
    q, k, v = on_device(xs, dtype)
    rounded = three(x.double().cpu().numpy() for x in (q, k, v))
    right, _ = reference.scaled_dot_product_attention(*rounded, mask=MASKS[mask])
    out = attend(q, k, v, mask=MASKS[mask], backend=backend)
    assert out.device.type == "cuda"
    assert out.dtype == dtype
    np.testing.assert_allclose(out.double().cpu().numpy(), right, atol=CLOSE[dtype], rtol=CLOSE[dtype])


@pytest.mark.parametrize(("T", "S"), [(1, 11), (4, 11), (11, 4)])
@pytest.mark.parametrize("backend", ["sdpa", "chunked", "eager"])
def test_causal_is_aligned_to_the_last_key(backend: str, T: int, S: int) -> None:
    xs = arrays(T, S, Ev=8)
    right, _ = reference.scaled_dot_product_attention(*xs, mask=Mask.causal())
    out = attend(*on_device(xs), mask=Mask.causal(), backend=backend)
    np.testing.assert_allclose(out.cpu().numpy(), right, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("mask", MASKS)
def test_records_equal_those_of_the_cpu(mask: str) -> None:
    xs, see = arrays(), See(map=4, entropy=True, received=True, top=3, qk=True)
    _, on_gpu = attend(*on_device(xs), mask=MASKS[mask], see=see)
    _, on_cpu = attend(*xs, mask=MASKS[mask], see=see)
    for name in ("map", "lse", "entropy", "received"):
        np.testing.assert_allclose(
            getattr(on_gpu, name).cpu().numpy(), getattr(on_cpu, name), atol=2e-5, rtol=2e-5, err_msg=name
        )
    np.testing.assert_allclose(present(on_gpu.top).weights.cpu().numpy(), present(on_cpu.top).weights, atol=2e-5)
    np.testing.assert_allclose(on_gpu.weights().cpu().numpy(), on_cpu.weights(), atol=2e-5)


@pytest.mark.parametrize("backend", ["sdpa", "chunked", "eager"])
@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e38])
def test_masked_garbage_changes_nothing(backend: str, garbage: float) -> None:
    q, k, v = on_device(arrays())
    mask = Mask.causal() & Mask.padding(IDS)
    clean = attend(q, k, v, mask=mask, backend=backend)
    k2, v2 = k.clone(), v.clone()
    k2[0, :, 9], v2[0, :, 9] = garbage, garbage  # padding of the first sample
    assert torch.equal(attend(q, k2, v2, mask=mask, backend=backend), clean)


@pytest.mark.parametrize("backend", ["sdpa", "chunked", "eager"])
def test_gradients_equal_the_reference(backend: str) -> None:
    xs = arrays()
    leaves = three(x.requires_grad_() for x in on_device(xs))
    mask = Mask.causal() & Mask.padding(IDS)
    out = attend(*leaves, mask=mask, backend=backend)
    upstream = np.random.default_rng(1).standard_normal(out.shape).astype(np.float32)
    out.backward(torch.from_numpy(upstream).cuda())
    right = reference.scaled_dot_product_attention_backward(upstream, *xs, mask=mask)
    for leaf, expected in zip(leaves, (right.q, right.k, right.v), strict=True):
        np.testing.assert_allclose(present(leaf.grad).cpu().numpy(), expected, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("dtype", CLOSE, ids=str)
@pytest.mark.parametrize("backend", ["sdpa", "chunked", "eager"])
def test_fully_masked_queries_have_zero_gradients(backend: str, dtype: torch.dtype) -> None:
    """cuDNN gives such rows the mean of the values; ours are zero, and so are their gradients."""
    leaves = three(x.requires_grad_() for x in on_device(arrays(), dtype))
    out = attend(*leaves, mask=Mask.causal() & Mask.padding(IDS), backend=backend)
    out.float().sum().backward()
    assert (out[1, :, :2] == 0).all()
    assert (present(leaves[0].grad)[1, :, :2] == 0).all()
    for leaf in leaves:
        assert present(leaf.grad).isfinite().all()


def test_backends_depend_on_the_device() -> None:
    q, k, v = on_device(arrays())
    assert backends(q, k, v).chosen == "sdpa"
    assert backends(q, k, v, see=See()).chosen == "triton"
