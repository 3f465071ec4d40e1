"""The bundled translator and poet as one NumPy program whose parts can be replaced by a learner's functions.

The text of this file runs in the grader's sandbox, which has no `regard`: it imports only NumPy and the standard
library. The grader's process also imports it, for the run with our own parts. Each part is a function with the
signature of its exercise; `Parts` calls the learner's if there is one, otherwise ours below. Ours are made of the
smaller parts, so that a learner's softmax also runs inside our attention. A learner's function is self-contained: it
replaces the smaller parts inside it.
"""

import contextlib
import json
import math
import os
import signal
import struct
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

Layer = dict[str, np.ndarray]

FUNCTIONS: dict[str, tuple[str, ...]] = {
    "softmax": ("softmax",),
    "scaled-dot-product": ("scaled_dot_product_attention",),
    "split-heads": ("split_heads",),
    "merge-heads": ("merge_heads",),
    "layer-norm": ("layer_norm",),
    "feed-forward": ("feed_forward",),
    "positional-encoding": ("positional_encoding",),
    "rope": ("rope",),
    "causal-mask": ("create_causal_mask",),
    "padding-mask": ("create_padding_mask",),
    "kv-cache": ("attend_with_cache",),
    "encoder-block": ("encoder_block",),
    "decoder-block": ("decoder_block",),
    "transformer-forward": ("transformer",),
    "beam-search": ("beam_search",),
    "sampling": ("next_probabilities", "pick"),
}
"""The functions of each part, by the id of its exercise."""
PART_OF = {function: part for part, functions in FUNCTIONS.items() for function in functions}
STAND_INS = ("layer_norm", "positional_encoding", "encoder_block", "decoder_block")
"""In the file of transformer-forward: the model's parts take their place."""

TOLERANCE = 1e-5
"""Largest difference from our part, relative to the largest number of its result, that is not reported: float32 stays
below a tenth of it."""
FEW = {"transformer": 2, "encoder_block": 6, "decoder_block": 6}
"""How many calls of a slow function are compared with ours; of the others the first 12, and then every seventh."""
HIDDEN = -50.0
"""An additive mask below this hides a key: e⁻⁵⁰ is 0 beside any other weight."""
IMPOSSIBLE = -1000.0
"""The log-probability of a step that the tree of a search does not have."""
CLOCK = 12.0
"""Seconds after which a running part is interrupted; the sandbox ends the process a few seconds later."""


class PartError(Exception):
    """A learner's function failed: it raised, or returned something else than its task says."""

    def __init__(self, part: str, why: str, **details: Any) -> None:
        super().__init__(part)
        self.data = {"part": part, "why": why, **details}


class _TooSlowError(BaseException):
    pass


# --- our own parts, each made of smaller ones ---------------------------------------------------------------


def softmax(p: "Parts", x: np.ndarray, axis: int = -1) -> np.ndarray:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def scaled_dot_product_attention(
    p: "Parts", Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    scores = Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])  # … T S
    weights = p.softmax(scores if mask is None else np.where(mask, scores, -np.inf), -1)
    return weights @ V, weights


def split_heads(p: "Parts", x: np.ndarray, n_heads: int) -> np.ndarray:
    B, T, D = x.shape
    return x.reshape(B, T, n_heads, D // n_heads).transpose(0, 2, 1, 3)  # B H T E


def merge_heads(p: "Parts", x: np.ndarray) -> np.ndarray:
    B, H, T, E = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, H * E)


def layer_norm(p: "Parts", x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return gamma * centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps) + beta


def feed_forward(
    p: "Parts", x: np.ndarray, W_1: np.ndarray, b_1: np.ndarray, W_2: np.ndarray, b_2: np.ndarray
) -> np.ndarray:
    return np.maximum(x @ W_1 + b_1, 0) @ W_2 + b_2


def positional_encoding(p: "Parts", length: int, d_model: int) -> np.ndarray:
    angle = np.arange(length)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, d_model)


def rope(p: "Parts", x: np.ndarray, positions: np.ndarray, base: float = 10000.0) -> np.ndarray:
    d = x.shape[-1]
    angle = positions[:, None] * base ** (-2 * np.arange(d // 2) / d)
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], axis=-1)


def create_causal_mask(p: "Parts", n: int) -> np.ndarray:
    return np.where(np.tri(n) > 0, 0.0, -np.inf)


def create_padding_mask(p: "Parts", seq: np.ndarray, pad_token: int = 0) -> np.ndarray:
    return np.where(seq == pad_token, -np.inf, 0.0)[:, None, :]


