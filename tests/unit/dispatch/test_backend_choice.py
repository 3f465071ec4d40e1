"""Which backend is chosen, which refuse and why; the fast paths; autocast and torch.compile."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from narrowing import Three, three
from tolerances import assert_close
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from regard import Mask, See, attend, backends
from regard.errors import BackendError, TooLargeError, UnknownNameError
from regard.messages import use_language


def tensors(*shape: int, grad: bool = False) -> Three[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return three(torch.randn(*shape, generator=generator).requires_grad_(grad) for _ in range(3))


class Operations(TorchDispatchMode):
    """The names of the aten operations that ran, and the bytes of the largest tensor they returned."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.names.append(func.__name__)
        for made in result if isinstance(result, tuple | list) else [result]:
            if isinstance(made, torch.Tensor):
                self.largest = max(self.largest, made.untyped_storage().nbytes())
        return result


FUSED = "_scaled_dot_product_flash_attention_for_cpu.default"


@pytest.mark.parametrize(
    "call",
    [
        lambda q, k, v: attend(q, k, v),
        lambda q, k, v: attend(q, k, v, mask=Mask.causal()),
        lambda q, k, v: attend(q, k, v, mask=Mask.padding(np.ones((2, 9), int))),
        lambda q, k, v: attend(q, k, v, mask=Mask.causal() & Mask.padding(np.ones((2, 9), int))),
        lambda q, k, v: attend(q, k, v, mask=Mask.window(2, 1)),
        lambda q, k, v: attend(q[:, :, :4], k, v, mask=Mask.causal()),
        lambda q, k, v: attend(q, k[:, :2], v[:, :2]),
        lambda q, k, v: attend(q, k, v[..., :3]),
        lambda q, k, v: attend(q[..., :3], k[..., :3], v),
        lambda q, k, v: attend(q[0], k[0], v[0]),
        lambda q, k, v: attend(q[0, 0], k[0, 0], v[0, 0]),
        lambda q, k, v: attend(q, k.mT.contiguous().mT, v),
        lambda q, k, v: attend(q, k[:, :, :1].expand(-1, -1, 9, -1), v),
    ],
    ids=["plain", "causal", "padding", "both", "window", "T<S", "grouped", "Ev<E", "Ev>E", "3D", "2D", "strides", "0"],
)
def test_fused_kernel_runs(call: Callable[..., torch.Tensor]) -> None:
    with Operations() as seen:
        call(*tensors(2, 4, 9, 8))
    assert FUSED in seen.names
    assert not [name for name in seen.names if "softmax" in name or "bmm" in name]


@pytest.mark.parametrize("mask", [None, Mask.causal()], ids=["plain", "causal"])
def test_no_mask_and_causal_mask_equal_pytorch(mask: Mask | None) -> None:
    q, k, v = tensors(2, 4, 33, 16)
    ours = attend(q, k, v, mask=mask)
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=mask is not None)
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, 2**20),
        ({"mask": Mask.causal()}, 2**20),
        ({"mask": Mask.window(5, 5)}, 5 * 2**22),
        ({"see": See(map=64, entropy=True, received=True, top=4, qk=True)}, 5 * 2**22),
        ({"softcap": 5.0}, 5 * 2**22),
    ],
    ids=["plain", "causal", "window", "see", "softcap"],
)
def test_no_tensor_as_large_as_the_score_matrix_is_allocated(options: dict[str, Any], limit: int) -> None:
    """8,192 × 8,192 float32 scores are 256 MiB; our largest tensor is far smaller."""
    q, k, v = tensors(1, 1, 8192, 8)
    with Operations() as seen:
        attend(q, k, v, **options)
    assert 0 < seen.largest <= limit


def test_backends_report_what_they_can_run() -> None:
    q, k, v = tensors(1, 2, 4, 8)
    assert backends(q, k, v)["sdpa"] == "yes"
    assert backends(q, k, v).chosen == "sdpa"
    assert backends(q, k, v, see=See()).chosen == "chunked"
    assert "statistics" in backends(q, k, v, see=See())["sdpa"]
    assert backends(q, k, v, softcap=3.0).chosen == "chunked"
    assert "T × S" in backends(q, k, v, dropout=0.1)["sdpa"]
    bias = torch.zeros(4, 4, requires_grad=True)
    assert "gradient" in backends(q, k, v, bias=bias)["sdpa"]
    assert "T × S" in backends(q, k, v)["eager"]
    arrays = three(x.numpy() for x in (q, k, v))
    assert backends(*arrays).chosen == "blocked"
    assert backends(*arrays, dropout=0.1).chosen == "reference"


