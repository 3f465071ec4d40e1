"""`attend`, `backends` and `attend_in_model`: the only place that chooses a backend.

`attend_in_model` is what models call: it records nothing and checks less, because a model calls it many times a token.
"""

import math
from typing import Any

from regard.arrays import Array, is_tensor
from regard.dispatch.call import Call, receive
from regard.dispatch.guard import guarded
from regard.dispatch.numpy_backends import Answer, Answers, Backend
from regard.dispatch.recording import record_of, require_room_for
from regard.errors import BackendError, UnknownNameError
from regard.messages import Listed
from regard.records import Kind, See, Statistics


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
    """softmax(q kᵀ · scale + bias) v over what `mask` allows; with `see`, also the Record of what was looked at.

    NumPy in, NumPy out; torch in, torch out. q (…, T, E), k (…, S, E), v (…, S, Ev), two axes and up; from four up,
    k and v may have fewer heads than q. `mask` is a Mask or a boolean array, True = may look; `bias` is added to the
    scores; `softcap` bounds them before that: softcap · tanh(score / softcap). `kind` is that of the Record; with
    "cross", queries and keys are two texts, so that keys which a mask hides say nothing of queries.

    >>> import numpy as np
    >>> from regard import Mask, See
    >>> x = np.eye(3)
    >>> out, record = attend(x, x, x, mask=Mask.causal(), see=See(entropy=True))
    >>> record.map[0, 0].round(2).tolist()
    [[1.0, 0.0, 0.0], [0.36, 0.64, 0.0], [0.26, 0.26, 0.47]]
    """
    call = receive(q, k, v, mask=mask, bias=bias, scale=scale, softcap=softcap, dropout=dropout, see=see, kind=kind)
    chosen = choose(call, backend)
    require_room_for(call, chosen.scratch(call))
    out, found = computed(call, chosen)
    out = out.reshape(*call.sizes.lead, call.sizes.T, call.sizes.Ev)
    return out if see is None else (out, record_of(call, found).changed(kind=kind))


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
    """What every backend says about this call: yes, or its reason. The first yes is what `attend` takes.

    >>> import numpy as np
    >>> x = np.eye(3)
    >>> print(backends(x, x, x, dropout=0.1))
      blocked    no dropout here; reference can
    → reference  yes (builds the whole T × S matrix)
    """
    call = receive(q, k, v, mask=mask, bias=bias, scale=scale, softcap=softcap, dropout=dropout, see=see)
    said = [(one.name, one.answer(call)) for one in _all(call)]
    answers = Answers({name: str(answer) for name, answer in said})
    answers.chosen = next((name for name, answer in said if answer.yes), None)
    return answers


def computed(call: Call, chosen: Backend, trusted: bool = False) -> tuple[Array, Statistics]:
    """The chosen backend's answer, guarded; if `trusted`, only where something is hidden and may be looked at."""
    if not call.is_torch:
        return chosen.run(call) if trusted and call.bound is None else guarded(call, chosen)
    from regard.dispatch.overflow import may_branch
    from regard.functional.attention import without_autocast

    with without_autocast(call.q):  # the dtypes are chosen already
        unguarded = trusted and (call.bound is None or not may_branch(call.q))
        return chosen.run(call) if unguarded else guarded(call, chosen)


def _all(call: Call) -> tuple[Backend, ...]:
    if call.is_torch:
        from regard.dispatch.torch_backends import BACKENDS

        return BACKENDS
    from regard.dispatch.numpy_backends import BACKENDS as NUMPY_BACKENDS

    return NUMPY_BACKENDS


def choose(call: Call, name: str) -> Backend:
    """The backend of that name if it can do the call; for "auto" the first that can."""
    every = _all(call)
    first = next(one for one in every if one.answer(call).yes)  # the last one can do anything
    if name == "auto":
        return first
    named = next((one for one in every if one.name == name), None)
    if named is None:
        kind = "torch" if call.is_torch else "NumPy"
        raise UnknownNameError("backend-unknown", asked=name, kind=kind, names=Listed(b.name for b in every))
    answer: Answer = named.answer(call)
    if not answer.yes:
        raise BackendError("backend-refuses", name=name, reason=str(answer), chosen=first.name)
    return named


def attend_within(
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

    The guard against hidden garbage is left out where nothing is hidden, and where it may not look at values (on a
    GPU, and in a traced graph) and would have to work on every call. What a model hides from its queries it has
    computed itself, from the same weights as everything else.
    """
    if mask is None and bias is None and softcap is None and not dropout and _fit_at_a_glance(q, k, v):
        # Nothing but softmax(q kᵀ) v, thousands of times a text: the first backend's yes need not be asked for.
        from regard.functional.fused import sdpa

        return sdpa(q, k, v, scale=1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    call = receive(q, k, v, mask=mask, bias=bias, scale=scale, softcap=softcap, dropout=dropout)
    return computed(call, choose(call, "auto"), trusted=True)[0]


def _fit_at_a_glance(q: Array, k: Array, v: Array) -> bool:
    """Whether these are tensors that surely go together; what may be wrong is left to those who can say so."""
    if not (is_tensor(q) and is_tensor(k) and is_tensor(v) and q.ndim == k.ndim == v.ndim == 4):
        return False
    (B, H, _, E), (samples, G, _, width) = q.shape, k.shape
    same = samples == B and width == E and k.shape[:3] == v.shape[:3] and q.dtype == k.dtype == v.dtype
    return same and E > 0 and G > 0 and H % G == 0 and q.is_floating_point() and q.device == k.device == v.device
