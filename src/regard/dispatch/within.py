"""attention as a model calls it, many times a token: nobody looks, and the name is for those who do."""

from typing import Any

from regard.dispatch.call import receive
from regard.dispatch.choice import choose, computed
from regard.kinds import Array
from regard.records import Kind


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

    Where the guard against hidden garbage may not look at values (on a GPU, and in a traced graph) it would have to
    work on every call; here it is left out then. What a model hides from its queries it has computed itself, from
    the same weights as everything else.
    """
    call = receive(q, k, v, mask=mask, bias=bias, scale=scale, softcap=softcap, dropout=dropout)
    return computed(call, choose(call, "auto"), trusted=True)[0]