def test_gpu_kernels_report_why_they_cannot_run() -> None:
    q, k, v = tensors(1, 2, 4, 8)
    answers = backends(q, k, v, see=See())
    assert list(answers) == ["sdpa", "triton", "chunked", "eager"]
    assert answers["triton"] == "needs a CUDA device; the tensors are on cpu"
    with pytest.raises(BackendError, match=r"'triton' cannot .* CUDA device; .* cpu; .*'auto' would take chunked"):
        attend(q, k, v, see=See(), backend="triton")
    with use_language("zh"):
        assert backends(q, k, v)["triton"] == "需要 CUDA 设备；张量在 cpu 上"


def test_triton_is_imported_only_where_it_is_used() -> None:
    code = (
        "import sys, torch, regard\n"
        "from regard import See\n"
        "x = torch.randn(1, 2, 600, 8)\n"
        "print(regard.backends(x, x, x, see=See()))\n"
        "out, record = regard.attend(x, x, x, see=See(qk=True))\n"
        "record.weights(slice(0, 3), slice(0, 3))\n"
        "with regard.watch(torch.nn.MultiheadAttention(8, 2), see=See(fused=True)): pass\n"
        "raise SystemExit('triton' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True).returncode == 0


def test_backend_answers_in_chinese() -> None:
    with use_language("zh"):
        answers = backends(*tensors(1, 2, 4, 8), see=See())
    assert "统计量" in answers["sdpa"]
    assert answers["chunked"] == "可以"


def test_named_backend_that_cannot_run_raises_with_its_reason() -> None:
    q, k, v = tensors(1, 2, 4, 8)
    with pytest.raises(BackendError, match=r"'sdpa' cannot .* statistics.*'auto' would take chunked"):
        attend(q, k, v, see=See(), backend="sdpa")
    with pytest.raises(BackendError, match="dropout"):
        attend(q, k, v, dropout=0.5, backend="chunked")
    with pytest.raises(BackendError, match="dropout"):
        attend(q.numpy(), k.numpy(), v.numpy(), dropout=0.5, backend="blocked")


def test_unknown_backend_error_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="'flash' for torch arrays; there are: sdpa, triton, chunked, eager"):
        attend(*tensors(1, 2, 4, 8), backend="flash")
    with pytest.raises(UnknownNameError, match="blocked, reference"):
        attend(*three(x.numpy() for x in tensors(1, 2, 4, 8)), backend="sdpa")


@pytest.mark.parametrize("backend", ["eager", "reference"])
def test_too_large_weights_are_refused_before_they_are_allocated(backend: str) -> None:
    n = 4_000_000
    x: Any = torch.zeros(1).expand(n, 4) if backend == "eager" else np.broadcast_to(np.float32(0), (n, 4))
    with pytest.raises(TooLargeError, match=r"need 17\d\.\d TiB.*See\(map=256\)"):
        attend(x, x, x, backend=backend)


def test_too_large_record_or_matrix_is_refused() -> None:
    q, k, v = (torch.zeros(1).expand(1, 64, 150_000, 1) for _ in range(3))
    for see in (See(map=10**9), See(map=None, top=10**6)):
        with pytest.raises(TooLargeError, match="smaller map"):
            attend(q, k, v, see=see)
        with pytest.raises(TooLargeError, match="smaller map"):
            attend(*three(np.broadcast_to(np.float32(0), q.shape) for _ in range(3)), see=see)
    with pytest.raises(TooLargeError, match="leave out dropout"):
        attend(q, k, v, dropout=0.1)
    with pytest.raises(TooLargeError, match="rows=, cols="):
        Mask.causal().dense(10**7, 10**7)


def test_meta_tensors_give_the_output_shape() -> None:
    q, k, v = (torch.empty(2, 4, 5, 8, device="meta") for _ in range(3))
    assert attend(q, k, v, mask=Mask.causal()).shape == (2, 4, 5, 8)


