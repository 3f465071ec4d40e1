"""Messages about text files, tokenizers and batches."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- files of text ---
    "corpus-no-files": Message(
        en="no file was given; give at least one path",
        zh="没有给出文件；请至少给一个路径",
    ),
    "corpus-two-files": Message(
        en="pairs are read from .tsv or .jsonl files, or from two plain files, one for each language; found {found}",
        zh="句对可以来自 .tsv 或 .jsonl 文件，也可以来自两个纯文本文件（每种语言一个）；实际为 {found}",
    ),
    "corpus-two-columns": Message(
        en="a pair has two columns; found columns={found}",
        zh="句对需要两列；实际为 columns={found}",
    ),
    "corpus-column": Message(
        en="the columns of a .tsv are counted from 1; found {found!r}",
        zh=".tsv 的列从 1 数起；实际为 {found!r}",
    ),
    "corpus-three-columns": Message(
        en="pairs with word links need three columns: source, target and links; found {found}",
        zh="带词对齐的句对需要三列：原文、译文和对齐；实际为 {found}",
    ),
    "corpus-links-plain": Message(
        en="{path} is plain text, which has no column for word links; give a .tsv with source, target and links",
        zh="{path} 是纯文本，没有写词对齐的列；请给出 .tsv：原文、译文、对齐",
    ),
    "corpus-links": Message(
        en="{path}, line {line}: {found!r} are not links such as 0-0 2-1 between {n_source} source words and "
        "{n_target} target words, counted from 0; correct them, or leave such lines out with --skip-bad",
        zh="{path} 第 {line} 行：{found!r} 不是 0-0 2-1 这样的对齐（原文 {n_source} 个词，译文 {n_target} 个词，"
        "都从 0 数起）；请改正，或用 --skip-bad 跳过这样的行",
    ),
    "corpus-json-file": Message(
        en="{path} is one JSON value; give one object per line instead (.jsonl), for a list of texts: "
        "`jq -c '.[] | {{text: .}}' {path} > texts.jsonl`",
        zh="{path} 是单个 JSON 值；请改成每行一个对象（.jsonl），如果是文本列表："
        "`jq -c '.[] | {{text: .}}' {path} > texts.jsonl`",
    ),
    "corpus-empty": Message(
        en="{path} is empty; give a file with text",
        zh="{path} 是空文件；请给出包含文本的文件",
    ),
    "corpus-nothing": Message(
        en="nothing is left of {path}: {skipped} lines are bad; the first: {first}",
        zh="{path} 没有剩下任何内容：{skipped} 行有问题；第一处：{first}",
    ),
    "corpus-many": Message(
        en="{first} (and {more} more bad lines)",
        zh="{first}（另有 {more} 行也有问题）",
    ),
    "corpus-encoding": Message(
        en="{path}, line {line}: byte {byte} ({found}) is not UTF-8; convert the file, for example "
        "`iconv -f gb18030 -t utf-8`, or leave such lines out with --skip-bad",
        zh="{path} 第 {line} 行：第 {byte} 个字节（{found}）不是 UTF-8；请转换文件，例如 "
        "`iconv -f gb18030 -t utf-8`，或用 --skip-bad 跳过这样的行",
    ),
    "corpus-binary": Message(
        en="{path}, line {line}: character {place} is NUL, which text does not have: is the file UTF-16 or no text at "
        "all? Convert it to UTF-8, or leave such lines out with --skip-bad",
        zh="{path} 第 {line} 行：第 {place} 个字符是 NUL，文本里不会有：文件是 UTF-16，或者根本不是文本？"
        "请转换成 UTF-8，或用 --skip-bad 跳过这样的行",
    ),
    "corpus-long-line": Message(
        en="{path}, line {line} has {found} characters, where {most} is the most: is a line end missing? "
        "Break it up, or leave such lines out with --skip-bad",
        zh="{path} 第 {line} 行有 {found} 个字符，最多只能有 {most} 个：是不是缺了换行？"
        "请把它分成几行，或用 --skip-bad 跳过这样的行",
    ),
    "corpus-empty-line": Message(
        en="{path}, line {line} is empty; remove it, or leave such lines out with --skip-bad",
        zh="{path} 第 {line} 行是空行；请删掉它，或用 --skip-bad 跳过这样的行",
    ),
    "corpus-empty-cell": Message(
        en="{path}, line {line}: column {column} is empty; fill it in, or leave such lines out with --skip-bad",
        zh="{path} 第 {line} 行：列 {column} 是空的；请补上，或用 --skip-bad 跳过这样的行",
    ),
    "corpus-columns": Message(
        en="{path}, line {line}: columns found, separated by tabs: {found}; wanted: {wanted}; fix the line, choose "
        "columns (columns = … in the recipe), or leave such lines out with --skip-bad",
        zh="{path} 第 {line} 行：用制表符分隔的列数是 {found}，应为 {wanted}；请修正这一行，"
        "用配方里的 columns = … 指定取哪几列，或用 --skip-bad 跳过这样的行",
    ),
    "corpus-few-columns": Message(
        en="{path}, line {line}: columns found, separated by tabs: {found}, but column {wanted} is requested; "
        "fix the line, choose another column (columns = … in the recipe), or leave such lines out with --skip-bad",
        zh="{path} 第 {line} 行：用制表符分隔的列数是 {found}，但请求的是第 {wanted} 列；请修正这一行、"
        "用配方里的 columns = … 换一列，"
        "或用 --skip-bad 跳过这样的行",
    ),
    "corpus-json": Message(
        en="{path}, line {line} is not JSON ({reason}); fix it, or leave such lines out with --skip-bad",
        zh="{path} 第 {line} 行不是 JSON（{reason}）；请修正，或用 --skip-bad 跳过这样的行",
    ),
    "corpus-no-record": Message(
        en='{path}, line {line}: found a JSON {found} where an object belongs, such as {{"text": "…"}}; fix it, '
        "or leave such lines out with --skip-bad",
        zh='{path} 第 {line} 行：这里是 JSON 的 {found}，应为对象，例如 {{"text": "…"}}；请修正，'
        "或用 --skip-bad 跳过这样的行",
    ),
    "corpus-no-field": Message(
        en="{path}, line {line} has no text in field {wanted!r}; its fields: {found}; choose one "
        "(columns = … in the recipe), or leave such lines out with --skip-bad",
        zh="{path} 第 {line} 行的字段 {wanted!r} 里没有文本；现有字段：{found}；请用配方里的 columns = … 指定，"
        "或用 --skip-bad 跳过这样的行",
    ),
    "corpus-parallel": Message(
        en="{left} has {found} lines and {right} has {other}, so the pairs are unknown; give two files of equal length",
        zh="{left} 有 {found} 行，{right} 有 {other} 行，无法逐行配对；请给出行数相等的两个文件",
    ),
    "corpus-too-long": Message(
        en="{path}, line {line} makes {found} tokens, and the model reads {most} (max_len); shorten the line, "
        "raise max_len, or leave such lines out with --skip-bad",
        zh="{path} 第 {line} 行有 {found} 个词元，模型最多读 {most} 个（max_len）；请缩短这一行、增大 max_len，"
        "或用 --skip-bad 跳过这样的行",
    ),
    "fit-lengths": Message(
        en="each column of ids needs one entry for each of the {lines} lines; found {found}",
        zh="每一列 ids 都要与 {lines} 行一一对应；实际为 {found}",
    ),
    # --- tokenizers ---
    "tokenizer-unknown": Message(
        en="the tokenizer has no id for {found} ({count} such characters in all) and no <unk>; train it on this "
        "text too, or with <unk> among its specials",
        zh="分词器里没有 {found} 的 id（这样的字符共 {count} 种），也没有 <unk>；请把这段文本加入训练文本，"
        "或在特殊词元里加上 <unk>",
    ),
    "tokenizer-special": Message(
        en="the tokenizer has no control token <{name}>, which is needed here; use the one that the model was trained "
        "with, or train another (data.tokenizer in a recipe)",
        zh="分词器没有这里需要的控制词元 <{name}>；请使用训练该模型时的分词器，或另外训练一个"
        "（配方里的 data.tokenizer）",
    ),
    "tokenizer-id": Message(
        en="no token has id {found}; ids range from 0 to {last}",
        zh="没有 id 为 {found} 的词元；id 的范围是 0 到 {last}",
    ),
    "text-broken": Message(
        en="character {place} of the text is {found}, half of a surrogate pair: the bytes were not UTF-8; "
        "convert it first",
        zh="文本的第 {place} 个字符是 {found}，是不成对的代理码位：原来的字节不是 UTF-8；请先转换编码",
    ),
    "tokenizer-garbled": Message(
        en="{path} is not a tokenizer.json that can be used ({reason}); save it again with tokenizer.save(path)",
        zh="{path} 不是可用的 tokenizer.json（{reason}）；请用 tokenizer.save(path) 重新保存",
    ),
    "tokenizer-ids": Message(
        en="{path} has {count} tokens, whose ids must be 0, 1, 2 and so on, each once; the first wrong id is {wrong}",
        zh="{path} 有 {count} 个词元，id 必须是 0、1、2……各出现一次；第一个错误的 id 是 {wrong}",
    ),
    "tokenizer-growth": Message(
        en="{path} may make {found} characters of one, where {most} is the most; these replacements are not for text: "
        "get the file again from where the model comes from",
        zh="{path} 会把一个字符变成 {found} 个，最多只能是 {most} 个；其中的替换规则不是用来处理文本的，"
        "请从模型的来源重新获取此文件",
    ),
    "tokenizer-parts": Message(
        en="{path}: {place} has {found} entries, more than the {most} that any tokenizer needs; get the file again "
        "from where the model comes from",
        zh="{path}：{place} 有 {found} 项，超过了上限 {most}；请从模型的来源重新获取此文件",
    ),
    "tokenizer-string": Message(
        en="{path}: a text in {place} has {found} characters, more than the {most} that any tokenizer needs; get the "
        "file again from where the model comes from",
        zh="{path}：{place} 中的一段文本长 {found} 个字符，超过了上限 {most}；请从模型的来源重新获取此文件",
    ),
    "tokenizer-pattern": Message(
        en="{path}: the regular expression {pattern!r} in {place} is malformed or uses an unsupported construct: "
        "{found!r}; write it without that",
        zh="{path}：{place} 中的正则表达式 {pattern!r} 有语法错误，或用了不支持的写法：{found!r}；请改写",
    ),
    "tokenizer-pattern-slow": Message(
        en="{path}: the regular expression {pattern!r} in {place} is refused, since a search with it may never end: "
        "repetitions overlap, as in {found}; write it so that a text matches in only one way",
        zh="{path}：{place} 中的正则表达式 {pattern!r} 不予使用，因为匹配可能永远不会结束："
        "其中的重复相互重叠，如 {found}；请改写，使一段文本只有一种匹配方式",
    ),
    "tokenizer-slow": Message(
        en="{path} took {seconds} s for a short trial text, more than the {most} s allowed; get the file again "
        "from where the model comes from",
        zh="{path} 处理一段较短的试验文本用了 {seconds} 秒，超过上限 {most} 秒；请从模型的来源重新获取此文件",
    ),
    "tokenizer-memory": Message(
        en="{path} needs more than {most} of memory to be loaded and tried, far more than a tokenizer of its size; get "
        "the file again from where the model comes from",
        zh="加载并试用 {path} 需要超过 {most} 的内存，远多于同样大小的分词器；请从模型的来源重新获取此文件",
    ),
    "tokenizer-text-long": Message(
        en="a text has {found} characters, but the regular expressions of this tokenizer may take time quadratic "
        "in the length; give at most {most} characters at a time",
        zh="一段文本有 {found} 个字符，而这个分词器的正则表达式耗时可能与长度的平方成正比；每次最多给 {most} 个字符",
    ),
    "tokenizer-refuses": Message(
        en="this tokenizer cannot process the text ({reason}); use another tokenizer, or leave out the unusual "
        "characters",
        zh="这个分词器无法处理该文本（{reason}）；请换用其他分词器，或去掉不常见的字符",
    ),
    "learn-specials": Message(
        en="special tokens need different names, and none may be empty; found {found}",
        zh="特殊词元的名称不能为空，也不能重复；实际为 {found}",
    ),
    "learn-no-unknown": Message(
        en="a tokenizer of kind {kind!r} cannot encode unknown characters: it needs {unknown!r} among its specials",
        zh="{kind!r} 类的分词器无法编码未知字符：特殊词元里要有 {unknown!r}",
    ),
    "learn-no-size": Message(
        en="a tokenizer of kind {kind!r} needs vocab_size, the number of tokens, for example 8000",
        zh="{kind!r} 类的分词器需要 vocab_size，即词元个数，例如 8000",
    ),
    "learn-vocab-size": Message(
        en="vocab_size={vocab_size} is too small: the special tokens and single characters of the text are {needed}; "
        "give a larger one",
        zh="vocab_size={vocab_size} 太小：特殊词元和文本里的单个字符就有 {needed} 个；请给出更大的值",
    ),
    "learn-nothing": Message(
        en="there is no text to train a tokenizer on",
        zh="没有可用来训练分词器的文本",
    ),
    # --- batches ---
    "pairs-unequal": Message(
        en="every source needs its target; found {sources} sources and {targets} targets",
        zh="每个源句都要有对应的目标句；实际有 {sources} 个源句、{targets} 个目标句",
    ),
    "blocks-ids": Message(
        en="blocks are cut from one sequence of integers, shape (N,); found shape {shape}, dtype {dtype}",
        zh="分块需要一维整数序列，形状 (N,)；实际形状为 {shape}，dtype 是 {dtype}",
    ),
    "blocks-short": Message(
        en="the text has {found} tokens, but blocks of {block} need {least}; give more text or smaller blocks",
        zh="文本只有 {found} 个词元，长度为 {block} 的块至少要 {least} 个；请增加文本或减小块长",
    ),
    "batch-place": Message(
        en="there is no batch {index} in epoch {epoch}: both count from 0, and an epoch has {count} batches",
        zh="第 {epoch} 轮没有第 {index} 批：两者都从 0 开始计数，每轮有 {count} 批",
    ),
}
