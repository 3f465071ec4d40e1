"""benchmarks/gpu_attention and its contenders, as far as they go without a GPU: they say what they are timed for."""

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
from regard.functional.statistics import strongest
from regard.masks import Mask


@pytest.mark.parametrize("causal", [False, True])
def test_passes_after_the_lse_is_known_tell_what_they_are_timed_for(causal: bool, device: str) -> None:
    setting = Setting(E=16, causal=causal, n=40, H=2)
    found: dict[str, Any] = contenders(setting, torch.device(device))
    assert set(OURS) <= found.keys()
    q, k, _ = setting.tensors(torch.device(device))
    mask = Mask.causal() if causal else None
    weights = attention_weights(attention_scores(q.cpu().double(), k.cpu().double(), mask, None, 0.25, None))
    assert_close(found["received pass"]().received, weights.sum(2), "statistic")
    assert_close(found["search pass"]().top.weights, strongest(weights, TOP).weights, "weights")


def test_a_pass_makes_the_lse_once(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import attention_contenders

    made = []

    def forward(*arguments: Any, **options: Any) -> Any:
        made.append(options)
        return real(*arguments, **options)

    real = attention_contenders.forward
    monkeypatch.setattr(attention_contenders, "forward", forward)
    found = contenders(Setting(E=16, causal=False, n=16, H=1), torch.device(device))
    for name in ("received pass", "search pass", "received pass"):
        found[name]()
    assert len(made) == 1


def test_what_is_not_judged_is_measured_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu_attention"])
    assert gpu_attention.parse().lengths == [*JUDGED, UNEVEN]
    monkeypatch.setattr(sys, "argv", ["gpu_attention", "--quick"])
    assert gpu_attention.parse().lengths == list(gpu_attention.QUICK)


def test_seconds_are_expected_by_the_length_before() -> None:
    times = {"plain": [2.0], "eager": [100.0]}
    found = Found(settings={Setting(E=64, causal=False, n=1000): Measured(times=times)})
    assert gpu_attention.expected_seconds(found, Setting(E=64, causal=False, n=500)) == 21 * 2.0 / 4
    assert gpu_attention.expected_seconds(found, Setting(E=128, causal=False, n=500)) == gpu_attention.A_SETTING
