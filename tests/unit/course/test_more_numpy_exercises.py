"""The later NumPy exercises against `regard.reference`, PyTorch, brute force and finite differences.

Stubs, right answers and mistakes of all exercises are tested in test_exercises.py.
"""

import re
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from narrowing import three
from tolerances import assert_close

from regard import Mask, reference
from regard.checkpoints import read_model
from regard.course.catalogue import exercise
from regard.course.grading.sandbox import in_process
from regard.language.loading import find_model
from regard.layer_checks import Projections
from regard.training.plan import Plan
from regard.training.step import learning_rate

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


def torch_padded_loss(logits: np.ndarray, targets: np.ndarray, pad: int = 0) -> float:
    if (targets == pad).all():
        return 0.0  # PyTorch: NaN
    flat = torch.from_numpy(logits).flatten(0, 1), torch.from_numpy(targets).flatten()
    return torch.nn.functional.cross_entropy(*flat, ignore_index=pad).item()


def torch_gqa(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    heads = three(torch.from_numpy(x)[None] for x in (Q, K, V))
    return torch.nn.functional.scaled_dot_product_attention(*heads, enable_gqa=True)[0].numpy()


def torch_backward(*arrays: np.ndarray) -> Any:
    *inputs, dO = (torch.from_numpy(x)[None].requires_grad_() for x in arrays)
    torch.nn.functional.scaled_dot_product_attention(*three(inputs)).backward(dO)
    return tuple(x.grad[0].numpy() for x in inputs if x.grad is not None)


def masked(ids: np.ndarray, embedding: np.ndarray, *weights: np.ndarray) -> np.ndarray:
    x = embedding[ids]
    return attend(*three(x @ W for W in weights), mask=Mask.padding(ids, pad=0))


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


def pairs_loss(source: np.ndarray, target: np.ndarray, p: Arrays) -> float:
    """Every pair by itself, without its padding, the decoder's mask from `regard`."""
    losses = []
    for words, wanted in ((a[a != 0], b[b != 0]) for a, b in zip(source, target, strict=True)):
        memory, x = p["embedding"][words], p["embedding"][[1, *wanted[:-1]]]
        x = x + attend(x @ p["self_q"], x @ p["self_k"], x @ p["self_v"], Mask.causal())
        x = x + attend(x @ p["cross_q"], memory @ p["cross_k"], memory @ p["cross_v"])
        each = torch.nn.functional.cross_entropy(
            torch.from_numpy(x @ p["embedding"].T), torch.from_numpy(wanted), reduction="none"
        )
        losses += each.tolist()
    return float(np.mean(losses))


def masked_heads(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray, n_heads: int) -> np.ndarray:
    same = Projections(*[np.eye(Q.shape[-1])] * 4)
    return reference.multi_head_attention(Q, K, V, same, n_heads, mask=mask[:, None])[0]


def zeros_where_nothing_is_seen(*given: np.ndarray) -> Any:
    """The output, or with `wanted` given its loss; regard gives zeros to a query without visible keys."""
    out = attend(*given[:4])
    if len(given) == 4:
        return out
    real = given[3].any(axis=-1)
    return float(((out - given[4])[real] ** 2).mean()) if real.any() else 0.0


def scheduled(steps: np.ndarray, d_model: int = 512, warmup: int = 4000) -> np.ndarray:
    plan = Plan(steps=10**8, lr=(d_model * warmup) ** -0.5, schedule="inverse-sqrt", warmup=warmup)
    return np.array([learning_rate(plan, int(step)) for step in steps])


def torch_lstm(x: np.ndarray, h: np.ndarray, c: np.ndarray, *weights: np.ndarray) -> Any:
    cell = torch.nn.LSTMCell(x.shape[1], h.shape[1], dtype=torch.float64)
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    cell.load_state_dict({name: torch.from_numpy(value) for name, value in zip(names, weights, strict=True)})
    with torch.no_grad():
        return tuple(part.numpy() for part in cell(torch.from_numpy(x), (torch.from_numpy(h), torch.from_numpy(c))))


def torch_additive(*arrays: np.ndarray) -> Any:
    Q, K, V, W_q, W_k, v = map(torch.from_numpy, arrays)
    hidden = torch.nn.functional.linear(Q, W_q.T)[:, None] + torch.nn.functional.linear(K, W_k.T)
    weights = torch.softmax(torch.nn.functional.linear(hidden.tanh(), v[None])[..., 0], dim=-1)
    return (weights @ V).numpy(), weights.numpy()


def tile_by_key(*args: Any) -> Any:
    """One tile with a key at a time, from the definition of the state; or `finish`, if only a state is given."""
    tops, totals, outputs = (part.copy() for part in args[0])
    if len(args) == 1:
        seen = totals > 0
        divided = np.divide(outputs, totals[:, None], where=seen[:, None], out=np.zeros_like(outputs))
        return divided, np.log(totals, where=seen, out=np.full_like(totals, -np.inf)) + np.where(seen, tops, 0)
    _, q, k, v, q_start, k_start = args
    for i, j in np.ndindex(len(q), len(k)):
        if k_start + j <= q_start + i:
            score = reference.attention_scores(q[i : i + 1], k[j : j + 1])[0, 0]
            top = max(tops[i], score)
            old, new = np.exp(tops[i] - top), np.exp(score - top)
            tops[i], totals[i], outputs[i] = top, totals[i] * old + new, outputs[i] * old + new * v[j]
    return tops, totals, outputs


ENDS = ("weight", "bias")


def in_torch(weights: Arrays, layer: torch.nn.Module) -> torch.nn.Module:
    """The layer of `torch.nn` with the weights of a block of the translator."""
    names = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}
    norms = [name for name in (*names, "feed_forward") if f"{name}_norm.weight" in weights]
    state = {f"norm{n + 1}.{end}": weights[f"{norm}_norm.{end}"] for n, norm in enumerate(norms) for end in ENDS}
    for end in ENDS:
        for ours, theirs in names.items():
            if f"{ours}.q_proj.{end}" in weights:
                state[f"{theirs}.in_proj_{end}"] = np.concatenate([weights[f"{ours}.{x}_proj.{end}"] for x in "qkv"])
                state[f"{theirs}.out_proj.{end}"] = weights[f"{ours}.o_proj.{end}"]
        for n, part in enumerate(("up", "down")):
            state[f"linear{n + 1}.{end}"] = weights[f"feed_forward.{part}.{end}"]
    layer.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in state.items()})
    return layer


