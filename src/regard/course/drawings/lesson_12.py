"""The pictures of lesson 12: the cache, shared heads, tiles, the limit of decoding, and a window."""

from math import prod

import numpy as np

from regard.config import TransformerConfig
from regard.config.weights import weight_shapes
from regard.course.drawings.blocks import Bars, Curves, Drawing, Label, Line, Matrix
from regard.masks import Mask
from regard.messages import Message

LLAMA = TransformerConfig.llama("8B")
FLOPS, BYTES = 989e12, 3.35e12
"""Per second: bfloat16 without sparsity and memory of an H100 SXM, from NVIDIA's data sheet."""


def _token_bytes(kv_heads: int) -> int:
    """Bytes of the cache for each token of LLAMA with this number of KV heads, in bfloat16."""
    return 2 * (LLAMA.n_decoder_layers or 0) * kv_heads * LLAMA.head_width * 2


def _weights(multiplied: bool = False) -> int:
    """The number of weights of LLAMA; `multiplied` leaves out the embedding, which is only looked up."""
    sizes = {name: prod(shape) for name, shape in weight_shapes(LLAMA).items()}
    return sum(sizes.values()) - (sizes["embedding.weight"] if multiplied else 0)


def cache_size() -> Drawing:
    """The cache of one text in GiB over its length, for three numbers of KV heads, and the weights."""
    tokens = np.logspace(3, 6, 31)
    series: dict[Label, np.ndarray] = {
        Message("MHA, 32 KV heads", "MHA，32 个 KV 头"): _token_bytes(32) * tokens / 2**30,
        Message("GQA, 8 KV heads", "GQA，8 个 KV 头"): _token_bytes(8) * tokens / 2**30,
        Message("MQA, 1 KV head", "MQA，1 个 KV 头"): _token_bytes(1) * tokens / 2**30,
        Message("the weights", "全部权重"): np.full_like(tokens, 2 * _weights() / 2**30),
    }
    return Drawing(
        title=Message("The cache grows with the text", "缓存随文本增长"),
        blocks=(
            Curves(
                x=tokens,
                series=series,
                x_label=Message("tokens", "词元数"),
                y_label=Message("GiB in bfloat16, one text", "GiB，bfloat16，一段文本"),
                log_x=True,
                log_y=True,
            ),
        ),
        caption=Message(
            "The shape of Llama 3.1 8B, which has 8 KV heads. The weights do not depend on the text. (With 32 or 1 KV "
            "heads W_k and W_v would also change a little; the line shows the real model.)",
            "以 Llama 3.1 8B 的尺寸计算，它有 8 个 KV 头。权重与文本长度无关。（换成 32 个或 1 个 KV 头，W_k 和 W_v "
            "的大小也会略变；图中的横线是真实模型的权重。）",
        ),
    )


def shared_heads() -> Drawing:
    """Which of the KV heads each of eight query heads uses."""
    queries = tuple(f"q{h}" for h in range(8))

    def uses(kv_heads: int, name: str) -> Matrix:
        used = np.arange(8)[:, None] // (8 // kv_heads) == np.arange(kv_heads)
        return Matrix(values=used, title=name, rows=queries, columns=tuple(f"kv{g}" for g in range(kv_heads)))

    return Drawing(
        title=Message("Query heads and the KV heads they use", "查询头与它们使用的 KV 头"),
        blocks=(Line((uses(8, "MHA"), uses(2, "GQA"), uses(1, "MQA"))),),
        caption=Message(
            "One row for each query head. The cache holds one column for each KV head: 8, 2 and 1.",
            "每一行是一个查询头。缓存里每个 KV 头占一列：8 列、2 列、1 列。",
        ),
    )


