"""The answer sheet of `find-the-head`: four heads of the bundled models, identified by their attention.

The models run in NumPy when a sheet is graded; no answer is stored. A head whose mean weight is at least 90 % of the
best head's is accepted too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from regard.course.exercise import Field, Sheet, SheetMistake
from regard.language import load
from regard.messages import Language, Message
from regard.records import Kind
from regard.trace import Trace

TEXT, TRANSLATION = "I love you.", "我爱你。"
PROMPTS = ("床前明月光", "明月", "白日依山尽，", "春眠不觉晓，")
NEARLY = 0.9
Place = tuple[int, int]
"""Layer and head."""

HEAD = Message(
    en="# Each answer is [layer, head], counted from 0, as in [2, 7]. The command above each question shows them.\n"
    "# A row belongs to the token just read, and shows where the model looks to write the next one.\n",
    zh="# 每个答案是 [层, 头]，都从 0 数起，比如 [2, 7]。题目上面的命令会把它们画出来。\n"
    "# 一行属于刚读到的词元，显示模型为了写下一个词元在看哪里。\n",
)
QUESTIONS = {
    "ahead": Message(
        en="Cross-attention: about to write 我, 爱, 你 (rows <bos>, 我, 爱), it looks at I, love, you.",
        zh="交叉注意力：正要写 我、爱、你（<bos>、我、爱 三行）时，它看 I、love、you。",
    ),
    "back": Message(
        en="Cross-attention: having written 我, 爱, 你 (rows 我, 爱, 你), it looks back at I, love, you.",
        zh="交叉注意力：写完 我、爱、你（我、爱、你 三行）之后，它回头看 I、love、you。",
    ),
    "first": Message(
        en="Self-attention of the decoder: every row after the first looks most at <bos>.",
        zh="解码器的自注意力：第一行之后，每一行最看重 <bos>。",
    ),
    "previous": Message(
        en="The poet: every character looks most at the one before it.",
        zh="写诗的模型：每个字最看重前一个字。",
    ),
}
MEASURED = Message(
    en="head {place} has a mean weight of {weight:.2f} on the positions of the question, the best head {best:.2f}",
    zh="头 {place} 在题目所指位置上的平均权重是 {weight:.2f}，最好的头是 {best:.2f}",
)


@dataclass(frozen=True, eq=False)
class Scores:
    """The mean weight of each head on the positions of a question."""

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


# --- attention of the models -------------------------------------------------------------------------------


def prompt(seed: int) -> str:
    """The prompt of the poet."""
    return PROMPTS[seed % len(PROMPTS)]


@cache
def translator() -> Trace:
    return load("translator").see(TEXT, output=TRANSLATION).trace


@cache
def poet(text: str) -> Trace:
    return load("poet").see(text).trace


def mean_weights(trace: Trace, kind: Kind, pairs: Sequence[tuple[int, int]]) -> Scores:
    """The mean weight on the pairs (row, column), for each head of a kind."""
    rows, columns = np.array(pairs).T
    layers = [np.asarray(record.weights())[0] for record in trace.select(kind=kind)]  # each H T S
    return Scores(np.stack([layer[:, rows, columns].mean(-1) for layer in layers]))


def back_by(places: int | None, trace: Trace, kind: Kind) -> Scores:
    """The mean weight of each row after the first on the position `places` before it; None: on the first token."""
    rows = range(1, trace.select(kind=kind)[0].shape[-2])
    return mean_weights(trace, kind, [(row, 0 if places is None else row - places) for row in rows])


first, itself, previous = (partial(back_by, places) for places in (None, 0, 1))


@cache
def question_scores(seed: int) -> Mapping[str, Scores]:
    """The scores that answer each question."""
    return {
        "ahead": mean_weights(translator(), "cross", [(0, 0), (1, 1), (2, 2)]),
        "back": mean_weights(translator(), "cross", [(1, 0), (2, 1), (3, 2)]),
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
        "previous": f'regard see "{prompt(seed)}" --model poet --html poet.html',  # 48 heads: too many for a terminal
    }
    lines = [getattr(HEAD, lang), f"seed = {seed}"]
    for name, question in QUESTIONS.items():
        lines += ["", f"# {commands[name]}", f"# {getattr(question, lang)}", f"{name} = []"]
    return "\n".join(lines) + "\n"


def fields(seed: int) -> Sequence[Field]:
    """One field per question, with the heads that are nearly as good."""
    return [
        Field(name, list(scores.best), step=name, alternatives=tuple(list(place) for place in scores.right[1:]))
        for name, scores in question_scores(seed).items()
    ]


# --- known mistakes ----------------------------------------------------------------------------------------


def mistake(id: str, wrong: Callable[[int], Mapping[str, "Scores | Sequence[Place]"]]) -> SheetMistake:
    """For each question the first of these heads that is not accepted."""

    def answers(seed: int) -> dict[str, list[int]]:
        found = {}
        for name, heads in wrong(seed).items():
            ranked = heads.ranked if isinstance(heads, Scores) else heads
            missed = [list(place) for place in ranked if place not in question_scores(seed)[name].right]
            if missed:
                found[name] = missed[0]
        return found

    return SheetMistake(id, answers)


def misread(id: str, wrong: Callable[[int, int, Scores], Place]) -> SheetMistake:
    """A right head, written in a wrong way."""
    return mistake(
        id,
        lambda seed: {
            name: [wrong(*place, scores) for place in scores.right] for name, scores in question_scores(seed).items()
        },
    )


MISTAKES = (
    misread("counted-from-one", lambda layer, head, scores: (layer + 1, head + 1)),
    misread("layer-from-one", lambda layer, head, scores: (layer + 1, head)),
    misread("head-from-one", lambda layer, head, scores: (layer, head + 1)),
    misread("swapped", lambda layer, head, scores: (head, layer)),
    misread("numbered-through", lambda layer, head, scores: (0, layer * scores.found.shape[1] + head)),
    misread("outside", lambda layer, head, scores: (len(scores.found), scores.found.shape[1])),
    mistake("one-row-late", lambda seed: {"ahead": question_scores(seed)["back"]}),
    mistake("one-row-early", lambda seed: {"back": question_scores(seed)["ahead"]}),
    mistake("self-for-cross", lambda seed: dict.fromkeys(("ahead", "back"), itself(translator(), "decoder"))),
    mistake("cross-for-self", lambda seed: {"first": first(translator(), "cross")}),
    mistake("encoder-for-decoder", lambda seed: {"first": first(translator(), "encoder")}),
    mistake("previous-for-first", lambda seed: {"first": previous(translator(), "decoder")}),
    mistake("first-for-previous", lambda seed: {"previous": first(poet(prompt(seed)), "decoder")}),
    mistake("itself-for-previous", lambda seed: {"previous": itself(poet(prompt(seed)), "decoder")}),
)


def measured(seed: int, name: str, typed: object, lang: Language) -> str | None:
    """The mean weight of the typed head and of the best one; None if it is not a head of the model."""
    found = question_scores(seed)[name].found
    place = next((place for place in np.ndindex(found.shape) if list(place) == typed), None)
    if place is None:
        return None
    return str(getattr(MEASURED, lang)).format(place=list(place), weight=found[place], best=found.max())


SHEET = Sheet(make, fields, MISTAKES, remark=measured)
