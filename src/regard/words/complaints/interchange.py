"""What is said when a module cannot be carried over from PyTorch or to it."""

from regard.words import Words

WORDS: dict[str, Words] = {
    "interchange-class": Words(
        en="{call} takes {choices}, and none of their subclasses; found {found}",
        zh="{call} 只接受 {choices}，不接受其子类；现在是 {found}",
    ),
    "interchange-value": Words(
        en="{call} cannot carry over a {module} with {name}={found}: the other side has only {wanted}; "
        "build it with that first",
        zh="{call} 无法转换 {name}={found} 的 {module}：对方只支持 {wanted}；请先按这个值构建模块",
    ),
    "interchange-several": Words(
        en="{call} cannot carry over a {module} with several values of {name} ({found}): the other side has one for "
        "all parts; make them alike first",
        zh="{call} 无法转换这个 {module}，因为 {name} 有多个值（{found}）：对方所有部分共用一个值；请先把它们统一",
    ),
    "interchange-part": Words(
        en="{call} cannot carry over a {module} whose {place} is a {found}: the other side has no such part; "
        "build it without that first",
        zh="{call} 无法转换这个 {module}，因为 {place} 是 {found}：对方没有这样的部分；请先构建一个不含它的模块",
    ),
    "interchange-shared": Words(
        en="{call} cannot carry over a {module} in which {names} are one weight: copies of it would go separate ways; "
        "give each its own first",
        zh="{call} 无法转换这个 {module}，因为 {names} 是同一个权重：复制后它们会各自变化；请先让每处有自己的权重",
    ),
    "interchange-weights": Words(
        en="{call} cannot carry over this {module}: {count} weights are missing, left over or of another shape on the "
        "other side ({names}); biases must be everywhere or nowhere, and all layers equally wide",
        zh="{call} 无法转换这个 {module}：有 {count} 个权重在对方缺失、多余或形状不同（{names}）；"
        "偏置要么处处都有，要么处处没有，各层宽度也必须相同",
    ),
}