def attend_with_cache(p: "Parts", q: np.ndarray, k: np.ndarray, v: np.ndarray, cache: Any = None) -> tuple[Any, Any]:
    K, V = (k, v) if cache is None else (np.concatenate([cache[0], k]), np.concatenate([cache[1], v]))
    T, S = len(q), len(K)
    mask = np.arange(S) <= np.arange(S - T, S)[:, None]
    return p.scaled_dot_product_attention(q, K, V, mask)[0], (K, V)


def encoder_block(
    p: "Parts", x: np.ndarray, weights: Layer, n_heads: int, mask: np.ndarray | None = None
) -> np.ndarray:
    visible = None if mask is None else mask[:, None, None, :]  # B 1 1 S
    normed = _norm(p, x, weights, "self_attention_norm")
    x = x + attention(p, normed, normed, weights, "self_attention", n_heads, visible)[0]
    return x + _fed_forward(p, _norm(p, x, weights, "feed_forward_norm"), weights)


def decoder_block(
    p: "Parts",
    x: np.ndarray,
    memory: np.ndarray,
    weights: Layer,
    n_heads: int,
    memory_mask: np.ndarray | None = None,
) -> np.ndarray:
    return decoder_block_with_weights(p, x, memory, weights, n_heads, memory_mask)[0]


def transformer(
    p: "Parts",
    source: np.ndarray,
    target: np.ndarray,
    weights: Mapping[str, Any],
    n_heads: int,
    source_mask: np.ndarray,
) -> np.ndarray:
    memory = _embedded(p, source, weights)
    for layer in weights["encoder"]:
        memory = p.encoder_block(memory, layer, n_heads, source_mask)
    memory = p.layer_norm(memory, *weights["encoder_norm"])
    y = _embedded(p, target, weights)
    for layer in weights["decoder"]:
        y = p.decoder_block(y, memory, layer, n_heads, source_mask)
    return p.layer_norm(y, *weights["decoder_norm"]) @ weights["embedding"].T


def beam_search(
    p: "Parts", log_probs: np.ndarray, start: int, eos: int, beams: int, max_len: int
) -> tuple[list[int], float]:
    kept = [([start], 0.0)]
    for _ in range(max_len):
        candidates = []
        for tokens, score in kept:
            if tokens[-1] == eos:
                candidates.append((tokens, score))
            else:
                row = log_probs[tokens[-1]].tolist()
                candidates += [([*tokens, token], score + step) for token, step in enumerate(row)]
        kept = sorted(candidates, key=lambda beam: -beam[1])[:beams]
    return kept[0]


