"""Text as the papers prepared it: Moses' punctuation normalised, lower-cased, tokenised with escapes; and back.

This makes Multi30k's `*.lc.norm.tok.*` files from its raw ones. The rules are those of `sacremoses`, fetched when used.
"""

from collections.abc import Iterable
from types import ModuleType

from regard.errors import MissingPackageError


def prepare(lines: Iterable[str], lang: str) -> list[str]:
    """Each line normalised, lower-cased and split by single spaces; `lang` is "en", "de", "fr", …

    >>> prepare(["A woman's “red” hat."], "en")
    ['a woman &apos;s &quot; red &quot; hat .']
    """
    moses = _moses()
    normaliser, tokeniser = moses.MosesPunctNormalizer(lang=lang), moses.MosesTokenizer(lang=lang)
    return [tokeniser.tokenize(normaliser.normalize(line).lower(), escape=True, return_str=True) for line in lines]


def plain(lines: Iterable[str], lang: str) -> list[str]:
    """Tokenised lines as people write them, but still in lower case.

    >>> plain(["a woman &apos;s &quot; red &quot; hat ."], "en")
    ['a woman\\'s "red" hat.']
    """
    writer = _moses().MosesDetokenizer(lang=lang)
    return [writer.detokenize(line.split()) for line in lines]


def _moses() -> ModuleType:
    try:
        import sacremoses  # type: ignore[import-untyped]
    except ImportError as error:
        package = {"package": "sacremoses", "extra": "train"}
        raise MissingPackageError("missing-package", what="regard.text.moses", **package) from error
    return sacremoses
