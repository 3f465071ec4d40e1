"""Calls of the package flash_attn, against the formula: the package itself needs a GPU."""

from typing import Any

import torch
from tolerances import assert_close
from torch import Tensor, nn

from regard import See
from regard.capture.operators import CapturedCall, read_flash, read_packed_flash
from regard.capture.recording import record_of_call

OPTIONS: dict[str, Any] = {
    "softmax_scale": 0.4,
    "causal": False,
    "window_size_left": -1,
    "window_size_right": -1,
    "softcap": 0.0,
    "alibi_slopes": None,
}
Q, K = torch.randn(2, 5, 4, 8), torch.randn(2, 7, 2, 8)  # B T H E


def weights_of(captured: CapturedCall) -> Tensor:
    found: Tensor = record_of_call(captured, nn.Identity(), See(map=None, qk=True)).weights()
    return found


def formula(q: Tensor, k: Tensor, low: int | None = None, high: int | None = None, cap: float | None = None) -> Tensor:
    """q B T H E, k B S G E; a query sees keys from `low` to `high` around its own, the last at the last."""
    q, k = q.transpose(1, 2), k.transpose(1, 2).repeat_interleave(2, 1)
    scores = q @ k.mT * 0.4
    scores = scores if cap is None else cap * torch.tanh(scores / cap)
    T, S = scores.shape[-2:]
    apart = torch.arange(S) - (torch.arange(T)[:, None] + S - T)
    hidden = (apart < low) if low is not None else torch.zeros(T, S, dtype=torch.bool)
    hidden = hidden | (apart > high) if high is not None else hidden
    return scores.masked_fill(hidden, -torch.inf).softmax(-1)


def flash(**options: Any) -> Tensor:
    lse = torch.zeros(2, 4, 5)  # set below; the LSE of the kernel is used as it is
    given = OPTIONS | {"q": Q, "k": K, "v": K} | options
    captured = read_flash(given, (given["q"], lse, None, None))
    assert captured.lse is lse
    return weights_of(
        CapturedCall(
            captured.q, captured.k, captured.v, captured.scale, captured.mask, captured.bias, None, captured.softcap
        )
    )


def test_causal_and_windows_count_from_the_last_key() -> None:
    assert_close(flash(), formula(Q, K), "weights")
    assert_close(flash(causal=True), formula(Q, K, high=0), "weights")
    assert_close(flash(window_size_left=2, window_size_right=1), formula(Q, K, -2, 1), "weights")
    assert_close(flash(causal=True, window_size_left=2), formula(Q, K, -2, 0), "weights")


def test_softcap_and_slopes() -> None:
    assert_close(flash(softcap=1.5), formula(Q, K, cap=1.5), "weights")
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0])
    apart = (torch.arange(5)[:, None] + 2 - torch.arange(7)).abs()
    expected = (formula(Q, K).log() - slopes[:, None, None] * apart).softmax(-1)
    assert_close(flash(alibi_slopes=slopes), expected, "weights")


def test_packed_texts_are_unpacked() -> None:
    queries, keys = [3, 5], [4, 7]
    given = OPTIONS | {
        "q": torch.cat([Q[0, :3], Q[1, :5]]),
        "k": torch.cat([K[0, :4], K[1, :7]]),
        "v": torch.cat([K[0, :4], K[1, :7]]),
        "cu_seqlens_q": torch.tensor([0, 3, 8], dtype=torch.int32),
        "cu_seqlens_k": torch.tensor([0, 4, 11], dtype=torch.int32),
        "causal": True,
    }
    found = weights_of(read_packed_flash(given, None))
    assert found.shape == (2, 4, 5, 7)
    for b in range(2):
        T, S = queries[b], keys[b]
        expected = formula(Q[b : b + 1, :T], K[b : b + 1, :S], high=0)[0]
        assert_close(found[b, :, 5 - T :, 7 - S :], expected, "weights")
