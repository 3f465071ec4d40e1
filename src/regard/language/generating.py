"""`LanguageModel.generate`: a prompt continued by sampling or beam search, and the text of its ids piece by piece.

A model of poems was trained on several forms, such as four lines of five characters, each with a header of its own; the
header of the requested form is read before the prompt. A text begins after an <eos>: training packs texts one after the
other with an <eos> between them. While a text is written, the bytes of a character are held back until it is whole, and
what may begin a stop text until it is sure. A character that the last token leaves unfinished is left out.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.arrays import check_counts, is_number
from regard.errors import ArgumentError, TooLargeError
from regard.generation import GREEDY, Sampling, beam_search, generate, stream
from regard.generation.sampling import Pick
from regard.kernels.division import one_blas_thread
from regard.language.input_text import check_task, check_text, unknown_characters
from regard.messages import Listed
from regard.text.tokenizer import AnyTokenizer, IdTokenizer

if TYPE_CHECKING:
    from regard.language.hub_files import Settings
    from regard.language.model import LanguageModel


_LINE = re.compile(r"\w*")
_LENGTH = re.compile(r"[1-9]\d*(?=x)")
"""The characters in a line, in the name of a form: 5x4."""
_FULL_WIDTH = dict(zip(",.?!;", "，。？！；", strict=True))
"""The Chinese form of ASCII punctuation."""


CHUNK = 2048
"""Tokens of a prompt that are read at a time: what its layers compute at once stays small for long prompts."""


class Prompt(NamedTuple):
    """What the model reads before it generates: `header`, an <eos> and that of the form; then `ids`, the prompt."""

    header: list[int]
    ids: list[int]


def generate_text(
    model: "LanguageModel",
    prompt: str,
    form: str | None,
    *,
    max_new: int | None = None,
    beams: int | None = None,
    stop: str | Sequence[str] | None = None,
    streamed: bool = False,
    prompt_lookup: int | None = None,
    **sampling: Any,
) -> str | Iterator[str]:
    """The implementation of `LanguageModel.generate`."""
    stops = stop_texts(stop)
    if beams is not None and prompt_lookup is not None:
        raise ArgumentError("beams-and", name="prompt_lookup")
    if beams is not None:
        return _search(model, prompt, form, beams, max_new, stops, streamed, sampling)
    pick = chosen_pick(model, **sampling)
    start = read_prompt(model, prompt, form)
    if not (streamed or stops):
        new = continue_prompt(model, start, pick, max_new, prompt_lookup)
        return model.tokenizer.decode([*start.ids, *without_cut_character(model.tokenizer, new)])
    before = [*start.header, *start.ids]
    check_length(start, model.limit)
    most = default_max_new(model, start) if max_new is None else max_new
    check_counts(max_new_tokens=(most, 1))

    def ids() -> Iterator[int]:
        with one_blas_thread():
            ends = model.special.ends or None
            yield from stream(
                model.generator, before, max_new=most, pick=pick, eos=ends, chunk=CHUNK, lookup=prompt_lookup
            )

    pieces = text_pieces(model.tokenizer, ids(), before, stops)
    return pieces if streamed else model.tokenizer.decode(start.ids) + "".join(pieces)


def _search(
    model: "LanguageModel",
    prompt: str,
    form: str | None,
    beams: int,
    max_new: int | None,
    stops: tuple[str, ...],
    streamed: bool,
    sampling: dict[str, Any],
) -> str:
    """The best continuation by beam search, which neither samples nor streams."""
    if streamed:
        raise ArgumentError("beams-and", name="stream")
    given = next((name for name, value in sampling.items() if name != "seed" and value is not None), None)
    if given is not None:
        raise ArgumentError("beams-and", name=given)
    check_counts(beams=(beams, 1))
    start = read_prompt(model, prompt, form)
    before = [*start.header, *start.ids]
    check_length(start, model.limit)
    most = default_max_new(model, start) if max_new is None else max_new
    with one_blas_thread():
        best = beam_search(model.generator, before, beams=beams, max_new=most, eos=model.special.ends or None)
    written = "".join(text_pieces(model.tokenizer, best[0].ids, before, stops))
    return model.tokenizer.decode(start.ids) + written


def chosen_pick(
    model: "LanguageModel",
    *,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float | None = None,
    seed: int = 0,
) -> Pick:
    """How the next token is chosen: the model's settings, changed. Temperature 0 takes the most likely one.

    A repetition penalty alone does not make a greedy model sample.
    """
    given = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    changes = {name: value for name, value in given.items() if value is not None}
    greedy = (is_number(temperature) and temperature == 0) or not (changes or model.settings.samples)
    if repetition_penalty is not None:
        changes["repetition_penalty"] = repetition_penalty
    # The other options are validated in any case.
    pick = sampling(model, seed=seed, **changes | ({"temperature": 1.0} if greedy else {}))
    if not greedy:
        return pick
    penalty = pick.repetition_penalty
    return GREEDY if penalty in (None, 1) else Sampling(top_k=1, repetition_penalty=penalty)


def sampling(model: "LanguageModel", **changes: Any) -> Sampling:
    """The Sampling of the model's settings, with some changes."""
    settings = model.settings
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
    return Sampling(**{name: getattr(settings, name) for name in names} | changes)