def flash_tiles() -> Drawing:
    """Visible scores in each tile under a causal mask, and the bytes moved with and without tiles."""
    n, d, tiles = 8192, 128, 6
    visible = Mask.causal().dense(24, 24).reshape(tiles, 4, tiles, 4).sum(axis=(1, 3))
    names = tuple(f"K{j}" for j in range(tiles))

    def moved(tile: int) -> float:
        blocks = n // tile
        return 2 * (2 * n * d + blocks * (blocks + 1) / 2 * 2 * tile * d) / 2**20

    bars: dict[Label, float] = {Message("definition", "按定义"): 2 * (4 * n * d + 4 * n * n) / 2**20}
    bars |= {Message(f"tiles of {tile}", f"每块 {tile} 行"): moved(tile) for tile in (32, 64, 128)}
    return Drawing(
        title=Message(
            "Flash attention: tiles of 4 × 4 scores, and the bytes moved",
            "Flash attention：4 × 4 的块，以及读写的字节数",
        ),
        blocks=(
            Matrix(
                values=visible.astype(float),
                title=Message("visible scores in each tile", "每块中可见的得分个数"),
                rows=tuple(f"Q{i}" for i in range(tiles)),
                columns=names,
                decimals=0,
            ),
            Bars(
                values=bars,
                title=Message("MiB moved: 1 head, 8,192 tokens", "读写的 MiB：1 个头，8,192 个词元"),
                unit=" MiB",
                decimals=0,
            ),
        ),
        caption=Message(
            "Tiles with 0 visible scores are skipped, tiles with 16 need no mask. Below: heads 128 wide, bfloat16, "
            "causal with tiles; the definition moves the whole matrix four times.",
            "可见得分为 0 的块直接跳过，可见得分为 16（全部可见）的块不需要掩码。下图：头宽 128，bfloat16；"
            "分块时按因果掩码跳过，按定义计算则把整个矩阵读写四次。",
        ),
    )


def batch_intensity() -> Drawing:
    """FLOPs per byte of one decoding pass over the batch, for three lengths of the cache."""
    batch = np.logspace(0, 3, 31)
    weights, layers = _weights(multiplied=True), LLAMA.n_decoder_layers or 0
    series: dict[Label, np.ndarray] = {}
    for length in (128, 2048, 32768):
        flops = batch * (2 * weights + 4 * layers * LLAMA.n_heads * LLAMA.head_width * length)
        moved = 2 * weights + batch * _token_bytes(LLAMA.key_value_heads) * length
        series[Message(f"{length:,} tokens in each cache", f"每段缓存 {length:,} 个词元")] = flops / moved
    series[Message("needed by an H100", "H100 不空等所需")] = np.full_like(batch, FLOPS / BYTES)
    return Drawing(
        title=Message("FLOPs for each byte: decoding in batches", "每读一字节的运算次数：批量解码"),
        blocks=(
            Curves(
                x=batch,
                series=series,
                x_label=Message("texts in the batch", "批次中的文本数"),
                y_label=Message("FLOPs for each byte", "每字节的 FLOPs"),
                log_x=True,
                log_y=True,
            ),
        ),
        caption=Message(
            "Llama 3.1 8B in bfloat16. Below the horizontal line the memory is the limit. With short caches a large "
            "batch reaches it; with long caches none does, because each text reads its own cache.",
            "Llama 3.1 8B，bfloat16。在横线以下，瓶颈是访存。缓存短，批次够大就能达到横线；缓存长，再大的批次也达不到，"
            "因为每段文本都要读自己的缓存。",
        ),
    )


def sliding_window() -> Drawing:
    """Two masks of 12 positions: causal, and a window of 4 keys."""
    full, window = Mask.causal().dense(12, 12), Mask.window(3, 0).dense(12, 12)
    return Drawing(
        title=Message("Full causal attention, and a window of 4 keys", "完整的因果注意力，和 4 个键的窗口"),
        blocks=(
            Line(
                (
                    Matrix(values=full, title=Message(f"{full.sum()} pairs", f"{full.sum()} 对")),
                    Matrix(values=window, title=Message(f"{window.sum()} pairs", f"{window.sum()} 对")),
                )
            ),
        ),
        caption=Message(
            "Rows are queries, columns are keys. With a window each row has at most 4 pairs, however long the text is.",
            "行是查询，列是键。有了窗口，文本再长，每行也最多 4 对。",
        ),
    )


DRAWINGS = {
    "cache-size": cache_size,
    "shared-heads": shared_heads,
    "flash-tiles": flash_tiles,
    "batch-intensity": batch_intensity,
    "sliding-window": sliding_window,
}
