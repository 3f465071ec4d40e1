"""Traditional Chinese characters made simplified ones, by OpenCC's tables, word by word: 頭髮 is 头发, 發現 is 发现."""

from collections.abc import Iterable

from regard.errors import MissingPackageError


def simplified(lines: Iterable[str]) -> list[str]:
    """Each line in simplified characters; what is no Chinese stays as it is.

    >>> simplified(["她的頭髮", "hair"])
    ['她的头发', 'hair']
    """
    try:
        from opencc import OpenCC
    except ImportError as error:
        package = {"package": "opencc", "extra": "train"}
        raise MissingPackageError("missing-package", what="regard.text.simplified", **package) from error
    convert = OpenCC("t2s").convert
    return [convert(line) for line in lines]
