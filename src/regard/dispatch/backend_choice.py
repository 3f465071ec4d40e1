"""`attend`, `backends` and `attend_in_model`: validate a call, choose a backend, run it, and make its Record.

Models call `attend_in_model`. It records nothing and checks less, because a model calls it many times per token.
"""

import math
from copy import deepcopy
from typing import Any, TypeVar, overload

import numpy as np

from regard.arrays import Array, is_tensor, is_tracing
from regard.attention_call import AttentionCall, RectangleFunction, WeightsFromQK, make_call
from regard.dispatch.backend import Answers, Backend, Support, run_guarded
from regard.errors import BackendError, UnknownNameError
from regard.kernels import blocked
from regard.masks.padding import Padding, without_rows
from regard.memory import free_gpu_bytes, is_surely_free, require_bytes
from regard.messages import Listed
from regard.records import CHECK_MEMORY_FROM, Kind, Record, See, Statistics
from regard.statistics_table import bytes_of


def require_memory_for(call: AttentionCall, scratch: int = 0) -> None:
    """Raise TooLargeError where the Record and `scratch` bytes of temporary memory would not fit."""
    see, sizes = call.see, call.sizes
    if see is None or is_tracing():
        return
    need = bytes_of(see, (sizes.B, sizes.H, sizes.T, sizes.S), sizes.Ev) + scratch
    if need > 4 * CHECK_MEMORY_FROM and not is_surely_free(call.q, need):
        require_bytes(need, key="record-too-large", free=free_gpu_bytes(call.q))


def make_record(call: AttentionCall, found: Statistics, out: Array | None = None) -> Record:
    """The Record of the call; with `See(qk=True)` it keeps copies of q, k, mask and bias, safe from later changes.

    out   B H T Ev, of which it keeps a copy with `See(outputs=True)`
    """
    assert call.see is not None
    sizes = call.sizes
    record = Record(
        shape=(sizes.B, sizes.H, sizes.T, sizes.S),
        **(found if call.see.lse else found._replace(lse=None))._asdict(),
        value_norms=_value_norms(call) if call.see.values else None,
        outputs=None if out is None or not call.see.outputs else copied_outputs(out, call.padding),
        padding=call.padding,
    )
    if not call.see.qk:
        return record
    lse: Array = found.lse
    return record.changed(exact=_exact_weights(call, lse.detach() if call.is_torch else lse))


def _exact_weights(call: AttentionCall, lse: Array) -> WeightsFromQK:
    sizes, mask = call.sizes, deepcopy(call.mask)
    return WeightsFromQK(
        q=_copy(call.q),
        k=_copy(call.k),
        lse=lse,
        scale=call.scale,
        lead=sizes.lead,
        compute=_rectangle_function(call),
        mask=mask,
        bound=None if mask is None else mask.bind(sizes.lead, sizes.T, sizes.S, call.q),
        bias=None if call.bias is None else _copy(call.bias),
        softcap=call.softcap,
        v=_copy(call.v) if call.see is not None and call.see.v else None,
    )


def _rectangle_function(call: AttentionCall) -> RectangleFunction:
    if call.is_torch:
        from regard.dispatch.torch_backends import rectangle

        return rectangle
    return blocked.rectangle


def _value_norms(call: AttentionCall) -> Array:
    """The norm of each value vector, for every query head, B H S."""
    v, heads = call.v, call.sizes.H // max(1, call.sizes.G)  # B G S Ev, and heads to a group
    if call.is_torch:
        v = v.detach()
        return (v.float() if v.element_size() < 4 else v).norm(dim=-1).repeat_interleave(heads, 1)
    v = v.astype(np.float32) if v.dtype.itemsize < 4 else v  # squares of half precision overflow
    return np.repeat(np.linalg.norm(v, axis=-1), heads, axis=1)


def copied_outputs(out: Array, padding: Padding | None) -> Array:
    """A copy of outputs B H T Ev, with 0 for padding."""
    text = None if padding is None else padding.queries
    return _copy(out) if text is None else without_rows(out.detach() if is_tensor(out) else out, text, 0, axes=1)


def _copy(x: Array) -> Array:
    return x.copy() if isinstance(x, np.ndarray) else x.detach().clone()


A = TypeVar("A")
"""The caller's type of array."""


