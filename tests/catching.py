"""What passes a `Catching`, as Records; and whether looking has changed anything."""

from collections.abc import Callable
from typing import Any

import torch
from tolerances import assert_same_bits
from torch import Tensor, nn

from regard import See
from regard.capture.captured import Caught, CaughtWeights
from regard.capture.dispatch_mode import Catching
from regard.capture.recording import recorded
from regard.records import Record

WHOLE = See(map=4096, qk=True)


def records_of(run: Callable[[], Any], module: nn.Module, see: See = WHOLE) -> list[Record]:
    """The Records of every attention in `run`, each as if `module` had computed it."""
    records: list[Record] = []
    with Catching(lambda caught: records.append(recorded(caught, module, see))) as catching:
        run()
    assert not catching.unseen.errors
    return records


def caught_in(run: Callable[[], Any]) -> list[Caught | CaughtWeights]:
    """What was caught, as it was."""
    caught: list[Caught | CaughtWeights] = []
    with Catching(caught.append) as catching:
        run()
    assert not catching.unseen.errors
    return caught


def assert_unchanged(run: Callable[[], Tensor], module: nn.Module, see: See = WHOLE) -> list[Record]:
    """Output, gradients and random numbers are the same to the last bit, looked at or not; the Records."""
    plain = _everything(run, module)
    with_look: list[Tensor] = []
    records = records_of(lambda: with_look.extend(_everything(run, module)), module, see)
    assert len(plain) == len(with_look)
    for one, other in zip(plain, with_look, strict=True):
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
