"""Additive masks are recognised as exactly the rules that they are, or not at all."""

import gc
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import Mask
from regard.capture.call_masks import ALL, MaskRecognizer, narrowed, recognised
from regard.capture.operators import CapturedCall

LOWEST = torch.finfo(torch.float32).min


def added(allowed: torch.Tensor, hidden: float = -torch.inf) -> torch.Tensor:
    return torch.where(allowed, 0.0, hidden)


def dense(mask: Mask, B: int, H: int, T: int, S: int) -> torch.Tensor:
    visible = mask.bind((B, H), T, S, torch.zeros(1)).block(slice(0, T), slice(0, S))
    return torch.as_tensor(visible).expand(B, H, T, S)


def captured(bias: torch.Tensor, B: int = 2, H: int = 3, T: int = 5, S: int = 5, **others: Any) -> CapturedCall:
    q, k = torch.randn(B, H, T, 4), torch.randn(B, H, S, 4)
    return CapturedCall(q, k, k, scale=0.5, bias=bias, **others)


LENGTHS = st.integers(1, 9)
ENDS = st.none() | st.integers(0, 6)


@given(
    T=LENGTHS,
    S=LENGTHS,
    left=ENDS,
    right=ENDS,
    padding=st.none() | st.tuples(st.integers(0, 4), st.integers(0, 4)),
    heads=st.sampled_from((1, 3)),
    kind=st.sampled_from(("float", "bool", "expanded")),
)
def test_bands_and_kept_keys_are_recognised(
    T: int, S: int, left: int | None, right: int | None, padding: tuple[int, int] | None, heads: int, kind: str
) -> None:
    mask = Mask.window(left, right)
    if padding is not None:
        keep = torch.ones(2, S, dtype=torch.bool)
        keep[0, : padding[0]] = False
        keep[1, S - min(S, padding[1]) :] = False
        mask = mask & Mask.from_keep(keep)
    allowed = dense(mask, 2, heads, T, S)
    given = allowed if kind == "bool" else added(allowed)
    given = added(allowed[:, :1]).expand(2, heads, T, S) if kind == "expanded" else given
    found = recognised(given, T, S)
    assert found is not None
    assert torch.equal(dense(found, 2, heads, T, S), allowed)


@given(seed=st.integers(0, 2**20), T=LENGTHS, S=LENGTHS, share=st.sampled_from((0.1, 0.5, 0.9)))
def test_random_masks_are_never_recognised_wrongly(seed: int, T: int, S: int, share: float) -> None:
    allowed = torch.rand(2, 2, T, S, generator=torch.Generator().manual_seed(seed)) < share
    found = recognised(added(allowed), T, S)
    if found is not None:
        assert torch.equal(dense(found, 2, 2, T, S), allowed)


@pytest.mark.parametrize(
    ("mask", "name"),
    [
        (Mask.causal(), "Mask.causal()"),
        (Mask.window(2, 0), "Mask.window(2, 0)"),
        (Mask.window(1, 3), "Mask.window(1, 3)"),
        (
            Mask.causal() & Mask.from_keep(torch.tensor([[0, 1, 1, 1, 1, 1, 1]])),
            "Mask.causal() & Mask.from_keep([1×7])",
        ),
    ],
    ids=str,
)
def test_recognised_masks_print_as_their_constructors(mask: Mask, name: str) -> None:
    for T in (7, 4):
        found = recognised(added(dense(mask, 1, 1, T, 7)), T, 7)
        assert found is not None
        assert found.name == name


def test_a_cache_with_unused_positions_counts_from_its_first_key() -> None:
    allowed = torch.ones(3, 9).tril(2).bool()[None, None]  # three queries at 2, 3 and 4 of a cache of nine
    found = recognised(added(allowed), 3, 9)
    assert found is not None
    assert torch.equal(dense(found, 1, 1, 3, 9), allowed)


def test_a_mask_without_masked_keys_is_dropped() -> None:
    assert recognised(torch.zeros(1, 1, 4, 6), 4, 6) is ALL
    with_mask = MaskRecognizer().with_mask(captured(torch.zeros(2, 1, 5, 5)))
    assert with_mask.bias is None
    assert with_mask.mask is None


