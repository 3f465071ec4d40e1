"""The question bank: `<topic>.toml` files beside this one, each with entries of this form.

    [[question]]
    id = "why-sqrt-d-k"             # unique in the bank, lower case, words between hyphens
    from = "002-q1.1"               # which question of which document it is, or "ours"
    lesson = 3                      # number of the lesson that it belongs to
    exercise = "scaled-dot-product" # id of an exercise to try it on
    experiment = '''
    ...                             # about five lines of Python with NumPy or regard, at most 76 wide, which print
    '''
    [question.en]
    ask = "..."                     # the question, one sentence
    short = "..."                   # what to say in half a minute
    deep = '''...'''                # what a good interviewer asks next; paragraphs between empty lines
    [question.zh]
    ask = "..."
    short = "..."
    deep = '''...'''

Tests hold the form, run the experiments and compare the languages. When a question is due is not known here.
"""

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from regard.errors import UnknownNameError
from regard.words import LANGUAGES, Language, language

FOLDER = Path(__file__).parent
IN_OWN_WORDS = ("attention-formula", "why-sqrt-d-k", "what-softmax-does")
"""The three questions of document 002, which the check-list asks for; here, so that it needs no bank."""


@dataclass(frozen=True)
class Told:
    """A question and its answers in one language."""

    ask: str
    short: str
    deep: str


@dataclass(frozen=True)
class Question:
    """One question with all that belongs to it."""

    id: str
    source: str
    lesson: int
    exercise: str
    experiment: str
    en: Told
    zh: Told

    def told(self, lang: Language | None = None) -> Told:
        """In `lang`, or in the language of the moment."""
        return self.zh if (lang or language()) == "zh" else self.en


@cache
def questions() -> tuple[Question, ...]:
    """All of them: the check-list's first, then lesson by lesson.

    >>> questions()[0].id
    'attention-formula'
    """
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["question"]:
            en, zh = (Told(**{part: text.strip() for part, text in row.pop(lang).items()}) for lang in LANGUAGES)
            found.append(Question(source=row.pop("from"), en=en, zh=zh, **row))
    return tuple(sorted(found, key=lambda question: (question.id not in IN_OWN_WORDS, question.lesson)))


def question(asked: str) -> Question:
    """The question of that id; an unknown id is told the nearest, if one is near."""
    known = {one.id: one for one in questions()}
    wanted = asked.strip().lower().replace("_", "-")
    if wanted not in known:
        near = get_close_matches(wanted, known, n=1)
        if not near:
            raise UnknownNameError("question-unknown", asked=asked, count=len(known))
        raise UnknownNameError("question-unknown-near", asked=asked, nearest=near[0], count=len(known))
    return known[wanted]
