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
    "no-differentiable-statistics": Words(
        en="gives no gradients through map, LSE or entropy, as differentiable=True asks; these do: {backends}",
        zh="不给出 differentiable=True 要求的 map、LSE、熵的梯度；可以的有：{backends}",
    ),
    "no-tracing": Words(
        en="its threads cannot be traced by torch.compile; {backend} can be",
        zh="其线程无法被 torch.compile 追踪；{backend} 可以",
    ),
    "triton-missing": Words(
        en="Triton is not installed: `pip install triton`", zh="未安装 Triton：`pip install triton`"
    ),
    "triton-device": Words(
        en="needs a CUDA device; the tensors are on {device}", zh="需要 CUDA 设备；张量在 {device} 上"
    ),
    "triton-old-gpu": Words(
        en="needs a GPU of compute capability {oldest} at least; this one has {found}; {backend} needs none",
        zh="需要计算能力至少为 {oldest} 的 GPU；这块是 {found}；{backend} 没有要求",
    ),
    "triton-tracing": Words(
        en="not made to be traced by torch.compile; {backend} is", zh="无法被 torch.compile 追踪；{backend} 可以"
    ),
    "triton-dtype": Words(
        en="no {dtype} here, only bfloat16, float16 and float32; {backend} can",
        zh="不支持 {dtype}，只支持 bfloat16、float16 和 float32；{backend} 可以",
    ),
    "triton-width": Words(
        en="heads of width {width}, where {most} is the widest; {backend} has no limit",
        zh="头宽为 {width}，而这里最宽为 {most}；{backend} 没有上限",
    ),
    "triton-bias": Words(en="no bias here; {backend} can", zh="不支持 bias；{backend} 可以"),
    "triton-mask": Words(
        en="knows only bands, kept keys and segments, not this mask; {backend} knows all",
        zh="只支持带状、保留键和分段掩码，不支持这个掩码；{backend} 都支持",
    ),
    "triton-padding": Words(
        en="no gradients through statistics where there are both segments and padding; {backend} has them",
        zh="既有分段又有填充时，统计量在这里不传梯度；{backend} 可以",
    ),
    "triton-top": Words(
        en="top={top} strongest keys, where {most} is the most; {backend} has no limit",
        zh="要求 top={top} 个最强的键，而这里最多 {most} 个；{backend} 没有上限",
    ),
}
