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
        en="{name} must be a number greater than 0; found {value}",
        zh="{name} 必须是大于 0 的数；现在是 {value}",
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
}
