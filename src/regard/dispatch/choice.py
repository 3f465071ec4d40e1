"""attend and backends: the only place that chooses who computes."""

from typing import Any

from regard.dispatch.backend import Answer, Answers, Backend
from regard.dispatch.call import Call, receive
from regard.dispatch.guard import guarded
from regard.dispatch.remember import record_of, require_room_for
from regard.errors import BackendError, UnknownNameError
from regard.kinds import Array
from regard.records import Kind, See, Statistics
from regard.words import Listed


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
