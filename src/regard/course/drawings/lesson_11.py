"""The pictures of lesson 11: heads of the poet, measured on one poem, and what happens without them."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

import regard
from regard.course.drawings import measured
from regard.course.drawings.blocks import Drawing, Line, Matrix
from regard.course.drawings.lesson_08 import frame, loss_curve
from regard.dispatch import attend_in_model
from regard.kernels.division import one_blas_thread
from regard.masks import Mask
from regard.messages import Message
from regard.records import See
from regard.reference import softmax
from regard.trace import Recorder, Trace

POEM = "床前明月光，疑是地上霜。举头望明月，低头思故"
RHYME, NEXT = "霜", "乡"


class _Measured(NamedTuple):
    """One poem as the poet reads it: its tokens, its attention, and the probability of the next character.

    silenced   L H, with that head silenced for the last token
    hidden     S, with that key hidden from the last token in all layers
    """

    tokens: list[str]
    trace: Trace
    whole: float
    silenced: np.ndarray
    hidden: np.ndarray


@cache
def _measured() -> _Measured:
    poet = regard.load("poet")
    ids = [poet.tokenizer.special("eos"), *poet.tokenizer.encode("五绝｜" + POEM)]
    target = poet.tokenizer.encode(NEXT)[0]
    layers, heads, n = poet.config.layers_of("decoder"), poet.config.n_heads, len(ids)
    edits = layers * heads
    copies = edits + n + 1  # one head silenced, or one key hidden, in each; the last is unchanged
    keep = np.ones((copies, n), dtype=bool)
    keep[edits + np.arange(n), np.arange(n)] = False

    def edited(q: Any, k: Any, v: Any, *, name: str, kind: Any, mask: Any = None, **options: Any) -> Any:
        if len(q) != copies:
            return attend_in_model(q, k, v, name=name, kind=kind, mask=mask, **options)
        visible = Mask.from_keep(keep) if mask is None else mask & Mask.from_keep(keep)
        out = attend_in_model(q, k, v, name=name, kind=kind, mask=visible, **options)
        out[heads * int(name.split(".")[2]) + np.arange(heads), np.arange(heads)] = 0
        return out

    look = Recorder(See(qk=True))
    with one_blas_thread():
        poet.model([ids], attend=look)
        decoding = poet.model.begin(attend=edited)
        decoding.step([ids[:-1]])
        decoding.select([0] * copies)
        p = softmax(decoding.step([[ids[-1]]] * copies))[:, target]
    tokens = poet.tokenizer.pieces(ids)
    return _Measured(tokens, look.label(tokens), float(p[-1]), p[:edits].reshape(layers, heads), p[edits:-1])


def _labels(tokens: list[str]) -> list[str]:
    """Tokens of one character each, so that columns stay narrow."""
    return ["⏎" if token.startswith("<") else token for token in tokens]


def two_heads() -> Drawing:
    """The heads that look most clearly at the previous token and at punctuation, in the first two lines."""
    found, length = _measured(), 16
    shown = _labels(found.tokens[:length])

    def matrix(pattern: str, en: str, zh: str) -> Matrix:
        best = found.trace.heads().ranked(pattern)[0]
        weights = np.asarray(found.trace[best.name].weights())[0, best.head, :length, :length]
        weights = np.where(np.tri(length, dtype=bool), weights, np.nan)
        layer = best.name.split(".")[2]
        title = Message(f"{en}: layer {layer}, head {best.head}", f"{zh}：第 {layer} 层头 {best.head}")
        return Matrix(values=weights, title=title, rows=shown, columns=shown, decimals=None, highest=1.0)

    return Drawing(
        title=Message("Two heads of the poet", "写诗模型的两个头"),
        blocks=(
            Line(
                (
                    matrix("previous", "previous token", "前一词元"),
                    matrix("separator", "punctuation", "标点"),
                )
            ),
        ),
        caption=Message(
            "Rows look at columns; above the diagonal everything is masked. ⏎ is <eos>; 五绝｜ tells the poet the "
            "form.",
            "行看向列；对角线以上都被屏蔽。⏎ 是 <eos>；“五绝｜”告诉模型写哪种体裁。",
        ),
    )


def weight_and_effect() -> Drawing:
    """Layers × heads: the weight from the last character to its rhyme, and the fall of the next one's probability."""
    found = _measured()
    place = found.tokens.index(RHYME)
    weights = np.stack([np.asarray(record.weights())[0, :, -1, place] for record in found.trace])
    layers, heads = weights.shape
    rows = tuple(Message(f"layer {i}", f"第 {i} 层") for i in range(layers))
    columns = tuple(str(h) for h in range(heads))
    clear = frozenset((int(i), int(h)) for i, h in np.argwhere(weights > 0.4))
    fall = np.maximum(found.whole - found.silenced, 0)
    return Drawing(
        title=Message(
            "The weight from 故 to 霜, and what each head does to 乡", "从“故”到“霜”的权重，以及每个头对“乡”的作用"
        ),
        blocks=(
            Matrix(
                values=weights,
                title=Message("weight from 故 to 霜", "从“故”到“霜”的权重"),
                rows=rows,
                columns=columns,
                highest=1.0,
                marked=clear,
            ),
            Matrix(
                values=fall,
                title=Message(
                    f"fall of p(乡) = {found.whole:.2f} without it", f"关掉它，p(乡) = {found.whole:.2f} 下降多少"
                ),
                rows=rows,
                columns=columns,
                marked=clear,
            ),
        ),
        caption=Message(
            "Columns are heads. Five heads look at 霜 (framed); silencing four of them changes almost nothing.",
            "每一列是一个头。五个头看向“霜”（红框），关掉其中四个，几乎什么都不变。",
        ),
    )


