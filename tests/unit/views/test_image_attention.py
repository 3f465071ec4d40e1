"""trace.image: what is asked, exact weights and shares, sinks, several pictures, invalid questions."""

from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib import pyplot

import regard
from regard import See, Trace
from regard.errors import ArgumentError, NotKeptError, UnknownNameError
from regard.images import RecordImage
from regard.messages import LANGUAGES, Language, say
from regard.trace.measures.image_attention import attend_to_images, find_word
from regard.views.image_attention import image_title
from vision_models import TorchvisionLike, pictures

mpl.use("Agg")
GRID = (3, 4)
WORDS = ["<s>", *["·"] * 12, "gir", "affe", "eats"]


def made(sink: bool = True, kind: Any = "encoder") -> Trace:
    """Two heads over a first token, twelve patches and three words; one corner attracts every query."""
    weights = np.random.default_rng(0).gamma(1.0, 1.0, (1, 2, 16, 16))
    weights[..., 1] += 30 * sink
    weights /= weights.sum(-1, keepdims=True)
    picture = np.random.default_rng(1).integers(0, 256, (30, 40, 3)).astype(np.uint8)
    return Trace.from_weights(weights, queries=WORDS, name="layers.0.attn", kind=kind).with_image(
        picture, GRID, first=1, side="both"
    )


def words_of(figure: Any) -> str:
    texts = [figure.get_suptitle(), figure.get_supxlabel(), *(ax.get_title() for ax in figure.axes)]
    pyplot.close(figure)
    return "\n".join(texts)


def test_a_word_of_several_tokens_is_the_mean_of_its_queries() -> None:
    trace = made()
    weights = np.asarray(trace[0].weights())[0]
    found = attend_to_images(trace, "giraffe", head=1)
    assert (found.positions, found.head) == ((13, 14), 1)
    np.testing.assert_allclose(found.views[0].weights, weights[1, 13:15, 1:13].mean(0).reshape(GRID))
    assert found.share == pytest.approx(weights[1, 13:15, 1:13].mean(0).sum())
    assert found.first == pytest.approx(weights[1, 13:15, 0].mean())
    mean = attend_to_images(trace, "giraffe")
    np.testing.assert_allclose(mean.views[0].weights, weights[:, 13:15, 1:13].mean((0, 1)).reshape(GRID))


def test_patches_positions_and_defaults() -> None:
    trace = made()
    assert attend_to_images(trace, (2, 3)).positions == (12,)
    assert attend_to_images(trace, -1).label == "eats"
    assert attend_to_images(trace).positions == tuple(range(16))
    assert attend_to_images(made(kind="decoder")).positions == (15,)
    assert find_word("EATS", WORDS) == (15,)
    assert find_word("床", ["⟨E5⟩", "⟨BA⟩", "⟨8A⟩", "前"]) == (0, 1, 2)


def test_sinks_are_patches_to_which_nearly_every_query_attends() -> None:
    view = attend_to_images(made(), "eats").views[0]
    assert view.sinks is not None
    assert np.argwhere(view.sinks).tolist() == [[0, 0]]
    assert (view.sink_share, view.border_sinks) == (view.weights[0, 0], 1)
    without = attend_to_images(made(sink=False), "eats").views[0]
    assert without.sinks is not None
    assert not without.sinks.any()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_figure_says_what_is_shown(lang: Language) -> None:
    trace = made()
    view = attend_to_images(trace, "eats", head=0)
    figure = trace.image("eats", head=0, lang=lang)
    overlay = figure.axes[1]
    np.testing.assert_allclose(np.asarray(overlay.images[1].get_array()), view.views[0].weights)
    text = words_of(figure)
    assert say("image-of-word", lang, word="eats") in text
    assert "layers.0.attn" in text
    assert say("screen-head", lang, head=0) in text
    assert f"{100 * view.share:.1f} %" in text
    assert f"{100 * view.views[0].sink_share:.1f} %" in text


def test_crops_and_frames_have_panels_of_their_own() -> None:
    record = made()[0]
    first, second = (replace(record.images[0], grid=(2, 3), first=at, crop=at // 6) for at in (1, 7))
    several = record.changed(images=(first, second, replace(first, number=1, crop=None, frame=3, grid=(1, 2))))
    figure = Trace([several]).image("eats", lang="en")
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    found = attend_to_images(Trace([several]), "eats")
    assert titles == [
        f"picture 1 · crop 1 · {100 * found.views[0].share:.1f} %",
        f"picture 1 · crop 2 · {100 * found.views[1].share:.1f} %",
        f"picture 2 · frame 4 · {100 * found.views[2].share:.1f} %",
    ]
    assert "on 3 pictures" in words_of(figure)
    assert len(attend_to_images(Trace([several]), "eats", image=1).views) == 1
    assert image_title(several.images[0], several.images, "zh") == "图 1 · 切块 1"


def test_patches_that_attend_to_a_word() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(3), (1, 2, 6))
    image = RecordImage(None, (2, 3), side="queries")
    trace = Trace.from_weights(weights, keys=["a", "red", "dog"], kind="cross")
    trace = Trace([trace[0].changed(images=(image,))])
    found = attend_to_images(trace, "dog", head=1)
    np.testing.assert_allclose(found.views[0].weights, weights[0, 1, :, 2].reshape(2, 3))
    assert "attention of each patch to “dog”" in words_of(trace.image("dog", lang="en"))


def test_rollout_keeps_the_picture() -> None:
    torch.manual_seed(0)
    model = TorchvisionLike().eval()
    with torch.no_grad(), regard.watch(model, see=See(map=512)) as trace:
        model(pictures(1, 3, 16, 24))
    rolled = trace.rollout()
    found = attend_to_images(trace, "[CLS]", layer="rollout")
    whole = np.asarray(rolled[0].weights())[0, 0]
    np.testing.assert_allclose(found.views[0].weights.reshape(-1), whole[0, 1:], rtol=1e-6)
    assert rolled[0].images[0].grid == (4, 6)
    pyplot.close(trace.image("[CLS]", layer="rollout"))


@pytest.mark.parametrize(
    ("question", "error", "words"),
    [
        ({"query": "zebra"}, UnknownNameError, "no 'zebra' among the 16 tokens of 'layers.0.attn'"),
        ({"query": (3, 0)}, ArgumentError, r"no patch \(3, 0\): the picture has 3 × 4 patches"),
        ({"query": 2.5}, ArgumentError, "a word, a position, or the row and column"),
        ({"query": "eats", "head": 2}, ArgumentError, "head"),
        ({"query": "eats", "head": "best"}, ArgumentError, "the number of a head"),
        (
            {"query": "eats", "image": 1},
            ArgumentError,
            "image=1: 'layers.0.attn' has no such picture; its pictures are numbered 0",
        ),
        ({"query": "eats", "image": -1}, ArgumentError, "from 0 on"),
        ({"query": "eats", "layer": "h.9"}, UnknownNameError, "h.9"),
    ],
)
def test_invalid_questions_are_one_sentence(question: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        made().image(**question)


def test_weights_that_were_not_kept_say_how_to_keep_them() -> None:
    record = made()[0].changed(exact=None, map=None)
    with pytest.raises(NotKeptError, match="qk=True"):
        Trace([record]).image("eats")


def test_a_layer_without_patches_says_so() -> None:
    trace = Trace([*made(), Trace.from_weights(np.eye(3), name="text.0.attn")[0]])
    with pytest.raises(ArgumentError, match=r"'text\.0\.attn' has no patches"):
        trace.image("eats", layer="text.0.attn")
