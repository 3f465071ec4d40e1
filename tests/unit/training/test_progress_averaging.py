"""The mean of checkpoints: accurate, in the weights' dtype, and without changes to the inputs."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_same_bits

from regard.training.progress import averaged


@given(st.integers(1, 6), st.sampled_from([torch.float32, torch.float64, torch.bfloat16]), st.integers(0, 99))
def test_mean_of_each_weight(count: int, dtype: torch.dtype, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    models = [{"a": torch.randn(3, 2, generator=draw).to(dtype), "b": torch.randn(4).to(dtype)} for _ in range(count)]
    before = [{name: weight.clone() for name, weight in model.items()} for model in models]
    found = averaged(iter(models))
    assert found.keys() == {"a", "b"}
    for name, weight in found.items():
        assert weight.dtype == dtype
        exact = np.mean([model[name].double().numpy() for model in before], axis=0)
        assert_same_bits(weight.double(), torch.from_numpy(exact).to(dtype).double())
    for model, old in zip(models, before, strict=True):
        assert all(torch.equal(model[name], old[name]) for name in old)


def test_float64_weights_are_not_changed_in_place() -> None:
    first = {"w": torch.ones(2, dtype=torch.float64)}
    averaged([first, {"w": torch.full((2,), 3.0, dtype=torch.float64)}])
    assert first["w"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("count", [1, 3])
def test_mean_of_equal_weights_is_identical(count: int) -> None:
    weight = torch.randn(100)
    assert_same_bits(averaged([{"w": weight}] * count)["w"], weight)


def test_small_differences_of_large_weights_are_kept() -> None:
    large = torch.tensor([1e8])
    models = [{"w": large + 8 * k} for k in range(3)]
    assert averaged(models)["w"].item() == 1e8 + 8
