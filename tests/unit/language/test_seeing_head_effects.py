"""The head that opens is one that matters: silenced, it moves what is written more than the other candidates do."""

import numpy as np
import pytest
from tolerances import assert_close

from regard import load
from regard.dispatch import attend_within
from regard.language.seeing import Silenced, head_that_matters
from regard.trace import Trace

WIDTH = 6


def logits_of(attend: object, sizes: tuple[float, ...]) -> np.ndarray:
    """One layer of heads whose outputs count as much as `sizes` says: those of size 0 change nothing."""
    x = np.random.default_rng(0).normal(size=(1, len(sizes), 8, WIDTH))
    out = attend(x, x, x, name="h.0.attn", kind="decoder")  # type: ignore[operator]
    return np.einsum("bhte,h->bte", out, np.array(sizes))


def weights() -> np.ndarray:
    """Three heads with clear patterns: the token before, the token itself, the first one."""
    return np.stack([np.eye(8)[[0, *range(7)]], np.eye(8), np.eye(8)[[0] * 8]])


@pytest.mark.parametrize(("sizes", "head"), [((1.0, 0.1, 9.0), 0), ((0.0, 1.0, 9.0), 1)])
def test_of_two_clear_heads_the_one_that_moves_more(sizes: tuple[float, ...], head: int) -> None:
    """The head on the first token is no candidate, however much it moves."""
    trace = Trace.from_weights(weights(), kind="decoder", name="h.0.attn")
    assert head_that_matters(trace, lambda attend: logits_of(attend, sizes)) == ("h.0.attn", head)


def test_where_no_head_has_a_pattern_there_is_none() -> None:
    even = np.tril(np.ones((8, 8))) / np.arange(1, 9)[:, None]
    assert head_that_matters(Trace.from_weights(even, kind="decoder"), lambda attend: np.zeros((1, 8, 3))) is None


def test_a_silenced_head_adds_nothing_and_the_others_what_they_did() -> None:
    q = np.random.default_rng(1).normal(size=(1, 3, 4, 5))
    plain = attend_within(q, q, q, name="a", kind="decoder")
    silenced = Silenced("a", 1)(q, q, q, name="a", kind="decoder")
    assert not silenced[:, 1].any()
    assert_close(silenced[:, [0, 2]], plain[:, [0, 2]])
    assert_close(Silenced("b", 1)(q, q, q, name="a", kind="decoder"), plain)


def test_the_poet_opens_with_a_head_that_matters() -> None:
    """Among its candidates no other moves the poem more."""
    poet = load("poet")
    trace = poet.see("床前明月光", output="，疑是地上霜。举头望明月，低头思故乡。").trace
    assert trace.opening is not None
    ids = np.array([poet.tokenizer.encode("五绝｜床前明月光，疑是地上霜。举头望明月，低头思故乡。")])

    def moved(name: str, head: int) -> float:
        p, q = (poet.model(ids, attend=way) for way in (attend_within, Silenced(name, head)))
        p, q = (x - np.log(np.exp(x).sum(-1, keepdims=True)) for x in (p, q))
        return float((np.exp(p) * (p - q)).sum(-1).mean())

    clear = [head for head in trace.heads() if head.best is not None and head.best.pattern != "first"][:8]
    assert trace.opening == max(((head.name, head.head) for head in clear), key=lambda place: moved(*place))
