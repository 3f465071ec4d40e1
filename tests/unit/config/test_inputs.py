"""Messages about bad input: value, limit and fix, the same for NumPy and torch."""

from collections.abc import Callable

import pytest

from regard.config import TransformerConfig, inputs
from regard.errors import RegardError

GPT2 = TransformerConfig.gpt2()
PAPER = TransformerConfig.paper_2017()
VECTORS = TransformerConfig(vocab_size=None, d_model=8, n_heads=2, d_ff=8, n_encoder_layers=1, output=None)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            lambda: inputs.check_ids("ids", (2, 3), "float", "float32", GPT2),
            r"^ids must be whole numbers.* found float32",
        ),
        (
            lambda: inputs.check_ids("ids", (3,), "whole", "int64", GPT2),
            r"found shape \(3,\); one text alone is ids\[None\]",
        ),
        (
            lambda: inputs.check_ids("ids", (2, 0), "whole", "int64", GPT2),
            r"at least one position; found shape \(2, 0\)",
        ),
        (lambda: inputs.check_ids("ids", (2, 3), "whole", "int64", VECTORS), r"\(samples, positions, 8\); found"),
        (lambda: inputs.check_ids("ids", (2, 3, 7), "float", "float64", VECTORS), r"positions, 8\); .* \(2, 3, 7\)"),
        (
            lambda: inputs.check_range("ids", -2, 60_000, 50_257, lambda value: (0, 4)),
            r"^ids\[0, 4\] is -2, .* 0 to 50256: ",
        ),
        (lambda: inputs.check_length("ids", 1030, GPT2), r"needs 1030 positions, .* max_len=1024; leave out 6 tokens"),
        (lambda: inputs.check_sides(PAPER, None), r"pass source, the input of the encoder"),
        (lambda: inputs.check_samples("source", 1, 2), r"^source has 1 samples where 2 are expected"),
        (lambda: inputs.check_sides(GPT2, [[1]]), r"kind 'decoder' and takes no source"),
        (lambda: inputs.check_sides(GPT2, None, source_mask=True), r"leave out source and source_mask"),
        (lambda: inputs.checked_rows([], 2), r"at least one, from 0 to 1; found \[\]"),
        (lambda: inputs.checked_rows([True], 2), r"found \[True\]"),
        (lambda: inputs.check_crop(-1, 5), r"from 0 to 5, .* found -1"),
    ],
)
def test_the_message_has_the_value_and_the_fix(check: Callable[[], None], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        check()


def test_valid_inputs_pass() -> None:
    inputs.check_ids("ids", (0, 1), "whole", "uint8", GPT2)
    inputs.check_length("ids", 10**9, PAPER)
    inputs.check_sides(PAPER, [[1]], source_mask=True)
    inputs.check_crop(0, 0)
