"""Diagnoses of real exercises that were once untrue, empty or unreadable."""

import re

import pytest

from regard.course.catalogue import entries, exercise
from regard.course.exercise import Slip
from regard.course.grading.grader import grade
from regard.course.grading.sandbox import in_process
from regard.course.grading.verdict import Verdict
from regard.messages import LANGUAGES, speaking

CODE = [row.id for row in entries() if row.kind != "sheet"]


def checked(name: str, *swaps: tuple[str, str], source: str | None = None) -> Verdict:
    tried = exercise(name)
    return grade(tried, Slip("wrong", swaps, source).text(tried.solution), seed=1, run=in_process)


HIDE = "scores = np.where(mask, scores, -np.inf)"
FILL = "scores = scores.masked_fill(mask == 0, -math.inf)"


@pytest.mark.parametrize("fill", ["-20", "-100", "-1e4"])
def test_a_fill_that_is_too_high_is_told_as_that(fill: str) -> None:
    assert checked("scaled-dot-product", (HIDE, f"scores = np.where(mask, scores, {fill})")).slip == "fill-too-high"
    wrong = FILL.replace("-math.inf", fill)
    assert checked("masked-self-attention-module", (FILL, wrong)).slip == "fill-too-high"


@pytest.mark.parametrize("fill", ["-37.0", "-123.0", "-7e3"])
def test_a_fill_that_nobody_foresaw_gets_nothing_untrue(fill: str) -> None:
    for name, swap in {
        "scaled-dot-product": (HIDE, f"scores = np.where(mask, scores, {fill})"),
        "masked-self-attention-module": (FILL, FILL.replace("-math.inf", fill)),
    }.items():
        assert checked(name, swap).slip in ("fill-too-high", "unknown")


def test_a_score_of_0_is_told_with_the_mistake_of_the_tutorial() -> None:
    powers = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
    for name in ("simple-attention", "self-attention", "cross-attention", "multi-head-attention", "gqa", "kv-cache"):
        verdict = checked(name, (powers, f"np.where(scores == 0, 0, {powers})"))
        assert verdict.slip == "zero-score-zero-weight"
        assert "exp(0) is 1" in str(verdict.diagnosis)


def test_a_number_in_the_denominator_is_not_called_a_matter_of_float64() -> None:
    divide = "powers.sum(axis=axis, keepdims=True)"
    assert checked("softmax", (divide, f"({divide} + 1e-3)")).slip == "eps-added"
    verdict = checked("softmax", (divide, f"({divide} + 7e-4)"))
    assert verdict.slip == "near"
    assert "Possible causes" in str(verdict.diagnosis)
    assert re.search(r"off by up to 0\.000\d", str(verdict.diagnosis))


def test_half_precision_is_told_only_where_float16_holds_all_numbers() -> None:
    divide = "powers / powers.sum(axis=axis, keepdims=True)"
    assert checked("softmax", (divide, f"({divide}).astype(np.float16)")).slip == "low-precision"
    assert checked("softmax", (divide, f"({divide}).astype(np.float16).astype(float) * 1.0001")).slip == "near"


def test_a_mean_over_padding_in_the_program_as_it_came_gets_one_statement() -> None:
    pooled = "(out * real[:, :, None]).sum(axis=1) / real.sum(axis=1, keepdims=True)"
    stub = exercise("bug-padded-queries").stub
    verdict = checked("bug-padded-queries", source=stub.replace(pooled, "out.mean(1)"))
    assert verdict.slip == "mean-and-untouched"
    assert "mended" not in str(verdict.diagnosis)


def test_a_bug_that_is_still_there_beside_another_mistake_is_told_without_contradiction() -> None:
    stub = exercise("bug-mask-polarity").stub
    verdict = checked(
        "bug-mask-polarity", source=stub.replace("embedding[ids]", "embedding[ids] * padding_mask(ids)[..., None]")
    )
    assert verdict.slip in ("unknown", "not-finite") or str(verdict.diagnosis).startswith("the bug that came")


def test_a_causal_mask_where_none_is_asked_for_is_told() -> None:
    scores = "scores = Q @ K.T / np.sqrt(K.shape[-1])"
    for name in ("simple-attention", "self-attention", "cross-attention"):
        causal = "scores = np.where(np.tril(np.ones(scores.shape)) == 1, scores, -1e9)"
        assert checked(name, (scores, f"{scores}\n    {causal}")).slip == "causal-not-asked"