def rollout_and_hiding() -> Drawing:
    """For each key: rollout, mean attention of the last token, and the effect of hiding it."""
    found = _measured()
    rolled = np.asarray(found.trace.rollout()[0].weights())[0, 0, -1]
    mean = np.mean([np.asarray(record.weights())[0, :, -1] for record in found.trace], axis=(0, 1))
    fall = np.maximum(found.whole - found.hidden, 0)
    rows = (
        Message("rollout", "rollout"),
        Message("mean attention", "平均注意力"),
        Message("effect of hiding", "隐藏的作用"),
    )
    values = np.stack([part / part.max() for part in (rolled, mean, fall)])
    return Drawing(
        title=Message(
            "Rollout, mean attention, and the effect of hiding each key", "Rollout、平均注意力，以及隐藏每个键的作用"
        ),
        blocks=(Matrix(values=values, rows=rows, columns=_labels(found.tokens), decimals=None, highest=1.0),),
        caption=Message(
            "Each row relative to its largest value; ⏎ is <eos>. Rollout points to the beginning, where hiding changes "
            "nothing. Hiding 思 changes most, 霜 and 月 a little.",
            "每一行按自己的最大值着色，⏎ 是 <eos>。Rollout 指向开头，而隐藏开头什么也不变。"
            "隐藏“思”影响最大，“霜”和“月”略有影响。",
        ),
    )


def induction_film() -> Drawing:
    """Three frames of both layers of the recipe `induction`, and its loss; from docs/pictures/film_frames.py."""
    film = measured("induction-film")

    steps = list(next(iter(film["frames"].values())))[1:]  # the first is nearly uniform

    def line(step: str) -> Line:
        return Line(
            tuple(
                frame(film, Message(f"layer {layer}, step {step}", f"第 {layer} 层，第 {step} 步"), weights[step])
                for layer, weights in enumerate(film["frames"].values())
            )
        )

    return Drawing(
        title=Message("An induction head grows", "归纳头的形成"),
        blocks=(*map(line, steps), loss_curve(film)),
        caption=Message(
            "The recipe induction, seed 0, reads a block of eight letters twice. In layer 0 each letter looks at the "
            "one before. In layer 1 the second copy looks at what followed the same letter in the first: a second "
            "diagonal, seven places back. Both appear when the loss falls.",
            "配方 induction，种子 0，读的是写了两遍的八个字母。在第 0 层，每个字母看前一个字母。在第 1 层，第二遍的字母"
            "看第一遍里同一个字母后面的字母：往回七位的另一条对角线。损失下降时，两者同时出现。",
        ),
    )


DRAWINGS = {
    "two-heads": two_heads,
    "induction-film": induction_film,
    "weight-and-effect": weight_and_effect,
    "rollout-and-hiding": rollout_and_hiding,
}
