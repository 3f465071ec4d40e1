"""Preparation of training text as in the papers: Moses tokenisation and its inverse, simplified Chinese characters."""

from collections.abc import Iterable
from types import ModuleType

from regard.errors import MissingPackageError


def moses_tokenised(lines: Iterable[str], lang: str) -> list[str]:
    """Each line normalised, lower-cased and split by single spaces; `lang` is "en", "de", "fr", …

    >>> moses_tokenised(["A woman's “red” hat."], "en")
    ['a woman &apos;s &quot; red &quot; hat .']
    """
    moses = _moses()
    normaliser, tokeniser = moses.MosesPunctNormalizer(lang=lang), moses.MosesTokenizer(lang=lang)
    return [tokeniser.tokenize(normaliser.normalize(line).lower(), escape=True, return_str=True) for line in lines]


def moses_detokenised(lines: Iterable[str], lang: str) -> list[str]:
    """Lines joined from their Moses tokens; they stay in lower case.

    >>> moses_detokenised(["a woman &apos;s &quot; red &quot; hat ."], "en")
    ['a woman\\'s "red" hat.']
    """
    writer = _moses().MosesDetokenizer(lang=lang)
    return [writer.detokenize(line.split()) for line in lines]


def _moses() -> ModuleType:
    try:
        import sacremoses  # type: ignore[import-untyped]
    except ImportError as error:
        package = {"package": "sacremoses", "extra": "train"}
        raise MissingPackageError("missing-package", what="regard.text.preparation", **package) from error
    return sacremoses


def simplified(lines: Iterable[str]) -> list[str]:
    """Each line in simplified characters; other text is unchanged.

    >>> simplified(["她的頭髮", "hair"])
    ['她的头发', 'hair']
    """
    try:
        from opencc import OpenCC
    except ImportError as error:
        package = {"package": "opencc", "extra": "train"}
        raise MissingPackageError("missing-package", what="regard.text.preparation", **package) from error
    convert = OpenCC("t2s").convert
    return [convert(line) for line in lines]