NOTES = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class ScaledDotProductAttention(nn.Module):
    def __init__(self, d_k=None, causal=False):
        super().__init__()
        self.causal = causal

    def forward(self, Q, K, V, mask=None):
        scores = torch.matmul(Q, K.transpose(-2, -1)) / Q.size(-1) ** 0.5
        if self.causal:
            seq_len = scores.size(-1)
            causal_mask = torch.triu(torch.ones((seq_len, seq_len), device=scores.device), diagonal=1).bool()
            scores.masked_fill_(causal_mask, float("-inf"))
        if mask is not None:
            scores = scores.masked_fill(mask == 1, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        return torch.matmul(weights, V), weights
"""


def test_the_causal_mask_of_the_notes_is_told_in_the_readers_language() -> None:
    verdict = checked("scaled-dot-product-module", source=NOTES)
    assert verdict.slip == "causal-square"
    assert "(S, S)" in str(verdict.diagnosis)
    with speaking("zh"):
        assert "你的因果掩码是 (S, S)" in str(checked("scaled-dot-product-module", source=NOTES).diagnosis)


@pytest.mark.parametrize("language", LANGUAGES)
def test_changed_arguments_are_listed_in_words(language: str) -> None:
    wrong = "def simple_attention(Q, K, V):\n    Q /= 2\n    K /= 2\n    return V\n"
    with speaking("zh" if language == "zh" else "en"):
        source = exercise("simple-attention").solution.replace("scores = Q", "Q *= 1\n    Q += 1e-12\n    scores = Q")
        verdict = grade(exercise("simple-attention"), source, seed=1, run=in_process)
        assert verdict.slip == "mutates-input"
        for text in (str(verdict), str(grade(exercise("simple-attention"), wrong, seed=1, run=in_process))):
            assert not re.search(r"\('|',\)|Listed", text)
        assert ("（第 1 个参数）" if language == "zh" else "(argument 1)") in str(verdict.diagnosis)


def test_numbers_are_called_right_only_where_they_are() -> None:
    """A gradient that differs in the first call says nothing of the values of the others."""
    late = (
        "weights = torch.softmax(scores, dim=-1)\n        if mask is not None:\n            weights = weights * mask\n"
        "            weights = weights / (weights.sum(-1, keepdim=True) + 1e-9)"
    )
    verdict = checked("decoder-layer", (FILL, "pass"), ("weights = torch.softmax(scores, dim=-1)", late))
    assert "numbers are right" not in str(verdict.diagnosis)


def test_rows_that_do_not_sum_to_1_are_told_their_sum() -> None:
    verdict = checked("scaled-dot-product", ("return weights @ V, weights", "return weights @ V, weights * 1.7"))
    assert (verdict.slip, verdict.diagnosis) == ("not-shares", "every row should sum to 1; one of yours sums to 1.7")


CLAIMS = re.compile(
    r"\b(?:is|are) right\b|\brightly\b|^right\b|\bmended\b|as it came|^only\b|right but for"
    r"|\bthe right (?:places|shape)\b"
)


@pytest.mark.parametrize("name", CODE)
def test_a_sentence_that_calls_the_rest_right_is_never_told_beside_another(name: str) -> None:
    tried = exercise(name)
    assert {id for id, words in tried.slips.items() if CLAIMS.search(words.en)} <= tried.alone


@pytest.mark.parametrize("name", ["simple-attention", "self-attention", "multi-head-attention"])
def test_transposed_weights_are_one_slip_and_not_two_others(name: str) -> None:
    values, turned = ("weights @ v", "weights.swapaxes(-1, -2) @ v")
    swap = (values, turned) if name == "multi-head-attention" else (values.replace("v", "V"), turned.replace("v", "V"))
    assert checked(name, swap).slip == "weights-transposed"


def test_a_minimum_is_not_called_a_mean() -> None:
    powers = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
    verdict = checked("simple-attention", (powers, powers.replace("max", "min")))
    assert verdict.slip == "mean-for-maximum"
    assert "such as its mean or its minimum" in str(verdict.diagnosis)


def test_an_exponent_without_brackets_is_not_called_two_other_slips() -> None:
    verdict = checked("positional-encoding", ("10000 ** (2 * i / d_model)", "10000 ** 2 * i / d_model"))
    assert verdict.slip == "no-brackets"


def test_nan_in_the_place_of_an_infinity_is_not_told_to_be_finite() -> None:
    verdict = checked("causal-mask", ("-np.inf, 0.0", "np.nan, 0.0"))
    assert verdict.slip == "not-finite"
    assert "nan where -inf is right" in str(verdict.diagnosis).lower()


@pytest.mark.parametrize(("values", "dtype"), [("'-inf'", "str"), ("None", "object")])
def test_an_array_of_something_else_is_still_called_an_array(values: str, dtype: str) -> None:
    verdict = checked("causal-mask", ("-np.inf, 0.0", f"{values}, '0.0'"))
    assert verdict.slip == "wrong-dtype"
    assert f"not {dtype}" in str(verdict.diagnosis)


def test_a_forgotten_argument_of_torch_is_named() -> None:
    verdict = checked("single-head-manual", ("torch.softmax(scores, dim=-1)", "torch.softmax(scores)"))
    assert "dim" in str(verdict.diagnosis)
