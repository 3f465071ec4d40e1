"""Growing texts, found by comparing keys, whatever a cache does with them."""

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.capture.token_labels import GuardedTokenizer, KeyHistory, Text
from regard.records import DecodeStep


def keys_of(texts: list[list[int]]) -> Tensor:
    """Keys that depend on token and position: B 1 S 3."""
    return torch.tensor([[[[t * 1.0, at, t + at] for at, t in enumerate(text)]] for text in texts])


def spelled(text: Text, count: int) -> list[list[str]] | None:
    found = text.tokens(count)
    return None if found is None else [list(row) for row in found]


def started(texts: list[list[int]]) -> Text:
    text = Text("h.0", GuardedTokenizer(lambda ids: [str(i) for i in ids]))
    B, T = len(texts), len(texts[0])
    text.advance(keys_of(texts), B, T, T, np.array(texts))
    return text


def advance(text: Text, whole: list[list[int]], new: int, keys: Tensor | None = None) -> None:
    keys = keys_of(whole) if keys is None else keys
    text.advance(keys, len(whole), new, keys.shape[2], np.array([row[-new:] for row in whole]))


def test_a_growing_cache() -> None:
    text = started([[1, 2, 3], [4, 5, 6]])
    assert text.step is None
    advance(text, [[1, 2, 3, 7], [4, 5, 6, 8]], 1)
    assert text.step == DecodeStep(3, (0, 1))
    advance(text, [[1, 2, 3, 7, 9, 9], [4, 5, 6, 8, 9, 9]], 2)
    assert text.step == DecodeStep(4, (0, 1))
    assert text.total == 6
    assert spelled(text, 6) == [list("123799"), list("456899")]
    assert spelled(text, 2) == [list("99"), list("99")]


def test_beams_that_are_reordered_and_duplicated() -> None:
    text = started([[1, 2], [1, 2], [5, 2]])
    advance(text, [[1, 2, 3], [1, 2, 4], [5, 2, 3]], 1)
    assert text.step == DecodeStep(2, (0, 1, 2))
    advance(text, [[1, 2, 4, 6], [1, 2, 4, 7], [1, 2, 3, 6]], 1)
    assert text.step == DecodeStep(3, (1, 1, 0))
    assert spelled(text, 4) == [list("1246"), list("1247"), list("1236")]


def test_a_batch_that_grows_into_beams() -> None:
    text = started([[1, 2], [3, 4]])
    advance(text, [[1, 2, 5], [1, 2, 6], [3, 4, 5], [3, 4, 6]], 1)
    assert text.step == DecodeStep(2, (0, 0, 1, 1))


def test_a_cache_with_unused_positions() -> None:
    text = started([[1, 2, 3]])
    padded = torch.cat([keys_of([[1, 2, 3, 9]]), torch.zeros(1, 1, 4, 3)], 2)
    advance(text, [[1, 2, 3, 9]], 1, padded)
    assert text.step == DecodeStep(3, (0,))
    padded = torch.cat([keys_of([[1, 2, 3, 9, 8]]), torch.zeros(1, 1, 3, 3)], 2)
    advance(text, [[1, 2, 3, 9, 8]], 1, padded)
    assert text.step == DecodeStep(4, (0,))
    assert text.tokens(8, 0) == (("1", "2", "3", "9", "8", "", "", ""),)


def test_a_cache_that_drops_old_keys() -> None:
    text = started([[1, 2, 3, 4]])
    advance(text, [[1, 2, 3, 4, 5]], 1, keys_of([[1, 2, 3, 4, 5]])[:, :, 2:])
    assert text.step == DecodeStep(4, (0,))
    advance(text, [[1, 2, 3, 4, 5, 6]], 1, keys_of([[1, 2, 3, 4, 5, 6]])[:, :, 3:])
    assert text.step == DecodeStep(5, (0,))
    assert spelled(text, 3) == [list("456")]


def test_a_cropped_cache() -> None:
    text = started([[1, 2, 3, 4]])
    advance(text, [[1, 2, 7, 8]], 2)
    assert text.step == DecodeStep(2, (0,))
    assert (text.total, spelled(text, 4)) == (4, [list("1278")])