def test_unsupported_second_gradients_are_refused() -> None:
    leaves = three(torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    with pytest.raises(BackendError, match="'eager' has them"):
        torch.autograd.grad(attend(*leaves, softcap=3.0).sum(), leaves[0], create_graph=True)
    assert torch.autograd.gradgradcheck(lambda q, k, v: attend(q, k, v, softcap=3.0, backend="eager"), leaves)


# --- dropout ---------------------------------------------------------------------------------------------


def test_dropout_drops_weights_and_keeps_their_mean() -> None:
    q, k = torch.zeros(1, 1, 4000, 1), torch.zeros(1, 1, 2, 1)
    v = torch.tensor([[[[2.0], [2.0]]]])
    torch.manual_seed(0)
    for backend in ("sdpa", "eager"):
        out = attend(q, k, v, dropout=0.5, backend=backend).flatten()
        assert set(out.tolist()) == {0.0, 2.0, 4.0}
        assert abs(float(out.mean()) - 2) < 0.1
    np.random.seed(0)
    of_numpy = attend(q.numpy(), k.numpy(), v.numpy(), dropout=0.5).ravel()
    assert set(of_numpy.tolist()) == {0.0, 2.0, 4.0}
    assert abs(of_numpy.mean() - 2) < 0.1


def test_record_holds_the_weights_before_dropout() -> None:
    q, k, v = tensors(1, 2, 5, 4)
    torch.manual_seed(0)
    _, record = attend(q, k, v, dropout=0.5, see=See())
    _, plain = attend(q, k, v, see=See())
    assert_close(record.map, plain.map, "weights")


# --- autocast and torch.compile --------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["sdpa", "chunked", "eager"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_acts_as_in_pytorch(backend: str, dtype: torch.dtype) -> None:
    q, k, v = tensors(1, 2, 7, 8)
    with torch.autocast("cpu", dtype=dtype):
        ours = attend(q, k, v, mask=Mask.causal(), backend=backend)
        theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert ours.dtype == theirs.dtype == dtype
    assert_close(ours, theirs)


def test_autocast_accepts_mixed_dtypes_and_keeps_float64() -> None:
    q, k, v = tensors(1, 2, 7, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert attend(q, k.bfloat16(), v).dtype == torch.bfloat16
        assert attend(q.double(), k.double(), v.double()).dtype == torch.float64


COMPILED: dict[str, Callable[..., Any]] = {
    "plain": lambda q, k, v, ids: attend(q, k, v),
    "causal": lambda q, k, v, ids: attend(q, k, v, mask=Mask.causal()),
    "causal and padding": lambda q, k, v, ids: attend(q, k, v, mask=Mask.causal() & Mask.padding(ids)),
    "window or segments": lambda q, k, v, ids: attend(q, k, v, mask=Mask.window(2, 1) | Mask.segments(ids)),
    "softcap": lambda q, k, v, ids: attend(q, k, v, mask=Mask.causal(), softcap=4.0),
    "decode": lambda q, k, v, ids: attend(q[:, :, -1:], k, v, mask=Mask.causal()),
    "grouped": lambda q, k, v, ids: attend(q, k[:, :2], v[:, :2], mask=Mask.causal()),
    "see": lambda q, k, v, ids: attend(q, k, v, mask=Mask.causal(), see=See(map=4, entropy=True))[1].map,
}


@contextmanager
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


FEW = ("causal and padding", "decode", "grouped", "see")
"""Calls that are compiled by `make test`, the others by `make test-long`."""


@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.long) for name in COMPILED]
)
def test_compiles_into_one_graph(name: str) -> None:
    call, ids = COMPILED[name], torch.tensor([[1, 1, 2, 2, 0, 0, 3], [0, 1, 1, 1, 2, 2, 2]])
    compiled, eager = tensors(2, 4, 7, 8, grad=True), tensors(2, 4, 7, 8, grad=True)
    with fresh_compiler():
        out = torch.compile(call, fullgraph=True, backend="aot_eager")(*compiled, ids)
        right = call(*eager, ids)
        assert_close(out.detach(), right.detach())
        if name == "see":
            return
        out.sum().backward()
        right.sum().backward()
    for ours, theirs in zip(compiled, eager, strict=True):
        assert_close(ours.grad, theirs.grad, "gradient")


PADDING = Mask.padding(np.array([1, 1, 1, 1, 1, 0, 0]))
TRIANGLE = np.tri(7, dtype=bool)


