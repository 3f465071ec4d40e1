"""Training on a GPU: a skipped step, a continued run, a step captured as a graph; compiled, in bfloat16."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch

from regard.config import RecurrentConfig
from regard.models import RecurrentModel
from regard.recipes import Recipe, read_recipe
from regard.recipes.running import train
from regard.training.metrics import MetricsFile
from regard.training.step import optimizer_state

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

SHORT = {
    "training.steps": "30",
    "training.save_every": "10",
    "training.valid_every": "10",
    "model.d_model": "32",
    "model.n_layers": "1",
    "model.dropout": "0.1",
}


def recipe(**changes: str) -> Recipe:
    return read_recipe("copy", SHORT | {f"training.{name}": value for name, value in changes.items()})


def losses(out: Path) -> list[float]:
    return [line["loss"] for line in MetricsFile(out / "metrics.jsonl").read()]


def trained(out: Path, **changes: str) -> list[float]:
    train(recipe(**changes), data=None, out=out, device="cuda")
    return losses(out)


def test_a_run_learns_and_logs_every_step(tmp_path: Path) -> None:
    found = trained(tmp_path / "run")
    assert len(found) == 30
    assert found[-1] < found[0]


@pytest.mark.parametrize("changes", ({"capture": "true"}, {"compile": "true"}, {"capture": "true", "compile": "true"}))
def test_captured_and_compiled_steps_equal_plain_steps(tmp_path: Path, changes: dict[str, str]) -> None:
    plain = trained(tmp_path / "plain")
    fast = trained(tmp_path / "fast", **changes)
    exact = 5e-4 if "compile" not in changes else 0.15  # compiled dropout draws other numbers
    torch.testing.assert_close(torch.tensor(fast), torch.tensor(plain), rtol=0, atol=exact)


def test_bfloat16_learns(tmp_path: Path) -> None:
    found = trained(tmp_path / "run", precision="bfloat16", capture="true")
    assert found[-1] < found[0]


def test_an_interrupted_run_continues(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", capture="true")
    torch.cuda.empty_cache()

    class EnoughError(Exception):
        pass

    def stop(event: object) -> None:
        if getattr(event, "step", 0) == 17 and type(event).__name__ == "Stepped":
            raise EnoughError

    with pytest.raises(EnoughError):
        train(recipe(capture="true"), data=None, out=tmp_path / "parts", device="cuda", listeners=[stop])
    parts = trained(tmp_path / "parts", capture="true")
    torch.testing.assert_close(torch.tensor(parts), torch.tensor(whole), rtol=0, atol=5e-4)


@pytest.mark.parametrize("cell", ["elman", "lstm"])
def test_a_recurrent_model_has_gradients_in_either_mode(cell: Literal["elman", "lstm"]) -> None:
    """cuDNN computes none unless its `train` argument was true in the forward pass."""
    model = RecurrentModel(RecurrentConfig(cell=cell, vocab_size=9, d_model=8, d_state=8)).cuda().eval()
    model(torch.zeros(2, 5, dtype=torch.long, device="cuda")).sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


def test_a_step_that_is_not_finite_is_skipped() -> None:
    from regard.training.step import adamw, skip_unless

    model = torch.nn.Linear(3, 2).cuda()
    plan = replace(recipe().training, lr=0.1)
    optimizer = adamw(model, plan)
    model(torch.ones(1, 3, device="cuda")).sum().backward()
    skip_unless(optimizer, torch.tensor(True, device="cuda"))
    optimizer.step()
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    memory = {name: value.clone() for name, value in optimizer_state(optimizer, model).items()}
    for weight in model.parameters():
        weight.grad = torch.full_like(weight, torch.nan)
    skip_unless(optimizer, torch.tensor(False, device="cuda"))
    optimizer.step()
    assert all(torch.equal(weights[name], weight) for name, weight in model.state_dict().items())
    assert all(torch.equal(memory[name], value) for name, value in optimizer_state(optimizer, model).items())