def read_prompt(model: "LanguageModel", prompt: str, form: str | None = None) -> Prompt:
    """The prompt as ids. Raises ArgumentError where a character has none, or there is nothing to begin with."""
    tokenizer, settings = model.tokenizer, model.settings
    check_text(prompt)
    check_task(model, "text")
    if form is not None and not settings.forms:
        raise ArgumentError("generate-no-forms", name=model.name, form=form)
    header = settings.forms[form_of(settings, prompt, form)] if settings.forms else ""
    begin = model.special.before_prompt
    start = Prompt([*begin, *tokenizer.encode(header)], tokenizer.encode(_in_vocabulary(model, prompt)))
    if not (start.header or start.ids):
        raise ArgumentError("generate-empty", name=model.name)
    return start


def _in_vocabulary(model: "LanguageModel", prompt: str) -> str:
    """The prompt in the model's characters: unknown spaces are removed, unknown ASCII punctuation becomes Chinese."""
    unknown = unknown_characters(model.tokenizer, prompt)
    instead = {c: "" if c.isspace() else _FULL_WIDTH.get(c, c) for c in unknown}
    still_unknown = unknown_characters(model.tokenizer, "".join(instead.values()))
    if still_unknown:
        found = [c for c, other in instead.items() if other in still_unknown]
        shown = " ".join(map(repr, found[:5]))
        raise ArgumentError("generate-unknown", name=model.name, found=shown, count=len(found))
    return "".join(instead.get(c, c) for c in prompt)


def check_length(text: Prompt, most: int | None) -> None:
    """Raise TooLargeError where it has more than `most` tokens, the header included."""
    if most is not None and len(text.header) + len(text.ids) > most:
        raise TooLargeError("generate-too-long", found=len(text.ids), most=most - len(text.header))


def form_of(settings: "Settings", prompt: str, form: str | None) -> str:
    """The name of the form: the given one, else that of the prompt's first line, else the first one.

    >>> from regard.language.hub_files import Settings
    >>> poet = Settings(task="text", forms={"5x4": "五绝｜", "7x4": "七绝｜"})
    >>> form_of(poet, "", "七绝"), form_of(poet, "朝辞白帝彩云间，", None), form_of(poet, "", None)
    ('7x4', '7x4', '5x4')
    """
    forms = settings.forms
    if form is None:
        first = _LINE.match(prompt.strip())
        length = 0 if first is None else len(first[0])
        return next((name for name in forms if name.startswith(f"{length}x")), next(iter(forms)))
    labels = {name: header.rstrip("｜|:：") for name, header in forms.items()}
    found = next((name for name in forms if form in (name, labels[name], forms[name])), None)
    if found is None:
        raise ArgumentError("generate-form", form=form, choices=Listed(map(" ".join, labels.items())))
    return found


def with_punctuation(settings: "Settings", prompt: str, form: str | None = None) -> str | None:
    """A prompt of several lines without punctuation, with punctuation added; None for other prompts.

    >>> from regard.language.hub_files import Settings
    >>> poet = Settings(task="text", forms={"5x4": "五绝｜", "7x4": "七绝｜"})
    >>> with_punctuation(poet, "床前明月光疑是地上霜"), with_punctuation(poet, "朝辞白帝彩云间千里江陵一日还")
    ('床前明月光，疑是地上霜', '朝辞白帝彩云间，千里江陵一日还')
    >>> with_punctuation(poet, "明月"), with_punctuation(poet, "床前明月光，疑是地上霜")
    (None, None)
    """
    line = "".join(prompt.split())  # poems have no spaces
    if not settings.forms or not line or not _LINE.fullmatch(line):
        return None
    names = [form_of(settings, line, form), *settings.forms]  # the form in use comes first
    lengths = [int(found[0]) for name in names if (found := _LENGTH.match(name))]
    if not lengths or len(line) <= lengths[0]:
        return None
    length = next((each for each in lengths if each < len(line) and len(line) % each == 0), lengths[0])
    lines = (line[at : at + length] for at in range(0, len(line), length))
    return "".join(each + mark for each, mark in zip(lines, cycle("，。"), strict=False))[:-1]


