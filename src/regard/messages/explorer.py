"""Texts of the explorer: its frame and the panels model, map, lines, sentence and neighbours.

The front end holds both languages and fills in the values itself. Its other panels have theirs in `explorer_panels`.
"""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- frame ---
    "explorer-title": Message(en="Where attention looks", zh="注意力看向哪里"),
    "explorer-lead": Message(
        en="Each row is a word that reads. The brighter a cell, the more that word takes from the word of its column.",
        zh="每一行是一个正在读取的词；格子越亮，它从这一列的词中取得的信息越多。",
    ),
    "explorer-noscript": Message(
        en="This page needs JavaScript, which is disabled here; trace.plot() works without it.",
        zh="本页需要 JavaScript，而它已被禁用；trace.plot() 不需要它。",
    ),
    "explorer-honest": Message(
        en="A weight shows where a head reads from, not why the model gives its answer. To test a cause, switch the "
        "head off and measure what changes: regard.effect.",
        zh="权重说明一个头从哪里读取，不说明模型为什么这样回答。要验证原因，请关闭这个头，看结果变化多少：regard.effect。",
    ),
    "explorer-footer": Message(
        en="Everything works by keyboard: press ? for the list.", zh="所有操作都能用键盘完成：按 ? 查看按键。"
    ),
    # --- choices ---
    "explorer-depth": Message(en="Depth", zh="层级"),
    "explorer-depth-model": Message(en="Model", zh="模型"),
    "explorer-depth-head": Message(en="Head", zh="头"),
    "explorer-depth-numbers": Message(en="Numbers", zh="数字"),
    "explorer-view": Message(en="View", zh="视图"),
    "explorer-view-map": Message(en="Map", zh="热力图"),
    "explorer-view-lines": Message(en="Lines", zh="连线"),
    "explorer-view-sentence": Message(en="Sentence", zh="句子"),
    "explorer-view-compare": Message(en="Compare", zh="对比"),
    "explorer-merge": Message(en="Unit", zh="单位"),
    "explorer-merge-tokens": Message(en="Tokens", zh="词元"),
    "explorer-merge-characters": Message(en="Characters", zh="字符"),
    "explorer-merge-words": Message(en="Words", zh="词"),
    "explorer-scale": Message(en="Colours", zh="颜色"),
    "explorer-scale-auto": Message(en="automatic", zh="自动"),
    "explorer-scale-linear": Message(en="linear", zh="线性"),
    "explorer-scale-log": Message(en="logarithmic", zh="对数"),
    "explorer-scale-renormalised": Message(en="first token hidden, rows sum to 1", zh="略去首词元，每行重新归一化"),
    "explorer-scale-hidden": Message(en="first token hidden", zh="略去首词元"),
}
