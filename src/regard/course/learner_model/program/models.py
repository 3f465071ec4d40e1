"""The translator and the poet, made of the parts, and the functions that the grader calls in the sandbox.

A model runs a search or sampling, then reads the text once more for its attention. The grader's functions load a
learner's program and read weights from the bytes of a file, without the `safetensors` package.
"""

import contextlib
import json
import math
import os
import signal
import struct
import sys
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from regard.course.learner_model.program.our_parts import (
    FUNCTIONS,
    STAND_INS,
    Caches,
    Layer,
    attended_memory,
    attention_with_cache,
    decoder_block_with_weights,
    embed,
    encoder_block,
    fed_forward,
    fed_forward_with_gelu,
    linear,
    normalised,
    visible,
)
from regard.course.learner_model.program.part_calls import PartError, Parts, TooSlowError, error_data, file_name

IMPOSSIBLE = -1000.0
"""The log-probability of a step that the tree of a search does not have."""


def translate(
    p: Parts,
    weights: Mapping[str, Any],
    *,
    source: np.ndarray,
    n_heads: int,
    bos: int,
    eos: int,
    pad: int,
    beams: int,
    max_len: int,
) -> dict[str, Any]:
    """Search a translation of the padded source (S,), then read both once more for the attention weights."""
    source_mask = visible(p.create_padding_mask(source[None], pad))[:, 0]  # 1 S

    def next_log_probs(prefixes: list[list[int]]) -> np.ndarray:
        B, target = len(prefixes), np.array(prefixes)
        sources, masks = np.repeat(source[None], B, axis=0), np.repeat(source_mask, B, axis=0)
        logits = p.transformer(sources, target, weights, n_heads, masks)
        with np.errstate(divide="ignore"):
            found: np.ndarray = np.log(p.softmax(logits[:, -1], -1))  # B W
        return found

    tree = Tree(bos, eos)
    tree.grow(next_log_probs, beams, max_len)
    for narrow, steps in ((1, 1), (1, tree.depth), (2, tree.depth - 1), (2, tree.depth), (3, tree.depth)):
        p.beam_search(tree.table(), 0, 1, narrow, max(steps, 1))  # an easy sentence hides mistakes: only compared
    path, score = p.beam_search(tree.table(), 0, 1, beams, max(tree.depth, 1))
    tokens = [tree.tokens[node] for node in path]
    written = tokens[1:] if tokens[:1] == [bos] else tokens
    ended = written[-1:] == [eos]
    ids = [token for token in written if token not in (bos, eos)]
    following = [*ids, eos] if ended else ids
    memory = _encoded(p, weights, source, source_mask, n_heads)
    at_once, cross = _read_at_once(p, weights, memory, source_mask, [bos, *ids], n_heads)
    stepwise = _read_with_cache(p, weights, memory, source_mask, [bos, *ids], n_heads)
    again, cached = (
        float(sum(log_probs[at, token] for at, token in enumerate(following))) for log_probs in (at_once, stepwise)
    )
    return {"ids": ids, "ended": ended, "score": score, "again": again, "cached": cached, "weights": cross}


class Tree:
    """The beginnings of a translation that a search can reach, as the table of the beam-search exercise.

    Node 0 is the beginning and node 1 the end; every other node is one beginning, with the token it ends in. The table
    holds the log-probability of each step from a node to one of its children.
    """

    def __init__(self, bos: int, eos: int) -> None:
        self.tokens, self.eos, self.depth = [bos, eos], eos, 0
        self._steps: list[tuple[int, int, float]] = []

    def grow(self, next_log_probs: Callable[[list[list[int]]], np.ndarray], beams: int, max_len: int) -> None:
        """Follow the `beams` best beginnings, each to its `beams` best continuations, until the best one has ended."""
        kept: list[tuple[list[int], float]] = [([0], 0.0)]
        while self.depth < max_len and kept[0][0][-1] != 1:
            self.depth += 1
            candidates = [beam for beam in kept if beam[0][-1] == 1]
            alive = [beam for beam in kept if beam[0][-1] != 1]
            rows = next_log_probs([[self.tokens[node] for node in path] for path, _ in alive])
            rows = np.maximum(np.nan_to_num(rows, nan=IMPOSSIBLE), IMPOSSIBLE)
            for (path, score), row in zip(alive, rows, strict=True):
                best = np.argsort(-row, kind="stable")[: beams + 1].tolist()
                for token in dict.fromkeys([*best, self.eos]):
                    node = 1 if token == self.eos else len(self.tokens)
                    if node > 1:
                        self.tokens.append(token)
                    self._steps.append((path[-1], node, float(row[token])))
                    candidates.append(([*path, node], score + float(row[token])))
            kept = sorted(candidates, key=lambda beam: -beam[1])[:beams]

    def table(self) -> np.ndarray:
        """log_probs (V, V): row = the node now, column = the next one."""
        found = np.full((len(self.tokens),) * 2, IMPOSSIBLE)
        for now, following, log_prob in self._steps:
            found[now, following] = log_prob
        return found


