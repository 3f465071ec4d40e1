"""Error messages about files, trace files and model folders included, and about packages that cannot be imported."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- files ---
    "file-absent": Message(
        en="there is no file {path}",
        zh="文件 {path} 不存在",
    ),
    "file-is-folder": Message(
        en="{path} is a folder; give the path of a file",
        zh="{path} 是文件夹；请给出文件的路径",
    ),
    "file-is-fifo": Message(
        en="{path} is a FIFO (named pipe), not a regular file; give the path of a regular file",
        zh="{path} 是命名管道（FIFO），不是普通文件；请给出普通文件的路径",
    ),
    "file-is-device": Message(
        en="{path} is a device, not a regular file; give the path of a regular file",
        zh="{path} 是设备，不是普通文件；请给出普通文件的路径",
    ),
    "file-is-socket": Message(
        en="{path} is a socket, not a regular file; give the path of a regular file",
        zh="{path} 是套接字，不是普通文件；请给出普通文件的路径",
    ),
    "file-is-dash": Message(
        en="- is not the name of a file: no file is written to standard output; give the path of a file",
        zh="- 不是文件名：文件不会写到标准输出；请给出文件的路径",
    ),
    "file-no-reader": Message(
        en="{path} is a FIFO (named pipe) that no process reads; start the reader first, or give the path of a file",
        zh="{path} 是命名管道（FIFO），但没有进程在读取；请先启动读取方，或给出文件的路径",
    ),
    "file-too-large": Message(
        en="{path} has {found}, but the limit is {most}; check that it is the right file",
        zh="{path} 的大小是 {found}，最多只读取 {most}；请确认文件是否正确",
    ),
    "file-no-folder": Message(
        en="{path} cannot be written: there is no folder {folder}; make it first",
        zh="无法写入 {path}：文件夹 {folder} 不存在；请先创建",
    ),
    "file-ending": Message(
        en="{path} has an ending that does not fit what would be written there; call it {better} (possible: {endings})",
        zh="{path} 的扩展名与要写入的内容不符；请改名为 {better}（可用的扩展名：{endings}）",
    ),
    "file-unwritable": Message(
        en="{path} could not be written ({reason}); check the folder, the permissions and the free space",
        zh="无法写入 {path}（{reason}）；请检查文件夹、权限和剩余空间",
    ),
    "trace-unreadable": Message(
        en="{path} could not be read as a safetensors file ({reason}): it is damaged, truncated or of another "
        "format; save the trace again with trace.save(path)",
        zh="{path} 无法作为 safetensors 文件读取（{reason}）：文件损坏、不完整或不是这种格式；"
        "请用 trace.save(path) 重新保存",
    ),
    "trace-not-ours": Message(
        en="{path} is a safetensors file but not a trace; regard.read_trace reads what trace.save(path) wrote",
        zh="{path} 是 safetensors 文件，但不是 Trace；regard.read_trace 只读取 trace.save(path) 写的文件",
    ),
    "trace-newer": Message(
        en="{path} was written by a newer regard (trace version {found}; this one reads up to {known}): "
        "pip install --upgrade regard",
        zh="{path} 由较新版本的 regard 生成（Trace 版本 {found}；当前版本最高支持 {known}）："
        "pip install --upgrade regard",
    ),
    "trace-garbled": Message(
        en="{path} is damaged: {place} makes no sense; save the trace again with trace.save(path)",
        zh="{path} 已损坏：{place} 处的内容无效；请用 trace.save(path) 重新保存",
    ),
    "trace-tensor-missing": Message(
        en="{path} is damaged: tensor {tensor!r} is missing; save the trace again with trace.save(path)",
        zh="{path} 已损坏：缺少张量 {tensor!r}；请用 trace.save(path) 重新保存",
    ),
    "trace-tensor-shape": Message(
        en="{path} is damaged: tensor {tensor!r} has shape {found}, expected {wanted}; "
        "save the trace again with trace.save(path)",
        zh="{path} 已损坏：张量 {tensor!r} 的形状是 {found}，应为 {wanted}；请用 trace.save(path) 重新保存",
    ),
    "trace-tensor-dtype": Message(
        en="{path} is damaged: tensor {tensor!r} has dtype {found}, which is not allowed here; "
        "save the trace again with trace.save(path)",
        zh="{path} 已损坏：张量 {tensor!r} 的 dtype 是 {found}，这里不允许；请用 trace.save(path) 重新保存",
    ),
    "trace-tensor-axes": Message(
        en="{path} is damaged: tensor {tensor!r} has {found} axes; the maximum is {most}; "
        "save the trace again with trace.save(path)",
        zh="{path} 已损坏：张量 {tensor!r} 有 {found} 个轴，最多只能有 {most} 个；请用 trace.save(path) 重新保存",
    ),
    "trace-large": Message(
        en="{path} claims more than it holds: {place} is {found}; the maximum is {most}; "
        "save the trace again with trace.save(path)",
        zh="{path} 声明的内容多于实际保存的：{place} 是 {found}，最多只能是 {most}；请用 trace.save(path) 重新保存",
    ),
    # --- a file of another format; the reasons below are parts of these sentences ---
    "other-weights": Message(
        en="{path} should be a safetensors file with the weights of a model, but it is {reason}",
        zh="{path} 应为保存模型权重的 safetensors 文件，但它其实是{reason}",
    ),
    "other-json": Message(
        en="{path} should be a JSON file of a model that regard saved, but it is {reason}",
        zh="{path} 应为 regard 保存的模型的 JSON 文件，但它其实是{reason}",
    ),
    "other-tokenizer": Message(
        en="{path} should be a tokenizer.json, but it is {reason}",
        zh="{path} 应为 tokenizer.json，但它其实是{reason}",
    ),
    "other-trace": Message(
        en="{path} should be a trace that trace.save(path) wrote, but it is {reason}",
        zh="{path} 应为 trace.save(path) 保存的 Trace，但它其实是{reason}",
    ),
    "kind-empty": Message(
        en="an empty file: get it again, the download or copy did not finish",
        zh="空文件：下载或复制没有完成，请重新获取",
    ),
    "kind-zeros": Message(
        en="a file of zeros: get it again, the download or copy did not finish",
        zh="全是零的文件：下载或复制没有完成，请重新获取",
    ),
    "kind-lfs": Message(
        en="a Git LFS pointer, which holds only the location of the file: run `git lfs install` and `git lfs pull` in "
        "its folder",
        zh="Git LFS 指针，只记录了文件在哪里：请在它所在的文件夹里运行 `git lfs install` 和 `git lfs pull`",
    ),
    "kind-page": Message(
        en="a web page (HTML or XML), which servers send instead of a missing file: open the address in a browser, "
        "check the link and whether you must log in, and download it again",
        zh="网页（HTML 或 XML），服务器常用它代替文件返回：请在浏览器中打开该地址，检查链接以及是否需要登录，"
        "然后重新下载",
    ),
    "kind-pickle": Message(
        en="a pickle, which can run any code when it is opened, so regard never opens one: save the weights with "
        "safetensors, such as safetensors.torch.save_file(torch.load(path, weights_only=True), new_path)",
        zh="pickle 文件，打开它可能执行任意代码，regard 从不打开：请把权重改存为 safetensors，"
        "例如 safetensors.torch.save_file(torch.load(path, weights_only=True), new_path)",
    ),
    "kind-torch": Message(
        en="a PyTorch checkpoint (.pt, .pth, .bin: a zip archive with a pickle), which can run any code when it is "
        "opened, so regard never opens one: save the weights with safetensors, such as "
        "safetensors.torch.save_file(torch.load(path, weights_only=True), new_path)",
        zh="PyTorch 检查点（.pt、.pth、.bin：内含 pickle 的 zip 压缩包），打开它可能执行任意代码，regard 从不打开："
        "请把权重改存为 safetensors，例如 safetensors.torch.save_file(torch.load(path, weights_only=True), new_path)",
    ),
    "kind-gguf": Message(
        en="a GGUF file, as llama.cpp uses: give it a name that ends in .gguf and load it by that name",
        zh="llama.cpp 使用的 GGUF 文件：请把文件名改成以 .gguf 结尾，并用这个名字加载",
    ),
    "other-gguf": Message(
        en="{path} should be a GGUF file, but it is {reason}",
        zh="{path} 应为 GGUF 文件，但它其实是{reason}",
    ),
    "gguf-version": Message(
        en="{path} is not a GGUF file of version 2 or 3, but of {found!r}: get a newer file of the same model",
        zh="{path} 不是 GGUF 第 2 或第 3 版的文件，而是 {found!r}：请下载同一模型的新文件",
    ),
    "gguf-key": Message(
        en="{path} lacks {name!r}, which regard needs: the file is incomplete or of another kind of model",
        zh="{path} 里没有 {name!r}，而 regard 需要它：文件不完整，或者是另一种模型",
    ),
    "gguf-value": Message(
        en="{path}: regard does not compute models with {name} = {value}",
        zh="{path}：regard 不支持 {name} = {value} 的模型",
    ),
    "gguf-architecture": Message(
        en="{path}: regard computes no GGUF models of architecture {found!r}; supported: {names}",
        zh="{path}：regard 不支持架构为 {found!r} 的 GGUF 模型；支持的有：{names}",
    ),
    "gguf-split": Message(
        en="{path} is one of {count} parts of a model: join them with llama.cpp's gguf-split --merge",
        zh="{path} 只是模型的 {count} 个部分之一：请先用 llama.cpp 的 gguf-split --merge 合并",
    ),
    "gguf-several": Message(
        en="{path} has {count} GGUF files ({names}): give the path of one of them",
        zh="{path} 里有 {count} 个 GGUF 文件（{names}）：请给出其中一个的路径",
    ),
    "gguf-tokenizer": Message(
        en="{path}: regard does not support the tokenizer {found!r} of this GGUF file; supported: {names}. "
        "Put the model's tokenizer.json beside it",
        zh="{path}：regard 不支持这个 GGUF 文件的分词器 {found!r}；支持的有：{names}。"
        "请把该模型的 tokenizer.json 放在同一文件夹里",
    ),
    "kind-numpy": Message(
        en="a NumPy file (.npy or .npz): read it with numpy.load(path, allow_pickle=False) and save it in the right "
        "format; for attention weights, regard.Trace.from_weights(array).save(path)",
        zh="NumPy 文件（.npy 或 .npz）：请用 numpy.load(path, allow_pickle=False) 读取，再存为正确的格式；"
        "若是注意力权重，用 regard.Trace.from_weights(array).save(path)",
    ),
    "kind-hdf5": Message(
        en="an HDF5 file (.h5, as Keras writes): export the model to safetensors",
        zh="HDF5 文件（.h5，Keras 的格式）：请把模型导出为 safetensors",
    ),
    "kind-graph": Message(
        en="an ONNX or TensorFlow Lite model: get the same model in safetensors format",
        zh="ONNX 或 TensorFlow Lite 模型：请获取同一模型的 safetensors 格式",
    ),
    "kind-sentencepiece": Message(
        en="a SentencePiece model (tokenizer.model): convert it, such as with "
        "transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder), which writes tokenizer.json",
        zh="SentencePiece 模型（tokenizer.model）：请先转换格式，例如 "
        "transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)，它会写出 tokenizer.json",
    ),
    "kind-compressed": Message(
        en="a compressed archive (zip, gzip, xz, zstd, tar …): unpack it first and give the file inside",
        zh="压缩包（zip、gzip、xz、zstd、tar 等）：请先解压，再给出其中的文件",
    ),
    "kind-safetensors": Message(
        en="a safetensors file, which holds tensors: give the JSON file that belongs to it",
        zh="safetensors 文件，里面是张量：请给出与它配套的 JSON 文件",
    ),
    "kind-json": Message(
        en="a JSON file, such as a configuration or an index of parts: give the safetensors file itself",
        zh="JSON 文件，例如配置或分片索引：请给出 safetensors 文件本身",
    ),
    "kind-text": Message(
        en="a text file: give the safetensors file itself",
        zh="文本文件：请给出 safetensors 文件本身",
    ),
    "kind-utf-16": Message(
        en="text in UTF-16, which some Windows programs write: save it as UTF-8",
        zh="UTF-16 编码的文本，某些 Windows 程序会这样保存：请另存为 UTF-8",
    ),
    "kind-picture": Message(
        en="a picture (PNG, JPEG, GIF …): give the file from which it was made",
        zh="图片（PNG、JPEG、GIF 等）：请给出生成它的文件",
    ),
    "kind-pdf": Message(
        en="a PDF document: check that it is the right file",
        zh="PDF 文档：请检查是否给错了文件",
    ),
    "kind-program": Message(
        en="a program: check that it is the right file",
        zh="程序文件：请检查是否给错了文件",
    ),
    "kind-table": Message(
        en="a table or database (Parquet, Arrow, SQLite): check that it is the right file",
        zh="数据表或数据库（Parquet、Arrow、SQLite）：请检查是否给错了文件",
    ),
    # --- a model's folder ---
    "model-recurrent": Message(
        en="{path} holds a recurrent model ({cell}), not a Transformer; read it with regard.models.RecurrentModel.read",
        zh="{path} 中是循环网络模型（{cell}），不是 Transformer；请用 regard.models.RecurrentModel.read 读取",
    ),
    "model-not-recurrent": Message(
        en="{path} holds a Transformer, not a recurrent model; read it with regard.models.Transformer.read",
        zh="{path} 中是 Transformer，不是循环网络模型；请用 regard.models.Transformer.read 读取",
    ),
    "model-no-folder": Message(
        en="there is no folder {path}",
        zh="文件夹 {path} 不存在",
    ),
    "model-not-folder": Message(
        en="{path} is a file; a model is a folder with config.json and model.safetensors",
        zh="{path} 是文件；模型是一个文件夹，里面有 config.json 和 model.safetensors",
    ),
    "model-file": Message(
        en="{path} is a file; a model is a folder with config.json and model.safetensors, or a .gguf file: "
        "use {folder}",
        zh="{path} 是文件；模型是一个文件夹，里面有 config.json 和 model.safetensors，也可以是 .gguf 文件："
        "请改用 {folder}",
    ),
    "model-outside": Message(
        en="{path} is a link to {target}, outside of its folder; put the file itself there instead of a link",
        zh="{path} 指向 {target}，在所属文件夹之外；请放入文件本身，不要放链接",
    ),
    "model-unreadable": Message(
        en="{path} could not be read ({reason})",
        zh="无法读取 {path}（{reason}）",
    ),
    "model-garbled": Message(
        en="{path} is damaged: {place} is not valid; download the file again, or save the model again",
        zh="{path} 已损坏：{place} 处的内容无效；请重新下载这个文件，或重新保存模型",
    ),
    "model-part-large": Message(
        en="{path} is damaged: its {place} takes {found}; the maximum is {most}; "
        "save the model again with save_model(folder, config, tensors)",
        zh="{path} 已损坏：其中的 {place} 占 {found}，最多只能是 {most}；"
        "请用 save_model(folder, config, tensors) 重新保存",
    ),
    "model-cut": Message(
        en="{path} holds {found} of data, but its header declares {wanted}: it was truncated or changed; copy it again",
        zh="{path} 里的数据有 {found}，但文件头声明有 {wanted}：文件不完整或被改动过；请重新复制",
    ),
    "model-tensor-dtype": Message(
        en="{path}: tensor {tensor!r} has dtype {found}; a model's weights are one of: {choices}",
        zh="{path}：张量 {tensor!r} 的 dtype 是 {found}；模型权重只能是以下之一：{choices}",
    ),
    "model-not-ours": Message(
        en="{path} is not the configuration of a model that regard.checkpoints.save_model wrote",
        zh="{path} 不是 regard.checkpoints.save_model 写的模型配置",
    ),
    "model-newer": Message(
        en="{path} was written by a newer regard (model version {found}; this one reads up to {known}): "
        "pip install --upgrade regard",
        zh="{path} 由较新版本的 regard 生成（模型版本 {found}；当前版本最高支持 {known}）："
        "pip install --upgrade regard",
    ),
    "model-config": Message(
        en="{path} does not describe a valid model: {reason}",
        zh="{path} 描述的不是有效的模型：{reason}",
    ),
    "model-weights": Message(
        en="{path} does not hold the weights of the model in config.json: {reason}",
        zh="{path} 与同一文件夹里 config.json 描述的模型不符：{reason}",
    ),
    # --- a folder in Hugging Face's layout ---
    "family-unknown": Message(
        en="{path}: regard computes no models of type {found!r}; supported: {names}. With the transformers package "
        "installed (pip install 'transformers>=5'), regard.load opens any model",
        zh="{path}：regard 自己不计算 {found!r} 类型的模型，支持的有：{names}。安装 transformers 之后"
        "（pip install 'transformers>=5'），regard.load 可以打开任何模型",
    ),
    "family-missing": Message(
        en="{path} has neither regard's format nor a model_type, so it does not say what model this is; use the "
        "config.json that belongs to the weights, or add its model_type, such as llama",
        zh="{path} 既不是 regard 的格式，也没有 model_type，看不出是什么模型；请使用与权重配套的 config.json，"
        "或补上 model_type，例如 llama",
    ),
    "config-key-value": Message(
        en="{path}: {name} is {value}; it must be one of: {wanted}",
        zh="{path}：{name} 的值是 {value}；应为：{wanted}",
    ),
    "config-key-refused": Message(
        en="{path}: {name} = {value} changes the computation in a way that regard does not support; "
        "supported: {accepted}",
        zh="{path}：{name} = {value} 会改变计算方式，regard 不支持；支持的值：{accepted}",
    ),
    "export-config": Message(
        en="this model cannot be written as {family}: its {name} is {found}, and there it would be {wanted}",
        zh="这个模型不能写成 {family}：它的 {name} 是 {found}，而在那里会变成 {wanted}",
    ),
    "export-refused": Message(
        en="this model cannot be written as {family}: {reason}",
        zh="这个模型不能写成 {family}：{reason}",
    ),
    "config-keys-differ": Message(
        en="{path}: these keys contradict each other: {found}; regard computes only models where they agree",
        zh="{path}：这些键的值相互矛盾：{found}；regard 只计算它们一致的模型",
    ),
    "config-numbers": Message(
        en="{path} does not describe a valid model: {reason}; its numbers are {numbers}",
        zh="{path} 描述的模型无效：{reason}；其中的数值是 {numbers}",
    ),
    "config-keys-unused": Message(
        en="{path} has keys that regard does not know and leaves out: {names}",
        zh="{path} 中有 regard 不认识、因而没有使用的键：{names}",
    ),
    "weights-pickle": Message(
        en="{path} has its weights only as {found}, a pickle, which can run any program when it is opened, so regard "
        "never reads it; get the safetensors version of the model, or convert it where you trust it",
        zh="{path} 里的权重只有 {found}；这是 pickle 文件，打开时可能执行任意程序，所以 regard 从不读取。"
        "请下载该模型的 safetensors 版本，或在你信任它的环境里转换",
    ),
    "weights-adapter": Message(
        en="{path} is an adapter, which holds only changes of the model {base!r}; where peft is installed, merge them: "
        "AutoPeftModelForCausalLM.from_pretrained(…).merge_and_unload().save_pretrained(…), and load that folder",
        zh="{path} 是适配器，只含对模型 {base!r} 的改动；请在装有 peft 的环境里合并："
        "AutoPeftModelForCausalLM.from_pretrained(…).merge_and_unload().save_pretrained(…)，再加载合并后的文件夹",
    ),
    "weights-without-index": Message(
        en="{path} has its weights in several files, but not model.safetensors.index.json, which says what each holds; "
        "download that file too (found: {names})",
        zh="{path} 的权重分成了几个文件，却没有说明各文件内容的 model.safetensors.index.json；"
        "请把它也下载下来（现有：{names}）",
    ),
    "weights-other": Message(
        en="{path} has neither model.safetensors nor model.safetensors.index.json; of other weights it has {names}. "
        "Download the model's safetensors files, or write them with transformers: model.save_pretrained(folder)",
        zh="{path} 里没有 model.safetensors 和 model.safetensors.index.json，只有其他权重文件：{names}。"
        "请下载该模型的 safetensors 文件，或用 transformers 写出：model.save_pretrained(folder)",
    ),
    "model-no-config": Message(
        en="{path} has no config.json, so it is not the folder of a model: that has config.json and model.safetensors, "
        "or is one .gguf file; is the download complete?",
        zh="{path} 里没有 config.json，所以它不是模型的文件夹：模型的文件夹里有 config.json 和 model.safetensors，"
        "模型也可以是一个 .gguf 文件；下载完整了吗？",
    ),
    "model-in-subfolder": Message(
        en="{path} has no config.json, but its subfolders do: {names}; use one of them as the folder of the model",
        zh="{path} 里没有 config.json，它的子文件夹里有：{names}；请把其中一个作为模型的文件夹",
    ),
    "weights-absent": Message(
        en="{path} has no weights: neither model.safetensors nor model.safetensors.index.json; "
        "is the download complete?",
        zh="{path} 里没有权重：既没有 model.safetensors，也没有 model.safetensors.index.json；下载完整了吗？",
    ),
    "index-shard-name": Message(
        en="{path} names the file {found!r}; a part of a model is a file name that ends in .safetensors, "
        "without a folder",
        zh="{path} 中的文件名 {found!r} 无效；模型的分片必须是以 .safetensors 结尾、不含文件夹的文件名",
    ),
    "index-shard-absent": Message(
        en="{path} lists {count} files that are not in the folder, the first is {found}; "
        "download the rest of the model",
        zh="{path} 列出的文件中有 {count} 个不在文件夹里，第一个是 {found}；请把模型下载完整",
    ),
    "index-tensor": Message(
        en="{path} says that tensor {tensor!r} is in {shard}, and it is not; download both files again",
        zh="{path} 说张量 {tensor!r} 在 {shard} 里，但那里没有；请重新下载这两个文件",
    ),
    # --- a configuration as JSON ---
    "tree-type": Message(
        en="{place} must be one of: {wanted}; found {found}",
        zh="{place} 的类型应为以下之一：{wanted}；实际为 {found}",
    ),
    "tree-large": Message(
        en="{place} is larger than {most}, the largest value that regard accepts",
        zh="{place} 超过 {most}，这是 regard 接受的最大值",
    ),
    "tree-missing": Message(
        en="{place} lacks: {missing}; every field is required, also one with its default value",
        zh="{place} 缺少：{missing}；每个字段都要写明，取默认值时也一样",
    ),
    "tree-unknown": Message(
        en="{place} has what no configuration has: {unknown}; known are: {known}",
        zh="{place} 里有配置中不存在的字段：{unknown}；可用的有：{known}",
    ),
    # --- packages ---
    "missing-package": Message(
        en="{what} needs {package}, which is not installed: pip install 'regard[{extra}]', or, in a clone, "
        "pip install -c constraints.txt -e '.[{extra}]'",
        zh="{what} 需要 {package}，但尚未安装：pip install 'regard[{extra}]'；在克隆的仓库里则是 "
        "pip install -c constraints.txt -e '.[{extra}]'",
    ),
    "missing-core-package": Message(
        en="{what} needs {package}, a dependency of regard that is not installed: pip install --force-reinstall regard",
        zh="{what} 需要 {package}；它是 regard 的必需依赖，但尚未安装：pip install --force-reinstall regard",
    ),
    "package-broken": Message(
        en="{what} needs {package}, which is installed but cannot be imported: {reason}; install {package} again",
        zh="{what} 需要 {package}；它已安装，但无法导入：{reason}；请重新安装 {package}",
    ),
    "model-no-name": Message(
        en="a model needs its own folder: give the path, for example save('my-model')",
        zh="模型需要单独的文件夹：请给出路径，例如 save('my-model')",
    ),
}
