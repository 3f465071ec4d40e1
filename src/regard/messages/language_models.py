"""Messages about language models and generation: folders, prompts, sampling, beam search."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- chat ---
    "chat-which": Message(
        en="regard chat needs --model: a folder or a GGUF file of a model that was trained for conversations, such as "
        "SmolLM2-Instruct or Qwen",
        zh="regard chat 需要 --model：一个为对话训练的模型（如 SmolLM2-Instruct 或 Qwen）的文件夹或 GGUF 文件",
    ),
    "chat-begin": Message(
        en="{name}. Type a message; /help lists commands, Ctrl-C stops an answer, Ctrl-D ends",
        zh="{name}。请输入消息；/help 列出命令，Ctrl-C 停止回答，Ctrl-D 结束",
    ),
    "chat-unknown": Message(
        en="there is no command {found}; commands: {names}",
        zh="没有 {found} 这个命令；可用的命令：{names}",
    ),
    "chat-stopped": Message(en="(stopped)", zh="（已停止）"),
    "chat-help": Message(
        en="/see   which words before the last answer it attended to most\n/new   begin a new conversation\n/exit  end",
        zh="/see   上一个回答最关注前文的哪些词\n/new   开始新的对话\n/exit  结束",
    ),
    "chat-see": Message(
        en="The last answer attended most to (mean of all layers and heads, without the first token):",
        zh="上一个回答最关注的词（所有层和头的平均，不计第一个词元）：",
    ),
    "chat-see-nothing": Message(
        en="there is no answer yet: type a message first",
        zh="还没有回答：请先输入一条消息",
    ),
    "language-not-pulled": Message(
        en="there is no folder {name}, and no model of that name in the cache; to download it: regard pull {name}",
        zh="文件夹 {name} 不存在，缓存里也没有这个名字的模型；要下载它：regard pull {name}",
    ),
    "pull-name": Message(
        en="the name of a model on the hub is like organisation/name; found {found!r}",
        zh="模型在 hub 上的名字形如 组织/名称；实际为 {found!r}",
    ),
    "pull-revision": Message(
        en="a revision is a branch, a tag or a commit; found {found!r}",
        zh="revision 应为分支、标签或提交；实际为 {found!r}",
    ),
    "pull-gated": Message(
        en="{name} is for people who accept its licence: accept it on its page, then log in (hf auth login)",
        zh="{name} 需要先接受许可协议：请在它的网页上接受，然后登录（hf auth login）",
    ),
    "pull-absent": Message(
        en="{endpoint} has no model {name} with revision {revision}, or it is private: check the name, or log in "
        "(hf auth login)",
        zh="{endpoint} 上没有模型 {name}（revision {revision}），或者它不公开：请检查名字，或登录（hf auth login）",
    ),
    "pull-offline": Message(
        en="HF_HUB_OFFLINE is set, so nothing is downloaded, and the cache lacks files of {name}: unset it and "
        "try again",
        zh="设置了 HF_HUB_OFFLINE，因此不下载，而缓存里缺少 {name} 的文件：请取消设置后重试",
    ),
    "pull-file": Message(
        en="--file is the path of a .gguf or .safetensors file in the repository; found {found!r}",
        zh="--file 应为仓库中 .gguf 或 .safetensors 文件的路径；实际为 {found!r}",
    ),
    "pull-no-file": Message(
        en="{name} (revision {revision}) has no file {file}",
        zh="{name}（revision {revision}）中没有文件 {file}",
    ),
    "pull-which": Message(
        en="{name} has {count} GGUF files and no safetensors: choose one with --file: {names}",
        zh="{name} 有 {count} 个 GGUF 文件，没有 safetensors：请用 --file 选一个：{names}",
    ),
    "pull-full": Message(
        en="{name} does not fit on the disk of {path}: {free:.1f} GiB are free; free some, or set HF_HOME to another "
        "disk. What has arrived is kept",
        zh="{path} 所在的磁盘放不下 {name}：还剩 {free:.1f} GiB；请腾出空间，或把 HF_HOME 设到别的磁盘。"
        "已下载的部分会保留",
    ),
    "pull-unreachable": Message(
        en="{name} cannot be downloaded from {endpoint}: {reason}. What has arrived is kept; try again, or set "
        "HF_ENDPOINT to a mirror",
        zh="无法从 {endpoint} 下载 {name}：{reason}。已下载的部分会保留；请重试，或把 HF_ENDPOINT 设为镜像站",
    ),
    "convert-not-empty": Message(
        en="{path} exists and is not an empty folder: give the name of a new folder",
        zh="{path} 已存在且不是空文件夹：请给出新文件夹的名字",
    ),
    "convert-no-family": Message(
        en="{path} cannot be written as any of Hugging Face's families ({names}): for example, {reason}",
        zh="{path} 无法保存为 Hugging Face 的任何一个模型家族（{names}）；例如：{reason}",
    ),
    "chat-messages": Message(
        en="messages must be a list of objects, each with a role, such as user, and a content; found {found}",
        zh="messages 应为列表，其中每一项有 role（如 user）和 content；实际为 {found}",
    ),
    "chat-message": Message(
        en="{place} must have a role and a content, both texts; found {found}",
        zh="{place} 必须有 role 和 content，两者都是文本；实际为 {found}",
    ),
    "chat-long": Message(
        en="the conversation is too long: {found:,}; at most {most:,}",
        zh="对话太长：{found:,}；最多 {most:,}",
    ),
    "chat-no-template": Message(
        en="{name} has no chat template: its tokenizer does not say how a conversation is written. Use generate, or "
        "the folder of a model that was trained for conversations",
        zh="{name} 没有对话模板：它的分词器没有说明对话的格式。请改用 generate，或使用为对话训练的模型",
    ),
    "chat-template-raised": Message(
        en="the chat template of {path} refuses these messages: {reason}",
        zh="{path} 的对话模板拒绝这些消息：{reason}",
    ),
    "chat-template-fails": Message(
        en="the chat template of {path} fails: {reason}",
        zh="{path} 的对话模板出错：{reason}",
    ),
    "chat-template-slow": Message(
        en="the chat template of {path} takes more than {seconds} s and was stopped: do not use this file",
        zh="{path} 的对话模板运行超过 {seconds} 秒，已被停止：请不要使用这个文件",
    ),
    "chat-template-large": Message(
        en="the chat template of {path} needs more than {most} and was stopped: do not use this file",
        zh="{path} 的对话模板需要超过 {most} 的内存，已被停止：请不要使用这个文件",
    ),
    "stop-kind": Message(
        en="stop must be a text, or several texts, none of them empty; found {found}",
        zh="stop 应为一段或几段非空的文本；实际为 {found}",
    ),
    "beams-and": Message(
        en="beam search takes the best text of several and has no {name}: leave out beams or {name}",
        zh="束搜索从几个文本中选最好的，不能同时指定 {name}：请去掉 beams 或 {name}",
    ),
    "transformers-padding": Message(
        en="models that the transformers package computes read one text at a time here: give one prompt",
        zh="由 transformers 计算的模型在这里一次只能读一段文本：请只给一个提示词",
    ),
    # --- a folder ---
    "bundled-absent": Message(
        en="this installation of regard lacks its model {name!r}: there is no folder {path}; "
        "reinstall regard, or load a folder of your own",
        zh="当前安装的 regard 缺少自带的模型 {name!r}：文件夹 {path} 不存在；请重新安装 regard，或加载自己的文件夹",
    ),
    "model-name-wanted": Message(
        en="load takes the name of a model or the path of its folder; found {found}; the bundled models are: {names}",
        zh="load 需要模型的名字或文件夹路径；实际为 {found}；regard 自带的模型有：{names}",
    ),
    "language-no-folder": Message(
        en="there is no folder {found!r}; the bundled models are: {names}",
        zh="文件夹 {found!r} 不存在；regard 自带的模型有：{names}",
    ),
    "language-kind": Message(
        en="{path} holds a model that does not generate text ({kind}): give the folder of a decoder or a translator",
        zh="{path} 里的模型（{kind}）不能生成文本：请给出解码器或翻译模型的文件夹",
    ),
    "language-vocabulary": Message(
        en="{path}: tokenizer.json has {found} tokens and the model {wanted}, so they do not match; "
        "use the tokenizer that the model was trained with",
        zh="{path}：tokenizer.json 有 {found} 个词元，模型有 {wanted} 个，两者不匹配；请使用训练该模型时的分词器",
    ),
    "language-marks": Message(
        en="{path} has no <bos> or no <eos>, but a translation begins with <bos> and ends with <eos>",
        zh="{path} 里没有 <bos> 或 <eos>，而译文以 <bos> 开始、以 <eos> 结束",
    ),
    "settings-unknown": Message(
        en="{path} has an unknown setting {found!r}; known settings: {known}",
        zh="{path} 里有未知的设置 {found!r}；可用的设置：{known}",
    ),
    "settings-value": Message(
        en="{path}: {place} must be {wanted}; found {found}",
        zh="{path}：{place} 应为 {wanted}；实际为 {found}",
    ),
    "quantise-not-finite": Message(
        en="{name} holds NaN, infinities or numbers beyond 4e40, for which there is no scale: save it without int8",
        zh="{name} 里有 NaN、无穷大或超过 4e40 的数，无法计算缩放系数：请不要用 int8 保存",
    ),
    # --- translating ---
    "text-kind": Message(
        en="give a text, a str; found {found}",
        zh="请给出一段文本（str）；实际为 {found}",
    ),
    "translate-task": Message(
        en="the model {name!r} does not translate but continues a text: use generate, or the model translator",
        zh="模型 {name!r} 只会续写，不会翻译：请改用 generate，或换成模型 translator",
    ),
    "translate-empty": Message(
        en="there is nothing to translate: give a sentence, for example 'I love you'",
        zh="没有要翻译的内容：请给一个句子，例如 'I love you'",
    ),
    "translate-chinese": Message(
        en="{found!r} is already in Chinese characters: the translator reads English and writes Chinese",
        zh="{found!r} 已经是中文：这个翻译模型把英文译成中文",
    ),
    "translate-script": Message(
        en="{found!r} is in {script}: the model {name!r} reads English",
        zh="{found!r} 是{script}：模型 {name!r} 只能读英文",
    ),
    "script-japanese": Message(en="Japanese", zh="日文"),
    "script-korean": Message(en="Korean", zh="韩文"),
    "script-bopomofo": Message(en="Chinese phonetic signs (bopomofo)", zh="注音符号"),
    "script-cyrillic": Message(en="Cyrillic letters", zh="西里尔字母"),
    "script-greek": Message(en="Greek letters", zh="希腊字母"),
    "script-arabic": Message(en="Arabic letters", zh="阿拉伯字母"),
    "script-hebrew": Message(en="Hebrew letters", zh="希伯来字母"),
    "script-devanagari": Message(en="Devanagari letters", zh="天城文字母"),
    "script-bengali": Message(en="Bengali letters", zh="孟加拉文字母"),
    "script-tamil": Message(en="Tamil letters", zh="泰米尔文字母"),
    "script-thai": Message(en="Thai letters", zh="泰文字母"),
    "script-georgian": Message(en="Georgian letters", zh="格鲁吉亚字母"),
    "script-armenian": Message(en="Armenian letters", zh="亚美尼亚字母"),
    "script-other": Message(en="letters that are not Latin", zh="非拉丁字母"),
    "translate-unreadable": Message(
        en="the model knows none of the characters in {found!r}: give a sentence in words",
        zh="{found!r} 里没有模型认识的字符：请用文字写一个句子",
    ),
    "translate-unreadable-few": Message(
        en="the model knows none of the characters in {found!r}: it knows only {known}",
        zh="{found!r} 里没有模型认识的字符：它只认识 {known}",
    ),
    "text-not-english": Message(
        en="the model {name!r} reads English only and does not know: {found}; "
        "its output for these parts is not reliable",
        zh="模型 {name!r} 只能读英文，不认识：{found}；这部分的结果不可靠",
    ),
    "text-unseen": Message(
        en="the model {name!r} never read these words in training: {found}; its output for them is a guess",
        zh="模型 {name!r} 训练时从未见过这些词：{found}；对它们的翻译只是猜测",
    ),
    "text-wordless": Message(
        en="there is no word in “{found}”; the output of the model {name!r} for it is made up",
        zh="“{found}”里没有词；模型 {name!r} 对它的输出是编造的",
    ),
    "text-numbers": Message(
        en="these numbers of the text are missing in the translation: {found}; "
        "the model {name!r} drops digits of long numbers",
        zh="译文里缺少原文的数字：{found}；模型 {name!r} 可能漏掉长数字中的数位",
    ),
    # --- writing ---
    "generate-task": Message(
        en="the model {name!r} translates and does not continue a text: use translate, or the model poet",
        zh="模型 {name!r} 只会翻译，不会续写：请改用 translate，或换成模型 poet",
    ),
    "generate-encoder": Message(
        en="the model {name!r} is an encoder and writes no text: use regard see, regard heads or LanguageModel.embed, "
        "or a model that writes",
        zh="模型 {name!r} 是编码器，不生成文字：请改用 regard see、regard heads 或 LanguageModel.embed，"
        "或换成能生成文字的模型",
    ),
    "translate-encoder": Message(
        en="the model {name!r} is an encoder and does not translate: use regard see, regard heads or "
        "LanguageModel.embed, or the model translator",
        zh="模型 {name!r} 是编码器，不能翻译：请改用 regard see、regard heads 或 LanguageModel.embed，"
        "或换成模型 translator",
    ),
    "generate-unknown": Message(
        en="the model {name!r} does not know: {found} ({count} in all); it knows only the characters of its "
        "training text; the poet knows few traditional characters",
        zh="模型 {name!r} 不认识：{found}（共 {count} 个）；它只认识训练文本里出现过的字，"
        "poet 不认识大多数繁体字（个别异体字除外）",
    ),
    "generate-too-long": Message(
        en="the text is {found} tokens long, and the model can read {most} at once: give a shorter one",
        zh="文本有 {found} 个词元，模型一次最多能读 {most} 个：请缩短一些",
    ),
    "generate-empty": Message(
        en="the model {name!r} has no start token: give a prompt",
        zh="模型 {name!r} 没有起始词元：请给出提示词",
    ),
    "generate-no-forms": Message(
        en="the model {name!r} has no forms, so {form!r} is unknown: leave the form out",
        zh="模型 {name!r} 不区分诗体，没有 {form!r}：请不要指定诗体",
    ),
    "generate-form": Message(
        en="there is no form {form!r}; there are: {choices}",
        zh="没有 {form!r} 这种诗体；可用的有：{choices}",
    ),
    # --- seeing ---
    "see-too-long": Message(
        en="the text is {found} tokens long, but at most {most} can be shown: give one sentence, "
        "or use `regard translate` for a long text",
        zh="文本有 {found} 个词元，最多能显示 {most} 个：请只给一个句子，长文本请用 `regard translate`",
    ),
    # --- prompts ---
    "prompt-empty": Message(
        en="{where} is empty, so there is nothing to continue: give at least one id, such as the start token",
        zh="{where} 是空的，没有可以续写的内容：请至少给一个 id，例如起始词元",
    ),
    "prompt-kind": Message(
        en="{where} must be token ids, integers in a list or an array: [1, 2] or [[1, 2], [3]]; found {found}; "
        "encode text with the tokenizer first",
        zh="{where} 必须是词元 id，即列表或数组里的整数：[1, 2] 或 [[1, 2], [3]]；实际为 {found}；文本请先经过分词器",
    ),
    "prompt-id": Message(
        en="{where}={value} is not in the vocabulary of {W}: ids go from 0 to {last}; "
        "was the text encoded with this model's tokenizer?",
        zh="{where}={value} 不在大小为 {W} 的词表里：id 从 0 到 {last}；文本是用这个模型的分词器编码的吗？",
    ),
    "special-id": Message(
        en="{name}={value!r} is not in the vocabulary of {W}: give an id from 0 to {last}",
        zh="{name}={value!r} 不在大小为 {W} 的词表里：请给出 0 到 {last} 之间的 id",
    ),
    "prompt-too-long": Message(
        en="there are {length} ids to read, but the model has {limit} positions: leave out at least {excess}",
        zh="要读 {length} 个 id，但模型只有 {limit} 个位置：请至少去掉 {excess} 个",
    ),
    "too-many-new": Message(
        en="{length} ids and max_new={max_new} more need {needed} positions (the last id is never read), but the model "
        "has {limit}: give max_new of at most {most}, or a shorter prompt",
        zh="{length} 个 id 再加 max_new={max_new} 个，需要 {needed} 个位置（最后一个 id 不会被读入），"
        "但模型只有 {limit} 个：请把 max_new 设为不超过 {most}，或缩短提示词",
    ),
    "max-new-count": Message(
        en="max_new must be a number, or a list with one for each prompt: found {found} numbers and {wanted} prompts",
        zh="max_new 必须是一个数，或者是一个列表，每个提示词对应一个数：实际有 {found} 个数，{wanted} 个提示词",
    ),
    "sources-count": Message(
        en="there must be one source for each prompt: found {found} sources and {wanted} prompts; "
        "give as many sources as prompts",
        zh="每个提示词要对应一段原文：实际有 {found} 段原文、{wanted} 个提示词；两者数量应相同",
    ),
    "sources-missing": Message(
        en="this model has an encoder and a decoder: give sources, the ids that the encoder reads, one text for each "
        "prompt: sources=[[1, 2]]",
        zh="这个模型有编码器和解码器：请给出 sources，即编码器要读的 id，每个提示词对应一段：sources=[[1, 2]]",
    ),
    "sources-unneeded": Message(
        en="this model has kind {kind!r} and reads no sources: leave sources and source_mask out",
        zh="这个模型的类型是 {kind!r}，不读 sources：请去掉 sources 和 source_mask",
    ),
    "model-begins": Message(
        en="the model must have a method `begin`, as regard.models.Transformer and regard.reference.Transformer do; "
        "found {found}",
        zh="模型必须有 `begin` 方法，如 regard.models.Transformer 与 regard.reference.Transformer；实际为 {found}",
    ),
    "session-one": Message(
        en="a Session remembers one text: give one prompt; found {found}",
        zh="Session 只保存一段文本：请只给一个提示词；实际有 {found} 个",
    ),
    "session-begun": Message(
        en="a Session has begun already, so {names} cannot be given here: give such options in Session(model.begin(…))",
        zh="Session 已经开始，这里不能再给 {names}：这类选项请在 Session(model.begin(…)) 中给出",
    ),
    "begin-option": Message(
        en="there is no option {name!r}; there are: {known}",
        zh="没有 {name!r} 这个选项；可用的选项有：{known}",
    ),
    "prefill-ragged": Message(
        en="prompts of different lengths ({shortest} to {longest} ids) need a fresh decoding, and this one has read "
        "{length} columns: give prompts of one length, or begin again",
        zh="长短不一的提示词（{shortest} 到 {longest} 个 id）要从头开始解码，而这次解码已读了 {length} 列："
        "请给长度相同的提示词，或重新调用 begin",
    ),
    # --- sampling ---
    "pick-kind": Message(
        en="pick must be GREEDY or a Sampling, such as Sampling(top_p=0.9); found {found}",
        zh="pick 必须是 GREEDY 或一个 Sampling，例如 Sampling(top_p=0.9)；实际为 {found}",
    ),
    "sampling-option": Message(
        en="{name} is about sampling, which generate and stream take as one value: pick=Sampling({name}={value!r})",
        zh="{name} 属于采样方式，请用 generate 或 stream 的 pick 参数给出：pick=Sampling({name}={value!r})",
    ),
    "temperature-value": Message(
        en="temperature must be a finite number greater than 0; found {value!r}; "
        "for the most likely token every time, use top_k=1 (or, in regard.generation, pick=GREEDY)",
        zh="temperature 必须是大于 0 的有限数；实际为 {value!r}；"
        "若要每次都取最可能的词元，请用 top_k=1（在 regard.generation 里也可用 pick=GREEDY）",
    ),
    "top-p-value": Message(
        en="top_p must be greater than 0 and at most 1; found {value!r}; 0.9 is usual, None leaves none out",
        zh="top_p 必须大于 0 且不超过 1；实际为 {value!r}；常用 0.9，None 表示不筛选",
    ),
    "min-p-value": Message(
        en="min_p must be between 0 and 1; found {value!r}; 0.05 is usual, None leaves none out",
        zh="min_p 必须在 0 与 1 之间；实际为 {value!r}；常用 0.05，None 表示不筛选",
    ),
    "repetition-penalty-value": Message(
        en="repetition_penalty must be a finite number greater than 0; found {value!r}; "
        "1.1 makes repeating less likely, None changes nothing",
        zh="repetition_penalty 必须是大于 0 的有限数；实际为 {value!r}；1.1 会减少重复，None 表示不变",
    ),
    "logits-not-finite": Message(
        en="the highest logit of row {row} is {found}, so no token can be chosen; check for NaN or infinities in "
        "the model's weights, or compute in float32",
        zh="第 {row} 行最大的 logit 是 {found}，无法选择词元；请检查模型权重里有没有 NaN 或无穷大，或改用 float32 计算",
    ),
    # --- beams ---
    "beams-vocabulary": Message(
        en="beams={beams} is more than the {W} tokens of the vocabulary: give at most {W}",
        zh="beams={beams} 超过了词表的 {W} 个词元：束宽请不要超过 {W}",
    ),
    "beams-best": Message(
        en="best={best} texts cannot come out of beams={beams}: give at most {beams}, or more beams",
        zh="best={best} 超过了 beams={beams}：best 请不要超过 {beams}，或增大束宽",
    ),
    "length-penalty-value": Message(
        en="length_penalty must be a finite number of moderate size; found {value!r}; 1.0 is usual, 0.0 compares plain "
        "sums",
        zh="length_penalty 必须是大小适中的有限数；实际为 {value!r}；常用 1.0，0.0 表示直接比较总和",
    ),
}