def _encoded(
    p: Parts, weights: Mapping[str, Any], source: np.ndarray, source_mask: np.ndarray, n_heads: int
) -> np.ndarray:
    """The encoder's output, 1 S D, by the small parts: the blocks of the exercises do not return their weights."""
    memory = embed(p, source[None], weights)
    for layer in weights["encoder"]:
        memory = encoder_block(p, memory, layer, n_heads, source_mask)
    out: np.ndarray = p.layer_norm(memory, *weights["encoder_norm"])
    return out


def _read_at_once(
    p: Parts, weights: Mapping[str, Any], memory: np.ndarray, source_mask: np.ndarray, target: list[int], n_heads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities (T, W) after each token, and the cross-attention of every head, L H T S, by the small parts."""
    y, cross = embed(p, np.array([target]), weights), []
    for layer in weights["decoder"]:
        y, shares = decoder_block_with_weights(p, y, memory, layer, n_heads, source_mask)
        cross.append(shares[0])
    return _log_probs(p, y, weights), np.stack(cross)


def _read_with_cache(
    p: Parts, weights: Mapping[str, Any], memory: np.ndarray, source_mask: np.ndarray, target: list[int], n_heads: int
) -> np.ndarray:
    """The same log-probabilities with a cache: the first half of the tokens together, then one by one."""
    embedded, half = embed(p, np.array([target]), weights), (len(target) + 1) // 2
    caches: list[Caches] = [[None] * n_heads for _ in weights["decoder"]]
    rows = []
    for chunk in (slice(0, half), *(slice(at, at + 1) for at in range(half, len(target)))):
        y = embedded[:, chunk]
        for layer, cache in zip(weights["decoder"], caches, strict=True):
            y = y + attention_with_cache(p, normalised(p, y, layer, "self_attention_norm"), layer, n_heads, cache)
            y, _ = attended_memory(p, y, memory, layer, n_heads, source_mask)
            y = y + fed_forward(p, normalised(p, y, layer, "feed_forward_norm"), layer)
        rows.append(_log_probs(p, y, weights))
    return np.concatenate(rows)


def _log_probs(p: Parts, y: np.ndarray, weights: Mapping[str, Any]) -> np.ndarray:
    """Log-probabilities (T, W) from the decoder's output, 1 T D."""
    logits = p.layer_norm(y, *weights["decoder_norm"])[0] @ weights["embedding"].T
    with np.errstate(divide="ignore"):
        found: np.ndarray = np.log(p.softmax(logits, -1))
    return found


def compose(
    p: Parts,
    weights: Mapping[str, Any],
    *,
    prompt: np.ndarray,
    uniform: np.ndarray,
    n_heads: int,
    eos: int,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
) -> dict[str, Any]:
    """Continue the prompt by sampling, one number of `uniform` for each token; then read the text once more."""
    caches: list[Caches] = [[None] * n_heads for _ in weights["decoder"]]
    ids, new = [int(id) for id in prompt], [int(id) for id in prompt]
    written: list[int] = []
    ended, score = False, 0.0
    for u in uniform.tolist():
        positions = np.arange(len(ids) - len(new), len(ids))
        x = weights["embedding"][new][None]
        for layer, cache in zip(weights["decoder"], caches, strict=True):
            normed = normalised(p, x, layer, "self_attention_norm")
            x = x + attention_with_cache(p, normed, layer, n_heads, cache, positions)
            x = x + fed_forward_with_gelu(p, normalised(p, x, layer, "feed_forward_norm"), layer)
        logits = p.layer_norm(x[:, -1], *weights["decoder_norm"])[0] @ weights["embedding"].T
        probabilities = p.next_probabilities(logits, temperature, top_k, top_p)
        id = p.pick(probabilities, u)
        score += math.log(max(float(probabilities[id]), 1e-300))
        if id == eos:
            ended = True
            break
        written.append(id)
        ids, new = [*ids, id], [id]
    shares = _read_poem(p, weights, ids, n_heads)
    return {"ids": written, "ended": ended, "score": score, "again": score, "cached": score, "weights": shares}


def _read_poem(p: Parts, weights: Mapping[str, Any], ids: list[int], n_heads: int) -> np.ndarray:
    """The attention of every head over the whole text at once, under the causal mask: L H T T."""
    mask, positions = visible(p.create_causal_mask(len(ids))), np.arange(len(ids))
    x, found = weights["embedding"][ids][None], []
    for layer in weights["decoder"]:
        normed = normalised(p, x, layer, "self_attention_norm")
        q, k, v = (p.split_heads(linear(normed, layer, f"self_attention.{letter}_proj"), n_heads) for letter in "qkv")
        heads, seen = p.scaled_dot_product_attention(p.rope(q, positions), p.rope(k, positions), v, mask)
        found.append(seen[0])
        x = x + linear(p.merge_heads(heads), layer, "self_attention.o_proj")
        x = x + fed_forward_with_gelu(p, normalised(p, x, layer, "feed_forward_norm"), layer)
    return np.stack(found)


TASKS: dict[str, Callable[..., dict[str, Any]]] = {"translation": translate, "text": compose}
CLOCK = 12.0
"""Seconds after which a running part is interrupted; the sandbox ends the process a few seconds later."""


class _Silent:
    """Discards what a learner's program prints: a print in softmax would print thousands of lines."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


_STATE: dict[str, Any] = {"functions": {}, "helpers": [], "entered": ""}
MARK = "\x1e"
"""Written to stderr with the letter of the part that runs next; if the process is killed, the last one is its part."""


def letter_of(part: str) -> str:
    return chr(ord("a") + list(FUNCTIONS).index(part))


def load_part(part: str, source: np.ndarray, helpers: list[str]) -> dict[str, Any]:
    """Load a learner's program and keep its functions; {} or what went wrong.

    `helpers` are the functions that the task gave for use and the learner left as they were: parts take their place.
    """
    sys.stdout = _Silent()
    _enter(part)
    module = ModuleType(part.replace("-", "_"))
    sys.modules[module.__name__] = module
    try:
        with _clock(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(source.tobytes().decode(), file_name(part), "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        return {"part": part, **error_data(error, part)}
    for name in FUNCTIONS[part]:
        if not callable(module.__dict__.get(name)):
            return {"part": part, "why": "missing-name", "name": name}
        _STATE["functions"][name] = module.__dict__[name]
    _STATE["helpers"].append((part, module.__dict__, helpers))
    return {}


def use_parts(parts: Parts, part: str, namespace: dict[str, Any], helpers: list[str]) -> None:
    """Put parts in the place of helper functions of a learner's program."""
    by_name: dict[str, Callable[..., Any]] = {name: getattr(parts, name) for name in STAND_INS}
    if part in ("encoder-block", "decoder-block"):  # there the weights of a norm are given by name
        by_name["layer_norm"] = lambda x, weights, name: normalised(parts, x, weights, name)
        by_name["attention"] = lambda q, k, v, mask: parts.scaled_dot_product_attention(q, k, v, mask)[0]
    namespace.update({name: by_name[name] for name in helpers})


def run_task(task: str, weights: np.ndarray, options: dict[str, Any]) -> dict[str, Any]:
    """Run the model with the loaded parts; a failed part gives {"failed": …}."""
    parts = Parts(_STATE["functions"], _enter)
    for helped in _STATE["helpers"]:
        use_parts(parts, *helped)
    try:
        with _clock(), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = TASKS[task](parts, model_weights(weights), **options)
    except PartError as error:
        return {"failed": error.data}
    except TooSlowError:
        return {"failed": {"part": _STATE["entered"], "why": "too-slow"}}
    except BaseException as error:
        return {"failed": {"part": _STATE["entered"], **error_data(error, "")}}
    return found | {"differences": parts.differences, "calls": parts.calls}


def _enter(part: str) -> None:
    if _STATE["entered"] != part:
        _STATE["entered"] = part
        os.write(2, (MARK + letter_of(part)).encode())


@contextlib.contextmanager
def _clock() -> Any:
    """Interrupt the block after CLOCK seconds, where the system has such a timer."""

    def interrupt(*_: Any) -> None:
        raise TooSlowError

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, CLOCK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def read_weights(data: np.ndarray) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file, given as bytes; 8-bit matrices are multiplied by their scales."""
    content = memoryview(data.tobytes())
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(bytes(content[8 : 8 + length]))
    header.pop("__metadata__", None)
    kinds = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I8": np.int8}
    stored = {}
    for name, about in header.items():
        start, stop = (8 + length + offset for offset in about["data_offsets"])
        stored[name] = np.frombuffer(content[start:stop], dtype=kinds[about["dtype"]]).reshape(about["shape"])
    return {
        name: np.multiply(array, stored[f"{name}.scale"][:, None], dtype=np.float64)
        if array.dtype == np.int8
        else array.astype(np.float64)
        for name, array in stored.items()
        if not name.endswith(".scale")
    }


def _layers(tensors: Mapping[str, np.ndarray], side: str) -> list[Layer]:
    """The weights of each layer by their names without the layer."""
    found: list[Layer] = []
    while own := _below(tensors, f"{side}.layers.{len(found)}."):
        found.append(own)
    return found


def _below(tensors: Mapping[str, np.ndarray], start: str) -> Layer:
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}


def model_weights(data: np.ndarray) -> dict[str, Any]:
    """The weights of a bundled model: the embedding, the layers of both stacks, their final norms."""
    tensors = read_weights(data)
    weights: dict[str, Any] = {"embedding": tensors["embedding.weight"]}
    for side in ("encoder", "decoder"):
        if f"{side}.norm.weight" in tensors:
            weights[side] = _layers(tensors, side)
            weights[f"{side}_norm"] = (tensors[f"{side}.norm.weight"], tensors[f"{side}.norm.bias"])
    return weights
