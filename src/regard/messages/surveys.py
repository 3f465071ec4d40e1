"""Messages of surveys: the command, its table, and errors about texts, models and folders"""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    "help-survey": Message(
        en="What every head of a model does over a corpus: patterns, entropy, sink and distance with confidence "
        "intervals, and the texts that show each head best. The same command continues an interrupted survey; torchrun "
        "splits the texts over processes.",
        zh="统计模型的每个头在一份语料上的行为：模式、熵、注意力汇（attention sink）和距离（带置信区间），"
        "以及最能体现每个头的文本。"
        "中断后执行同一命令即可继续；用 torchrun 可由多个进程分担文本。",
    ),
    "help-survey-examples": Message(
        en="Examples:\n"
        "  regard survey --model poet --texts poems.txt --out surveys/poet\n"
        "  regard heads --survey surveys/poet --find separator\n"
        "  torchrun --nproc-per-node 2 -m regard survey --model FOLDER --texts texts.txt --out surveys/model",
        zh="示例：\n"
        "  regard survey --model poet --texts poems.txt --out surveys/poet\n"
        "  regard heads --survey surveys/poet --find separator\n"
        "  torchrun --nproc-per-node 2 -m regard survey --model FOLDER --texts texts.txt --out surveys/model",
    ),
    "help-survey-model": Message(
        en="the model: poet, translator, or a folder", zh="模型：poet、translator，或一个文件夹"
    ),
    "help-survey-texts": Message(
        en="a file with a text on each line; for a translator source, tab, target",
        zh="文本文件，每行一段；翻译模型每行是原文、制表符、译文",
    ),
    "help-survey-out": Message(en="the folder of its state and result", zh="保存状态和结果的文件夹"),
    "help-survey-queries": Message(
        en="queries of each text that are measured, evenly spread; 64 by default",
        zh="每段文本测量的查询数，均匀分布；默认为 64",
    ),
    "help-heads-survey": Message(
        en="show the heads of a survey that is done, from its folder", zh="显示一次已完成的调查（survey）的结果"
    ),
    "survey-progress": Message(en="{texts:,} texts, {tokens:,} tokens", zh="已读 {texts:,} 段文本，{tokens:,} 个词元"),
    "survey-needs": Message(
        en="regard survey needs {name}; write: regard survey --model MODEL --texts FILE --out FOLDER",
        zh="regard survey 需要 {name}；请写成：regard survey --model 模型 --texts 文件 --out 文件夹",
    ),
    "heads-survey-text": Message(
        en="--survey shows a survey that is done, so it takes no text; leave out the text, or --survey",
        zh="--survey 显示已完成的调查，不需要文本；请去掉文本，或去掉 --survey",
    ),
    "survey-title": Message(
        en="What the heads of {model} look at: {texts} texts, {tokens} tokens",
        zh="{model} 的各个头关注什么：共 {texts} 段文本，{tokens} 个词元",
    ),
    "survey-entropy": Message(en="entropy", zh="熵"),
    "survey-sink": Message(en="sink", zh="注意力汇"),
    "survey-distance": Message(en="distance", zh="距离"),
    "survey-passages": Message(
        en="Where each shows best: ⟨query⟩ and [key]",
        zh="各头表现最明显的地方：⟨查询⟩ 与 [键]",
    ),
    "survey-passage": Message(
        en="{name}, head {head}, text {text}: {passage}",
        zh="{name}，头 {head}，文本 {text}：{passage}",
    ),
    "survey-empty": Message(en="empty texts, skipped: {count}", zh="空文本（已跳过）：{count}"),
    "survey-unreadable": Message(
        en="texts that the model cannot read, skipped: {count}", zh="模型无法读入的文本（已跳过）：{count}"
    ),
    "survey-cut": Message(
        en="texts longer than the model reads, of which only the beginning counts: {count}",
        zh="超过模型最大长度的文本（只统计开头部分）：{count}",
    ),
    "survey-intervals": Message(
        en="±: 95 % confidence interval over texts.",
        zh="±：以文本为单位的 95 % 置信区间。",
    ),
    "survey-model": Message(
        en="survey needs a model that regard.load returns, its name or folder, or a torch.nn.Module with a tokenizer; "
        "found {found}",
        zh="survey 需要 regard.load 返回的模型、它的名字或文件夹，或带分词器的 torch.nn.Module；实际为 {found}",
    ),
    "survey-tokenizer": Message(
        en="survey of a PyTorch module needs tokenizer= with a method encode; found {found}",
        zh="对 PyTorch 模块做 survey 需要 tokenizer=，且带有 encode 方法；实际为 {found}",
    ),
    "survey-texts": Message(
        en="texts must be strings, or the path of a file with a text on each line; found {found}",
        zh="texts 应为若干字符串，或每行一段文本的文件的路径；实际为 {found}",
    ),
    "survey-not-utf8": Message(
        en="line {line} of {path} is not UTF-8; convert the file, for example with iconv",
        zh="{path} 的第 {line} 行不是 UTF-8；请先转换编码，例如用 iconv",
    ),
    "survey-no-texts": Message(
        en="there is no text to measure: all {count} are empty, or the model cannot read them{reason}",
        zh="没有可以测量的文本：全部 {count} 段都是空的，或模型无法读入{reason}",
    ),
    "survey-all-unreadable": Message(
        en="the model could read none of the first {count} texts: {reason}",
        zh="前 {count} 段文本模型一段也无法读入：{reason}",
    ),
    "survey-no-file": Message(
        en="there is no file {path}; texts= is the path of a file with a text on each line, or a list of strings such "
        "as [{text!r}]",
        zh="没有文件 {path}；texts= 应为每行一段文本的文件的路径，或字符串列表：[{text!r}]",
    ),
    "survey-training": Message(
        en="the module is in training mode, where dropout changes its attention; call model.eval() first",
        zh="该模块处于训练模式，dropout 会改变它的注意力；请先调用 model.eval()",
    ),
    "survey-target": Message(
        en="{name} is an encoder-decoder: write each text as source, tab, target",
        zh="{name} 是编码器-解码器：每段文本请写成“源文、制表符、译文”",
    ),
    "survey-no-ids": Message(en="the tokenizer gives no ids for it", zh="分词器没有给出任何编号"),
    "survey-id": Message(
        en="the tokenizer gives the id {id}, but the model knows {count} ids: it belongs to another model",
        zh="分词器给出的编号是 {id}，而模型只有 {count} 个编号：它属于另一个模型",
    ),
    "survey-nothing": Message(
        en="no attention of {name} was recorded, so there are no heads to measure",
        zh="没有记录到 {name} 的注意力，因此没有可以测量的头",
    ),
    "survey-other": Message(
        en="{path} holds the survey of another model, or one with other settings; use another --out",
        zh="{path} 里是另一个模型或另一组设置的调查；请换一个 --out",
    ),
    "survey-other-texts": Message(
        en="the texts that {path} has already measured have changed; restore them, or use another --out",
        zh="{path} 已测量过的文本发生了变化；请恢复它们，或换一个 --out",
    ),
    "survey-needs-out": Message(
        en="a survey by several processes needs a folder for its state: out=, or --out",
        zh="多进程的调查需要一个保存状态的文件夹：out= 或 --out",
    ),
    "survey-absent": Message(
        en="{path} has no finished survey; run: regard survey --model MODEL --texts FILE --out {path}",
        zh="{path} 里没有完成的调查；请运行：regard survey --model 模型 --texts 文件 --out {path}",
    ),
    "survey-newer": Message(
        en="{path} has version {found}, which this regard does not read; pip install --upgrade regard",
        zh="{path} 的版本是 {found}，当前的 regard 无法读取；请 pip install --upgrade regard",
    ),
    "survey-garbled": Message(
        en="{path} is damaged; remove it: the texts it covers are then measured again",
        zh="{path} 已损坏；请删除它，其中的文本会重新测量",
    ),
}
