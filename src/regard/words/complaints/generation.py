"""What is said about generation: prompts, ways of picking, beams."""

from regard.words import Words

WORDS: dict[str, Words] = {
    # --- what it starts from ---
    "prompt-empty": Words(
        en="{where} is empty, and there is nothing to go on from: give at least one id, such as the start token",
        zh="{where} 是空的，没有可以接着写的内容：请至少给一个 id，例如起始词元",
    ),
    "prompt-kind": Words(
        en="{where} must be token ids, whole numbers in a list or an array: [1, 2] or [[1, 2], [3]]; found {found}; "
        "text goes through the tokenizer first",
        zh="{where} 必须是词元 id，即列表或数组里的整数：[1, 2] 或 [[1, 2], [3]]；现在是 {found}；文本请先经过分词器",
    ),
    "prompt-id": Words(
        en="{where}={value} is not in the vocabulary of {W}: ids go from 0 to {last}; "
        "was the text encoded with this model's tokenizer?",
        zh="{where}={value} 不在大小为 {W} 的词表里：id 从 0 到 {last}；文本是用这个模型的分词器编码的吗？",
    ),
    "special-id": Words(
        en="{name}={value!r} is not in the vocabulary of {W}: give an id from 0 to {last}",
        zh="{name}={value!r} 不在大小为 {W} 的词表里：请给出 0 到 {last} 之间的 id",
    ),
    "prompt-too-long": Words(
        en="there are {length} ids to read, but the model has {limit} positions: leave out at least {excess}",
        zh="要读 {length} 个 id，但模型只有 {limit} 个位置：请至少去掉 {excess} 个",
    ),
    "no-room": Words(
        en="{length} ids and max_new={max_new} more need {needed} positions (the last id is never read), but the model "
        "has {limit}: give max_new of at most {most}, or a shorter prompt",
        zh="{length} 个 id 再加 max_new={max_new} 个，需要 {needed} 个位置（最后一个 id 不会被读入），"
        "但模型只有 {limit} 个：请把 max_new 设为不超过 {most}，或缩短提示",
    ),
    "max-new-count": Words(
        en="max_new must be a number, or a list with one for each prompt: found {found} numbers and {wanted} prompts",
        zh="max_new 必须是一个数，或者每个提示一个数的列表：现有 {found} 个数，{wanted} 个提示",
    ),
    "sources-count": Words(
        en="there must be one source for each prompt: found {found} sources and {wanted} prompts; "
        "give as many of the one as of the other",
        zh="每个提示要对应一个源文本：现在有 {found} 个源文本、{wanted} 个提示；请让两者一样多",
    ),
    "sources-missing": Words(
        en="this model has an encoder and a decoder: give sources, the ids that the encoder reads, one text for each "
        "prompt: sources=[[1, 2]]",
        zh="这个模型有编码器和解码器：请给出 sources，即编码器要读的 id，每个提示对应一段：sources=[[1, 2]]",
    ),
    "sources-unneeded": Words(
        en="this model has kind {kind!r} and reads no sources: leave sources and source_mask out",
        zh="这个模型的类型是 {kind!r}，不读 sources：请去掉 sources 和 source_mask",
    ),
    "model-begins": Words(
        en="the model must have a method `begin`, as regard.models.Transformer and regard.reference.Transformer do; "
        "found {found}",
        zh="模型必须有 `begin` 方法，如 regard.models.Transformer 与 regard.reference.Transformer；现在是 {found}",
    ),
    "session-one": Words(
        en="a Session remembers one text: give one prompt; found {found}",
        zh="Session 只记一段文本：请只给一个提示；现在有 {found} 个",
    ),
    "session-begun": Words(
        en="a Session has begun already, so {names} cannot be given here: give such options in Session(model.begin(…))",
        zh="Session 已经开始，这里不能再给 {names}：这类选项请在 Session(model.begin(…)) 中给出",
    ),
    "begin-option": Words(
        en="there is no option {name!r}; there are: {known}",
        zh="没有 {name!r} 这个选项；可用的选项有：{known}",
    ),
    "prefill-ragged": Words(
        en="prompts of different lengths ({shortest} to {longest} ids) need a fresh decoding, and this one has read "
        "{length} columns: give prompts of one length, or begin again",
        zh="长短不一的提示（{shortest} 到 {longest} 个 id）需要全新的解码，而这次解码已读了 {length} 列："
        "请给长度相同的提示，或重新 begin",
    ),
    # --- how ids are picked ---
    "pick-kind": Words(
        en="pick must be GREEDY or a Sampling, such as Sampling(top_p=0.9); found {found}",
        zh="pick 必须是 GREEDY 或一个 Sampling，例如 Sampling(top_p=0.9)；现在是 {found}",
    ),
    "sampling-option": Words(
        en="{name} is about sampling, which generate and stream take as one value: pick=Sampling({name}={value!r})",
        zh="{name} 属于采样方式，请用 generate 或 stream 的 pick 参数给出：pick=Sampling({name}={value!r})",
    ),
    "temperature-value": Words(
        en="temperature must be a finite number greater than 0; found {value!r}; "
        "for the most likely token every time, use top_k=1 (or, in regard.generation, pick=GREEDY)",
        zh="temperature 必须是大于 0 的有限数；现在是 {value!r}；"
        "若要每次都取最可能的词元，请用 top_k=1（在 regard.generation 里也可用 pick=GREEDY）",
    ),
    "top-k-vocabulary": Words(
        en="top_k={value} is more than the {W} tokens of the vocabulary: give at most {W}, or None to leave none out",
        zh="top_k={value} 超过了词表的 {W} 个词元：请给不超过 {W} 的数，或用 None 表示不筛选",
    ),
    "top-p-value": Words(
        en="top_p must be greater than 0 and at most 1; found {value!r}; 0.9 is usual, None leaves none out",
        zh="top_p 必须大于 0 且不超过 1；现在是 {value!r}；常用 0.9，None 表示不筛选",
    ),
    "min-p-value": Words(
        en="min_p must be between 0 and 1; found {value!r}; 0.05 is usual, None leaves none out",
        zh="min_p 必须在 0 与 1 之间；现在是 {value!r}；常用 0.05，None 表示不筛选",
    ),
    "repetition-penalty-value": Words(
        en="repetition_penalty must be a finite number greater than 0; found {value!r}; "
        "1.1 makes repeating less likely, None changes nothing",
        zh="repetition_penalty 必须是大于 0 的有限数；现在是 {value!r}；1.1 会减少重复，None 表示不变",
    ),
    "logits-not-finite": Words(
        en="the highest logit of row {row} is {found}, so there is nothing to choose by; look for NaN or infinities in "
        "the model's weights, or compute in float32",
        zh="第 {row} 行最大的 logit 是 {found}，无从选择；请检查模型权重里有没有 NaN 或无穷大，或改用 float32 计算",
    ),
    # --- beams ---
    "beams-vocabulary": Words(
        en="beams={beams} is more than the {W} tokens of the vocabulary: give at most {W}",
        zh="beams={beams} 超过了词表的 {W} 个词元：束的数量请不要超过 {W}",
    ),
    "beams-best": Words(
        en="best={best} texts cannot come out of beams={beams}: give at most {beams}, or more beams",
        zh="beams={beams} 给不出 best={best} 段文本：best 请不要超过 {beams}，或增加束的数量",
    ),
    "length-penalty-value": Words(
        en="length_penalty must be a finite number of moderate size; found {value!r}; 1.0 is usual, 0.0 compares plain "
        "sums",
        zh="length_penalty 必须是大小适中的有限数；现在是 {value!r}；常用 1.0，0.0 表示直接比较总和",
    ),
}
