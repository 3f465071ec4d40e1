"""Small random models of many Hugging Face architectures, with their inputs. No download, a second for all."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

VOCAB, LENGTH, BATCH = 99, 11, 2
SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = SIZES | {"num_key_value_heads": 2, "head_dim": 8}
LATENT = SIZES | {
    "num_key_value_heads": 4,
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 16,
    "moe_intermediate_size": 16,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 2,
    "topk_group": 1,
}
"""Keys and values from a latent vector (MLA)."""
PAIR = {
    "vocab_size": VOCAB,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
T5 = {"vocab_size": VOCAB, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "pad_token_id": 0}
PICTURE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 16,
    "patch_size": 4,
}
SOUND = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "conv_dim": (16, 16),
    "conv_stride": (4, 4),
    "conv_kernel": (8, 8),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "vocab_size": VOCAB,
    "apply_spec_augment": False,  # uses NumPy's random numbers, which torch.manual_seed does not set
}


def text(side: str = "left") -> dict[str, Tensor]:
    """Two rows of ids, the first of them shorter and padded."""
    ids = torch.arange(BATCH * LENGTH).reshape(BATCH, LENGTH) * 7 % (VOCAB - 5) + 3
    keep = torch.ones(BATCH, LENGTH, dtype=torch.long)
    padding = slice(0, 3) if side == "left" else slice(LENGTH - 3, LENGTH)
    keep[0, padding], ids[0, padding] = 0, 0
    return {"input_ids": ids, "attention_mask": keep}


def right_padded() -> dict[str, Tensor]:
    return text("right")


def two_texts() -> dict[str, Tensor]:
    """A padded source, and a target."""
    return right_padded() | {"decoder_input_ids": torch.arange(BATCH * 7).reshape(BATCH, 7) % (VOCAB - 5) + 3}


def picture() -> dict[str, Tensor]:
    return {"pixel_values": torch.linspace(-1, 1, BATCH * 3 * 16 * 16).reshape(BATCH, 3, 16, 16)}


def sound() -> dict[str, Tensor]:
    return {"input_values": torch.linspace(0, 60, BATCH * 400).sin().reshape(BATCH, 400)}


def spectrum() -> dict[str, Tensor]:
    """The input of Whisper, and a target."""
    features = torch.linspace(0, 60, BATCH * 8 * 24).sin().reshape(BATCH, 8, 24)
    return {"input_features": features, "decoder_input_ids": two_texts()["decoder_input_ids"]}


@dataclass(frozen=True)
class Architecture:
    """A model class with a small config. `fused`: whether transformers uses scaled_dot_product_attention for it."""

    name: str
    sizes: dict[str, Any]
    inputs: Callable[[], dict[str, Tensor]] = text
    fused: bool = True
    more: dict[str, Any] = field(default_factory=dict)

    def build(self) -> Any:
        import transformers

        config_class = getattr(transformers, self.name).config_class
        torch.manual_seed(0)
        return getattr(transformers, self.name)(config_class(**self.sizes | self.more)).eval()


def _gpt(**more: Any) -> dict[str, Any]:
    return {"vocab_size": VOCAB, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0} | more


ARCHITECTURES = (
    # decoders
    Architecture("GPT2Model", _gpt(n_embd=32, n_layer=2, n_head=4, n_positions=64)),
    Architecture("GPTNeoXModel", SIZES),
    Architecture("OPTModel", SIZES | {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    Architecture("LlamaModel", GROUPED),
    Architecture("MistralModel", GROUPED, more={"sliding_window": 4}),
    Architecture("MixtralModel", GROUPED, more={"num_local_experts": 4}),
    Architecture("Qwen2Model", GROUPED),
    Architecture("Qwen3Model", GROUPED),
    Architecture("GemmaModel", GROUPED),
    Architecture("Gemma2Model", GROUPED, fused=False),
    Architecture("Gemma3TextModel", GROUPED, more={"sliding_window": 4}),
    Architecture("PhiModel", SIZES),
    Architecture("Phi3Model", GROUPED),
    Architecture("StableLmModel", GROUPED),
    Architecture("CohereModel", GROUPED),
    Architecture("Olmo2Model", GROUPED),
    Architecture("GraniteModel", GROUPED),
    Architecture("Starcoder2Model", GROUPED),
    Architecture("XGLMModel", _gpt(d_model=32, ffn_dim=48, num_layers=2, attention_heads=4), fused=False),
    Architecture("BioGptModel", SIZES),
    Architecture("NemotronModel", GROUPED),
    Architecture("DeepseekV3Model", LATENT),
    Architecture(
        "JambaModel",
        GROUPED,
        more={"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2, "mamba_d_state": 4, "mamba_dt_rank": 4},
    ),
    Architecture("MptModel", _gpt(d_model=32, n_heads=4, n_layers=2, max_seq_len=64), fused=False),
    Architecture("BloomModel", _gpt(hidden_size=32, n_layer=2, n_head=4), fused=False),
    Architecture("GPTJModel", _gpt(n_embd=32, n_layer=2, n_head=4, rotary_dim=4), fused=False),
    Architecture("CodeGenModel", _gpt(n_embd=32, n_layer=2, n_head=4, rotary_dim=4), fused=False),
    Architecture(
        "GPTNeoModel",
        _gpt(hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]]),
        fused=False,
    ),
    # encoders
    Architecture("BertModel", SIZES, right_padded),
    Architecture("RobertaModel", SIZES, right_padded),
    Architecture(
        "ModernBertModel",
        SIZES | {"cls_token_id": 1, "sep_token_id": 2},
        right_padded,
        more={"global_attn_every_n_layers": 2, "local_attention": 4},
    ),
    Architecture(
        "DistilBertModel", {"vocab_size": VOCAB, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4}, right_padded
    ),
    Architecture("ElectraModel", SIZES, right_padded),
    Architecture("AlbertModel", SIZES, right_padded),
    Architecture("CamembertModel", SIZES, right_padded),
    Architecture("MPNetModel", SIZES, right_padded, fused=False),
    Architecture("DebertaV2Model", SIZES, right_padded, fused=False),
    Architecture("XLNetModel", _gpt(d_model=32, n_layer=2, n_head=4, d_inner=48), right_padded, fused=False),
    # encoder and decoder
    Architecture("BartModel", PAIR, two_texts),
    Architecture("MarianModel", PAIR, two_texts),
    Architecture("PegasusModel", PAIR, two_texts),
    Architecture("MBartModel", PAIR, two_texts),
    Architecture("M2M100Model", PAIR, two_texts),
    Architecture("T5Model", T5, two_texts, fused=False),
    # images and audio
    Architecture("ViTModel", PICTURE, picture),
    Architecture("DeiTModel", PICTURE, picture),
    Architecture("Dinov2Model", PICTURE, picture),
    Architecture("SiglipVisionModel", PICTURE, picture, more={"vision_use_head": False}),
    Architecture("CLIPVisionModel", PICTURE, picture),
    Architecture("WhisperModel", PAIR | {"num_mel_bins": 8, "max_source_positions": 12}, spectrum),
    Architecture("Wav2Vec2Model", SOUND, sound),
    Architecture("HubertModel", SOUND, sound),
)
