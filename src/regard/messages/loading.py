"""Messages about loading a language model: what computes it, and files that are refused or not used."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    "backend-asked": Message(en="as requested", zh="按要求选用"),
    "backend-small": Message(en="small enough for NumPy", zh="模型较小，用 NumPy 即可"),
    "backend-no-torch": Message(
        en="PyTorch is not installed; pip install 'regard[torch]' makes it faster",
        zh="没有安装 PyTorch；安装后更快：pip install 'regard[torch]'",
    ),
    "backend-large": Message(en="{count:,} weights: faster with PyTorch", zh="有 {count:,} 个权重，用 PyTorch 更快"),
    "backend-int8": Message(en="weights as 8-bit integers, by PyTorch", zh="权重取 8 位整数，用 PyTorch 计算"),
    "backend-int8-slow": Message(
        en="weights as 8-bit integers, by PyTorch; without a C++ compiler (such as g++) generation is slow",
        zh="权重取 8 位整数，用 PyTorch 计算；没有 C++ 编译器（如 g++），生成较慢",
    ),
    "int8-backend": Message(
        en='weights="int8" needs regard\'s own Transformer and backend="torch"; this model is computed by {found}',
        zh='weights="int8" 需要 regard 自己的 Transformer 和 backend="torch"；这个模型由 {found} 计算',
    ),
    "lookup-greedy": Message(
        en="prompt lookup needs greedy generation: set the temperature to 0 and use no repetition penalty",
        zh="prompt lookup 只用于贪心生成：请把温度设为 0，并且不用重复惩罚",
    ),
    "lookup-model": Message(
        en="prompt lookup needs the logits after every token of a step, and {found} returns only the last ones",
        zh="prompt lookup 需要一步中每个词元之后的 logits，而 {found} 只返回最后一个",
    ),
    "lookup-one": Message(
        en="prompt lookup generates for one prompt at a time, and there are {found}",
        zh="prompt lookup 一次只能用于一个提示词，而这里有 {found} 个",
    ),
    "backend-other-family": Message(
        en="models of type {found} are computed by the transformers package",
        zh="{found} 类型的模型由 transformers 计算",
    ),
    "backend-refused": Message(
        en="regard's own Transformer does not compute this model, so the transformers package does: {reason}",
        zh="regard 自己的 Transformer 不支持这个模型，改由 transformers 计算：{reason}",
    ),
    "cli-by-transformers": Message(
        en="computed by the transformers package: {reason}",
        zh="由 transformers 计算：{reason}",
    ),
    "family-install": Message(
        en="{reason}; the transformers package may compute it: pip install 'regard[hub]'",
        zh="{reason}；可以改由 transformers 计算：pip install 'regard[hub]'",
    ),
    "weights-unused": Message(
        en="{path}: {count} tensors belong to an output layer for another task and are not used: {names}",
        zh="{path}：{count} 个张量属于用于其他任务的输出层，没有使用：{names}",
    ),
    "adapter-unused": Message(
        en="{path} describes an adapter, which regard does not apply: the model is computed without it; to use it, "
        "merge it where peft is installed (merge_and_unload, save_pretrained) and load that folder",
        zh="{path} 描述的适配器没有使用：regard 只计算不带适配器的模型；要使用它，"
        "请在装有 peft 的环境里合并（merge_and_unload、save_pretrained），再加载合并后的文件夹",
    ),
    "adapter-with-peft": Message(
        en="{path} describes an adapter beside the weights, and the transformers package would apply it with peft; "
        "merge it (merge_and_unload, save_pretrained) and load that folder, or remove this file to see the model "
        "without it",
        zh="{path} 描述了权重之外的适配器，而 transformers 会用 peft 应用它；"
        "请先合并（merge_and_unload、save_pretrained）再加载，或删除这个文件，查看不带适配器的模型",
    ),
    "backend-own-format": Message(
        en="{path} has regard's own format, which the transformers package does not read; "
        "use backend='torch' or 'numpy'",
        zh="{path} 是 regard 自己的格式，transformers 读不了；请用 backend='torch' 或 'numpy'",
    ),
    "transformers-cannot": Message(
        en="the transformers package cannot load the model of {path}: {reason}",
        zh="transformers 无法加载 {path} 的模型：{reason}",
    ),
    "transformers-missing": Message(
        en="the files of {path} do not hold {count} weights of this model, which would be random numbers: {names}; "
        "download the folder again, or check config.json",
        zh="{path} 的文件里缺少这个模型的 {count} 个权重，这些权重只能是随机数：{names}；"
        "请重新下载，或检查 config.json",
    ),
    "transformers-size": Message(
        en="{path} describes a model of {wanted:,} numbers, but its files hold {found:,}; download the folder again, "
        "or check config.json",
        zh="{path} 描述的模型有 {wanted:,} 个数，而文件里只有 {found:,} 个；请重新下载，或检查 config.json",
    ),
    "transformers-input": Message(
        en="{path} is a model of type {found}, which reads images or sound, not text alone: open it with "
        "transformers.{name}, record it with regard.watch, and draw it with trace.image",
        zh="{path} 是 {found} 类型的模型，输入是图像或声音，不只是文本：请用 transformers.{name} 打开，"
        "用 regard.watch 记录，用 trace.image 画图",
    ),
    "family-nowhere": Message(
        en="{path} has model_type {found!r}, which neither regard nor the installed transformers {version} knows; "
        "pip install -U transformers",
        zh="{path} 的 model_type 是 {found!r}，regard 和已安装的 transformers {version} 都不认识；"
        "请升级：pip install -U transformers",
    ),
    "family-code": Message(
        en="{path} has model_type {found!r}, whose code comes with the model (auto_map); regard never runs such code, "
        "and the installed transformers {version} has none of its own: pip install -U transformers may bring it. Else "
        "open the model yourself where you trust it, and record it with regard.watch",
        zh="{path} 的 model_type 是 {found!r}，它的代码随模型提供（auto_map）；regard 从不运行这样的代码，"
        "已安装的 transformers {version} 也没有自带：请先试试 pip install -U transformers；"
        "否则请在你信任它的环境里自行打开模型，用 regard.watch 记录",
    ),
    "transformers-failed": Message(
        en="{name} cannot be computed by transformers: {reason}",
        zh="transformers 无法计算 {name}：{reason}",
    ),
    "config-quantised": Message(
        en="{path} has a quantization_config ({method}): the weights are stored in a form that regard does not read; "
        "use the model's version without quantisation, or a GGUF file",
        zh="{path} 有 quantization_config（{method}）：权重经过量化，regard 读不了这种格式；"
        "请用该模型未量化的版本或 GGUF 文件",
    ),
    "weights-quantised": Message(
        en="{path} has quantised weights, as {found} shows: regard does not read this form; "
        "use the model's version without quantisation, or a GGUF file",
        zh="{path} 里的权重经过量化（依据：{found}），regard 读不了这种格式；请用该模型未量化的版本或 GGUF 文件",
    ),
    "see-no-attention": Message(
        en="{name} ({kind}) has no attention to show; generate and chat work",
        zh="{name}（{kind}）没有注意力，无法显示；generate 和 chat 可以使用",
    ),
    "transformers-config": Message(
        en="{name} is computed by the transformers package and has no TransformerConfig; its own is model.model.config",
        zh="{name} 由 transformers 计算，没有 TransformerConfig；它自己的配置在 model.model.config",
    ),
    "see-encoder-output": Message(
        en="{name} is an encoder and writes no text; leave out output",
        zh="{name} 是编码器，不生成文字；请去掉 output",
    ),
    "embed-task": Message(
        en="{name} writes text, and nothing in its folder says how its vectors become one: embed needs an encoder such "
        "as BERT, or a folder with modules.json of sentence-transformers",
        zh="{name} 是生成文字的模型，文件夹里没有说明怎样得到句向量；embed 需要 BERT 这样的编码器，"
        "或带有 sentence-transformers 的 modules.json 的文件夹",
    ),
    "embed-module": Message(
        en="{path} asks for {found}, which regard does not compute; it computes a Transformer, one Pooling (cls, max, "
        "mean, mean_sqrt_len_tokens, weightedmean, lasttoken), then Dense (Identity, Tanh, Sigmoid, ReLU, GELU, SiLU) "
        "and Normalize of sentence_transformers; use that package for this model",
        zh="{path} 要求 {found}，regard 不支持；支持的有：sentence_transformers 的 Transformer、一个 Pooling"
        "（cls、max、mean、mean_sqrt_len_tokens、weightedmean、lasttoken），以及其后的 Dense"
        "（Identity、Tanh、Sigmoid、ReLU、GELU、SiLU）和 Normalize；这个模型请用该软件包计算",
    ),
    "embed-dense": Message(
        en="{path} has {found}, and the config.json beside it wants {wanted}; download both files again",
        zh="{path} 里是 {found}，而同一文件夹的 config.json 要求 {wanted}；请重新下载这两个文件",
    ),
    "tokenizer-absent": Message(
        en="this model's folder has no tokenizer that regard reads, such as tokenizer.json, so a text is a list of ids "
        "from 0 to {last}, such as 15 3 27; found {found!r}",
        zh="这个模型的文件夹里没有 regard 能读的分词器（如 tokenizer.json），输入只能是 0 到 {last} 的 id，"
        "例如 15 3 27；实际为 {found!r}",
    ),
}
