"""Regression tests for diagnoses that were wrong, empty or unreadable."""

import re

import pytest

from regard.course.catalogue import entries, exercise
from regard.course.exercise import Mistake
from regard.course.grading import sandbox
from regard.course.grading.grader import grade
from regard.course.grading.process import Process
from regard.course.grading.sandbox import in_process
from regard.course.grading.verdict import Verdict
from regard.messages import LANGUAGES, Language, use_language

CODE = [row.id for row in entries() if row.kind != "sheet"]


def checked(name: str, *swaps: tuple[str, str], source: str | None = None) -> Verdict:
    tried = exercise(name)
    return grade(tried, Mistake("wrong", swaps, source).text(tried.solution), seed=1, run=in_process)


HIDE = "scores = np.where(mask, scores, -np.inf)"
FILL = "scores = scores.masked_fill(mask == 0, -math.inf)"


@pytest.mark.parametrize("fill", ["-20", "-100", "-1e4"])
def test_a_mask_fill_that_is_too_high_is_diagnosed(fill: str) -> None:
    assert checked("scaled-dot-product", (HIDE, f"scores = np.where(mask, scores, {fill})")).mistake == "fill-too-high"
    wrong = FILL.replace("-math.inf", fill)
    assert checked("masked-self-attention-module", (FILL, wrong)).mistake == "fill-too-high"


@pytest.mark.parametrize("fill", ["-37.0", "-123.0", "-7e3"])
def test_an_unknown_mask_fill_gets_no_false_diagnosis(fill: str) -> None:
    for name, swap in {
        "scaled-dot-product": (HIDE, f"scores = np.where(mask, scores, {fill})"),
        "masked-self-attention-module": (FILL, FILL.replace("-math.inf", fill)),
    }.items():
        assert checked(name, swap).mistake in ("fill-too-high", "unknown")


def test_a_score_of_0_with_weight_0_is_diagnosed() -> None:
    powers = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
    for name in ("simple-attention", "self-attention", "cross-attention", "multi-head-attention", "gqa", "kv-cache"):
        verdict = checked(name, (powers, f"np.where(scores == 0, 0, {powers})"))
        assert verdict.mistake == "zero-score-zero-weight"
        assert "exp(0) is 1" in str(verdict.diagnosis)


def test_a_number_in_the_denominator_is_not_diagnosed_as_low_precision() -> None:
    divide = "powers.sum(axis=axis, keepdims=True)"
    assert checked("softmax", (divide, f"({divide} + 1e-3)")).mistake == "eps-added"
    verdict = checked("softmax", (divide, f"({divide} + 7e-4)"))
    assert verdict.mistake == "near"
    assert "Possible causes" in str(verdict.diagnosis)
    assert re.search(r"error is up to 0\.000\d", str(verdict.diagnosis))


def test_half_precision_is_diagnosed_only_if_all_numbers_fit_float16() -> None:
    divide = "powers / powers.sum(axis=axis, keepdims=True)"
    assert checked("softmax", (divide, f"({divide}).astype(np.float16)")).mistake == "low-precision"
    assert checked("softmax", (divide, f"({divide}).astype(np.float16).astype(float) * 1.0001")).mistake == "near"


def test_a_mean_over_padding_in_the_original_program_gets_one_message() -> None:
    pooled = "(out * real[:, :, None]).sum(axis=1) / real.sum(axis=1, keepdims=True)"
    stub = exercise("bug-padded-queries").stub
    verdict = checked("bug-padded-queries", source=stub.replace(pooled, "out.mean(1)"))
    assert verdict.mistake == "mean-and-untouched"
    assert "mended" not in str(verdict.diagnosis)


def test_the_original_bug_and_another_mistake_are_reported_consistently() -> None:
    stub = exercise("bug-mask-polarity").stub
    verdict = checked(
        "bug-mask-polarity", source=stub.replace("embedding[ids]", "embedding[ids] * padding_mask(ids)[..., None]")
    )
    assert verdict.mistake in ("unknown", "not-finite") or str(verdict.diagnosis).startswith("the bug that came")


