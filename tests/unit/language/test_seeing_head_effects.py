"""The opening head is the candidate with the largest effect on the output when silenced."""

import numpy as np
import pytest
from tolerances import assert_close

from regard import load
from regard.dispatch import attend_in_model
from regard.language.seeing import Silenced, most_effective_head
from regard.trace import Trace

WIDTH = 6


def logits_of(attend: object, sizes: tuple[float, ...]) -> np.ndarray:
    """The logits of one layer whose heads have these weights in the output; size 0 has no effect."""
    x = np.random.default_rng(0).normal(size=(1, len(sizes), 8, WIDTH))
    out = attend(x, x, x, name="h.0.attn", kind="decoder")  # type: ignore[operator]
    return np.einsum("bhte,h->bte", out, np.array(sizes))


def weights() -> np.ndarray:
    """Three heads with clear patterns: previous token, same token, first token."""
    return np.stack([np.eye(8)[[0, *range(7)]], np.eye(8), np.eye(8)[[0] * 8]])


@pytest.mark.parametrize(("sizes", "head"), [((1.0, 0.1, 9.0), 0), ((0.0, 1.0, 9.0), 1)])
def test_the_head_with_the_larger_effect_is_chosen(sizes: tuple[float, ...], head: int) -> None:
    """The head on the first token is not a candidate, whatever its effect."""
    trace = Trace.from_weights(weights(), kind="decoder", name="h.0.attn")
    assert most_effective_head(trace, lambda attend: logits_of(attend, sizes)) == ("h.0.attn", head)


def test_without_a_clear_pattern_there_is_none() -> None:
    even = np.tril(np.ones((8, 8))) / np.arange(1, 9)[:, None]
    assert most_effective_head(Trace.from_weights(even, kind="decoder"), lambda attend: np.zeros((1, 8, 3))) is None


def test_a_silenced_head_is_zero_and_others_are_unchanged() -> None:
    q = np.random.default_rng(1).normal(size=(1, 3, 4, 5))
    plain = attend_in_model(q, q, q, name="a", kind="decoder")
    silenced = Silenced("a", 1)(q, q, q, name="a", kind="decoder")
    assert not silenced[:, 1].any()
    assert_close(silenced[:, [0, 2]], plain[:, [0, 2]])
    assert_close(Silenced("b", 1)(q, q, q, name="a", kind="decoder"), plain)


def test_the_poet_opens_with_the_most_effective_head() -> None:
    """No other candidate has a larger effect on the poem."""
    poet = load("poet")
    trace = poet.see("床前明月光", output="，疑是地上霜。举头望明月，低头思故乡。").trace
    assert trace.opening is not None
    ids = np.array([poet.tokenizer.encode("五绝｜床前明月光，疑是地上霜。举头望明月，低头思故乡。")])

    def effect(name: str, head: int) -> float:
        p, q = (poet.model(ids, attend=attend) for attend in (attend_in_model, Silenced(name, head)))
        p, q = (x - np.log(np.exp(x).sum(-1, keepdims=True)) for x in (p, q))
        return float((np.exp(p) * (p - q)).sum(-1).mean())

    clear = [head for head in trace.heads() if head.best is not None and head.best.pattern != "first"][:8]
    assert trace.opening == max(((head.name, head.head) for head in clear), key=lambda place: effect(*place))
