"""What is said about files and packages."""

from regard.words import Words

WORDS: dict[str, Words] = {
    # --- files ---
    "file-absent": Words(
        en="there is no file {path}",
        zh="没有文件 {path}",
    ),
    "file-is-folder": Words(
        en="{path} is a folder; give the path of a file",
        zh="{path} 是文件夹；请给出文件的路径",
    ),
    "file-no-folder": Words(
        en="{path} cannot be written: there is no folder {folder}; make it first",
        zh="无法写入 {path}：文件夹 {folder} 不存在；请先创建",
    ),
    "file-unwritable": Words(
        en="{path} could not be written ({reason}); check the folder, the permission and the space left",
        zh="无法写入 {path}（{reason}）；请检查文件夹、权限和剩余空间",
    ),
    "trace-unreadable": Words(
        en="{path} could not be read as a safetensors file ({reason}): it is damaged, cut short or something "
        "else; save the trace again with trace.save(path)",
        zh="{path} 无法作为 safetensors 文件读取（{reason}）：文件损坏、不完整或不是这种格式；"
        "请用 trace.save(path) 重新保存",
    ),
    "trace-not-ours": Words(
        en="{path} is a safetensors file but not a trace; regard.read_trace reads what trace.save(path) wrote",
        zh="{path} 是 safetensors 文件，但不是 Trace；regard.read_trace 只读取 trace.save(path) 写的文件",
    ),
    "trace-newer": Words(
        en="{path} was written by a newer regard (trace version {found}; this one reads up to {known}): "
        "pip install --upgrade regard",
        zh="{path} 由更新版本的 regard 写成（Trace 版本 {found}；当前最高读到 {known}）：pip install --upgrade regard",
    ),
    "trace-garbled": Words(
        en="{path} is damaged: {place} makes no sense; save the trace again with trace.save(path)",
        zh="{path} 已损坏：{place} 处的内容无效；请用 trace.save(path) 重新保存",
    ),
    "trace-tensor-missing": Words(
        en="{path} is damaged: tensor {tensor!r} is missing; save the trace again with trace.save(path)",
        zh="{path} 已损坏：缺少张量 {tensor!r}；请用 trace.save(path) 重新保存",
    ),
    "trace-tensor-shape": Words(
        en="{path} is damaged: tensor {tensor!r} has shape {found} where {wanted} belongs; "
        "save the trace again with trace.save(path)",
        zh="{path} 已损坏：张量 {tensor!r} 的形状是 {found}，应为 {wanted}；请用 trace.save(path) 重新保存",
    ),
    "trace-tensor-dtype": Words(
        en="{path} is damaged: tensor {tensor!r} has a dtype ({found}) that cannot stand there; "
        "save the trace again with trace.save(path)",
        zh="{path} 已损坏：张量 {tensor!r} 的 dtype（{found}）不该出现在这里；请用 trace.save(path) 重新保存",
    ),
    # --- packages ---
    "missing-package": Words(
        en="{what} needs {package}, which is not installed: pip install 'regard[{extra}]', or, in a clone, "
        "pip install -c constraints.txt -e '.[{extra}]'",
        zh="{what} 需要 {package}，但尚未安装：pip install 'regard[{extra}]'；在克隆的仓库里则是 "
        "pip install -c constraints.txt -e '.[{extra}]'",
    ),
}
