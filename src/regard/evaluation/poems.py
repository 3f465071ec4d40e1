"""The form of a regulated Chinese poem: the length of its lines, and whether it rhymes.

Works on any plain text. Meaning, tones and parallelism are not checked.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from regard.errors import MissingPackageError

LINE_ENDS = "，。？！；"


class Form(NamedTuple):
    """A verse form: the number of characters per line and the number of lines."""

    characters: int
    lines: int


FORMS = {"五绝": Form(5, 4), "七绝": Form(7, 4), "五律": Form(5, 8), "七律": Form(7, 8)}
"""The named verse forms."""

# Groups of finals that rhyme: equal after the medial. ü is v as in pypinyin; syllables such as zhi and ci have -i.
_RHYMES = (
    "a ia ua",
    "o uo",
    "e",
    "ie ve",
    "-i",
    "er",
    "i",
    "ei uei",
    "ai uai",
    "u",
    "v",
    "ou iou",
    "ao iao",
    "an ian uan van",
    "en in uen vn",
    "ang iang uang",
    "eng ing ueng",
    "ong iong",
)
_RHYME_OF = {final: number for number, finals in enumerate(_RHYMES) for final in finals.split()}


def lines_of(poem: str) -> list[str]:
    """The lines of a poem, each up to one of ，。？！；, without it.

    >>> lines_of("床前明月光，疑是地上霜。")
    ['床前明月光', '疑是地上霜']
    """
    return [line for line in (part.strip() for part in re.split(f"[{LINE_ENDS}\\n]", poem)) if line]


def form_of(poem: str) -> str | None:
    """The name of the poem's form, by its number of lines and characters; None if it has none of them.

    >>> form_of("白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"), form_of("前不见古人，后不见来者。")
    ('五绝', None)
    """
    lengths = [len(line) for line in lines_of(poem)]
    return next((name for name, form in FORMS.items() if lengths == [form.characters] * form.lines), None)


def right_lines(poem: str, form: Form) -> float:
    """The share of lines with the form's length; missing and extra lines count as wrong.

    >>> right_lines("白日依山尽，黄河入海。欲穷千里目，更上一层楼。", FORMS["五绝"])
    0.75
    """
    lines = lines_of(poem)
    right = sum(len(line) == form.characters for line in lines[: form.lines])
    return right / max(form.lines, len(lines))


def rhymes(poem: str) -> bool:
    """Whether lines 2 and 4 end in the same final of modern Mandarin, and not in the same character.

    Finals rhyme if they sound alike from the main vowel to the end: 山 shān, 天 tiān and 远 yuǎn rhyme, so do 心 xīn
    and 门 mén, 青 qīng and 生 shēng; but 诗 shī and 西 xī do not, nor 东 dōng and 生 shēng, nor 雨 yǔ and 鼓 gǔ. These
    are the 18 rhymes of 中华新韵 (1941). Tones do not count. A character with several readings rhymes if one of them
    does. Poems that rhymed in Tang times may no longer do so: only a share of the real ones does.

    >>> rhymes("床前明月光，疑是地上霜。举头望明月，低头思故乡。"), rhymes("明月，青山。流水，白云。")
    (True, False)
    """
    ends = [line[-1] for line in lines_of(poem)[1:4:2]]
    return len(ends) == 2 and ends[0] != ends[1] and not rhyme_groups(ends[0]).isdisjoint(rhyme_groups(ends[1]))


@cache
def rhyme_groups(character: str) -> frozenset[int]:
    """The numbers of the rhymes of a character, one for each reading; empty for what is not a Chinese character.

    >>> rhyme_groups("霜") == rhyme_groups("乡"), rhyme_groups("，")
    (True, frozenset())
    """
    return frozenset(_RHYME_OF[final] for final in _finals(character) if final in _RHYME_OF)


def _finals(character: str) -> Iterator[str]:
    """The finals of every reading of a character."""
    package = _pypinyin()
    style = {"heteronym": True, "errors": "ignore"}
    for syllable in (each for found in package.pinyin(character, package.Style.NORMAL, **style) for each in found):
        final = package.contrib.tone_convert.to_finals(syllable, strict=True, v_to_u=False)
        yield "-i" if re.fullmatch("(?:[zcs]h?|r)i", syllable) else final


def _pypinyin() -> Any:
    try:
        import pypinyin
        import pypinyin.contrib.tone_convert
    except ImportError as error:
        raise MissingPackageError("missing-package", what="rhymes", package="pypinyin", extra="train") from error
    return pypinyin
