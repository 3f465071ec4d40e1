"""benchmarks/gpu_attention and its contenders, as far as possible without a GPU: they compute the right results."""

import sys
from typing import Any

import pytest
import torch
from tolerances import assert_close

from benchmarks import gpu_attention
from benchmarks.attention_contenders import OURS, contenders
from benchmarks.attention_settings import JUDGED, TOP, UNEVEN, Setting
from benchmarks.attention_table import Found
from benchmarks.measure import Measured
from regard.functional.attention import attention_scores, attention_weights
from regard.functional.statistics import top_keys
from regard.masks import Mask


@pytest.mark.parametrize("causal", [False, True])
def test_second_passes_compute_the_right_statistics(causal: bool, device: str) -> None:
    setting = Setting(E=16, causal=causal, n=40, H=2)
    found: dict[str, Any] = contenders(setting, torch.device(device))
    assert set(OURS) <= found.keys()
    q, k, _ = setting.tensors(torch.device(device))
    mask = Mask.causal() if causal else None
    weights = attention_weights(attention_scores(q.cpu().double(), k.cpu().double(), mask, None, 0.25, None))
    assert_close(found["received pass"]().received, weights.sum(2), "statistic")
    assert_close(found["search pass"]().top.weights, top_keys(weights, TOP).weights, "weights")


def test_the_lse_is_computed_once(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import attention_contenders

    calls = []

    def forward(*arguments: Any, **options: Any) -> Any:
        calls.append(options)
        return real(*arguments, **options)

    real = vars(attention_contenders)["forward"]
    monkeypatch.setattr(attention_contenders, "forward", forward)
    found = contenders(Setting(E=16, causal=False, n=16, H=1), torch.device(device))
    for name in ("received pass", "search pass", "received pass"):
        found[name]()
    assert len(calls) == 1


def test_lengths_without_bounds_are_measured_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu_attention"])
    assert gpu_attention.parse().lengths == [*JUDGED, UNEVEN]
    monkeypatch.setattr(sys, "argv", ["gpu_attention", "--quick"])
    assert gpu_attention.parse().lengths == list(gpu_attention.QUICK)


def test_expected_seconds_follow_from_the_previous_length() -> None:
    times = {"plain": [2.0], "eager": [100.0]}
    found = Found(settings={Setting(E=64, causal=False, n=1000): Measured(times=times)})
    assert gpu_attention.expected_seconds(found, Setting(E=64, causal=False, n=500)) == 21 * 2.0 / 4
    assert (
        gpu_attention.expected_seconds(found, Setting(E=128, causal=False, n=500)) == gpu_attention.SECONDS_PER_SETTING
    )
