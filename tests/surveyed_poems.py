"""Poems that the tests of surveys read, and a comparison of two surveys."""

from regard.surveys import Survey

POEMS = [
    "五绝｜床前明月光，疑是地上霜。举头望明月，低头思故乡。",
    "五绝｜白日依山尽，黄河入海流。欲穷千里目，更上一层楼。",
    "",
    "五绝｜春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。",
    "五绝｜红豆生南国，春来发几枝。愿君多采撷，此物最相思。",
]


def assert_same(one: Survey, other: Survey) -> None:
    assert one.as_json() == other.as_json()
