"""Error messages about training runs: recipes, data, checkpoints, processes and films."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- checkpoints, metrics and the lock of a run ---
    "checkpoint-absent": Message(
        en="{path} has no checkpoint of step {step}; there are: {steps}",
        zh="{path} 里没有第 {step} 步的检查点；现有：{steps}",
    ),
    "checkpoint-unfinished": Message(
        en="{path} has no {manifest}: the checkpoint is incomplete; remove the folder",
        zh="{path} 里没有 {manifest}：检查点没有写完；请删除该文件夹",
    ),
    "checkpoint-not-plain": Message(
        en="{path} is a link or another special file; a checkpoint has only regular files and folders, and links are "
        "not followed: put the file or folder itself there",
        zh="{path} 是链接，或不是检查点自己的文件、文件夹；不会跟随链接：请把实际内容放在这里",
    ),
    "checkpoint-garbled": Message(
        en="{path} is damaged: {place} is not valid; copy the checkpoint again, or remove its folder and continue from "
        "the one before",
        zh="{path} 已损坏：{place} 处的内容无效；请重新复制该检查点，或删除它的文件夹，从前一个检查点继续",
    ),
    "checkpoint-newer": Message(
        en="{path} was written by a newer regard (checkpoint version {found}; this one reads up to {known}): "
        "pip install --upgrade regard",
        zh="{path} 由较新版本的 regard 生成（检查点版本 {found}；当前版本最高支持 {known}）："
        "pip install --upgrade regard",
    ),
    "checkpoint-step": Message(
        en="{path} is of step {found}, but its folder is named after another step; restore the name of the folder",
        zh="{path} 写的是第 {found} 步，与文件夹名中的步数不符；请恢复文件夹原来的名字",
    ),
    "checkpoint-files": Message(
        en="{path} lists {found}; a checkpoint consists of {wanted} only, and no other file is opened",
        zh="{path} 列出了 {found}；检查点只由 {wanted} 组成，不会打开其他文件",
    ),
    "checkpoint-size": Message(
        en="{path} has a size of {found}, but should have {wanted}: it was truncated or changed; copy the checkpoint "
        "again, or remove its folder and continue from the one before",
        zh="{path} 的大小是 {found}，应为 {wanted}：文件不完整或被改动过；请重新复制该检查点，"
        "或删除它的文件夹，从前一个检查点继续",
    ),
    "checkpoint-hash": Message(
        en="{path} has changed since it was written (SHA-256 {found}…, not {wanted}…): bits changed on the disk or in "
        "a copy; copy the checkpoint again, or remove its folder and continue from the one before",
        zh="{path} 与写入时不同（SHA-256 是 {found}…，应为 {wanted}…）：磁盘上或传输中有比特改变；"
        "请重新复制该检查点，或删除它的文件夹，从前一个检查点继续",
    ),
    "disk-full": Message(
        en="{path} could not be written: it needs {need}, and {free} is free ({reason}); nothing saved before is lost: "
        "free some space, then run the same command again",
        zh="无法写入 {path}：需要 {need}，剩余 {free}（{reason}）；此前保存的内容没有丢失：请腾出空间，再执行同一命令",
    ),
    "not-json": Message(
        en="{name} must be JSON values, without NaN and infinity: {reason}",
        zh="{name} 只能是 JSON 能表示的值，不能有 NaN 和无穷大：{reason}",
    ),
    "state-large": Message(
        en="the state of a checkpoint takes {found} as JSON; the maximum is {most}; store large values as tensors",
        zh="检查点的 state 保存为 JSON 后占 {found}，最多只能占 {most}；较大的内容请保存为张量",
    ),
    "metrics-garbled": Message(
        en="{path}, line {line}, is not a JSON object with a step later than that of the line before; "
        "fix the line or remove it",
        zh="{path} 第 {line} 行不是 JSON 对象，或其 step 不大于上一行；请修正或删除这一行",
    ),
    "metrics-step": Message(
        en="the step of the next line of {path} must be a whole number greater than {last}; found {found!r}",
        zh="{path} 下一行的 step 必须是大于 {last} 的整数；实际为 {found!r}",
    ),
    "run-locked": Message(
        en="{path} is in use by another run (process {pid} on {host}); wait for it, stop it, or choose another folder",
        zh="{path} 正被另一次训练使用（主机 {host} 上的进程 {pid}）；请等它结束、停止它，或换一个文件夹",
    ),
    "run-unlockable": Message(
        en="{path} could not be locked ({reason}), so two runs could overwrite each other's files there; "
        "choose a folder on another drive",
        zh="无法锁定 {path}（{reason}），两次训练可能互相破坏文件；请换用其他磁盘上的文件夹",
    ),
    # --- recipes ---
    "recipe-unknown": Message(
        en="there is no recipe {asked!r}; known are: {known}; or give the path of a .toml file",
        zh="没有名为 {asked!r} 的配方；现有：{known}；也可给出 .toml 文件的路径",
    ),
    "recipe-unknown-near": Message(
        en="there is no recipe {asked!r}; the nearest is {nearest!r}. Known are: {known}; "
        "or give the path of a .toml file",
        zh="没有名为 {asked!r} 的配方；最接近的是 {nearest!r}。现有：{known}；也可给出 .toml 文件的路径",
    ),
    "recipe-not-toml": Message(
        en="{path} could not be read as TOML ({reason}); fix the file at that place",
        zh="{path} 无法作为 TOML 读取（{reason}）；请修正该处",
    ),
    "recipe-wrong": Message(
        en="recipe {path}: {reason}",
        zh="配方 {path}：{reason}",
    ),
    "recipe-unknown-key": Message(
        en="[{place}] has no key {asked!r}; the nearest is {nearest!r}. Available: {known}",
        zh="[{place}] 里没有 {asked!r} 这个键；最接近的是 {nearest!r}。可用的有：{known}",
    ),
    "recipe-missing": Message(
        en="[{place}] lacks: {missing}",
        zh="[{place}] 缺少：{missing}",
    ),
    "recipe-type": Message(
        en="{place} must be of type: {wanted}; found {found}",
        zh="{place} 的类型应为：{wanted}；实际为 {found}",
    ),
    "recipe-count": Message(
        en="{place} must be a list of {wanted} values; found {found}",
        zh="{place} 应为 {wanted} 个值的列表；实际有 {found} 个",
    ),
    "recipe-large": Message(
        en="{place} is larger than {most}, the largest value allowed in a recipe",
        zh="{place} 超过 {most}，这是配方允许的最大值",
    ),
    "recipe-deep": Message(
        en="a key of a recipe has at most {most} parts, as in model.norm.place; found '{place}'",
        zh="配方的键最多有 {most} 段，例如 model.norm.place；实际为 '{place}'",
    ),
    "recipe-path": Message(
        en="{place} names files below the folder of --data; * is allowed, ** only as a whole part; found '{value}'",
        zh="{place} 写的是 --data 文件夹里的文件名，可以用 *，** 要独占一段；实际为 '{value}'",
    ),
    "recipe-path-absolute": Message(
        en="{place} names files below the folder of --data, and '{value}' is an absolute path: give --data {folder} and"
        ' {place} = ["{name}"]',
        zh="{place} 写的是 --data 文件夹里的文件名，而 '{value}' 是绝对路径：请用 --data {folder}，"
        '并把 {place} 设为 ["{name}"]',
    ),
    "toml-deep": Message(
        en="tables and arrays are nested deeper than {most} levels",
        zh="表和数组的嵌套超过 {most} 层",
    ),
    "toml-digits": Message(en="a number has thousands of digits", zh="有一个数长达数千位"),
    "train-too-large": Message(
        en="training a model of {parameters} parameters needs {need} for weights, gradients and the optimizer, but "
        "only {free} are free on {device}; choose a smaller d_model, d_ff, number of layers or vocabulary",
        zh="训练 {parameters} 个参数的模型，权重、梯度和优化器需要 {need}，而 {device} 只剩 {free}；"
        "请减小 d_model、d_ff、层数或词表",
    ),
    "recipe-no-table": Message(
        en="{place} cannot be set: {part} is a single value, not a table",
        zh="无法设置 {place}：{part} 是单个值，不是表",
    ),
    "recipe-share": Message(
        en="{place} must be a fraction above 0 and below 1; found {value}",
        zh="{place} 必须是大于 0 且小于 1 的比例；实际为 {value}",
    ),
    "recipe-pattern": Message(
        en="{place} must contain {{split}} and {{lang}}, and no other braces; found {value!r}",
        zh="{place} 里必须有 {{split}} 和 {{lang}}，花括号里不能有别的内容；实际为 {value!r}",
    ),
    "recipe-task-needs": Message(
        en="a recipe whose task is {task!r} also needs: {missing}",
        zh="task 为 {task!r} 的配方还需要：{missing}",
    ),
    "recipe-puzzle-unneeded": Message(
        en="[puzzle] is only for the task 'synthetic', but this task is {task!r}; remove one of them",
        zh="[puzzle] 只用于 task 'synthetic'，而这里的 task 是 {task!r}；请去掉其中之一",
    ),
    "recipe-alignment": Message(
        en="training.alignment is only for the task 'translation', with pairs in .tsv or .jsonl files; this task is "
        "{task!r}",
        zh="training.alignment 只用于 task 'translation'，句对写在 .tsv 或 .jsonl 文件里；这里的 task 是 {task!r}",
    ),
    "recipe-puzzle-long": Message(
        en="puzzle.longest is at most {most}, the number of letters; found {value}",
        zh="puzzle.longest 最多为 {most}，即字母的个数；实际为 {value}",
    ),
    "recipe-puzzle-max-len": Message(
        en="the longest example of this puzzle has {needed} tokens, more than data.max_len={value}; increase it",
        zh="这道题最长的样本有 {needed} 个词元，超过 data.max_len={value}；请把它改大",
    ),
    "recipe-model-kind": Message(
        en="this task ({task}) needs a model of kind {wanted}, but [model] describes one of kind {found}; "
        "choose another preset, or other layers",
        zh="这个任务（{task}）需要 {wanted} 模型，而 [model] 描述的是 {found} 模型；请换一个 preset，或更改层数",
    ),
    "recipe-vocabulary": Message(
        en="model.vocab_size={value} is less than the tokenizer's {needed}; remove it, or increase it",
        zh="model.vocab_size={value} 小于分词器的 {needed}；请去掉它，或改大",
    ),
    "recipe-length": Message(
        en="model.max_len={value} is less than data.max_len={needed}; remove it, or increase it",
        zh="model.max_len={value} 小于 data.max_len={needed}；请去掉它，或改大",
    ),
    # --- plans -----------------------------------------------------------------------------------------------
    "plan-range": Message(
        en="training.{name} must be a number from {low} to {high}; found {value}",
        zh="training.{name} 必须是 {low} 到 {high} 之间的数；实际为 {value}",
    ),
    "plan-betas": Message(
        en="training.betas must be two numbers, each at least 0 and below 1; found {value}",
        zh="training.betas 必须是两个数，都不小于 0 且小于 1；实际为 {value}",
    ),
    "plan-patience": Message(
        en="training.patience={patience} counts validations, but there is only one, after the last step; "
        "set training.valid_every to the steps between two validations",
        zh="training.patience={patience} 按验证次数计算，而现在只在最后验证一次；"
        "请用 training.valid_every 指定隔多少步验证一次",
    ),
    "plan-clip": Message(
        en='training.clip=0 would set every gradient to zero; write training.clip="none" for no clipping',
        zh='training.clip=0 会把所有梯度变为零；不裁剪梯度请写 training.clip="none"',
    ),
    "plan-keep": Message(
        en="training.keep={keep} keeps too few checkpoints for training.average={average}; keep must be at least as "
        "large as average",
        zh="training.keep={keep} 保留的检查点不够 training.average={average} 取平均；请让 keep 不小于 average",
    ),
    "plan-final": Message(
        en='training.final = "best" uses one checkpoint, so training.average must be 1; found {average}',
        zh='training.final = "best" 只取一个检查点，因此 training.average 必须为 1；实际为 {average}',
    ),
    # --- data ------------------------------------------------------------------------------------------------
    "data-missing": Message(
        en="the recipe {recipe} needs text: add --data with its folder, or with a file of your own",
        zh="配方 {recipe} 需要文本：请用 --data 指定所在文件夹，或你自己的文件",
    ),
    "data-absent": Message(
        en="there is no {path}; check --data and the file names in the recipe",
        zh="没有 {path}；请检查 --data 和配方里的文件名",
    ),
    "data-too-few": Message(
        en="{path} has too little text: it is split into a training and a validation part, and neither may be empty; "
        "give more text",
        zh="{path} 的文本太少：要分成训练和验证两部分，两者都不能为空；请增加文本",
    ),
    "data-short": Message(
        en="{path}: the text to train on makes {found} tokens, but needs more than one block of {block} "
        "(data.max_len); give more text, or use smaller blocks with --set data.max_len=...",
        zh="{path}：用于训练的文本只有 {found} 个词元，必须多于一块的 {block} 个（data.max_len）；请增加文本，"
        "或用 --set data.max_len=... 减小块长",
    ),
    "data-short-end": Message(
        en="{path}: the validation text has {found} tokens, and at least 2 are needed; give more text, "
        "or increase data.valid_share",
        zh="{path}：用于验证的文本只有 {found} 个词元，至少需要 2 个；请增加文本，或增大 data.valid_share",
    ),
    # --- runs ------------------------------------------------------------------------------------------------
    "run-not-ours": Message(
        en="{path} is not empty and holds no run ({found}); give --out a new or an empty folder",
        zh="{path} 不是空文件夹，里面也没有训练记录（有 {found}）；请让 --out 指向新的或空的文件夹",
    ),
    "run-other-recipe": Message(
        en="the run in {path} was started with other values of: {keys}; repeat its command, or give another --out",
        zh="{path} 里的训练开始时，以下各项与现在不同：{keys}；请使用原来的命令，或换一个 --out",
    ),
    "run-other-start": Message(
        en="the run in {path} was started from another model (--start); repeat its command, or give another --out",
        zh="{path} 里的训练是从另一个模型开始的（--start）；请使用原来的命令，或换一个 --out",
    ),
    "start-config": Message(
        en="the recipe's model differs from the model in {path} in: {keys}; set model.{name} to {wanted}, not {found}, "
        "or start from another model",
        zh="配方里的模型与 {path} 里的模型有以下不同：{keys}；请把 model.{name} 设为 {wanted}（当前为 {found}），"
        "或从另一个模型开始",
    ),
    "start-tokenizer": Message(
        en="the recipe's tokenizer is not {path}, the tokenizer of the model to start from; leave out "
        "data.tokenizer_file",
        zh="配方的分词器不是 {path}，即起始模型的分词器；请去掉 data.tokenizer_file",
    ),
    "run-data-file": Message(
        en="{path} has changed since this run was started; restore the old file, or give another --out",
        zh="{path} 在训练开始之后改变了；请恢复原来的文件，或换一个 --out",
    ),
    "run-data-changed": Message(
        en="the checkpoint belongs to other training data; restore the old data, or give another --out",
        zh="检查点属于另一份训练数据；请恢复原来的数据，或换一个 --out",
    ),
    "run-other-model": Message(
        en="the checkpoint belongs to another model: {name} differs; give another --out",
        zh="检查点属于另一个模型：{name} 不同；请换一个 --out",
    ),
    "run-optimizer": Message(
        en="the checkpoint's optimizer belongs to another model: {place} has shape {found}, expected {wanted}; "
        "give another --out",
        zh="检查点里的优化器属于另一个模型：{place} 的形状是 {found}，应为 {wanted}；请换一个 --out",
    ),
    "run-progress": Message(
        en="the checkpoint's state.json has no valid record of the run's progress; remove that checkpoint",
        zh="检查点的 state.json 里没有有效的训练进度；请删除这个检查点",
    ),
    "run-file-changed": Message(
        en="{path} has changed since it was written: it was damaged, changed or removed; restore it, or remove "
        "{remove} and run the same command again: missing files are rebuilt",
        zh="{path} 与写入时不同：已损坏、被改动或被删除；请恢复它，或删除 {remove} 后再执行同一命令：缺少的会重新生成",
    ),
    "run-no-checkpoint": Message(
        en="no checkpoint in {path} can be used: {reason}; restore a good one, or remove that folder to start again",
        zh="{path} 里没有可用的检查点：{reason}；请恢复一个完好的检查点，或删除该文件夹以重新开始",
    ),
    "run-best-damaged": Message(
        en="the best weights are damaged: {reason}. There is no other copy: remove {path} and run the same command "
        "again to use the last weights",
        zh="最好的权重已损坏：{reason}。没有其他副本：删除 {path} 后再执行同一命令，将改用最后的权重",
    ),
    "metrics-changed": Message(
        en="{path} has changed up to step {step} since it was written: it was damaged or edited; restore it, or move "
        "it away to continue without its lines",
        zh="{path} 中第 {step} 步之前的内容与写入时不同：已损坏或被改动；请恢复它，或把它移走，继续时将没有这些行",
    ),
    "run-not-finite": Message(
        en="{count} steps in a row, up to step {step}, had a loss or gradient that is not finite; they were skipped, "
        "and the checkpoint of step {saved} is good; lower training.lr or training.clip in a new --out",
        zh="到第 {step} 步为止连续 {count} 步的损失或梯度不是有限数；这些步都没有更新，第 {saved} 步的检查点完好；"
        "请换一个 --out，并调低 training.lr 或 training.clip",
    ),
    "run-never-finite": Message(
        en="{count} steps in a row, up to step {step}, had a loss or gradient that is not finite; they were skipped, "
        "and no checkpoint has been saved yet; lower training.lr or training.clip in a new --out",
        zh="到第 {step} 步为止连续 {count} 步的损失或梯度不是有限数；这些步都没有更新，也还没有保存检查点；"
        "请换一个 --out，并调低 training.lr 或 training.clip",
    ),
    "run-validation-not-finite": Message(
        en="the validation loss of step {step} is not finite, so nothing was saved; lower training.lr in a new --out",
        zh="第 {step} 步的验证损失不是有限数，因此没有保存；请换一个 --out，并调低 training.lr",
    ),
    "run-weights-not-finite": Message(
        en="{name} is not finite after step {step}, so it was not saved; lower training.lr in a new --out",
        zh="第 {step} 步之后 {name} 不是有限数，因此没有保存；请换一个 --out，并调低 training.lr",
    ),
    # --- several processes -----------------------------------------------------------------------------------
    "rank-lost": Message(
        en="process {rank} of {world} lost the others ({reason}); run the same command again "
        "to continue from the newest checkpoint",
        zh="进程 {rank}（共 {world} 个）与其他进程失去联系（{reason}）；再次运行同一命令，即可从最新的检查点继续",
    ),
    "rank-failed": Message(
        en="process {rank} of {world} failed while a checkpoint was written or read, and reports the reason; fix it "
        "and run the same command again to continue from the newest checkpoint",
        zh="进程 {rank}（共 {world} 个）在读写检查点时出错，原因见它的提示；解决之后再次运行同一命令，"
        "即可从最新的检查点继续",
    ),
    "shard-scalar": Message(
        en="training.shard divides each weight along its first axis, but {name} has no axes; give it the shape (1,), "
        "or set training.shard = false",
        zh="training.shard 沿第一个轴切分每个权重，但 {name} 没有轴；请把它的形状改为 (1,)，"
        "或设 training.shard = false",
    ),
    "rank-variable": Message(
        en="the environment variables set several processes, but not as torchrun sets them: {reason}; start with "
        "torchrun, or unset WORLD_SIZE for a single process",
        zh="环境变量指定了多个进程，但与 torchrun 的设置不符：{reason}；请用 torchrun 启动；若只用一个进程，"
        "请去掉 WORLD_SIZE",
    ),
    "rank-variable-value": Message(en="{name} is {value!r}", zh="{name} 是 {value!r}"),
    "rank-variable-absent": Message(en="there is no {name}", zh="缺少 {name}"),
    "rank-not-stopping": Message(
        en="after the stop request they did not respond within {seconds:g} s",
        zh="收到停止请求后，它们在 {seconds:g} 秒内没有响应",
    ),
    "device-missing": Message(
        en="there is no device {device} here: PyTorch finds {count} GPUs; use --device cpu",
        zh="没有设备 {device}：PyTorch 找到 {count} 个 GPU；请使用 --device cpu",
    ),
    # --- films -----------------------------------------------------------------------------------------------
    "film-no-scene": Message(
        en="the recipe {recipe} has no [film], so --film does not know what to save; "
        "add --set film.text=... --set film.every=100",
        zh="配方 {recipe} 没有 [film]，--film 不知道要保存什么；请加上 --set film.text=... --set film.every=100",
    ),
    "film-text": Message(
        en="film.text cannot be filmed: {reason}; or choose another text with --set film.text=...",
        zh="film.text 无法使用：{reason}；也可以用 --set film.text=... 换一段文本",
    ),
    "film-addition": Message(
        en="an addition is two numbers with a plus between them, such as 275+648; found {found!r}",
        zh="加法是两个数和中间的加号，例如 275+648；实际为 {found!r}",
    ),
    "film-length": Message(
        en="film.text makes {found} tokens, its marks included, and the model reads 1 to {most} (data.max_len); "
        "choose another text with --set film.text=...",
        zh="film.text 连同特殊词元有 {found} 个词元，模型能读 1 到 {most} 个（data.max_len）；"
        "请用 --set film.text=... 换一段文本",
    ),
    "film-layers": Message(
        en="film.layers matches no layer of this model: {patterns}; available: {names}",
        zh="film.layers 没有对应到这个模型的任何一层：{patterns}；可选的有 {names}",
    ),
}