def torch_encoder(x: np.ndarray, weights: Arrays, n_heads: int, mask: np.ndarray | None = None) -> np.ndarray:
    width = weights["feed_forward.up.weight"].shape[0]
    layer = torch.nn.TransformerEncoderLayer(
        x.shape[-1], n_heads, width, dropout=0.0, batch_first=True, norm_first=True, dtype=torch.float64
    )
    padding = None if mask is None else torch.from_numpy(~mask)
    return in_torch(weights, layer)(torch.from_numpy(x), src_key_padding_mask=padding).detach().numpy()


def torch_decoder(
    x: np.ndarray, memory: np.ndarray, weights: Arrays, n_heads: int, memory_mask: np.ndarray | None = None
) -> np.ndarray:
    width, T = weights["feed_forward.up.weight"].shape[0], x.shape[1]
    layer = torch.nn.TransformerDecoderLayer(
        x.shape[-1], n_heads, width, dropout=0.0, batch_first=True, norm_first=True, dtype=torch.float64
    )
    out = in_torch(weights, layer)(
        torch.from_numpy(x),
        torch.from_numpy(memory),
        tgt_mask=torch.ones(T, T, dtype=torch.bool).triu(1),
        memory_key_padding_mask=None if memory_mask is None else torch.from_numpy(~memory_mask),
    )
    return out.detach().numpy()


