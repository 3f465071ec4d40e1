"""What is said about models that read text: their folders, translating, writing, seeing."""

from regard.words import Words

WORDS: dict[str, Words] = {
    # --- a folder ---
    "bundled-absent": Words(
        en="this installation of regard lacks its model {name!r}: there is no folder {path}; "
        "install regard again, or load a folder of your own",
        zh="这份 regard 缺少自带的模型 {name!r}：文件夹 {path} 不存在；请重新安装 regard，或加载自己的文件夹",
    ),
    "language-no-folder": Words(
        en="there is no folder {found!r}; models that come with regard are: {names}",
        zh="文件夹 {found!r} 不存在；regard 自带的模型有：{names}",
    ),
    "language-kind": Words(
        en="{path} holds a model that writes no text ({kind}): give the folder of a decoder or a translator",
        zh="{path} 里的模型（{kind}）不能写出文本：请给出解码器或翻译模型的文件夹",
    ),
    "language-vocabulary": Words(
        en="{path}: tokenizer.json has {found} tokens and the model {wanted}, so they do not belong together; "
        "put the tokenizer there that the model was trained with",
        zh="{path}：tokenizer.json 有 {found} 个词元，模型有 {wanted} 个，两者不是一套；请放入训练该模型时用的分词器",
    ),
    "language-marks": Words(
        en="{path} has no <bos> or no <eos>, and a translation begins with the one and ends with the other",
        zh="{path} 里没有 <bos> 或 <eos>，而译文要以前者开始、以后者结束",
    ),
    "settings-unknown": Words(
        en="{path} has a setting {found!r} that regard does not know; known are: {known}",
        zh="{path} 里有 regard 不认识的设置 {found!r}；可用的有：{known}",
    ),
    "settings-value": Words(
        en="{path}: {place} must be {wanted}; found {found}",
        zh="{path}：{place} 应为 {wanted}；现在是 {found}",
    ),
    "quantise-not-finite": Words(
        en="{name} holds NaN, infinities or numbers beyond 4e40, which no scale fits: save it without int8",
        zh="{name} 里有 NaN、无穷大或超过 4e40 的数，没有合适的缩放系数：请不要用 int8 保存",
    ),
    # --- translating ---
    "text-kind": Words(
        en="give a text, a str; found {found}",
        zh="请给出一段文本（str）；现在是 {found}",
    ),
    "translate-task": Words(
        en="the model {name!r} does not translate but goes on with a text: use generate, or the model translator",
        zh="模型 {name!r} 只会续写，不会翻译：请改用 generate，或换成模型 translator",
    ),
    "translate-empty": Words(
        en="there is nothing to translate: give a sentence, for example 'I love you'",
        zh="没有要翻译的内容：请给一个句子，例如 'I love you'",
    ),
    "translate-chinese": Words(
        en="{found!r} is in Chinese characters already: the translator reads English and writes Chinese",
        zh="{found!r} 已经是汉字：这个翻译模型读英文、写中文",
    ),
    "translate-script": Words(
        en="{found!r} is in {script}: the model {name!r} reads English",
        zh="{found!r} 是{script}：模型 {name!r} 只读英文",
    ),
    "script-japanese": Words(en="Japanese", zh="日文"),
    "script-korean": Words(en="Korean", zh="韩文"),
    "script-bopomofo": Words(en="Chinese phonetic signs (bopomofo)", zh="注音符号"),
    "script-cyrillic": Words(en="Cyrillic letters", zh="西里尔字母"),
    "script-greek": Words(en="Greek letters", zh="希腊字母"),
    "script-arabic": Words(en="Arabic letters", zh="阿拉伯字母"),
    "script-hebrew": Words(en="Hebrew letters", zh="希伯来字母"),
    "script-devanagari": Words(en="Devanagari letters", zh="天城文字母"),
    "script-bengali": Words(en="Bengali letters", zh="孟加拉文字母"),
    "script-tamil": Words(en="Tamil letters", zh="泰米尔文字母"),
    "script-thai": Words(en="Thai letters", zh="泰文字母"),
    "script-georgian": Words(en="Georgian letters", zh="格鲁吉亚字母"),
    "script-armenian": Words(en="Armenian letters", zh="亚美尼亚字母"),
    "script-other": Words(en="letters that are not Latin", zh="非拉丁字母"),
    "translate-unreadable": Words(
        en="the model knows none of the characters in {found!r}: give a sentence in words",
        zh="{found!r} 里没有模型认识的字符：请用文字写一个句子",
    ),
    "translate-unreadable-few": Words(
        en="the model knows none of the characters in {found!r}: it knows only {known}",
        zh="{found!r} 里没有模型认识的字符：它只认识 {known}",
    ),
    "text-strange": Words(
        en="the model {name!r} reads English only and does not know: {found}; do not trust what it makes of that",
        zh="模型 {name!r} 只读英文，不认识：{found}；这部分的结果不可信",
    ),
    "text-unseen": Words(
        en="the model {name!r} never read these words while it was trained: {found}; what it makes of them is a guess",
        zh="模型 {name!r} 训练时从未见过这些词：{found}；对它们的翻译只是猜测",
    ),
    "text-wordless": Words(
        en="there is no word in “{found}”; what the model {name!r} writes for it is made up",
        zh="“{found}”里没有一个词；模型 {name!r} 为它写出的是编造的",
    ),
    "text-numbers": Words(
        en="the translation lacks these numbers of the text: {found}; the model {name!r} drops digits of long numbers",
        zh="译文里缺少原文的数字：{found}；模型 {name!r} 会漏掉长数字里的数位",
    ),
    # --- writing ---
    "generate-task": Words(
        en="the model {name!r} translates and does not go on with a text: use translate, or the model poet",
        zh="模型 {name!r} 只会翻译，不会续写：请改用 translate，或换成模型 poet",
    ),
    "generate-unknown": Words(
        en="the model {name!r} does not know: {found} ({count} in all); it knows only what its training text "
        "has; most traditional characters are unknown to the poet (a few variants are known)",
        zh="模型 {name!r} 不认识：{found}（共 {count} 个）；它只认识训练文本里出现过的字，"
        "poet 对繁体字大多不认识（个别异体字例外）",
    ),
    "generate-too-long": Words(
        en="the text is {found} tokens long, and the model can read {most} at once: give a shorter one",
        zh="文本有 {found} 个词元，模型一次最多能读 {most} 个：请缩短一些",
    ),
    "generate-empty": Words(
        en="the model {name!r} has no token to begin a text with: give a prompt",
        zh="模型 {name!r} 没有表示开头的词元：请给出开头的文字",
    ),
    "generate-no-forms": Words(
        en="the model {name!r} knows no forms, so there is no {form!r}: leave the form out",
        zh="模型 {name!r} 不分体裁，没有 {form!r}：请不要指定体裁",
    ),
    "generate-form": Words(
        en="there is no form {form!r}; there are: {choices}",
        zh="没有 {form!r} 这种体裁；可用的有：{choices}",
    ),
    # --- seeing ---
    "see-too-long": Words(
        en="the text is {found} tokens long, and {most} can be looked at in one picture: give one sentence, "
        "or use `regard translate` for a long text",
        zh="文本有 {found} 个词元，一张图最多能看 {most} 个：请只给一个句子，长文本请用 `regard translate`",
    ),
}