def next_probabilities(
    p: "Parts", logits: np.ndarray, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> np.ndarray:
    probabilities = p.softmax(logits / temperature, -1)
    order = np.argsort(-probabilities)
    descending = probabilities[order]
    if top_k is not None:
        descending[top_k:] = 0
    if top_p is not None:
        descending = descending / descending.sum()
        descending[np.cumsum(descending) - descending >= top_p] = 0
    kept = np.zeros_like(probabilities)
    kept[order] = descending
    return kept / kept.sum()


def pick(p: "Parts", probabilities: np.ndarray, u: float) -> int:
    ends = np.cumsum(probabilities)
    # A wrong softmax may give NaN or negative numbers: the text is then nonsense, as it should be.
    return min(int(np.searchsorted(ends, u * ends[-1], side="right")), len(ends) - 1)


OURS: dict[str, Callable[..., Any]] = {name: globals()[name] for name in PART_OF}


# --- between the parts --------------------------------------------------------------------------------------


def attention(
    p: "Parts",
    x: np.ndarray,
    memory: np.ndarray,
    weights: Layer,
    name: str,
    n_heads: int,
    visible: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Multi-head attention of x (B, T, D) over memory (B, S, D): the output, and the weights of every head, B H T S."""
    q = p.split_heads(linear(x, weights, f"{name}.q_proj"), n_heads)
    k, v = (p.split_heads(linear(memory, weights, f"{name}.{letter}_proj"), n_heads) for letter in "kv")
    heads, shares = p.scaled_dot_product_attention(q, k, v, visible)
    return linear(p.merge_heads(heads), weights, f"{name}.o_proj"), shares


def decoder_block_with_weights(
    p: "Parts", x: np.ndarray, memory: np.ndarray, weights: Layer, n_heads: int, memory_mask: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The decoder block, and its cross-attention, B H T S."""
    causal = visible(p.create_causal_mask(x.shape[1]))
    normed = _norm(p, x, weights, "self_attention_norm")
    x = x + attention(p, normed, normed, weights, "self_attention", n_heads, causal)[0]
    x, shares = _attended_memory(p, x, memory, weights, n_heads, memory_mask)
    return x + _fed_forward(p, _norm(p, x, weights, "feed_forward_norm"), weights), shares


def _attended_memory(
    p: "Parts", x: np.ndarray, memory: np.ndarray, weights: Layer, n_heads: int, memory_mask: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    shown = None if memory_mask is None else memory_mask[:, None, None, :]  # B 1 1 S
    normed = _norm(p, x, weights, "cross_attention_norm")
    out, shares = attention(p, normed, memory, weights, "cross_attention", n_heads, shown)
    return x + out, shares


def linear(x: np.ndarray, weights: Layer, name: str) -> np.ndarray:
    """x Wᵀ + b, with weights stored as in nn.Linear."""
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _norm(p: "Parts", x: np.ndarray, weights: Layer, name: str) -> np.ndarray:
    out: np.ndarray = p.layer_norm(x, weights[f"{name}.weight"], weights[f"{name}.bias"])
    return out


def _fed_forward(p: "Parts", x: np.ndarray, weights: Layer) -> np.ndarray:
    up, down = (
        (weights[f"feed_forward.{name}.weight"].T, weights[f"feed_forward.{name}.bias"]) for name in ("up", "down")
    )
    out: np.ndarray = p.feed_forward(x, *up, *down)
    return out


def _embedded(p: "Parts", ids: np.ndarray, weights: Mapping[str, Any]) -> np.ndarray:
    table = weights["embedding"]
    found: np.ndarray = table[ids] * math.sqrt(table.shape[1]) + p.positional_encoding(ids.shape[1], table.shape[1])
    return found


def visible(mask: np.ndarray) -> np.ndarray:
    """A mask to be added to the scores as a boolean one, True = visible."""
    return np.asarray(mask > HIDDEN)


# --- calling a part -----------------------------------------------------------------------------------------


class Parts:
    """The parts of a model: `parts.softmax(x)` calls the learner's function if there is one, otherwise ours."""

    def __init__(self, learner: Mapping[str, Callable[..., Any]], enter: Callable[[str], None] | None = None) -> None:
        self.learner, self._enter = dict(learner), enter
        self.calls: dict[str, int] = {}
        """How often each function of the learner was called."""
        self.differences: dict[str, float] = {}
        """Largest difference of each function of the learner from ours, of the calls that were compared."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in OURS:
            raise AttributeError(name)
        if name not in self.learner:
            return lambda *args: OURS[name](self, *args)
        return lambda *args: self._call(name, *args)

    def _call(self, name: str, *args: Any) -> Any:
        part, count = PART_OF[name], self.calls.get(name, 0)
        self.calls[name] = count + 1
        if self._enter is not None:
            self._enter(part)
        try:
            result = self.learner[name](*map(_read_only, args))
        except PartError:
            raise  # of a part inside the learner's transformer
        except BaseException as error:
            raise PartError(part, **error_data(error, part)) from None
        result = _checked(name, part, result, args)
        if count < FEW.get(name, 12) or (name not in FEW and count % 7 == 0):
            without = {other: f for other, f in self.learner.items() if name == "transformer" and other != name}
            expected = OURS[name](Parts(without), *args)
            self.differences[name] = max(self.differences.get(name, 0.0), difference(expected, result))
        return result


def error_data(error: BaseException, part: str) -> dict[str, Any]:
    """An exception of a learner's program as plain data; `line` is the last line of that program."""
    if isinstance(error, _TooSlowError):
        return {"why": "too-slow"}
    try:
        message = str(error)[:300]
    except BaseException:
        message = ""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file_name(part):
            line = trace.tb_lineno
        trace = trace.tb_next
    line = error.lineno if isinstance(error, SyntaxError) else line
    why = "too-much-memory" if isinstance(error, MemoryError) else "raises"
    return {"why": why, "raised": type(error).__name__[:100], "message": message, "line": line}


def file_name(part: str) -> str:
    return f"<{part}.py>"


def _read_only(value: Any) -> Any:
    """The value for a learner's function, which may not change it: it is used again."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if isinstance(value, list | tuple):
        return type(value)(map(_read_only, value))
    return {key: _read_only(part) for key, part in value.items()} if isinstance(value, dict) else value


def _checked(name: str, part: str, result: Any, args: Sequence[Any]) -> Any:
    """The result of a learner's function as plain NumPy and Python values. PartError if it has another form."""
    if name == "pick":
        size = len(args[0])
        if not isinstance(result, int | np.integer) or not 0 <= result < size:
            raise PartError(part, "value", wanted=f"0 … {size - 1}", found=_described(result))
        return int(result)
    if name == "beam_search":
        return _checked_path(part, result, len(args[0]))
    shapes = _SHAPES[name](*args)
    if name == "attend_with_cache" and isinstance(result, list | tuple) and len(result) == 2:
        if not isinstance(result[1], list | tuple) or len(result[1]) != 2:
            raise PartError(part, "value", wanted="(out, (K, V))", found=_described(result))
        out, keys, values = (_checked_array(part, *pair) for pair in zip((result[0], *result[1]), shapes, strict=True))
        return out, (keys, values)
    if len(shapes) == 1:
        return _checked_array(part, result, shapes[0])
    if not isinstance(result, list | tuple) or len(result) != len(shapes):
        raise PartError(part, "value", wanted=f"({', '.join(map(str, shapes))})", found=_described(result))
    return tuple(_checked_array(part, *pair) for pair in zip(result, shapes, strict=True))


def _checked_array(part: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.asarray(value)
    except Exception:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "bifu" or array.shape != shape:
        raise PartError(part, "shape", wanted=str(shape), found=_described(value))
    return array if array.dtype.kind == "b" else array.astype(np.float64, copy=False)


def _checked_path(part: str, result: Any, size: int) -> tuple[list[int], float]:
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        tokens, score = result
        path = [int(token) for token in tokens]
        if all(0 <= token < size for token in path):
            return path, float(score)
    raise PartError(part, "value", wanted="(tokens, score)", found=_described(result))


def _described(value: Any) -> str:
    """A short description of an untrusted value: its type, and the shape of an array."""
    if type(value) is np.ndarray:
        return f"{value.dtype} {value.shape}"
    if type(value) in (list, tuple):
        return f"{type(value).__name__}[{len(value)}]"
    return repr(value) if type(value) in (int, float, bool, type(None)) else type(value).__name__[:100]


_SHAPES: dict[str, Callable[..., tuple[tuple[int, ...], ...]]] = {
    "softmax": lambda x, axis=-1: (x.shape,),
    "scaled_dot_product_attention": lambda Q, K, V, mask=None: (
        (*Q.shape[:-1], V.shape[-1]),
        (*Q.shape[:-1], K.shape[-2]),
    ),
    "split_heads": lambda x, n: ((x.shape[0], n, x.shape[1], x.shape[2] // n),),
    "merge_heads": lambda x: ((x.shape[0], x.shape[2], x.shape[1] * x.shape[3]),),
    "layer_norm": lambda x, gamma, beta, eps=0.0: (x.shape,),
    "feed_forward": lambda x, W_1, b_1, W_2, b_2: ((*x.shape[:-1], W_2.shape[1]),),
    "positional_encoding": lambda length, d_model: ((length, d_model),),
    "rope": lambda x, positions, base=0.0: (x.shape,),
    "create_causal_mask": lambda n: ((n, n),),
    "create_padding_mask": lambda seq, pad_token=0: ((seq.shape[0], 1, seq.shape[1]),),
    "attend_with_cache": lambda q, k, v, cache=None: (
        (len(q), v.shape[1]),
        *((len(new) + (0 if cache is None else len(cache[at])), new.shape[1]) for at, new in enumerate((k, v))),
    ),
    "encoder_block": lambda x, *rest: (x.shape,),
    "decoder_block": lambda x, *rest: (x.shape,),
    "transformer": lambda source, target, weights, *rest: ((*target.shape, len(weights["embedding"])),),
    "next_probabilities": lambda logits, *rest: (logits.shape,),
}


def difference(expected: Any, found: Any) -> float:
    """The largest difference of two results of the same form, relative to the largest number; NaN counts as inf."""
    if isinstance(expected, list | tuple):
        if len(expected) != len(found):
            return math.inf
        return max((difference(*pair) for pair in zip(expected, found, strict=True)), default=0.0)
    a, b = np.asarray(expected, dtype=np.float64), np.asarray(found, dtype=np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    with np.errstate(all="ignore"):
        gap = np.where(same, 0.0, np.abs(a - b))
    largest = np.abs(a[np.isfinite(a)]).max(initial=1e-6)
    return float(np.nan_to_num(gap, nan=math.inf).max() / largest)


# --- the models ---------------------------------------------------------------------------------------------


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


# --- the translator -----------------------------------------------------------------------------------------


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
    memory = _embedded(p, source[None], weights)
    for layer in weights["encoder"]:
        memory = encoder_block(p, memory, layer, n_heads, source_mask)
    out: np.ndarray = p.layer_norm(memory, *weights["encoder_norm"])
    return out


def _read_at_once(
    p: Parts, weights: Mapping[str, Any], memory: np.ndarray, source_mask: np.ndarray, target: list[int], n_heads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities (T, W) after each token, and the cross-attention of every head, L H T S, by the small parts."""
    y, cross = _embedded(p, np.array([target]), weights), []
    for layer in weights["decoder"]:
        y, shares = decoder_block_with_weights(p, y, memory, layer, n_heads, source_mask)
        cross.append(shares[0])
    return _log_probs(p, y, weights), np.stack(cross)


def _read_with_cache(
    p: Parts, weights: Mapping[str, Any], memory: np.ndarray, source_mask: np.ndarray, target: list[int], n_heads: int
) -> np.ndarray:
    """The same log-probabilities with a cache: the first half of the tokens together, then one by one."""
    embedded, half = _embedded(p, np.array([target]), weights), (len(target) + 1) // 2
    caches: list[Caches] = [[None] * n_heads for _ in weights["decoder"]]
    rows = []
    for chunk in (slice(0, half), *(slice(at, at + 1) for at in range(half, len(target)))):
        y = embedded[:, chunk]
        for layer, cache in zip(weights["decoder"], caches, strict=True):
            y = y + _attention_with_cache(p, _norm(p, y, layer, "self_attention_norm"), layer, n_heads, cache)
            y, _ = _attended_memory(p, y, memory, layer, n_heads, source_mask)
            y = y + _fed_forward(p, _norm(p, y, layer, "feed_forward_norm"), layer)
        rows.append(_log_probs(p, y, weights))
    return np.concatenate(rows)


def _log_probs(p: Parts, y: np.ndarray, weights: Mapping[str, Any]) -> np.ndarray:
    """Log-probabilities (T, W) from the decoder's output, 1 T D."""
    logits = p.layer_norm(y, *weights["decoder_norm"])[0] @ weights["embedding"].T
    with np.errstate(divide="ignore"):
        found: np.ndarray = np.log(p.softmax(logits, -1))
    return found


Caches = list[Any]
"""The cache of each head: None, or its keys and values."""


def _attention_with_cache(
    p: Parts, x: np.ndarray, layer: Layer, n_heads: int, caches: Caches, positions: np.ndarray | None = None
) -> np.ndarray:
    """Causal self-attention of the new positions x (1, T, D), head by head, over those in the caches and themselves."""
    q, k, v = (p.split_heads(linear(x, layer, f"self_attention.{letter}_proj"), n_heads) for letter in "qkv")
    if positions is not None:
        q, k = p.rope(q, positions), p.rope(k, positions)
    heads = []
    for h in range(n_heads):
        out, caches[h] = p.attend_with_cache(q[0, h], k[0, h], v[0, h], caches[h])
        heads.append(out)
    return linear(p.merge_heads(np.stack(heads)[None]), layer, "self_attention.o_proj")


# --- the poet -----------------------------------------------------------------------------------------------


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
            normed = _norm(p, x, layer, "self_attention_norm")
            x = x + _attention_with_cache(p, normed, layer, n_heads, cache, positions)
            x = x + _gelu_forward(_norm(p, x, layer, "feed_forward_norm"), layer)
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
        normed = _norm(p, x, layer, "self_attention_norm")
        q, k, v = (p.split_heads(linear(normed, layer, f"self_attention.{letter}_proj"), n_heads) for letter in "qkv")
        heads, seen = p.scaled_dot_product_attention(p.rope(q, positions), p.rope(k, positions), v, mask)
        found.append(seen[0])
        x = x + linear(p.merge_heads(heads), layer, "self_attention.o_proj")
        x = x + _gelu_forward(_norm(p, x, layer, "feed_forward_norm"), layer)
    return np.stack(found)


def _gelu_forward(x: np.ndarray, layer: Layer) -> np.ndarray:
    """The poet's feed-forward layer: GELU in place of the ReLU of the exercise."""
    hidden = linear(x, layer, "feed_forward.up")
    hidden = hidden / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3)))
    return linear(hidden, layer, "feed_forward.down")


TASKS: dict[str, Callable[..., dict[str, Any]]] = {"translation": translate, "text": compose}


# --- in the sandbox -----------------------------------------------------------------------------------------


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
        by_name["layer_norm"] = lambda x, weights, name: _norm(parts, x, weights, name)
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
    except _TooSlowError:
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
        raise _TooSlowError

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