JUDGES: dict[str, Callable[..., Any]] = {
    "decoder-block": torch_decoder,
    "encoder-block": torch_encoder,
    "flash-tiles": tile_by_key,
    "additive-attention": torch_additive,
    "lstm-cell": torch_lstm,
    "kv-cache": cached,
    "rope": reference.rotate,
    "gqa": lambda Q, K, V: attend(Q[None], K[None], V[None])[0],
    "online-softmax": whole,
    "label-smoothing": torch_loss,
    "cross-entropy-with-padding": torch_padded_loss,
    "attention-backward": lambda Q, K, V, dO: reference.scaled_dot_product_attention_backward(dO, Q, K, V)[:3],
    "bug-mask-polarity": masked,
    "bug-residual": pre_norm,
    "bug-padded-queries": each_alone,
    "bug-target-leak": next_tokens,
    "bug-mask-beside-heads": masked_heads,
    "bug-copies-target": pairs_loss,
    "bug-nan-after-masked-row": zeros_where_nothing_is_seen,
    "bug-no-warm-up": scheduled,
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


# --- the blocks inside the bundled translator ---------------------------------------------------------------


class Translated(NamedTuple):
    """The weights of the bundled translator, the output of each of its parts, and which source ids are tokens."""

    weights: Arrays
    found: Arrays
    keep: np.ndarray
    n_heads: int

    def block(self, name: str) -> Arrays:
        """The weights of one block, by their names inside the block."""
        return {key.removeprefix(f"{name}."): w for key, w in self.weights.items() if key.startswith(f"{name}.")}


@pytest.fixture(scope="module")
def translated() -> Translated:
    stored = read_model(find_model("translator"))
    model = reference.Transformer(stored.config, stored.tensors.arrays("float32"))
    found: Arrays = {}
    source = np.array([[5, 900, 21, 3000, 7], [8, 400, 0, 0, 0]])
    target = np.array([[1, 60, 1100, 4], [1, 1700, 3, 9]])
    model(target, source, source_mask=Mask.from_keep(source != 0), observer=found.__setitem__)
    weights = {name: weight.astype(np.float64) for name, weight in model.weights.items()}
    return Translated(weights, found, source != 0, stored.config.n_heads)


def test_the_encoder_blocks_are_those_of_the_translator(translated: Translated) -> None:
    encoder_block, x = solution("encoder-block")["encoder_block"], translated.found["encoder.positions"]
    for i in range(3):
        name = f"encoder.layers.{i}"
        x = encoder_block(x, translated.block(name), translated.n_heads, translated.keep)
        np.testing.assert_allclose(x, translated.found[name], rtol=1e-3, atol=1e-3)


def test_the_decoder_blocks_are_those_of_the_translator(translated: Translated) -> None:
    decoder_block, x = solution("decoder-block")["decoder_block"], translated.found["decoder.positions"]
    memory = translated.found["encoder.norm"]
    for i in range(3):
        name = f"decoder.layers.{i}"
        x = decoder_block(x, memory, translated.block(name), translated.n_heads, translated.keep)
        np.testing.assert_allclose(x, translated.found[name], rtol=1e-3, atol=1e-3)


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


def test_attention_by_tiles_equals_attention_at_once() -> None:
    rng = np.random.default_rng(4)
    Q, K, V = rng.normal(size=(7, 4)), rng.normal(size=(7, 4)), rng.normal(size=(7, 3))
    space, outputs, sums = solution("flash-tiles"), [], []
    for i in range(0, 7, 3):
        q = Q[i : i + 3]
        state = np.full(len(q), -np.inf), np.zeros(len(q)), np.zeros((len(q), 3))
        for j in range(6, -1, -2):  # from the right: the first tiles are hidden
            state = space["add_tile"](state, q, K[j : j + 2], V[j : j + 2], i, j)
        out, lse = space["finish"](state)
        outputs.append(out)
        sums.append(lse)
    scores = np.where(np.tri(7) > 0, reference.attention_scores(Q, K), -np.inf)
    assert_close(np.concatenate(outputs), attend(Q, K, V, Mask.causal()))
    assert_close(np.concatenate(sums), reference.log_sum_exp(scores))


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


@pytest.mark.parametrize("seed", range(5))
def test_merges_are_those_of_a_search_over_all_pairs(seed: int) -> None:
    """Brute force on texts of whole pieces: the joined pair is never rarer than another one."""
    rng = np.random.default_rng(seed)
    words = {"".join(rng.choice(list("ab"), rng.integers(1, 8))): int(rng.integers(1, 5)) for _ in range(5)}
    texts = [f" {' '.join(word)} " for word in words for _ in range(words[word])]
    for left, right in solution("bpe-merges")["learn_merges"](words, 6):
        pieces = {piece for text in texts for piece in text.split()}
        counts = {
            pair: sum(len(re.findall(rf"(?= {pair[0]} {pair[1]} )", text)) for text in texts)
            for pair in product(pieces, pieces)
        }
        assert (left, right) == min(counts, key=lambda pair: (-counts[pair], pair))
        texts = [re.sub(rf"(?<= ){left} {right}(?= )", left + right, text) for text in texts]


def test_the_shares_of_masked_tokens_are_those_of_the_paper() -> None:
    rng = np.random.default_rng(4)
    shape = (200, 500)
    ids, random_ids = rng.integers(10, 60, shape), rng.integers(60, 99, shape)
    given = (ids, np.zeros(shape, dtype=bool), rng.random(shape), rng.random(shape), random_ids, 3)
    inputs, targets = solution("masked-lm-inputs")["mask_tokens"](*given)
    chosen = targets != -100
    assert chosen.mean() == pytest.approx(0.15, abs=0.005)
    kinds = [(inputs == 3).sum(), (inputs >= 60).sum(), (chosen & (inputs == ids)).sum()]
    assert np.array(kinds) / chosen.sum() == pytest.approx([0.8, 0.1, 0.1], abs=0.01)
    assert (targets[chosen] == ids[chosen]).all()
    assert (inputs[~chosen] == ids[~chosen]).all()


BUGS = (
    *("bug-mask-polarity", "bug-residual", "bug-padded-queries", "bug-target-leak", "bug-mask-beside-heads"),
    *("bug-copies-target", "bug-nan-after-masked-row", "bug-no-warm-up"),
)


@pytest.mark.parametrize("name", BUGS)
def test_a_fixed_program_differs_from_the_stub_in_few_lines(name: str) -> None:
    tried = exercise(name)
    broken, fixed = tried.stub.splitlines(), tried.solution.splitlines()
    assert 1 <= len(set(fixed) - set(broken)) <= 4