def test_an_unrequested_causal_mask_is_diagnosed() -> None:
    scores = "scores = Q @ K.T / np.sqrt(K.shape[-1])"
    for name in ("simple-attention", "self-attention", "cross-attention"):
        causal = "scores = np.where(np.tril(np.ones(scores.shape)) == 1, scores, -1e9)"
        assert checked(name, (scores, f"{scores}\n    {causal}")).mistake == "causal-not-asked"


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


def test_the_causal_mask_of_the_notes_is_diagnosed_in_both_languages() -> None:
    verdict = checked("scaled-dot-product-module", source=NOTES)
    assert verdict.mistake == "causal-square"
    assert "(S, S)" in str(verdict.diagnosis)
    with use_language("zh"):
        assert "你的因果掩码是 (S, S)" in str(checked("scaled-dot-product-module", source=NOTES).diagnosis)


@pytest.mark.parametrize("language", LANGUAGES)
def test_changed_arguments_are_listed_in_words(language: str) -> None:
    wrong = "def simple_attention(Q, K, V):\n    Q /= 2\n    K /= 2\n    return V\n"
    with use_language("zh" if language == "zh" else "en"):
        source = exercise("simple-attention").solution.replace("scores = Q", "Q *= 1\n    Q += 1e-12\n    scores = Q")
        verdict = grade(exercise("simple-attention"), source, seed=1, run=in_process)
        assert verdict.mistake == "mutates-input"
        for text in (str(verdict), str(grade(exercise("simple-attention"), wrong, seed=1, run=in_process))):
            assert not re.search(r"\('|',\)|Listed", text)
        assert ("（第 1 个参数）" if language == "zh" else "(argument 1)") in str(verdict.diagnosis)


def test_gradients_are_diagnosed_only_if_all_values_are_right() -> None:
    """A wrong gradient in the first call does not mean that the other values are right."""
    late = (
        "weights = torch.softmax(scores, dim=-1)\n        if mask is not None:\n            weights = weights * mask\n"
        "            weights = weights / (weights.sum(-1, keepdim=True) + 1e-9)"
    )
    verdict = checked("decoder-layer", (FILL, "pass"), ("weights = torch.softmax(scores, dim=-1)", late))
    assert "numbers are right" not in str(verdict.diagnosis)


def test_rows_with_a_wrong_sum_are_reported() -> None:
    verdict = checked("scaled-dot-product", ("return weights @ V, weights", "return weights @ V, weights * 1.7"))
    assert (verdict.mistake, verdict.diagnosis) == ("not-shares", "every row should sum to 1; one of yours sums to 1.7")


CLAIMS = re.compile(
    r"\b(?:is|are) right\b|\brightly\b|^right\b|\bmended\b|as it came|^only\b|right but for"
    r"|\bthe right (?:places|shape)\b"
)


@pytest.mark.parametrize("name", CODE)
def test_exclusive_messages_are_never_combined(name: str) -> None:
    tried = exercise(name)
    assert {id for id, words in tried.mistakes.items() if CLAIMS.search(words.en)} <= tried.exclusive


@pytest.mark.parametrize("name", ["simple-attention", "self-attention", "multi-head-attention"])
def test_transposed_weights_are_diagnosed_as_one_mistake(name: str) -> None:
    values, turned = ("weights @ v", "weights.swapaxes(-1, -2) @ v")
    swap = (values, turned) if name == "multi-head-attention" else (values.replace("v", "V"), turned.replace("v", "V"))
    assert checked(name, swap).mistake == "weights-transposed"


def test_a_minimum_is_not_diagnosed_as_a_mean() -> None:
    powers = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
    verdict = checked("simple-attention", (powers, powers.replace("max", "min")))
    assert verdict.mistake == "mean-for-maximum"
    assert "such as its mean or its minimum" in str(verdict.diagnosis)


def test_a_missing_bracket_is_not_diagnosed_as_two_mistakes() -> None:
    verdict = checked("positional-encoding", ("10000 ** (2 * i / d_model)", "10000 ** 2 * i / d_model"))
    assert verdict.mistake == "no-brackets"