@overload
def attend(
    q: A,
    k: A,
    v: A,
    mask: Any = None,
    bias: Any = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
    backend: str = "auto",
    see: None = None,
    kind: Kind = "self",
) -> A: ...
@overload
def attend(
    q: A,
    k: A,
    v: A,
    mask: Any = None,
    bias: Any = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
    backend: str = "auto",
    *,
    see: See,
    kind: Kind = "self",
) -> tuple[A, Record]: ...
def attend(
    q: Array,
    k: Array,
    v: Array,
    mask: Any = None,
    bias: Any = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
    backend: str = "auto",
    see: See | None = None,
    kind: Kind = "self",
) -> Any:
    """Attention: softmax(q kᵀ · scale + bias) v over the keys that `mask` makes visible; with `see`, also a Record.

    NumPy in, NumPy out; torch in, torch out. q (…, T, E), k (…, S, E), v (…, S, Ev), two axes and up; from four up,
    k and v may have fewer heads than q.

    mask      a Mask or a boolean array, True = visible
    bias      added to the scores
    scale     by default 1/√E
    softcap   bounds the scores before the bias is added: softcap · tanh(score / softcap)
    dropout   the probability that a weight is dropped: pass 0 outside training
    backend   a name that `backends` lists; "auto" takes the first that can run the call
    see       the statistics of the Record
    kind      the kind of the Record; with "cross", queries and keys are two texts, so masked keys do not imply that
              queries are padding

    >>> import numpy as np
    >>> from regard import Mask, See
    >>> x = np.eye(3)
    >>> out, record = attend(x, x, x, mask=Mask.causal(), see=See(entropy=True))
    >>> record.map[0, 0].round(2).tolist()
    [[1.0, 0.0, 0.0], [0.36, 0.64, 0.0], [0.26, 0.26, 0.47]]
    """
    call = make_call(q, k, v, mask=mask, bias=bias, scale=scale, softcap=softcap, dropout=dropout, see=see, kind=kind)
    chosen = choose(call, backend)
    require_memory_for(call, chosen.scratch(call))
    out, found = run_backend(call, chosen)
    record = None if see is None else make_record(call, found, out).changed(kind=kind)
    out = out.reshape(*call.sizes.lead, call.sizes.T, call.sizes.Ev)
    return out if see is None else (out, record)


def backends(
    q: Array,
    k: Array,
    v: Array,
    mask: Any = None,
    bias: Any = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
    see: See | None = None,
) -> Answers:
    """Whether each backend can run this call: yes, or the reason why not. `attend` uses the first yes.

    >>> import numpy as np
    >>> x = np.eye(3)
    >>> print(backends(x, x, x, dropout=0.1))
      blocked    no dropout here; reference can
    → reference  yes (builds the whole T × S matrix)
    """
    call = make_call(q, k, v, mask=mask, bias=bias, scale=scale, softcap=softcap, dropout=dropout, see=see)
    found = [(one.name, one.answer(call)) for one in _all(call)]
    answers = Answers({name: str(answer) for name, answer in found})
    answers.chosen = next((name for name, answer in found if answer.yes), None)
    return answers


def run_backend(call: AttentionCall, chosen: Backend, trusted: bool = False) -> tuple[Array, Statistics]:
    """Run the chosen backend, guarded. If `trusted`, guard only masked calls, and only where values may be read."""
    if not call.is_torch:
        return chosen.run(call) if trusted and call.bound is None else run_guarded(call, chosen)
    from regard.dispatch.overflow import may_branch
    from regard.functional.attention import without_autocast

    with without_autocast(call.q):  # the dtypes are chosen already
        unguarded = trusted and (call.bound is None or not may_branch(call.q))
        return chosen.run(call) if unguarded else run_guarded(call, chosen)


def _all(call: AttentionCall) -> tuple[Backend, ...]:
    if call.is_torch:
        from regard.dispatch.torch_backends import BACKENDS

        return BACKENDS
    from regard.dispatch.backend import BACKENDS as NUMPY_BACKENDS

    return NUMPY_BACKENDS


def choose(call: AttentionCall, name: str) -> Backend:
    """The backend of that name if it can run the call; for "auto" the first that can."""
    every = _all(call)
    first = next(one for one in every if one.answer(call).yes)  # the last one can run any call
    if name == "auto":
        return first
    named = next((one for one in every if one.name == name), None)
    if named is None:
        kind = "torch" if call.is_torch else "NumPy"
        raise UnknownNameError("backend-unknown", asked=name, kind=kind, names=Listed(b.name for b in every))
    answer: Support = named.answer(call)
    if not answer.yes:
        raise BackendError("backend-refuses", name=name, reason=str(answer), chosen=first.name)
    return named


def attend_in_model(
    q: Array,
    k: Array,
    v: Array,
    *,
    name: str = "attention",
    kind: Kind = "self",
    mask: Any = None,
    bias: Any = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
) -> Array:
    """`attend` for a model's own activations: four axes in, B H T Ev out, and no Record.

    The guard against masked non-finite values is skipped where nothing is masked, and where values may not be read
    (on a GPU, and in a traced graph) so that it would cost time on every call. The model has computed its masked keys
    and values itself, from the same weights as everything else.
    """
    if mask is None and bias is None and softcap is None and not dropout and _clearly_valid(q, k, v):
        # Only softmax(q kᵀ) v, thousands of times per text: choosing a backend is not needed.
        from regard.functional.fused import sdpa

        return sdpa(q, k, v, scale=1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    call = make_call(q, k, v, mask=mask, bias=bias, scale=scale, softcap=softcap, dropout=dropout)
    return run_backend(call, choose(call, "auto"), trusted=True)[0]


def _clearly_valid(q: Array, k: Array, v: Array) -> bool:
    """Whether these tensors certainly form a valid call; any other call is checked by `make_call`."""
    if not (is_tensor(q) and is_tensor(k) and is_tensor(v) and q.ndim == k.ndim == v.ndim == 4):
        return False
    (B, H, _, E), (samples, G, _, width) = q.shape, k.shape
    same = samples == B and width == E and k.shape[:3] == v.shape[:3] and q.dtype == k.dtype == v.dtype
    return same and E > 0 and G > 0 and H % G == 0 and q.is_floating_point() and q.device == k.device == v.device
