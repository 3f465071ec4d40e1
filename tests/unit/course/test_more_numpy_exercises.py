"""The later NumPy exercises against `regard.reference`, PyTorch, brute force and finite differences.

Stubs, right answers and mistakes of all exercises are tested in test_exercises.py.
"""

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import torch
from tolerances import assert_close

from regard import Mask, reference
from regard.course.catalogue import exercise
from regard.course.grading.sandbox import in_process
from regard.projections import Projections

Arrays = dict[str, np.ndarray]


def solution(name: str) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(compile(exercise(name).solution, name, "exec"), space)
    return space


# --- judges: the same calls, answered by software that knows nothing of the course ------------------------


def attend(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: Any = None) -> np.ndarray:
    return reference.scaled_dot_product_attention(Q, K, V, mask=mask)[0]


def cached(q: np.ndarray, k: np.ndarray, v: np.ndarray, cache: Any = None) -> Any:
    K, V = (k, v) if cache is None else (np.r_[cache[0], k], np.r_[cache[1], v])
    return attend(q, K, V, Mask.causal()), (K, V)


def whole(Q: np.ndarray, K: np.ndarray, V: np.ndarray, block: int) -> Any:
    return attend(Q, K, V), reference.log_sum_exp(reference.attention_scores(Q, K))


def torch_loss(logits: np.ndarray, targets: np.ndarray, smoothing: float, ignore_index: int = -100) -> float:
    loss = torch.nn.functional.cross_entropy(
        torch.from_numpy(logits), torch.from_numpy(targets), label_smoothing=smoothing, ignore_index=ignore_index
    )
    return loss.item()


def torch_gqa(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    heads = (torch.from_numpy(x)[None] for x in (Q, K, V))
    return torch.nn.functional.scaled_dot_product_attention(*heads, enable_gqa=True)[0].numpy()


def torch_backward(*arrays: np.ndarray) -> Any:
    *inputs, dO = (torch.from_numpy(x)[None].requires_grad_() for x in arrays)
    torch.nn.functional.scaled_dot_product_attention(*inputs).backward(dO)
    return tuple(x.grad[0].numpy() for x in inputs if x.grad is not None)


def masked(ids: np.ndarray, embedding: np.ndarray, *weights: np.ndarray) -> np.ndarray:
    x = embedding[ids]
    return attend(*(x @ W for W in weights), mask=Mask.padding(ids, pad=0))


def pre_norm(x: np.ndarray, p: Arrays) -> np.ndarray:
    normed = reference.layer_norm(x, p["gamma_1"], p["beta_1"])
    x = x + attend(normed @ p["W_q"], normed @ p["W_k"], normed @ p["W_v"]) @ p["W_o"]
    normed = reference.layer_norm(x, p["gamma_2"], p["beta_2"])
    return x + reference.feed_forward(normed, p["W_1"], p["W_2"], p["b_1"], p["b_2"])


def each_alone(ids: np.ndarray, embedding: np.ndarray, *rest: Any) -> np.ndarray:
    """Every sentence by itself, without its padding."""
    *weights, n_heads = rest
    sentences = [embedding[row[row != 0]] for row in ids]
    heads = ([reference.split_heads(x @ W, n_heads) for W in weights] for x in sentences)
    return np.stack([reference.merge_heads(attend(*parts)).mean(axis=0) for parts in heads])


def next_tokens(ids: np.ndarray, p: Arrays) -> float:
    x = p["embedding"][ids]
    x = x + attend(x @ p["W_q"], x @ p["W_k"], x @ p["W_v"], Mask.causal()) @ p["W_o"]
    logits = torch.from_numpy(x @ p["embedding"].T)
    return torch.nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), torch.from_numpy(ids)[:, 1:].flatten()
    ).item()


def masked_heads(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray, n_heads: int) -> np.ndarray:
    same = Projections(*[np.eye(Q.shape[-1])] * 4)
    return reference.multi_head_attention(Q, K, V, same, n_heads, mask=mask[:, None])[0]


JUDGES: dict[str, Callable[..., Any]] = {
    "kv-cache": cached,
    "rope": reference.rotate,
    "gqa": lambda Q, K, V: attend(Q[None], K[None], V[None])[0],
    "online-softmax": whole,
    "label-smoothing": torch_loss,
    "attention-backward": lambda Q, K, V, dO: reference.scaled_dot_product_attention_backward(dO, Q, K, V)[:3],
    "bug-mask-polarity": masked,
    "bug-residual": pre_norm,
    "bug-padded-queries": each_alone,
    "bug-target-leak": next_tokens,
    "bug-mask-beside-heads": masked_heads,
}
WITNESSES = {"gqa": torch_gqa, "attention-backward": torch_backward}


