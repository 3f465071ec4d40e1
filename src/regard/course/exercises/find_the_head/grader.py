"""The sheet of `find-the-head`: four heads of the bundled models, found by looking at where they look.

The models run here, in NumPy, when a sheet is judged: nothing is known by heart. A head whose mean weight is within
90 % of the best head's is as right as the best.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from regard.course.exercise import Field, Sheet, SheetSlip
from regard.language import load
from regard.messages import Language, Words
from regard.records import Kind
from regard.trace import Trace

TEXT, TRANSLATION = "I love you.", "我爱你。"
PROMPTS = ("床前明月光", "明月", "白日依山尽，", "春眠不觉晓，")
NEARLY = 0.9
Place = tuple[int, int]
"""Layer and head."""

HEAD = Words(
    en="# Each answer is [layer, head], counted from 0, as in [2, 7]. The command above each question shows them.\n"
    "# A row belongs to the token just read, and shows where the model looks to write the next one.\n",
    zh="# 每个答案是 [层, 头]，都从 0 数起，比如 [2, 7]。题目上面的命令会把它们画出来。\n"
    "# 一行属于刚读到的词元，显示模型为了写下一个词元在看哪里。\n",
)
QUESTIONS = {
    "ahead": Words(
        en="Cross-attention: about to write 我, 爱, 你 (rows <bos>, 我, 爱), it looks at I, love, you.",
        zh="交叉注意力：正要写 我、爱、你（<bos>、我、爱 三行）时，它看 I、love、you。",
    ),
    "back": Words(
        en="Cross-attention: having written 我, 爱, 你 (rows 我, 爱, 你), it looks back at I, love, you.",
        zh="交叉注意力：写完 我、爱、你（我、爱、你 三行）之后，它回头看 I、love、you。",
    ),
    "first": Words(
        en="Self-attention of the decoder: every row after the first looks most at <bos>.",
        zh="解码器的自注意力：第一行之后，每一行最看重 <bos>。",
    ),
    "previous": Words(
        en="The poet: every character looks most at the one before it.",
        zh="写诗的模型：每个字最看重前一个字。",
    ),
}
MEASURED = Words(
    en="head {place} puts a mean weight of {weight:.2f} on the places that are asked for, the best head {best:.2f}",
    zh="头 {place} 落在所问位置上的平均权重是 {weight:.2f}，最好的头是 {best:.2f}",
)


@dataclass(frozen=True, eq=False)
class Scores:
    """The mean weight that each head puts on what is asked for."""

    found: np.ndarray
    """L H."""

    @property
    def best(self) -> Place:
        return self.ranked[0]

    @property
    def ranked(self) -> list[Place]:
        """All heads, the best first."""
        order = np.argsort(-self.found, axis=None, kind="stable")
        return [(int(place) // self.found.shape[1], int(place) % self.found.shape[1]) for place in order]

    @property
    def right(self) -> list[Place]:
        """The best head and those nearly as good."""
        return [place for place in self.ranked if self.found[place] >= NEARLY * self.found.max()]


# --- looking -----------------------------------------------------------------------------------------------


def prompt(seed: int) -> str:
    """What the poet goes on from."""
    return PROMPTS[seed % len(PROMPTS)]


@cache
def translator() -> Trace:
    return load("translator").see(TEXT, output=TRANSLATION).trace


@cache
def poet(text: str) -> Trace:
    return load("poet").see(text).trace


def looked(trace: Trace, kind: Kind, pairs: Sequence[tuple[int, int]]) -> Scores:
    """The mean weight of the pairs (row, column), for each head of a kind."""
    rows, columns = np.array(pairs).T
    layers = [np.asarray(record.weights())[0] for record in trace.select(kind=kind)]  # each H T S
    return Scores(np.stack([layer[:, rows, columns].mean(-1) for layer in layers]))


def back_by(places: int | None, trace: Trace, kind: Kind) -> Scores:
    """How much each row after the first looks so many places back; None: at the first token."""
    rows = range(1, trace.select(kind=kind)[0].shape[-2])
    return looked(trace, kind, [(row, 0 if places is None else row - places) for row in rows])


first, itself, previous = (partial(back_by, places) for places in (None, 0, 1))


@cache
def asked(seed: int) -> Mapping[str, Scores]:
    """The scores that answer each question."""
    return {
        "ahead": looked(translator(), "cross", [(0, 0), (1, 1), (2, 2)]),
        "back": looked(translator(), "cross", [(1, 0), (2, 1), (3, 2)]),
        "first": first(translator(), "decoder"),
        "previous": previous(poet(prompt(seed)), "decoder"),
    }


def make(seed: int, lang: Language) -> str:
    """The empty sheet."""
    see = f'regard see "{TEXT}" --kind {{kind}} --layer all --head all'
    commands = {
        "ahead": see.format(kind="cross"),
        "back": see.format(kind="cross"),
        "first": see.format(kind="decoder"),
        "previous": f'regard see "{prompt(seed)}" --model poet --html poet.html',  # 48 heads: too many for a screen
    }
    lines = [getattr(HEAD, lang), f"seed = {seed}"]
    for name, question in QUESTIONS.items():
        lines += ["", f"# {commands[name]}", f"# {getattr(question, lang)}", f"{name} = []"]
    return "\n".join(lines) + "\n"


def fields(seed: int) -> Sequence[Field]:
    """Each with the heads that are nearly as good."""
    return [
        Field(name, list(scores.best), step=name, also=tuple(list(place) for place in scores.right[1:]))
        for name, scores in asked(seed).items()
    ]


# --- wrong in known ways -----------------------------------------------------------------------------------


def slip(id: str, wrong: Callable[[int], Mapping[str, "Scores | Sequence[Place]"]]) -> SheetSlip:
    """For each question the first of these heads that is not right after all."""

    def answers(seed: int) -> dict[str, list[int]]:
        told = {}
        for name, heads in wrong(seed).items():
            ranked = heads.ranked if isinstance(heads, Scores) else heads
            missed = [list(place) for place in ranked if place not in asked(seed)[name].right]
            if missed:
                told[name] = missed[0]
        return told

    return SheetSlip(id, answers)


def turned(id: str, wrong: Callable[[int, int, Scores], Place]) -> SheetSlip:
    """A right head, written down wrongly."""
    return slip(
        id,
        lambda seed: {name: [wrong(*place, scores) for place in scores.right] for name, scores in asked(seed).items()},
    )


SLIPS = (
    turned("counted-from-one", lambda layer, head, scores: (layer + 1, head + 1)),
    turned("layer-from-one", lambda layer, head, scores: (layer + 1, head)),
    turned("head-from-one", lambda layer, head, scores: (layer, head + 1)),
    turned("swapped", lambda layer, head, scores: (head, layer)),
    turned("numbered-through", lambda layer, head, scores: (0, layer * scores.found.shape[1] + head)),
    turned("outside", lambda layer, head, scores: (len(scores.found), scores.found.shape[1])),
    slip("one-row-late", lambda seed: {"ahead": asked(seed)["back"]}),
    slip("one-row-early", lambda seed: {"back": asked(seed)["ahead"]}),
    slip("self-for-cross", lambda seed: dict.fromkeys(("ahead", "back"), itself(translator(), "decoder"))),
    slip("cross-for-self", lambda seed: {"first": first(translator(), "cross")}),
    slip("encoder-for-decoder", lambda seed: {"first": first(translator(), "encoder")}),
    slip("previous-for-first", lambda seed: {"first": previous(translator(), "decoder")}),
    slip("first-for-previous", lambda seed: {"previous": first(poet(prompt(seed)), "decoder")}),
    slip("itself-for-previous", lambda seed: {"previous": itself(poet(prompt(seed)), "decoder")}),
)


def measured(seed: int, name: str, typed: object, lang: Language) -> str | None:
    """How much a head looks there, beside the best; None for what is no head of the model."""
    found = asked(seed)[name].found
    place = next((place for place in np.ndindex(found.shape) if list(place) == typed), None)
    if place is None:
        return None
    return str(getattr(MEASURED, lang)).format(place=list(place), weight=found[place], best=found.max())


SHEET = Sheet(make, fields, SLIPS, remark=measured)
