"""Whether a regulated Chinese poem keeps its form: how long its lines are, and whether it rhymes.

All of it is counted on plain text, whoever wrote it. Meaning, tones and parallels are not judged here.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from regard.errors import MissingPackageError

LINE_ENDS = "，。？！；"


class Form(NamedTuple):
    """So many characters in each of so many lines."""

    characters: int
    lines: int


FORMS = {"五绝": Form(5, 4), "七绝": Form(7, 4), "五律": Form(5, 8), "七律": Form(7, 8)}
"""The forms that have a name."""

# Finals that rhyme, by what stands behind the medial; ü is v as in pypinyin, and zhi, ci and their like have -i.
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
    """The name of the form whose number of lines and characters this poem has; None where it has none of these.

    >>> form_of("白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"), form_of("前不见古人，后不见来者。")
    ('五绝', None)
    """
    lengths = [len(line) for line in lines_of(poem)]
    return next((name for name, form in FORMS.items() if lengths == [form.characters] * form.lines), None)


def right_lines(poem: str, form: Form) -> float:
    """The share of lines that have the form's length; lines that are missing, or too many, are wrong ones.

    >>> right_lines("白日依山尽，黄河入海。欲穷千里目，更上一层楼。", FORMS["五绝"])
    0.75
    """
    lines = lines_of(poem)
    right = sum(len(line) == form.characters for line in lines[: form.lines])
    return right / max(form.lines, len(lines))


def rhymes(poem: str) -> bool:
    """Whether lines 2 and 4 end in the same final of modern Mandarin, and not in the same character.

    Finals are the same if they sound alike from the vowel that carries them to the end: 山 shān, 天 tiān and 远 yuǎn
    rhyme, so do 心 xīn and 门 mén, 青 qīng and 生 shēng; but 诗 shī and 西 xī do not, nor 东 dōng and 生 shēng, nor
    雨 yǔ and 鼓 gǔ. These are the 18 rhymes of 中华新韵 (1941). Tones do not count. A character read in several ways
    rhymes if one of them does. Poems that rhymed in Tang times may no longer: of real ones, too, only a share does.

    >>> rhymes("床前明月光，疑是地上霜。举头望明月，低头思故乡。"), rhymes("明月，青山。流水，白云。")
    (True, False)
    """
    ends = [line[-1] for line in lines_of(poem)[1:4:2]]
    return len(ends) == 2 and ends[0] != ends[1] and not _rhymes_of(ends[0]).isdisjoint(_rhymes_of(ends[1]))


@cache
def _rhymes_of(character: str) -> frozenset[int]:
    return frozenset(_RHYME_OF[final] for final in _finals(character) if final in _RHYME_OF)


def _finals(character: str) -> Iterator[str]:
    """The finals of every reading."""
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