@pytest.mark.parametrize(("name", "judge"), [*JUDGES.items(), *WITNESSES.items()])
def test_the_solution_equals_an_independent_implementation(name: str, judge: Callable[..., Any]) -> None:
    tried = exercise(name)
    assert tried.grader is not None
    for seed in range(5):
        calls = tried.grader.cases(np.random.default_rng(seed))
        answers = in_process(tried.solution, calls, "numpy").answers
        for call, answer in zip(calls, answers, strict=True):
            close(answer.value, judge(*call.args, **call.kwargs))


def close(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            close(one, other)
    else:
        # Scores of 1000 and more have twelve correct decimals.
        assert_close(np.asarray(actual), np.asarray(expected), "statistic")


# --- what each of them is for -----------------------------------------------------------------------------


def test_attention_with_a_cache_equals_attention_at_once() -> None:
    rng = np.random.default_rng(1)
    q, k, v = rng.normal(size=(7, 4)), rng.normal(size=(7, 4)), rng.normal(size=(7, 3))
    attend_with_cache = solution("kv-cache")["attend_with_cache"]
    rows, cache = [], None
    for piece in (slice(0, 3), slice(3, 4), slice(4, 6), slice(6, 7)):
        out, cache = attend_with_cache(q[piece], k[piece], v[piece], cache)
        rows.append(out)
    assert_close(np.concatenate(rows), attend_with_cache(q, k, v)[0])


def test_rotated_scores_depend_only_on_distance() -> None:
    rng = np.random.default_rng(2)
    rope = solution("rope")["rope"]
    q, k = rng.normal(size=(1, 6)), rng.normal(size=(1, 6))
    near = rope(q, np.array([5])) @ rope(k, np.array([2])).T
    far = rope(q, np.array([105])) @ rope(k, np.array([102])).T
    assert_close(near, far)


def test_the_gradients_are_those_of_finite_differences() -> None:
    rng = np.random.default_rng(3)
    inputs = [rng.normal(size=shape) for shape in ((2, 3), (4, 3), (4, 5))]
    dO = rng.normal(size=(2, 5))
    gradients = solution("attention-backward")["attention_backward"](*inputs, dO)
    for array, gradient in zip(inputs, gradients, strict=True):
        for place in np.ndindex(array.shape):
            kept, losses = array[place], []
            for step in (1e-6, -1e-6):
                array[place] = kept + step
                losses.append((attend(*inputs) * dO).sum())
            array[place] = kept
            measured = np.float64((losses[0] - losses[1]) / 2e-6)
            assert_close(np.float64(gradient[place]), measured, "finite difference")


@pytest.mark.parametrize("seed", range(5))
def test_one_beam_is_greedy_and_all_beams_find_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    log_probs = np.log(rng.dirichlet([1.0] * 4, size=4))
    beam_search = solution("beam-search")["beam_search"]
    start, eos, max_len = 0, 3, 4

    greedy = [start]
    while greedy[-1] != eos and len(greedy) <= max_len:
        greedy.append(int(log_probs[greedy[-1]].argmax()))
    assert beam_search(log_probs, start, eos, 1, max_len)[0] == greedy

    def ended(tokens: tuple[int, ...]) -> tuple[int, ...]:
        return tokens[: tokens.index(eos) + 1] if eos in tokens else tokens

    def score(tokens: tuple[int, ...]) -> float:
        return float(sum(log_probs[a, b] for a, b in pairwise(tokens)))

    best = max((ended((start, *rest)) for rest in product(range(4), repeat=max_len)), key=score)
    tokens, found = beam_search(log_probs, start, eos, 4**max_len, max_len)
    assert tokens == list(best)
    assert found == pytest.approx(score(best))


BUGS = ("bug-mask-polarity", "bug-residual", "bug-padded-queries", "bug-target-leak", "bug-mask-beside-heads")


@pytest.mark.parametrize("name", BUGS)
def test_a_fixed_program_differs_from_the_stub_in_few_lines(name: str) -> None:
    tried = exercise(name)
    broken, mended = tried.stub.splitlines(), tried.solution.splitlines()
    assert 1 <= len(set(mended) - set(broken)) <= 4
