"""Why a backend says no, or what its yes costs."""

from regard.words import Words

WORDS: dict[str, Words] = {
    "backend-yes": Words(en="yes", zh="可以"),
    "backend-yes-but": Words(en="yes ({remark})", zh="可以（{remark}）"),
    "whole-matrix": Words(en="builds the whole T × S matrix", zh="会建立完整的 T × S 矩阵"),
    "whole-matrix-dropout": Words(
        en="with dropout PyTorch builds the whole T × S matrix",
        zh="有 dropout 时 PyTorch 会建立完整的 T × S 矩阵",
    ),
    "whole-matrix-bias": Words(
        en="for a bias that needs gradients PyTorch builds the whole T × S matrix",
        zh="bias 需要梯度时 PyTorch 会建立完整的 T × S 矩阵",
    ),
    "no-dropout": Words(en="no dropout here; {backend} can", zh="不支持 dropout；{backend} 可以"),
    "no-statistics": Words(
        en="the fused kernel gives no statistics; {backend} does", zh="融合内核不给出统计量；{backend} 可以"
    ),
    "no-softcap": Words(
        en="PyTorch's kernel has no softcap; {backend} has", zh="PyTorch 的内核没有 softcap；{backend} 有"
    ),
    "no-bias-gradient": Words(
        en="no gradient for the bias here; {backend} has one", zh="不给出 bias 的梯度；{backend} 可以"
    ),
    "no-tracing": Words(
        en="its threads cannot be traced by torch.compile; {backend} can be",
        zh="其线程无法被 torch.compile 追踪；{backend} 可以",
    ),
}