@pytest.mark.parametrize(
    "call",
    [
        lambda q, k, v: attend(q, k, v, mask=PADDING),
        lambda q, k, v: attend(q, k, v, mask=PADDING & Mask.causal()),
        lambda q, k, v: attend(q, k, v, mask=TRIANGLE),
    ],
    ids=["padding", "both", "array"],
)
def test_numpy_masks_can_be_compiled(call: Callable[..., torch.Tensor]) -> None:
    q, k, v = tensors(2, 4, 7, 8)
    with fresh_compiler():
        found = torch.compile(call, fullgraph=True, backend="aot_eager")(q, k, v)
    assert_close(found, call(q, k, v))


@pytest.mark.parametrize("dynamic", [None, pytest.param(True, marks=pytest.mark.long)], ids=["default", "dynamic"])
def test_compiled_call_accepts_other_lengths_and_head_counts(dynamic: bool | None) -> None:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return attend(q, k, v, mask=Mask.causal() & Mask.padding(ids))

    with fresh_compiler():
        compiled = torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=dynamic)
        for length, H, G in ((5, 4, 2), (9, 4, 2), (12, 6, 3)):
            q, k, v = tensors(2, H, length, 8)
            ids = torch.ones(2, length, dtype=torch.int64)
            ids[0, -2:] = 0
            assert_close(compiled(q, k[:, :G], v[:, :G], ids), call(q, k[:, :G], v[:, :G], ids))


def test_compiled_calls_ignore_masked_nan_and_inf() -> None:
    q, k, v = tensors(1, 2, 6, 4)
    with fresh_compiler():
        compiled = torch.compile(COMPILED["causal"], fullgraph=True, backend="aot_eager")
        clean = compiled(q, k, v, None)
        for garbage in (torch.nan, torch.inf, 1e38):
            k2, v2 = k.clone(), v.clone()
            k2[:, :, 4], v2[:, :, 4] = garbage, garbage
            changed = compiled(q, k2, v2, None)
            assert torch.equal(changed[:, :, :4], clean[:, :, :4])
            assert changed[:, :, 4:].isnan().all()


# --- threads ---------------------------------------------------------------------------------------------


def test_several_threads_attend_concurrently() -> None:
    rng = np.random.default_rng(0)
    arrays = three(rng.standard_normal((1, 6, 600, 16)).astype(np.float32) for _ in range(3))
    right = attend(*arrays, mask=Mask.causal())
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(attend(*arrays, mask=Mask.causal()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for one in found:
        assert_close(one, right)  # concurrent calls share BLAS's threads, and their number decides how sums are rounded


def test_thread_counts_of_blas_and_torch_are_restored() -> None:
    from threadpoolctl import threadpool_info

    arrays = three(np.random.default_rng(0).standard_normal((1, 6, 600, 16)) for _ in range(3))
    before = [pool["num_threads"] for pool in threadpool_info()], torch.get_num_threads()
    attend(*arrays)
    attend(*three(map(torch.from_numpy, arrays)), see=See())
    assert ([pool["num_threads"] for pool in threadpool_info()], torch.get_num_threads()) == before


def test_threads_started_later_keep_the_thread_count_of_pytorch() -> None:
    attend(*tensors(1, 4, 64, 8), see=See())
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert seen == [torch.get_num_threads()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork exists on POSIX systems only")
def test_forked_child_starts_its_own_threads() -> None:
    """Threads do not survive a fork: a pool inherited by the child would wait for them forever."""
    code = (
        "import os, numpy as np\n"
        "from regard import attend\n"
        "x = np.random.default_rng(0).standard_normal((1, 8, 600, 16))\n"
        "right = attend(x, x, x)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os._exit(0 if (attend(x, x, x) == right).all() else 1)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize(
    "options", [{}, {"see": See()}, {"see": See(map=1)}, {"softcap": 5.0}, {"mask": Mask.window(3, 0)}], ids=str
)
def test_inference_mode(options: dict[str, Any]) -> None:
    right = attend(*tensors(1, 4, 64, 8), **options)
    with torch.inference_mode():
        found = attend(*tensors(1, 4, 64, 8), **options)
    assert torch.equal(*(x[0] if isinstance(x, tuple) else x for x in (found, right)))


def test_another_sdpa_backend_gives_the_same_output() -> None:
    q, k, v = tensors(2, 4, 9, 8)
    mask = Mask.window(2, 1)
    right = attend(q, k, v, mask=mask)
    with sdpa_kernel(SDPBackend.MATH):
        assert_close(attend(q, k, v, mask=mask), right)