def test_a_cropped_cache_that_drops_old_keys() -> None:
    text = started([[1, 2, 3, 4, 5, 6]])
    advance(text, [[1, 2, 3, 4, 7, 8]], 2, keys_of([[1, 2, 3, 4, 7, 8]])[:, :, 2:])
    assert text.step == DecodeStep(4, (0,))
    advance(text, [[1, 2, 3, 4, 7, 9]], 1, keys_of([[1, 2, 3, 4, 7, 9]])[:, :, 3:])
    assert text.step == DecodeStep(5, (0,))
    assert spelled(text, 6) == [list("123479")]


def test_keys_without_positions_are_cropped_as_little_as_possible() -> None:
    """Like values: the same words twice have equal keys."""
    text = Text("h.0", GuardedTokenizer(None))
    words = torch.tensor([1.0, 2, 1, 2, 5])[None, None, :, None]
    text.advance(words, 1, 5, 5, None)
    text.advance(torch.tensor([1.0, 2, 7])[None, None, :, None], 1, 1, 3, None)
    assert text.step == DecodeStep(4, (0,))


def test_another_text_starts_anew() -> None:
    text = started([[1, 2, 3]])
    advance(text, [[7, 8, 9]], 3)
    assert text.step is None
    advance(text, [[1, 2, 3, 4]], 1)  # a cache that was filled before the watch
    assert text.step is None


def test_without_keys_only_sizes_are_compared() -> None:
    text = Text("h.0", GuardedTokenizer(None))
    text.advance(None, 2, 3, 3, None)
    text.advance(None, 2, 1, 4, None)
    assert text.step == DecodeStep(3, (0, 1))
    text.advance(None, 2, 1, 9, None)
    assert text.step is None
    assert text.tokens(1) is None


def test_missed_tokens_are_not_invented() -> None:
    text = started([[1, 2]])
    text.advance(keys_of([[1, 2, 3]]), 1, 1, 3, None)
    assert text.tokens(3) is None
    advance(text, [[1, 2, 3, 4]], 1)
    assert text.step == DecodeStep(3, (0,))
    assert text.tokens(4) is None


def test_a_module_shared_by_several_layers_reads_once() -> None:
    text = started([[1, 2]])
    text.advance(torch.rand(1, 1, 2, 3), 1, 2, 2, None)
    assert spelled(text, 2) == [list("12")]


# --- keys ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beams", [False, True])
def test_keys_of_every_step_are_rebuilt(beams: bool) -> None:
    """The keys of each call alone give the whole cache of every step, also with beams."""
    torch.manual_seed(0)
    cache, keys, caches = torch.rand(3, 2, 4, 5), KeyHistory(), []
    keys.add(DecodeStep(0, (0, 1, 2)), cache)
    for parents in ((0, 1, 2), (2, 2, 0), (1, 0, 1)):
        parents = parents if beams else (0, 1, 2)
        cache = torch.cat([cache[list(parents)], torch.rand(3, 2, 1, 5)], 2)
        keys.add(DecodeStep(cache.shape[2] - 1, parents), cache[:, :, -1:])
        caches.append(cache)
    for count, expected in enumerate(caches, start=2):
        assert torch.equal(keys.until(count), expected)
    assert keys.total == 7


def test_keys_that_were_removed() -> None:
    first, second, third = torch.rand(1, 1, 4, 2), torch.rand(1, 1, 1, 2), torch.rand(1, 1, 2, 2)
    keys = KeyHistory()
    for step, piece in ((DecodeStep(0, (0,)), first), (DecodeStep(4, (0,)), second), (DecodeStep(3, (0,)), third)):
        keys.add(step, piece)
    assert torch.equal(keys.until(3), torch.cat([first[:, :, :3], third], 2))
    assert torch.equal(keys.until(2), torch.cat([first, second], 2))


def test_keys_repeated_in_one_call_only() -> None:
    keys = KeyHistory()
    keys.add(DecodeStep(0, (0,)), torch.ones(1, 2, 3, 4))
    keys.add(DecodeStep(3, (0,)), torch.ones(1, 4, 1, 4))
    assert keys.until(2).shape == (1, 4, 4, 4)
