"""The pictures of lesson 9: gradient, recall, loss, time and memory of RNNs and Transformers, as measured."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.course.drawings import measured
from regard.course.drawings.blocks import Curves, Drawing, Label
from regard.messages import Message

LENGTH = Message("length of the text", "文本长度")
STEPS = Message("training steps", "训练步数")
NAMES: dict[str, Label] = {
    "LSTM, forget bias 5": Message("LSTM, forget bias 5", "LSTM，遗忘门偏置 5"),
    "LSTM, forget bias 1": Message("LSTM, forget bias 1", "LSTM，遗忘门偏置 1"),
    "LSTM + Bahdanau": Message("LSTM + Bahdanau", "LSTM + Bahdanau 注意力"),
    "LSTM + Luong": Message("LSTM + Luong", "LSTM + Luong 注意力"),
}


def gradient_by_distance() -> Drawing:
    """The gradient that reaches the first word, by the length of the text."""
    return Drawing(
        title=Message("The gradient that reaches the first word", "传到第一个词的梯度"),
        blocks=(
            _curves(measured("rnn")["gradient"], Message("first ÷ last", "第一个 ÷ 最后一个"), log_y=True, least=1e-20),
        ),
        caption=Message(
            "The gradient of the last word's loss by the first word, divided by that by the last word. Initial "
            "weights, one layer. Values below 1e-20 are not drawn.",
            "最后一个词的损失对第一个词的梯度，除以对最后一个词的梯度。初始权重，一层。低于 1e-20 的不画。",
        ),
    )


def recall_by_distance() -> Drawing:
    """Accuracy of the copy puzzle by the number of letters."""
    found = measured("rnn")["recall"]
    shares = {
        name: {at: 100 * share for at, share in each["accuracy"].items()} for name, each in found["models"].items()
    }
    return Drawing(
        title=Message("Copy a row of letters: five models of one size", "抄写一串字母：五个同样大小的模型"),
        blocks=(_curves(shares, Message("right letters, %", "抄对的字母，%"), log_x=False),),
        caption=Message(
            f"Each model has about 85,000 parameters and its own learning rate, and was trained for {found['steps']:,} "
            f"steps on the same texts of 2 to 24 letters; the mean of {len(found['seeds'])} seeds. From a letter to "
            "its copy there are as many words as the text has letters. The three models with attention share the top "
            "line.",
            f"每个模型约 8.5 万参数，学习率各自选定，在同样的文本（2 到 24 个字母）上训练 {found['steps']:,} 步，"
            f"取 {len(found['seeds'])} 个随机种子的平均。文本有几个字母，从一个字母到它的抄写就隔几个词元。"
            "三个有注意力的模型重合在最上面一条线上。",
        ),
    )


def loss_by_step() -> Drawing:
    """Validation loss of five translators by training step."""
    found = measured("rnn")["translation"]["multi30k-en-de, small"]
    losses = {name: each["losses"] for name, each in found["models"].items()}
    return Drawing(
        title=Message("English to German: five translators of one size", "英译德：五个同样大小的翻译模型"),
        blocks=(_curves(losses, Message("validation loss", "验证损失"), x_label=STEPS, log_x=False),),
        caption=Message(
            "Multi30k, about a million parameters each, the same data in the same order, each with its own learning "
            f"rate; {found['epochs']:g} times through the data, one seed. Lower is better.",
            "Multi30k 数据集。每个模型约 100 万参数，数据和顺序都相同，学习率各自选定；"
            f"数据过了 {found['epochs']:g} 遍，一个随机种子。越低越好。",
        ),
    )


def time_by_length() -> Drawing:
    """Training time per word, one text at a time, by length."""
    found = measured("rnn")["time"]
    micro = {name: {at: 1e6 * each for at, each in row.items()} for name, row in found["training"]["a batch"].items()}
    return Drawing(
        title=Message("Training on one CPU core: time per word", "在一个 CPU 核上训练：每个词的用时"),
        blocks=(_curves(micro, Message("microseconds", "微秒")),),
        caption=Message(
            f"Forward and backward, batches of {found['tokens']:,} words, 400,000 parameters. On one core nothing runs "
            "in parallel, so this shows work, not the advantage of a GPU.",
            f"前向加反向，每批 {found['tokens']:,} 个词，40 万参数。一个核上没有并行，"
            "所以图中是工作量，不是 GPU 上的快慢。",
        ),
    )


def kept_by_length() -> Drawing:
    """What generation keeps of the text, by its length."""
    kib = {
        name: {at: each / 1024 for at, each in row.items()}
        for name, row in measured("rnn")["memory"]["generation"].items()
    }
    return Drawing(
        title=Message("What is kept of the text while writing", "生成时要保存多少"),
        blocks=(_curves(kib, "KiB", log_y=True),),
        caption=Message(
            "A Transformer keeps keys and values of every word. A recurrent network keeps one state, however long the "
            "text is: the two lie almost on one line.",
            "Transformer 要保存每个词的键和值。循环神经网络只保存一个状态，文本再长也一样大：两条线几乎重合。",
        ),
    )


def _curves(
    table: Mapping[str, Mapping[str, Any]],
    y_label: Label,
    *,
    x_label: Label = LENGTH,
    log_x: bool = True,
    log_y: bool = False,
    least: float = 0.0,
) -> Curves:
    """One curve for each model; values below `least` become 0, which a logarithmic axis leaves out."""
    x = np.array([float(at) for at in next(iter(table.values()))])
    values = {name: np.array(list(row.values()), dtype=float) for name, row in table.items()}
    series = {NAMES.get(name, name): np.where(row < least, 0, row) for name, row in values.items()}
    return Curves(x=x, series=series, x_label=x_label, y_label=y_label, log_x=log_x, log_y=log_y)


DRAWINGS = {
    "gradient-by-distance": gradient_by_distance,
    "recall-by-distance": recall_by_distance,
    "loss-by-step": loss_by_step,
    "time-by-length": time_by_length,
    "kept-by-length": kept_by_length,
}