def test_nan_in_place_of_infinity_gets_its_own_message() -> None:
    verdict = checked("causal-mask", ("-np.inf, 0.0", "np.nan, 0.0"))
    assert verdict.mistake == "not-finite"
    assert "nan where -inf is expected" in str(verdict.diagnosis).lower()


@pytest.mark.parametrize(("values", "dtype"), [("'-inf'", "str"), ("None", "object")])
def test_an_object_array_is_reported_as_a_dtype_error(values: str, dtype: str) -> None:
    verdict = checked("causal-mask", ("-np.inf, 0.0", f"{values}, '0.0'"))
    assert verdict.mistake == "wrong-dtype"
    assert f"not {dtype}" in str(verdict.diagnosis)


def test_a_missing_torch_argument_is_named() -> None:
    verdict = checked("single-head-manual", ("torch.softmax(scores, dim=-1)", "torch.softmax(scores)"))
    assert "dim" in str(verdict.diagnosis)


DRAW = 'int(np.searchsorted(ends, u, side="right"))'


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_function_that_draws_by_itself_is_diagnosed(lang: Language) -> None:
    with use_language(lang):
        drawn = checked("sampling", (DRAW, "int(np.random.choice(len(ends), p=probabilities))"))
    assert drawn.mistake == "not-repeatable"
    assert ("the same arguments" if lang == "en" else "同样的参数") in str(drawn.diagnosis)


def test_a_function_that_keeps_something_between_calls_is_diagnosed() -> None:
    kept = "calls.append(1)\n    return x / len(calls)"
    source = f"import numpy as np\ncalls = []\n\n\ndef softmax(x, axis=-1):\n    {kept}\n"
    assert checked("softmax", source=source).mistake == "not-repeatable"
    assert checked("softmax", source=source.replace("len(calls)", "7.3")).mistake in ("unknown", "not-shares")


def test_a_function_that_keeps_something_from_the_first_call_is_diagnosed() -> None:
    """Each call gave the same again: that it depends on the calls before shows only in a program loaded anew."""
    scaled = "_right(x, axis) * kept.setdefault('total', x.sum()) / x.sum()"
    source = exercise("softmax").solution.replace("def softmax", "def _right")
    source += f"\n\nkept = {{}}\n\n\ndef softmax(x, axis=-1):\n    return {scaled}\n"
    assert checked("softmax", source=source).mistake == "not-repeatable"


def test_a_verdict_starts_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong answer was run twice, and PyTorch imported twice, to find results that differ."""
    started: list[object] = []

    class Counted(Process):
        def __enter__(self) -> Process:
            started.append(self)
            return super().__enter__()

    monkeypatch.setattr(sandbox, "Process", Counted)
    verdict = grade(exercise("softmax"), "def softmax(x, axis=-1):\n    return x / 7.3\n", seed=1)
    assert verdict.mistake in ("unknown", "not-shares")
    assert len(started) == 1


def test_a_tanh_of_the_query_alone_and_keys_by_row_number_are_described() -> None:
    pairs = "pairs = (Q @ W_q)[:, None, :] + (K @ W_k)[None, :, :]"
    scored = "scores = np.tanh(pairs) @ v"
    alone = checked(
        "additive-attention", (pairs, pairs.replace("(Q @ W_q)", "np.tanh(Q @ W_q)")), (scored, "scores = pairs @ v")
    )
    assert "of q W_q alone" in str(alone.diagnosis)
    own = "own = (K @ W_k)[np.arange(len(Q)) % len(K)]\n    pairs = (Q @ W_q + own)[:, None, :] + 0 * (K @ W_k)"
    assert "the key of its own row" in str(checked("additive-attention", (pairs, own)).diagnosis)


def test_of_a_large_array_the_first_row_that_differs_is_shown() -> None:
    wrong = checked("encoder-block", ("return ", "return 1.5 * "))
    large = next(test for test in wrong.tests if not test.passed and "# result[" in str(test.expected))
    assert re.fullmatch(r"np\.array\(\[.*\]\)  # result(\[[\d, ]+\])+", str(large.expected), flags=re.DOTALL)
    assert large.got != large.expected
