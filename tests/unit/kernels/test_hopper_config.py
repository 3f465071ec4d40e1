"""The configs of the Hopper kernels, read without Triton: each fits a processor."""

import runpy
from itertools import product
from pathlib import Path

import pytest

from regard.kernels.division import Bins
from regard.kernels.triton.support import ForwardRequest

CONFIG = Path(__file__).parents[3] / "src/regard/kernels/triton/hopper/config.py"
REGISTERS = 65_536
PRODUCER = 24
"""Registers of a thread of the producer's warps, for which as many threads are reserved as for one consumer."""


@pytest.mark.parametrize("E", [64, 128])
def test_the_registers_of_a_config_fit_a_processor(E: int) -> None:
    # Run as a file: importing its package would import Triton.
    module = runpy.run_path(str(CONFIG))
    bins = [None, *(Bins(width, width, R=8, C=8) for width in (16, 64, 79, 128, 256))]
    for one, entropy, top, is_causal in product(bins, (False, True), (0, 8), (False, True)):
        request = ForwardRequest(bins=one, entropy=entropy, top=top)
        config = module["config_for"](E, request, is_causal=is_causal)
        assert config.consumers * 128 * config.registers + 128 * PRODUCER <= REGISTERS
        assert config.rows == config.consumers * module["ROWS"]
        assert config.registers % 8 == 0  # the instruction that sets them takes multiples of eight
