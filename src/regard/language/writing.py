"""Text written: a prompt, with the header of its form before it, continued by chance until the model ends it.

A text begins where another has ended: training packs texts one after the other, an <eos> between them.
"""

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.errors import ArgumentError
from regard.generation import Sampling, generate
from regard.kernels.blocked.workers import one_blas_thread
from regard.language.translating import check_text, unknown_characters

if TYPE_CHECKING:
    from regard.language.model import LanguageModel
    from regard.language.settings import Settings

_LINE = re.compile(r"\w*")


class Prompt(NamedTuple):
    """What the model reads before it writes: an <eos> and the form's header, then the prompt itself."""

    header: list[int]
    ids: list[int]


def write(
    model: "LanguageModel",
    prompt: str,
    form: str | None,
    *,
    max_new: int | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
) -> str:
    """What `LanguageModel.generate` says."""
    given = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    asked = sampling(model, seed=seed, **{name: value for name, value in given.items() if value is not None})
    start = read_prompt(model, prompt, form)
    return model.tokenizer.decode([*start.ids, *go_on(model, start, asked, max_new)])


def sampling(model: "LanguageModel", **changes: Any) -> Sampling:
    """How the model likes its ids drawn, with some changes."""
    settings = model.settings
    own = {"temperature": settings.temperature, "top_k": settings.top_k, "top_p": settings.top_p}
    return Sampling(**own | changes)


def read_prompt(model: "LanguageModel", prompt: str, form: str | None = None) -> Prompt:
    """The prompt as ids; ArgumentError where a character has none, or there is nothing to begin with."""
    tokenizer, settings = model.tokenizer, model.settings
    check_text(prompt)
    if settings.task != "text":
        raise ArgumentError("generate-task", name=model.name)
    header = settings.forms[form_of(settings, prompt, form)] if settings.forms or form is not None else ""
    strange = unknown_characters(tokenizer, prompt) if tokenizer.unknown is not None else []
    prompt = "".join(c for c in prompt if not (c in strange and c.isspace()))
    strange = [c for c in strange if not c.isspace()]
    if strange:
        found = " ".join(map(repr, strange[:5]))
        raise ArgumentError("generate-unknown", name=model.name, found=found, count=len(strange))
    begin = [] if tokenizer.eos is None else [tokenizer.eos]
    start = Prompt([*begin, *(tokenizer.encode(header) if header else [])], tokenizer.encode(prompt))
    if not (start.header or start.ids):
        raise ArgumentError("generate-empty", name=model.name)
    return start


def form_of(settings: "Settings", prompt: str, form: str | None) -> str:
    """The name of a form: the one that is meant, or that the first line of the prompt has, or the first there is.

    >>> from regard.language.settings import Settings
    >>> poet = Settings(task="text", forms={"5x4": "五绝｜", "7x4": "七绝｜"})
    >>> form_of(poet, "", "七绝"), form_of(poet, "朝辞白帝彩云间，", None), form_of(poet, "", None)
    ('7x4', '7x4', '5x4')
    """
    forms = settings.forms
    if form is None:
        first = _LINE.match(prompt.strip())
        length = 0 if first is None else len(first[0])
        return next((name for name in forms if name.startswith(f"{length}x")), next(iter(forms)))
    for name, header in forms.items():
        if form in (name, header, header.rstrip("｜|:：")):
            return name
    choices = ", ".join(f"{name} {header.rstrip('｜|:：')}" for name, header in forms.items())
    raise ArgumentError("generate-form", form=form, choices=choices or "None")


def go_on(model: "LanguageModel", start: Prompt, asked: Sampling, max_new: int | None = None) -> list[int]:
    """The ids that the model adds: at most `max_new`, as many as it has room for, up to an <eos>."""
    before, limit = [*start.header, *start.ids], model.config.max_len
    if max_new is None:
        room = model.settings.max_new if limit is None else limit - len(before) + 1
        max_new = max(1, min(room, model.settings.max_new))  # a prompt without room is told by `generate`
    with one_blas_thread():  # for one text, several would wait for each other longer than they work
        found: list[int] = generate(model.model, before, max_new=max_new, pick=asked, eos=model.tokenizer.eos)
    return found