def continue_prompt(
    model: "LanguageModel", start: Prompt, pick: Pick, max_new: int | None = None, lookup: int | None = None
) -> list[int]:
    """The ids that the model adds, up to an <eos>: at most `max_new`, by default as many as fit."""
    before = [*start.header, *start.ids]
    check_length(start, model.limit)
    if max_new is None:
        max_new = default_max_new(model, start)
    with one_blas_thread():  # for one text, several threads would wait longer than they work
        ends = model.special.ends or None
        found: list[int] = generate(
            model.generator, before, max_new=max_new, pick=pick, eos=ends, chunk=CHUNK, lookup=lookup
        )
    return found


def default_max_new(model: "LanguageModel", start: Prompt) -> int:
    """The default of `max_new`: the model's setting, or as many as its positions allow."""
    most, limit = model.settings.max_new, model.limit
    before = len(start.header) + len(start.ids)
    return most if limit is None else min(most, limit - before + 1)  # the last one is never read


# --- text while it is written ----------------------------------------------------------------------------

BROKEN = "\ufffd"
CONTEXT = 8
"""Tokens that are decoded before new ones, since some decoders drop the first space of a text."""
LONGEST_CHARACTER = 4
"""Tokens of one character: its bytes. Longer runs that end in no character hold bytes that are none."""


def stop_texts(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    """The texts that end an output. Raises ArgumentError for anything but texts."""
    found = () if stop is None else (stop,) if isinstance(stop, str) else tuple(stop)
    if not all(isinstance(one, str) and one for one in found):
        raise ArgumentError("stop-kind", found=repr(stop)[:80])
    return found


def text_pieces(
    tokenizer: AnyTokenizer, ids: Iterable[int], before: Sequence[int] = (), stop: Sequence[str] = ()
) -> Iterator[str]:
    """The text that ids add, piece by piece; the pieces together are the whole text before the first of `stop`.

    before   the ids before them: a space between words may belong to the second
    """
    held = ""
    for piece in _whole_characters(tokenizer, ids, before):
        held += piece
        ends = [at for one in stop if (at := held.find(one)) >= 0]
        if ends:
            if before_stop := held[: min(ends)]:
                yield before_stop
            return
        keep = max((_overlap(held, one) for one in stop), default=0)
        if ready := held[: len(held) - keep]:
            yield ready
        held = held[len(held) - keep :]
    if held:
        yield held


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of a text may begin `stop`."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)


def _whole_characters(tokenizer: AnyTokenizer, ids: Iterable[int], before: Sequence[int]) -> Iterator[str]:
    if isinstance(tokenizer, IdTokenizer):
        for number, one in enumerate(ids):
            yield f"{' ' if before or number else ''}{one}"
        return
    context, new = list(before[-CONTEXT:]), list[int]()

    def text_of(count: int) -> str:
        return tokenizer.decode([*context, *new[:count]])[len(tokenizer.decode(context)) :]

    for one in ids:
        new.append(one)
        count = len(new)
        if text_of(count).endswith(BROKEN):
            if len(new) < LONGEST_CHARACTER:
                continue
            count = next((n for n in range(count - 1, 0, -1) if not text_of(n).endswith(BROKEN)), 1)
        if piece := text_of(count):
            yield piece
        context, new = [*context, *new[:count]][-CONTEXT:], new[count:]
    new = without_cut_character(tokenizer, new)
    if new and (piece := text_of(len(new))):
        yield piece


def without_cut_character(tokenizer: AnyTokenizer, ids: list[int]) -> list[int]:
    """The ids without those at the end that begin a character and do not finish it."""
    if isinstance(tokenizer, IdTokenizer):
        return ids
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces = tokenizer.token_bytes(ids[-CONTEXT:])
    decoder.decode(b"".join(pieces))
    unfinished, kept = len(decoder.getstate()[0]), len(ids)
    while unfinished > 0:
        unfinished -= len(pieces.pop())
        kept -= 1
    return ids[:kept]
