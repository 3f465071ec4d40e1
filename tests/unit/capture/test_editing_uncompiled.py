"""The compile stance is restored by the last block that needs it, in any order of exits."""

import torch

from regard.capture.editing import uncompiled


def test_overlapping_blocks_restore_the_stance() -> None:
    traced = []

    def backend(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
        traced.append(graph)
        return graph

    double = torch.compile(lambda x: x + x, backend=backend)
    first, second = uncompiled(), uncompiled()
    first.__enter__()
    second.__enter__()
    double(torch.ones(2))
    first.__exit__(None, None, None)
    double(torch.ones(2))
    assert not traced
    second.__exit__(None, None, None)
    double(torch.ones(2))
    assert len(traced) == 1
