"""Messages of the training commands: train, evaluate, plot and film, with their help pages and screens."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- regard evaluate ---
    "help-evaluate": Message(
        en="Score a trained model on text it has not seen: BLEU and chrF of a translator; loss, perplexity and "
        "bits per byte of a language model.",
        zh="用没有见过的文本评测训练好的模型：翻译模型给出 BLEU 和 chrF，语言模型给出损失、困惑度和每字节比特数。",
    ),
    "help-evaluate-examples": Message(
        en="Examples:\n"
        "  regard evaluate runs/de --data multi30k\n"
        "  regard evaluate runs/de --data multi30k --split test_2016_flickr --output hypotheses.txt\n"
        "  regard evaluate runs/zh --data pairs.tsv --json",
        zh="示例：\n"
        "  regard evaluate runs/de --data multi30k\n"
        "  regard evaluate runs/de --data multi30k --split test_2016_flickr --output hypotheses.txt\n"
        "  regard evaluate runs/zh --data pairs.tsv --json",
    ),
    "metavar-model": Message(en="MODEL", zh="模型"),
    "metavar-data": Message(en="PATH", zh="路径"),
    "metavar-name": Message(en="NAME", zh="名称"),
    "metavar-language": Message(en="CODE", zh="代码"),
    "metavar-device": Message(en="cpu|cuda", zh="cpu|cuda"),
    "help-evaluate-model": Message(
        en="translator, poet, the folder that regard train --out wrote, or one with config.json, model.safetensors and "
        "tokenizer.json",
        zh="translator（翻译）、poet（写诗）、regard train --out 生成的文件夹，"
        "或含有 config.json、model.safetensors 和 tokenizer.json 的文件夹",
    ),
    "help-evaluate-data": Message(
        en="the folder with the recipe's data, or a file of your own: pairs as TSV or JSONL for a translator, text for "
        "a language model; of a file that the run was trained on, only the held-out end is used",
        zh="配方数据所在的文件夹，或你自己的文件：翻译模型用 TSV 或 JSONL 句对，语言模型用文本；"
        "如果正是训练所用的文件，则只评测留出的结尾",
    ),
    "help-evaluate-split": Message(
        en="the name of a set in the folder; may be repeated; default: the recipe's test sets, or the held-out part of "
        "the training data",
        zh="文件夹里某个数据集的名称，可以给多次；默认用配方里的测试集，或训练时留出的部分",
    ),
    "help-evaluate-beams": Message(
        en="number of beams of a translator's search; default: the recipe's",
        zh="翻译时束搜索的束宽；默认按配方",
    ),
    "help-evaluate-language": Message(
        en="the target language of a translator; zh is scored by characters; default: the language of the recipe or "
        "the model, or the one detected in the references",
        zh="译文的语言；zh 按字计分；默认取配方或模型的设定，都没有时根据参考译文判断",
    ),
    "help-evaluate-output": Message(
        en="write the translations to a file, one per line, exactly as the model wrote them",
        zh="把译文写入文件，每行一句，与模型输出完全一致",
    ),
    "help-evaluate-skip-bad": Message(
        en="skip bad lines of a file of pairs, truncate sentences that are too long for the model, and report "
        "both counts",
        zh="跳过句对文件里有问题的行，截断超出模型最大长度的句子，并报告数量",
    ),
    "help-evaluate-device": Message(
        en="the device to run on; default: a GPU if there is one",
        zh="运行模型的设备；默认优先使用 GPU",
    ),
    "evaluate-no-model": Message(
        en="which model? Give the folder that regard train --out wrote, for example: "
        "regard evaluate runs/de --data multi30k",
        zh="要评测哪个模型？请给出 regard train --out 生成的文件夹，例如：regard evaluate runs/de --data multi30k",
    ),
    "evaluate-no-data": Message(
        en="on which text? Give --data, the folder with the recipe's data or a file of your own",
        zh="用什么文本评测？请用 --data 给出配方数据所在的文件夹，或你自己的文件",
    ),
    "evaluate-file-wanted": Message(
        en="{path} is a folder, but the model has no {recipe} beside it, so the files to use are unknown: "
        "give --data one file, or give the run's folder as MODEL",
        zh="{path} 是文件夹，而模型旁边没有 {recipe}，无法确定该用哪些文件：请让 --data 指向一个文件，"
        "或把训练文件夹作为模型给出",
    ),
    "evaluate-unfinished": Message(
        en="{path} is a run that has not finished: it has no folder model yet; "
        "run its regard train command again to continue it",
        zh="{path} 的训练还没有完成，还没有 model 文件夹；请再次运行同一条 regard train 命令，继续训练",
    ),
    "evaluate-split-one": Message(
        en="--split {split} chooses among the sets of a data folder, but {data} is one set; leave --split out",
        zh="--split {split} 用来选数据文件夹里的某个数据集，但 {data} 只有一个；请去掉 --split",
    ),
    "evaluate-puzzle": Message(en="the recipe's puzzle", zh="配方里的题目"),
    "evaluate-language-model": Message(
        en="{set}: scored as {language} (sacreBLEU's tokenizer {tokenizer}), the language in the model's "
        "generation_config.json; --language chooses another",
        zh="{set}：译文按 {language} 计分（sacreBLEU 的分词方式 {tokenizer}），语言取自模型的 generation_config.json；"
        "可用 --language 另选",
    ),
    "evaluate-language-guessed": Message(
        en="{set}: scored as {language} (sacreBLEU's tokenizer {tokenizer}), detected from the references, "
        "because neither recipe nor model names a language; --language chooses another",
        zh="{set}：译文按 {language} 计分（sacreBLEU 的分词方式 {tokenizer}）；配方和模型都没有写明语言，"
        "这是根据参考译文判断的；可用 --language 另选",
    ),
    "evaluate-split-absent": Message(
        en="there is no set {split!r}: none of these files exists: {paths}; check --data and --split",
        zh="没有名为 {split!r} 的数据集：以下文件都不存在：{paths}；请检查 --data 和 --split",
    ),
    "evaluate-split-lengths": Message(
        en="set {split!r} has {sources} source lines and {references} lines of references: "
        "line n of one file must belong to line n of the other",
        zh="数据集 {split!r} 有 {sources} 行原文、{references} 行参考译文：两个文件的第 n 行必须对应",
    ),
    "evaluate-output-one": Message(
        en="--output takes the translations of one set, and here are: {sets}; choose one translator's set with --split",
        zh="--output 只能写入一个数据集的译文，实际有：{sets}；请用 --split 选出一个翻译数据集",
    ),
    "evaluate-no-plain": Message(
        en="{set}: no sacreBLEU and no chrF, because they need references in plain text; there is no {path}",
        zh="{set}：无法计算 sacreBLEU 和 chrF，它们需要未经处理的参考译文；没有 {path}",
    ),
    "evaluate-cut": Message(
        en="{set}: {count} sentences were truncated to the model's maximum of {limit} tokens",
        zh="{set}：有 {count} 个句子被截断到模型的上限 {limit} 个词元",
    ),
    "evaluate-skipped": Message(
        en="{set}: {count} bad lines were skipped; the first: {first}",
        zh="{set}：跳过了 {count} 行有问题的内容；第一处：{first}",
    ),
    "evaluate-set": Message(en="{set}: {reason}", zh="{set}：{reason}"),
    "evaluate-held-out": Message(en="held out", zh="留出部分"),
    "evaluate-column-set": Message(en="set", zh="数据集"),
    "evaluate-column-metric": Message(en="metric", zh="指标"),
    "evaluate-column-value": Message(en="value", zh="数值"),
    "evaluate-column-signature": Message(en="signature", zh="签名"),
    "metric-bleu": Message(en="BLEU as in papers (lower-cased, tokenised)", zh="按论文算法计算的 BLEU（小写、已分词）"),
    "metric-sacrebleu": Message(en="sacreBLEU", zh="sacreBLEU"),
    "metric-chrf": Message(en="chrF", zh="chrF"),
    "metric-loss": Message(en="loss (nats per token)", zh="损失（每词元，奈特）"),
    "metric-perplexity": Message(en="perplexity", zh="困惑度"),
    "metric-bits-per-byte": Message(en="bits per byte", zh="每字节比特数"),
    "metric-bits-per-character": Message(en="bits per character", zh="每字符比特数"),
    "metric-solved": Message(en="solved without a mistake, %", zh="完全答对的比例（%）"),
    "scores-count": Message(
        en="there are {hypotheses} hypotheses and {references} lines of references: each line needs both",
        zh="译文有 {hypotheses} 行，参考译文有 {references} 行：每一行都要有译文和参考译文",
    ),
    "scores-empty": Message(
        en="there is nothing to score: give at least one line",
        zh="没有可以评分的内容：请至少给一行",
    ),
    "scores-no-reference": Message(
        en="line {line} has no reference: give at least one for every line",
        zh="第 {line} 行没有参考译文：每行请至少给一个",
    ),
    "alignment-line": Message(
        en="{path}, line {line}: a line must have words, characters and links such as 0-0 or 2?1, separated by tabs; "
        "each link once, within the sentences, and at least one of them sure; found {found!r}",
        zh="{path} 第 {line} 行：应有三列，用制表符分隔：单词、汉字、0-0 或 2?1 这样的词对齐，"
        "每个对齐只写一次、不超出句子，且至少有一个是确定的；实际为 {found!r}",
    ),
    "alignment-spelling": Message(
        en="the tokens {pieces!r} do not spell the words {words!r}: use the same sentence, with characters that the "
        "tokenizer knows",
        zh="词元 {pieces!r} 拼不出 {words!r}：请使用同一个句子，并只用分词器词表中的字符",
    ),
    "alignment-no-links": Message(
        en="training.alignment needs word links, and the training data have none; add them as a third column of the "
        ".tsv files",
        zh="training.alignment 需要词对齐，而训练数据里没有；请写在 .tsv 文件的第三列",
    ),
    "alignment-layer": Message(
        en="training.alignment.layer: the model has no attention layer {layer!r}; it has {names}",
        zh="training.alignment.layer：模型没有名为 {layer!r} 的注意力层；可选：{names}",
    ),
    "alignment-head": Message(
        en="training.alignment.head={head}: the heads of {layer} are numbered 0 to {last}",
        zh="training.alignment.head={head}：{layer} 的头编号为 0 到 {last}",
    ),
    "plan-alignment-weight": Message(
        en="training.alignment.weight must be above 0 and at most 1,000,000; found {value!r}",
        zh="training.alignment.weight 必须大于 0 且不超过 1,000,000；实际为 {value!r}",
    ),
    "links-count": Message(
        en="links are given for {found} pairs, and there are {pairs} pairs; give one list of links for each",
        zh="给出了 {found} 个句对的对齐，而句对有 {pairs} 个；请为每个句对各给一个列表",
    ),
    "links-outside": Message(
        en="pair {pair}: the link ({source}, {target}) is outside of {n_source} source and {n_target} target tokens, "
        "<eos> included",
        zh="句对 {pair}：对齐 ({source}, {target}) 超出了句子（连 <eos> 在内，原文 {n_source} 个词元，"
        "译文 {n_target} 个）",
    ),
    "alignment-no-tokens": Message(
        en="no pair of the training data can be aligned; the last: {reason}",
        zh="训练数据里没有一个句对可以对齐；最后一个：{reason}",
    ),
    "alignment-unspelled": Message(
        en="{count} pairs have characters that the tokenizer does not know, so their words are not aligned in training",
        zh="{count} 个句对含有分词器不认识的字符，训练时不对齐它们的词",
    ),
    "alignment-trace": Message(
        en="the trace of {text!r} has no cross-attention with token labels; use the model's see(text, output=…)",
        zh="{text!r} 的 Trace 里没有带词元的交叉注意力；请用模型的 see(text, output=…) 得到它",
    ),
    "text-loss-nothing": Message(
        en="no token is predicted in this data, so there is no loss: give a text of at least two tokens",
        zh="这份数据里没有要预测的词元，无法计算损失：请给出至少两个词元的文本",
    ),
    "translate-too-long": Message(
        en="line {line} has {found} tokens including the end token, but the model reads at most {limit}: shorten it, "
        "or truncate such lines with --skip-bad",
        zh="第 {line} 行连结束符共 {found} 个词元，但模型最多读 {limit} 个：请缩短，或用 --skip-bad 截断过长的行",
    ),
    # --- regard plot ---
    "help-plot": Message(
        en="Plot the curves of one or more runs: the loss, the validation loss, or any other metric.",
        zh="画出一次或多次训练的曲线：损失、验证损失或其他指标。",
    ),
    "help-plot-examples": Message(
        en="Examples:\n"
        "  regard plot runs/copy\n"
        "  regard plot runs/copy runs/reverse --png curves.png\n"
        "  regard plot runs/copy --metric lr --json",
        zh="示例：\n"
        "  regard plot runs/copy\n"
        "  regard plot runs/copy runs/reverse --png curves.png\n"
        "  regard plot runs/copy --metric lr --json",
    ),
    "metavar-runs": Message(en="RUN ...", zh="训练 ..."),
    "help-plot-runs": Message(
        en="the folders that regard train --out wrote; several are drawn in one picture",
        zh="regard train --out 生成的文件夹；给多个则画在同一幅图里",
    ),
    "help-metric": Message(
        en="what to plot, by its name in metrics.jsonl (loss, valid_loss, lr, norm, ...); "
        "default: the loss and the validation loss",
        zh="要画的指标，用 metrics.jsonl 里的名称（loss、valid_loss、lr、norm 等）；默认画损失和验证损失",
    ),
    "help-png": Message(
        en="write the picture to a file instead of the terminal: PNG, or SVG or PDF by the file extension",
        zh="把图写成 PNG 文件，或按扩展名写成 SVG、PDF，不在终端里画",
    ),
    "plot-no-runs": Message(
        en="which run? Give the folder that regard train --out wrote, for example: regard plot runs/copy",
        zh="要画哪次训练？请给出 regard train --out 生成的文件夹，例如：regard plot runs/copy",
    ),
    "curves-no-run": Message(
        en="there is no folder {path}; give the one that regard train --out wrote",
        zh="文件夹 {path} 不存在；请给出 regard train --out 生成的文件夹",
    ),
    "curves-no-metrics": Message(
        en="there is no {path}: this folder holds no run, or one that has not finished its first step",
        zh="没有 {path}：这个文件夹里没有训练记录，或者第一步还没有完成",
    ),
    "curves-empty": Message(
        en="{path} has no whole line yet; wait until the run has finished its first step",
        zh="{path} 里还没有完整的一行；请等训练完成第一步",
    ),
    "curves-metric": Message(
        en="run {run} has no numbers called {asked!r}; it has: {metrics}",
        zh="训练 {run} 里没有名为 {asked!r} 的数值；现有：{metrics}",
    ),
    "curves-over-steps": Message(en="{metric} over steps", zh="{metric}随步数的变化"),
    "curves-step": Message(en="step", zh="步"),
    "curves-loss": Message(en="loss", zh="损失"),
    "curves-valid-loss": Message(en="validation loss", zh="验证损失"),
    "curves-lr": Message(en="learning rate", zh="学习率"),
    "curves-norm": Message(en="gradient norm", zh="梯度范数"),
    "curves-shade": Message(
        en="single steps, lowest to highest; the curve is their mean",
        zh="各步的数值范围（从最低到最高）；曲线是它们的平均",
    ),
    "curves-legend": Message(
        en="{run} · {metric} · last {last} · lowest {lowest} at step {step}",
        zh="{run} · {metric} · 最后 {last} · 最低 {lowest}（第 {step} 步）",
    ),
    # --- regard film ---
    "help-film": Message(
        en="Replay how a head learned where to look, from a run that was trained with --film.",
        zh="回放一个注意力头是怎样学会关注某些位置的；训练时要加 --film。",
    ),
    "help-film-examples": Message(
        en="Examples:\n"
        "  regard film runs/reverse\n"
        "  regard film runs/reverse --layer decoder.layers.0.cross_attention --head 1\n"
        "  regard film runs/reverse --gif birth.gif --speed 8",
        zh="示例：\n"
        "  regard film runs/reverse\n"
        "  regard film runs/reverse --layer decoder.layers.0.cross_attention --head 1\n"
        "  regard film runs/reverse --gif birth.gif --speed 8",
    ),
    "metavar-run": Message(en="RUN", zh="训练"),
    "metavar-speed": Message(en="FPS", zh="帧数"),
    "help-film-run": Message(
        en="the folder that regard train --film --out wrote",
        zh="regard train --film --out 生成的文件夹",
    ),
    "help-film-layer": Message(
        en="the layer: its name, the end of its name, or its number; default: that of the head that changes most",
        zh="哪一层：名称、名称的结尾或编号；默认选变化最大的头所在的层",
    ),
    "help-film-head": Message(
        en="the head, by number; default: the one that changes most",
        zh="哪个头（编号）；默认选变化最大的头",
    ),
    "help-film-speed": Message(
        en="frames per second; default: the whole film takes about ten seconds",
        zh="每秒的帧数；默认让整部影片约十秒",
    ),
    "help-gif": Message(
        en="write an animated GIF instead of playing in the terminal",
        zh="写成 GIF 动画，不在终端里播放",
    ),
    "film-no-run": Message(
        en="which run? Give the folder that regard train --film --out wrote, for example: regard film runs/reverse",
        zh="要看哪次训练？请给出 regard train --film --out 生成的文件夹，例如：regard film runs/reverse",
    ),
    "film-none": Message(
        en="there is no film in {path}: train with --film, and with another --out if that run has finished",
        zh="{path} 里没有影片：训练时要加 --film；如果那次训练已经完成，请换一个 --out",
    ),
    "film-differs": Message(
        en="the frames of this film do not belong together: {name!r} is not in all of them with shape {wanted}; "
        "remove those of another run",
        zh="这部影片的各帧不属于同一次训练：并非每帧都有形状为 {wanted} 的 {name!r}；请删去其他训练留下的帧",
    ),
    "film-speed": Message(
        en="--speed must be a number of frames a second from {least} to {most}; found {found!r}",
        zh="--speed 是每秒的帧数，必须是 {least} 到 {most} 之间的数；实际为 {found!r}",
    ),
    "film-chosen": Message(
        en="{name}, head {head}: of {count} heads it changes most; {share} % of its attention moved "
        "from the first frame to the last",
        zh="{name} 的头 {head}：在 {count} 个头中变化最大，从第一帧到最后一帧有 {share}% 的注意力改变了位置",
    ),
    "film-only": Message(
        en="{name}, head {head}: {share} % of its attention moved from the first frame to the last",
        zh="{name} 的头 {head}：从第一帧到最后一帧有 {share}% 的注意力改变了位置",
    ),
    "film-step": Message(en="step {step}", zh="第 {step} 步"),
    "film-loss": Message(en="loss {loss}", zh="损失 {loss}"),
    "film-frame": Message(en="frame {number} of {count}", zh="第 {number} 帧（共 {count} 帧）"),
    # --- the screen of a run ---
    "training-comma": Message(en=", ", zh="，"),
    "training-started": Message(
        en="{recipe}: {parameters} parameters on {device}, ranks: {ranks}, steps: {steps}",
        zh="{recipe}：{parameters} 个参数，设备 {device}，进程数 {ranks}，共 {steps} 步",
    ),
    "training-resumed": Message(en="going on from step {step}", zh="从第 {step} 步继续"),
    "training-checkpoint-skipped": Message(en="checkpoint skipped: {reason}", zh="跳过一个检查点：{reason}"),
    "training-preparing": Message(en="reading the data", zh="正在读取数据"),
    "training-step": Message(en="step {step} of {steps}", zh="第 {step}/{steps} 步"),
    "training-loss": Message(en="loss {loss}", zh="损失 {loss}"),
    "training-validation": Message(
        en="validation {loss} at step {step} (best {best})", zh="验证损失 {loss}（第 {step} 步；最好 {best}）"
    ),
    "training-lr": Message(en="learning rate {lr}", zh="学习率 {lr}"),
    "training-speed": Message(en="{speed} tokens/s", zh="每秒 {speed} 个词元"),
    "training-share": Message(en="{share} % of the measured peak", zh="达到实测峰值的 {share}%"),
    "training-elapsed": Message(en="{time} so far", zh="已用 {time}"),
    "training-left": Message(en="{time} left", zh="还需 {time}"),
    "training-saved": Message(en="last checkpoint: step {step}", zh="最近的检查点：第 {step} 步"),
    "training-skipped": Message(
        en="skipped steps (loss not finite): {count}",
        zh="跳过的步数（损失不是有限数）：{count}",
    ),
    "training-figures": Message(
        en="validation loss of the final model {loss}, the best on the way {best} at step {step}",
        zh="最终模型的验证损失 {loss}；训练过程中最好的是第 {step} 步的 {best}",
    ),
    "training-ended-steps": Message(en="finished: {step} steps done", zh="训练完成：共 {step} 步"),
    "training-ended-patience": Message(
        en="finished at step {step}: the validation loss has stopped improving",
        zh="训练在第 {step} 步结束：验证损失已不再下降",
    ),
    "training-ended-already": Message(
        en="this run has already finished at step {step}; nothing was changed",
        zh="这次训练已在第 {step} 步完成；什么也没有改动",
    ),
    "training-ended-signal": Message(
        en="stopped at step {step} and saved; the same command continues from there",
        zh="已在第 {step} 步停止并保存；再次运行同一条命令即可从这里继续",
    ),
    # --- regard train ----------------------------------------------------------------------------------------
    "help-train": Message(
        en="Train a model from a RECIPE; run the same command again to continue a stopped run.",
        zh="按配方训练模型；中断后再次运行同一命令即可继续。",
    ),
    "help-train-examples": Message(
        en="Without a RECIPE it lists the bundled ones.\n"
        "\n"
        "Examples:\n"
        "  regard train copy --out runs/copy --film\n"
        "  regard train shakespeare-char --data texts --out runs/shakespeare\n"
        "  regard train multi30k-en-de --data multi30k --out runs/de --seed 1\n"
        "  regard train en-zh --data pairs.tsv --out runs/mine --set training.steps=2000\n"
        "  torchrun --nproc-per-node 2 -m regard train gpt2-124m --data texts --out runs/gpt2\n"
        "\n"
        "SIGTERM or Ctrl-C saves and exits with code 130; a second one exits at once.",
        zh="不写配方则列出自带的配方。\n"
        "\n"
        "示例：\n"
        "  regard train copy --out runs/copy --film\n"
        "  regard train shakespeare-char --data texts --out runs/shakespeare\n"
        "  regard train multi30k-en-de --data multi30k --out runs/de --seed 1\n"
        "  regard train en-zh --data pairs.tsv --out runs/mine --set training.steps=2000\n"
        "  torchrun --nproc-per-node 2 -m regard train gpt2-124m --data texts --out runs/gpt2\n"
        "\n"
        "SIGTERM 或 Ctrl-C 会先保存再退出（退出码 130）；第二次则立即退出。",
    ),
    "metavar-recipe": Message(en="RECIPE", zh="配方"),
    "metavar-key-value": Message(en="KEY=VALUE", zh="键=值"),
    "metavar-seconds": Message(en="SECONDS", zh="秒"),
    "help-recipe": Message(en="a recipe by name, or a .toml file", zh="配方的名字，或一个 .toml 文件"),
    "help-train-data": Message(
        en="the folder with the recipe's text, or one file of your own (.tsv, .jsonl, .txt)",
        zh="配方所用文本的文件夹，或你自己的一个文件（.tsv、.jsonl、.txt）",
    ),
    "help-train-out": Message(en="the folder of the run", zh="保存训练的文件夹"),
    "help-train-seed": Message(
        en="random seed of weights, data order and dropout: training.seed",
        zh="权重、数据顺序和 dropout 的随机种子：training.seed",
    ),
    "help-train-set": Message(
        en="change the recipe: training.steps=100; may be repeated", zh="更改配方：training.steps=100；可以重复"
    ),
    "help-train-film": Message(
        en="save the attention on the recipe's film text during training, for `regard film`",
        zh="训练过程中保存配方里 film 文本的注意力，供 `regard film` 回放",
    ),
    "help-train-skip-bad": Message(
        en="skip lines that cannot be used, and report their number", zh="跳过无法使用的行，并报告数量"
    ),
    "help-train-start": Message(
        en="start from this model (a run, a model folder, or a bundled model's name) instead of random weights",
        zh="从这个模型（训练文件夹、模型文件夹或自带模型的名字）开始，而不是从随机权重开始",
    ),
    "help-train-device": Message(
        en="cpu, cuda or cuda:1; default: a GPU if there is one", zh="cpu、cuda 或 cuda:1；默认优先使用 GPU"
    ),
    "help-train-timeout": Message(
        en="timeout for torchrun's other processes within a step; default: 20, or 300 with compile",
        zh="使用 torchrun 时，一步之内等待其他进程的最长时间；默认 20，编译时为 300",
    ),
    "train-skipped": Message(
        en="{name}: {count} lines were left out; the first: {first}",
        zh="{name}：跳过了 {count} 行；第一处：{first}",
    ),
    "train-data-unused": Message(
        en="{recipe} generates its own examples: --data is not used",
        zh="{recipe} 的例子由程序生成：没有用到 --data",
    ),
    "train-averaged": Message(
        en="the final model is the mean of {found} checkpoints instead of {average} (training.average): no more exist",
        zh="最终模型是 {found} 个检查点的平均，而不是 {average} 个（training.average）：没有更多的检查点",
    ),
    "train-best-absent": Message(
        en="there are no best weights in {path}, so the final model uses the last weights",
        zh="{path} 里没有最好的权重，最终模型使用最后的权重",
    ),
    "train-needs-out": Message(
        en="regard train {recipe} needs --out, the folder of the run",
        zh="regard train {recipe} 需要 --out，即保存训练的文件夹",
    ),
    "train-set-form": Message(
        en="--set takes KEY=VALUE, such as training.steps=100; found {found!r}",
        zh="--set 的形式是 键=值，例如 training.steps=100；实际为 {found!r}",
    ),
    "train-timeout-value": Message(
        en="--timeout must be a number of seconds above 0; found {found!r}",
        zh="--timeout 必须是大于 0 的秒数；实际为 {found!r}",
    ),
    "metavar-folder": Message(en="FOLDER", zh="文件夹"),
    "train-more": Message(
        en="Train one of them: regard train copy --out runs/copy",
        zh="训练其中一个：regard train copy --out runs/copy",
    ),
}
