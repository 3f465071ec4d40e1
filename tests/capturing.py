"""Records of what a CaptureMode captures, and whether capturing changes anything."""

from collections.abc import Callable
from typing import Any

import torch
from tolerances import assert_same_bits
from torch import Tensor, nn

from regard import See
from regard.capture.dispatch_mode import CaptureMode
from regard.capture.operators import CapturedCall, CapturedWeights
from regard.capture.recording import record_of_call
from regard.records import Record

WHOLE = See(map=4096, qk=True)


def records_of(run: Callable[[], Any], module: nn.Module, see: See = WHOLE) -> list[Record]:
    """The Records of every attention in `run`, each as if `module` had computed it."""
    records: list[Record] = []
    with CaptureMode(lambda captured: records.append(record_of_call(captured, module, see))) as mode:
        run()
    assert not mode.unobserved.errors
    return records


def captured_in(run: Callable[[], Any]) -> list[CapturedCall | CapturedWeights]:
    """The captured calls as they are."""
    captured: list[CapturedCall | CapturedWeights] = []
    with CaptureMode(captured.append) as mode:
        run()
    assert not mode.unobserved.errors
    return captured


def assert_unchanged(run: Callable[[], Tensor], module: nn.Module, see: See = WHOLE) -> list[Record]:
    """Assert that output, gradients and random numbers are bit-equal with and without capture. Returns the Records."""
    plain = _everything(run, module)
    watched: list[Tensor] = []
    records = records_of(lambda: watched.extend(_everything(run, module)), module, see)
    assert len(plain) == len(watched)
    for one, other in zip(plain, watched, strict=True):
        assert_same_bits(other, one)
    return records


def _everything(run: Callable[[], Tensor], module: nn.Module) -> list[Tensor]:
    torch.manual_seed(7)
    module.zero_grad()
    out = run()
    found = [out.detach()]
    if out.requires_grad:
        (out.float() ** 2).sum().backward()
        found += [one.grad.clone() for one in module.parameters() if one.grad is not None]
    return [*found, torch.get_rng_state()]