@pytest.mark.parametrize("value", [0.5, -1e4, torch.inf, torch.nan])
def test_biases_that_are_not_masks_stay(value: float) -> None:
    bias = added(torch.ones(5, 5).tril().bool())[None, None]
    bias[0, 0, 2, 1] = value
    assert recognised(bias, 5, 5) is None
    assert MaskRecognizer().with_mask(captured(bias)).bias is not None


def test_the_lowest_number_masks_unless_it_fills_a_row() -> None:
    causal = torch.ones(5, 5).tril().bool()[None, None]
    assert recognised(added(causal, LOWEST), 5, 5) is not None
    causal[..., 0] = False  # the first row has equal scores, and sees everything
    assert recognised(added(causal, LOWEST), 5, 5) is None
    assert recognised(added(causal), 5, 5) is not None


def test_a_recognised_mask_is_combined_with_the_known_mask() -> None:
    keep = torch.tensor([[1, 1, 0, 1, 1]]).bool()
    with_mask = MaskRecognizer().with_mask(captured(added(keep)[:, None, None], mask=Mask.causal(align="first")))
    assert with_mask.bias is None
    assert with_mask.mask is not None
    assert torch.equal(dense(with_mask.mask, 1, 1, 5, 5)[0, 0], torch.ones(5, 5).tril().bool() & keep)


def test_unrecognised_booleans_stay_a_boolean_mask() -> None:
    allowed = torch.eye(5).bool() | torch.eye(5).bool().flip(0)
    with_mask = MaskRecognizer().with_mask(captured(allowed[None, None]))
    assert with_mask.bias is None
    assert with_mask.mask is not None
    assert torch.equal(dense(with_mask.mask, 1, 1, 5, 5)[0, 0], allowed)


def test_masks_that_are_kept_become_booleans() -> None:
    allowed = torch.eye(5).bool() | torch.eye(5).bool().flip(0)
    bias = added(allowed)[None, None]
    assert MaskRecognizer().with_mask(captured(bias)).bias is not None
    with_mask = MaskRecognizer(keep=True).with_mask(captured(bias))
    assert with_mask.bias is None
    assert with_mask.mask is not None
    assert torch.equal(dense(with_mask.mask, 1, 1, 5, 5)[0, 0], allowed)
    assert MaskRecognizer(keep=True).with_mask(captured(bias + 0.5)).bias is not None


def test_a_repeated_mask_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    monkeypatch.setattr("regard.capture.call_masks.recognised", lambda added, T, S: reads.append(1))
    lowering, bias = MaskRecognizer(), torch.randn(1, 1, 5, 5)
    for _ in range(3):
        lowering.with_mask(captured(bias))
    assert len(reads) == 1
    bias += 1  # the model overwrote it
    lowering.with_mask(captured(bias))
    assert len(reads) == 2
    del bias
    gc.collect()
    lowering.with_mask(captured(torch.randn(1, 1, 5, 5)))
    assert len(reads) == 3


def test_an_inference_mode_mask_is_read_every_time() -> None:
    """Its changes are not counted, and reading its version raises."""
    with torch.inference_mode():
        lowering, bias = MaskRecognizer(), torch.zeros(1, 1, 5, 5)
        assert lowering.with_mask(captured(bias)).mask is None
        bias[..., 3:] = -torch.inf
        assert lowering.with_mask(captured(bias)).mask is not None


def test_broadcast_axes_are_not_kept() -> None:
    bias = torch.randn(1, 2, 4, 1).expand(3, 2, 4, 6)
    assert narrowed(bias).shape == (1, 2, 4, 1)
    assert narrowed(torch.randn(4, 6)).shape == (1, 1, 4, 6)


def test_recognition_allocates_no_matrix() -> None:
    n = 4096
    bias = added(torch.ones(n, n).tril().bool())[None, None]
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        found = recognised(bias, n, n)
    assert found is not None
    assert found.name == "Mask.causal()"
    assert max(event.cpu_memory_usage for event in profile.events()) < n * n / 2
