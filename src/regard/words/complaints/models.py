"""What is said about models: their configuration, their parts, and what is put into them."""

from regard.words import Words

WORDS: dict[str, Words] = {
    # --- configuration ---
    "heads-swapped": Words(
        en="n_heads={n_heads} must divide d_model={d_model}; nearest widths are {below} and {above}, "
        "nearest numbers of heads {counts}; did you swap layers and heads?",
        zh="n_heads={n_heads} 必须整除 d_model={d_model}；最接近的宽度是 {below} 和 {above}，最接近的头数是 {counts}；"
        "是不是把层数和头数写反了？",
    ),
    "config-groups": Words(
        en="n_kv_heads={n_kv_heads} must divide n_heads={n_heads}, so that each serves as many query heads; "
        "possible: {counts}",
        zh="n_kv_heads={n_kv_heads} 必须整除 n_heads={n_heads}，这样每个键值头服务同样多的查询头；可选：{counts}",
    ),
    "config-kind": Words(
        en="{name} must be one of {choices} from regard.config; found {found}",
        zh="{name} 必须是 regard.config 里的 {choices} 之一；现在是 {found}",
    ),
    "config-positive": Words(
        en="{name} must be a number greater than 0; found {value!r}",
        zh="{name} 必须是大于 0 的数；现在是 {value!r}",
    ),
    "scaling-order": Words(
        en="slow={slow} must be less than fast={fast}: waves between the two are mixed",
        zh="slow={slow} 必须小于 fast={fast}：介于两者之间的波会被混合",
    ),
    "config-unknown": Words(
        en="TransformerConfig has no field {asked!r}; the nearest is {nearest!r}",
        zh="TransformerConfig 没有 {asked!r} 这个字段；最接近的是 {nearest!r}",
    ),
    "config-no-stack": Words(
        en="a Transformer needs layers: give n_encoder_layers, n_decoder_layers, or both",
        zh="Transformer 至少要有一个栈：请给出 n_encoder_layers、n_decoder_layers，或两者都给",
    ),
    "config-learned-length": Words(
        en="Learned positions are a table and need its length: give max_len, for example max_len=1024",
        zh="Learned 位置是一张表，需要长度：请给出 max_len，例如 max_len=1024",
    ),
    "config-vectors": Words(
        en="without a vocabulary (vocab_size=None) there is nothing to embed and nothing to score: leave embeddings "
        "as they are and give output=None",
        zh="没有词表（vocab_size=None）就没有嵌入，也没有要打分的词元：请不要改 embeddings，并给 output=None",
    ),
    "config-source-vocabulary": Words(
        en="source_vocab_size is for a model with encoder and decoder; this one has kind {kind!r}",
        zh="source_vocab_size 只用于同时有编码器和解码器的模型；这个模型是 {kind!r}",
    ),
    # --- weights ---
    "weights-missing": Words(
        en="{count} weights of this model are missing: {names}; were they saved with the same config?",
        zh="缺少这个模型的 {count} 个权重：{names}；保存时用的是同一个 config 吗？",
    ),
    "weights-unexpected": Words(
        en="{count} weights belong to no part of this model: {names}; were they saved with the same config?",
        zh="有 {count} 个权重不属于这个模型的任何部分：{names}；保存时用的是同一个 config 吗？",
    ),
    "weights-shape": Words(
        en="{count} weights have another shape than the config says (found ≠ wanted): {names}",
        zh="有 {count} 个权重的形状与 config 不符（现有 ≠ 应有）：{names}",
    ),
    "weights-dtype": Words(
        en="all weights must have one dtype, float16, float32 or float64; found {found}",
        zh="所有权重必须是同一种 dtype：float16、float32 或 float64；现在有 {found}",
    ),
    # --- what is put in ---
    "ids-kind": Words(
        en="{what} must be whole numbers, places in the vocabulary, as a tokenizer gives them; found {found}",
        zh="{what} 必须是整数，即分词器给出的词表编号；现在是 {found}",
    ),
    "ids-axes": Words(
        en="{what} must have two axes, (samples, positions), and at least one position; found shape {found}; "
        "one text alone is ids[None]",
        zh="{what} 必须有两个轴（样本，位置），且至少有一个位置；现在的形状是 {found}；只有一段文本时请写 ids[None]",
    ),
    "vectors-wanted": Words(
        en="this model has no vocabulary, so {what} must be vectors of floating-point numbers, "
        "(samples, positions, {D}); found shape {shape} and {found}",
        zh="这个模型没有词表，所以 {what} 必须是浮点数向量（样本，位置，{D}）；现在的形状是 {shape}，类型是 {found}",
    ),
    "ids-out-of-range": Words(
        en="{what}{place} is {value}, but there are only 0 … {last}; was another tokenizer or model meant?",
        zh="{what}{place} 是 {value}，但只有 0 … {last}；是不是用错了分词器或模型？",
    ),
    "ids-too-long": Words(
        en="{what} would reach {length} positions, but this model has max_len={max_len}; leave out {excess} tokens",
        zh="{what} 会用到 {length} 个位置，但这个模型 max_len={max_len}；请去掉 {excess} 个词元",
    ),
    "positions-of-ids": Words(
        en="positions must be whole numbers from 0 on, ({T},) or ({B}, {T}) to go with ids; "
        "found shape {shape} and {found}",
        zh="positions 必须是从 0 起的整数，形状为 ({T},) 或 ({B}, {T})，与 ids 相配；"
        "现在的形状是 {shape}，类型是 {found}",
    ),
    "source-missing": Words(
        en="this model has an encoder and a decoder: give source, the text that the encoder reads",
        zh="这个模型有编码器和解码器：请给出 source，即编码器要读的文本",
    ),
    "source-unneeded": Words(
        en="this model has kind {kind!r} and reads no source: leave source and source_mask out, and give ids alone",
        zh="这个模型是 {kind!r}，不读 source：请去掉 source 和 source_mask，只给 ids",
    ),
    "batches-of-source": Words(
        en="{what} has {found} samples where {wanted} are expected: give as many as the model is reading already",
        zh="{what} 有 {found} 个样本，但应有 {wanted} 个：请给出与模型正在读的一样多的样本",
    ),
    "segments-unneeded": Words(
        en="this model tells no segments apart (n_segments=None): leave segments out",
        zh="这个模型不区分句段（n_segments=None）：请不要给 segments",
    ),
    "segments-shape": Words(
        en="segments must be whole numbers, one for each of ids {wanted}; found shape {shape} and {found}",
        zh="segments 必须是整数，与 ids {wanted} 一一对应；现在的形状是 {shape}，类型是 {found}",
    ),
    # --- decoding ---
    "decoding-encoder": Words(
        en="begin needs a decoder, which writes one token after another; this model has an encoder only: call it",
        zh="begin 需要解码器，由它逐个写出词元；这个模型只有编码器：请直接调用它",
    ),
    "decoding-vectors": Words(
        en="begin needs a vocabulary to choose tokens from; this model gives vectors (output=None): call it",
        zh="begin 需要词表来选词元；这个模型给出的是向量（output=None）：请直接调用它",
    ),
    "keep-shape": Words(
        en="keep must be booleans {wanted} like ids, False = padding; found shape {shape} and {found}",
        zh="keep 必须是与 ids 同形 {wanted} 的布尔数组，False = 填充；现在的形状是 {shape}，类型是 {found}",
    ),
    "rows-out-of-range": Words(
        en="rows must be samples that are being decoded, at least one, from 0 to {last}; found {found}",
        zh="rows 必须是正在解码的样本，即 0 到 {last} 的整数，且至少一个；现在是 {found}",
    ),
    "crop-length": Words(
        en="length must be a whole number from 0 to {longest}, the columns read so far; found {value!r}",
        zh="length 必须是 0 到 {longest} 的整数（已读的列数）；现在是 {value!r}",
    ),
    "decoding-full": Words(
        en="{length} columns are more than the {max_len} that this decoding has room for; read or write less, or begin "
        "with a larger max_len where the model allows it",
        zh="{length} 列超出了本次解码能容纳的 {max_len} 列；请少读或少写一些，"
        "或在模型允许时用更大的 max_len 重新 begin",
    ),
    "decoding-training": Words(
        en="the model is in training mode, where dropout makes every run differ; call model.eval() first",
        zh="模型处于训练模式，dropout 会让每次结果不同；请先调用 model.eval()",
    ),
    "static-without-length": Words(
        en="a static cache needs to know its length and this model sets none; give max_len, for example max_len=1024",
        zh="静态缓存需要知道长度，而该模型没有规定；请给出 max_len，例如 max_len=1024",
    ),
    "compile-growing": Words(
        en="compile=True needs memory that does not move: add cache='static'",
        zh="compile=True 需要不会移动的内存：请加上 cache='static'",
    ),
    "source-mask-keys": Words(
        en="begin() needs a source_mask about keys alone, such as Mask.padding(source, pad=0); found {mask}",
        zh="begin() 的 source_mask 只能针对键，例如 Mask.padding(source, pad=0)；现在是 {mask}",
    ),
}
