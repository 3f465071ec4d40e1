"""Messages of `regard learn build`: the list of parts, the comparison with ours, and failures of a part."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    "help-learn-build": Message(
        en="Run the bundled translator with your own passed functions. Exit code: 0 if the result is right, else 1.",
        zh="用你自己通过的函数运行自带的翻译模型。结果正确时退出码为 0，否则为 1。",
    ),
    "help-learn-build-examples": Message(
        en="Examples:\n"
        "  regard learn build                         translate “I love you”, your parts\n"
        "  regard learn build She reads a book        translate another sentence\n"
        "  regard learn build poem --seed 3           write a poem with your parts\n"
        "  regard learn build --with softmax.py       see what an unfinished part does\n"
        "\n"
        "A part is yours once regard learn check passes. Your functions run in the\n"
        "sandbox of the check.",
        zh="示例：\n"
        "  regard learn build                         用你的部件翻译 “I love you”\n"
        "  regard learn build She reads a book        翻译另一句\n"
        "  regard learn build poem --seed 3           用你的部件写一首诗\n"
        "  regard learn build --with softmax.py       看看没写完的部件会带来什么结果\n"
        "\n"
        "regard learn check 通过之后，这个部件就是你的。你的函数在批改用的沙箱里运行。",
    ),
    "help-build-text": Message(
        en="the sentence to translate; default: I love you; poem writes a poem; with --model poet the first line",
        zh="要翻译的句子；默认 I love you；写 poem 则作诗；--model poet 时为诗的开头",
    ),
    "help-build-model": Message(en="translator or poet; default: translator", zh="translator 或 poet；默认 translator"),
    "metavar-build-with": Message(en="[ID=]FILE", zh="[ID=]文件"),
    "metavar-build-model": Message(en="NAME", zh="名字"),
    "help-build-with": Message(
        en="use this program for its part, passed or not; FILE.py or ID=FILE.py; may be repeated",
        zh="用这个程序作为对应的部件，无论是否通过；写 文件.py 或 练习=文件.py；可以重复",
    ),
    "help-build-seed": Message(
        en="the seed of a poem; default 0, as in regard generate", zh="作诗的随机种子；默认 0，与 regard generate 相同"
    ),
    "build-model": Message(
        en="--model must be one of {known}; found {found!r}", zh="--model 只能是 {known} 之一；实际为 {found!r}"
    ),
    "build-seed-translator": Message(
        en="--seed is for poems; a translation is not sampled: regard learn build poem --seed {seed}",
        zh="--seed 只用于作诗；翻译不做采样：regard learn build poem --seed {seed}",
    ),
    "build-not-used": Message(
        en="{exercise} is not a part of the {model}; its parts are {known}",
        zh="{model} 里没有 {exercise} 这个部件；它的部件有 {known}",
    ),
    "build-no-part": Message(
        en="{exercise} is not a part of a bundled model; the parts are {known}",
        zh="{exercise} 不是自带模型的部件；部件有 {known}",
    ),
    "build-which-part": Message(
        en="which part is {file}? It cannot be inferred from its name and functions; write --with ID={file}, "
        "with ID one of {known}",
        zh="{file} 是哪个部件？从文件名和函数名看不出来；请写 --with 练习={file}，练习是 {known} 之一",
    ),
    "build-twice": Message(
        en="--with has two programs for {exercise}: {first} and {second}",
        zh="--with 为 {exercise} 指定了两个程序：{first} 和 {second}",
    ),
    # --- the list of parts ---
    "build-parts": Message(
        en="Parts of the {model}: {yours} of {count} are yours", zh="{model} 的部件：{count} 个里有 {yours} 个是你的"
    ),
    "build-part-passed": Message(en="yours", zh="你的"),
    "build-part-given": Message(en="yours, from {file}", zh="你的，来自 {file}"),
    "build-part-ours": Message(
        en="ours; yours after: regard learn start {exercise}",
        zh="用我们的部件；通过这道练习后换成你的：regard learn start {exercise}",
    ),
    "build-part-left-out": Message(
        en="ours in this run, so that the smaller part inside it is used",
        zh="这次用我们的部件，以便用到其中你写的小部件",
    ),
    "build-part-check-again": Message(
        en="ours; you passed it before programs were kept: regard learn check {exercise}",
        zh="我们的部件；你通过时程序还没有保存功能，请再批改一次：regard learn check {exercise}",
    ),
    "build-part-differs": Message(en="differs from ours by {gap}", zh="结果与我们的部件相差 {gap}"),
    "build-part-unreached": Message(en="not called", zh="没有被调用"),
    # --- the result ---
    "build-none": Message(
        en="None of the parts is yours yet. Begin with: regard learn start softmax",
        zh="还没有一个部件是你的。从这里开始：regard learn start softmax",
    ),
    "build-same": Message(
        en="The same as with our parts, token by token. Log-probability {score}.",
        zh="结果与使用我们的部件时逐个词元相同。对数概率 {score}。",
    ),
    "build-with-yours": Message(en="with your parts: ", zh="用你的部件："),
    "build-with-ours": Message(en="with our parts: ", zh="用我们的部件："),
    "build-first-difference": Message(
        en="First difference, token {at}: your parts wrote {yours}, ours {ours}.",
        zh="第一处不同是第 {at} 个词元：你的部件{yours}，我们的部件{ours}。",
    ),
    "build-wrote": Message(en="“{piece}”", zh="写的是“{piece}”"),
    "build-wrote-nothing": Message(en="nothing", zh="什么也没写"),
    "build-nothing": Message(en="(nothing)", zh="（什么也没写）"),
    "build-score": Message(
        en="Log-probability {yours}, with our parts {ours}.", zh="对数概率 {yours}，用我们的部件是 {ours}。"
    ),
    "build-impossible": Message(en="{score} (impossible)", zh="{score}（不可能）"),
    "build-again-wrong": Message(
        en="Read once more with the small parts, the same text has log-probability {again}, with the cache {cached}: "
        "the wrong part is {parts}.",
        zh="用小部件再读一遍，同一段文字的对数概率是 {again}，使用缓存时是 {cached}：出错的部件是 {parts}。",
    ),
    "build-again": Message(
        en="Read once more with the small parts, the same text has log-probability {again}, with the cache {cached}: "
        "two of the parts disagree.",
        zh="用小部件再读一遍，同一段文字的对数概率是 {again}，使用缓存时是 {cached}：有两个部件的结果不一致。",
    ),
    "build-head": Message(
        en="decoder layer {layer}, head {head}: attention computed by your parts",
        zh="解码器第 {layer} 层，头 {head}：由你的部件算出的注意力",
    ),
    "build-head-ours": Message(
        en="decoder layer {layer}, head {head}: attention computed by our parts",
        zh="解码器第 {layer} 层，头 {head}：由我们的部件算出的注意力",
    ),
    "build-head-difference": Message(
        en="Largest difference of the weights of this head from ours: {gap}",
        zh="这个头的权重与用我们的部件算出的权重最多相差 {gap}",
    ),
    "build-not-weights": Message(
        en="The weights of decoder layer {layer}, head {head} cannot be drawn: "
        "its rows sum to {low} … {high} instead of 1.",
        zh="解码器第 {layer} 层头 {head} 的权重画不出来：各行的和是 {low} … {high}，应该是 1。",
    ),
    "build-check": Message(
        en="See what is wrong: regard learn check {exercise} {file}",
        zh="查看错在哪里：regard learn check {exercise} {file}",
    ),
    "build-diagnosis": Message(
        en="{exercise} does not pass its check: {diagnosis}", zh="{exercise} 没有通过批改：{diagnosis}"
    ),
    "build-diagnosis-none": Message(en="its results are wrong", zh="结果不对"),
    "build-complete": Message(
        en="Every part is yours: only the weights are ours now.",
        zh="所有部件都是你写的，现在只有权重还是我们的。",
    ),
    "build-next": Message(en="Next: regard learn start {exercise}", zh="下一步：regard learn start {exercise}"),
    # --- a part fails ---
    "build-failed": Message(en="{part} stopped the model: {reason}", zh="{part} 让模型停了下来：{reason}"),
    "build-line": Message(en="line {line}: ", zh="第 {line} 行："),
    "build-raises": Message(en="{where}{raised}: {message}", zh="{where}{raised}: {message}"),
    "build-shape": Message(
        en="{where}it must return an array {wanted}; found {found}",
        zh="{where}应该返回形状为 {wanted} 的数组；实际是 {found}",
    ),
    "build-value": Message(
        en="{where}it must return {wanted}; found {found}", zh="{where}应该返回 {wanted}；实际是 {found}"
    ),
    "build-missing-name": Message(en="it does not define {name}", zh="没有定义 {name}"),
    "build-too-slow": Message(en="it takes too long", zh="运行时间太长"),
    "build-too-much-memory": Message(en="it uses too much memory", zh="占用的内存太多"),
    "build-too-much-output": Message(en="it prints too much", zh="打印的内容太多"),
    "build-killed": Message(en="it ended the process", zh="它使进程意外退出"),
    "build-garbled": Message(en="it broke the program that calls it", zh="它破坏了调用它的程序"),
    "passed-not-kept": Message(
        en="the answer to {exercise} is not kept for regard learn build and certificate: {reason}",
        zh="{exercise} 的答案没有保存，regard learn build 和 certificate 用不了它：{reason}",
    ),
}
