"""Pairs of a small Hugging Face model with random weights and our model with the same weights, for parity tests.

Defines the cases, the random weights and the inputs of both models. Nothing is compared here.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    MistralConfig,
    MistralForCausalLM,
    OPTConfig,
    OPTForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    RobertaConfig,
    RobertaForMaskedLM,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.pytorch_utils import Conv1D

from regard import Mask, reference
from regard.checkpoints.families import FAMILIES, ConfigKeys
from regard.config import TransformerConfig
from regard.models import Transformer

MODELS = {
    "gpt2": GPT2LMHeadModel,
    "llama": LlamaForCausalLM,
    "mistral": MistralForCausalLM,
    "qwen2": Qwen2ForCausalLM,
    "qwen3": Qwen3ForCausalLM,
    "phi3": Phi3ForCausalLM,
    "gemma2": Gemma2ForCausalLM,
    "gemma3_text": Gemma3ForCausalLM,
    "gpt_neox": GPTNeoXForCausalLM,
    "opt": OPTForCausalLM,
    "bert": BertForMaskedLM,
    "roberta": RobertaForMaskedLM,
    "distilbert": DistilBertForMaskedLM,
    "bart": BartForConditionalGeneration,
    "t5": T5ForConditionalGeneration,
    "marian": MarianMTModel,
}

# --- the cases --------------------------------------------------------------------------------------------

gpt2 = partial(
    GPT2Config, vocab_size=31, n_embd=24, n_head=3, n_layer=2, n_positions=40, bos_token_id=None, eos_token_id=None
)
bert = partial(
    BertConfig,
    vocab_size=37,
    hidden_size=24,
    num_attention_heads=4,
    num_hidden_layers=2,
    intermediate_size=40,
    max_position_embeddings=19,
)
distilbert = partial(
    DistilBertConfig, vocab_size=37, dim=24, n_heads=4, n_layers=2, hidden_dim=40, max_position_embeddings=19
)
roberta = partial(
    RobertaConfig,
    vocab_size=37,
    hidden_size=24,
    num_attention_heads=4,
    num_hidden_layers=2,
    intermediate_size=40,
    max_position_embeddings=21,
)
opt = partial(
    OPTConfig,
    vocab_size=33,
    hidden_size=24,
    num_attention_heads=4,
    num_hidden_layers=2,
    ffn_dim=40,
    word_embed_proj_dim=24,
    max_position_embeddings=64,
)
DECODER: dict[str, Any] = {
    "vocab_size": 33,
    "hidden_size": 24,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 28,
    "max_position_embeddings": 64,
}
llama = partial(LlamaConfig, **DECODER)
phi3 = partial(Phi3Config, **DECODER, pad_token_id=None)
GEMMA = DECODER | {"head_dim": 8, "query_pre_attn_scalar": 10, "sliding_window": 3, "pad_token_id": None}
gemma2 = partial(Gemma2Config, **GEMMA)
gemma3 = partial(Gemma3TextConfig, **GEMMA | {"num_hidden_layers": 3})
neox = partial(
    GPTNeoXConfig,
    vocab_size=33,
    hidden_size=32,
    num_attention_heads=4,
    num_hidden_layers=2,
    intermediate_size=28,
    max_position_embeddings=64,
)


def rope(kind: str, **more: Any) -> dict[str, Any]:
    """RoPE settings with a base so small that twelve positions rotate even slow frequencies, where the types differ."""
    return {"rope_type": kind, "rope_theta": 100.0, **more}


T5: Any = T5Config  # its annotations leave out what every config takes
t5 = partial(T5, vocab_size=35, d_model=20, d_kv=6, d_ff=28, num_layers=2, num_heads=4, decoder_start_token_id=0)
marian = partial(
    MarianConfig,
    vocab_size=36,
    d_model=24,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=3,
    decoder_attention_heads=3,
    encoder_ffn_dim=30,
    decoder_ffn_dim=30,
    max_position_embeddings=40,
    pad_token_id=35,
    decoder_start_token_id=35,
    forced_eos_token_id=None,
)

bart = partial(
    BartConfig,
    vocab_size=36,
    d_model=24,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=3,
    decoder_attention_heads=3,
    encoder_ffn_dim=30,
    decoder_ffn_dim=30,
    max_position_embeddings=40,
    pad_token_id=1,
    decoder_start_token_id=2,
    forced_eos_token_id=None,
)

# Settings that a name does not mention are as above; every number of a config differs from the default in some case.
CASES: dict[str, Callable[[], Any]] = {
    "gpt2": gpt2,
    "gpt2 untied, one head, narrow": lambda: gpt2(n_head=1, n_layer=3, n_inner=10, tie_word_embeddings=False),
    "gpt2 relu, scores unscaled": lambda: gpt2(
        activation_function="relu", scale_attn_weights=False, layer_norm_epsilon=1e-2
    ),
    "llama": llama,
    "llama all heads, biases, tied": lambda: llama(
        num_key_value_heads=4, attention_bias=True, mlp_bias=True, tie_word_embeddings=True
    ),
    "llama one key head, wide heads": lambda: llama(num_key_value_heads=1, head_dim=10, rms_norm_eps=1e-2),
    "llama biased attention, gelu": lambda: llama(attention_bias=True, head_dim=4, hidden_act="gelu"),
    "llama biased feed-forward, base 7": lambda: llama(
        mlp_bias=True, num_hidden_layers=3, rope_parameters={"rope_type": "default", "rope_theta": 7.0}
    ),
    "llama linear": lambda: llama(head_dim=8, rope_parameters=rope("linear", factor=3.0)),
    "llama llama3": lambda: llama(
        head_dim=8,
        rope_parameters=rope(
            "llama3", factor=8.0, original_max_position_embeddings=40, high_freq_factor=4.0, low_freq_factor=1.0
        ),
    ),
    "llama yarn": lambda: llama(
        head_dim=8,
        max_position_embeddings=160,
        rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=40),
    ),
    "llama yarn, its own numbers": lambda: llama(
        head_dim=12,
        max_position_embeddings=60,
        rope_parameters=rope(
            "yarn",
            factor=2.5,
            original_max_position_embeddings=24,
            beta_fast=1.5,
            beta_slow=0.1,
            attention_factor=0.8,
        ),
    ),
    "mistral": lambda: MistralConfig(**DECODER, sliding_window=4),
    "qwen2 window in one layer": lambda: Qwen2Config(
        **DECODER, use_sliding_window=True, sliding_window=3, max_window_layers=1
    ),
    "qwen3": lambda: Qwen3Config(**DECODER, head_dim=10, rms_norm_eps=1e-2),
    "bert": bert,
    "bert untied, three segments, relu": lambda: bert(
        num_hidden_layers=3, type_vocab_size=3, hidden_act="relu", layer_norm_eps=1e-2, tie_word_embeddings=False
    ),
    "bert other sizes": lambda: bert(hidden_size=20, num_attention_heads=5, hidden_act="gelu_new"),
    "roberta": roberta,
    "roberta untied, three segments": lambda: roberta(
        type_vocab_size=3, tie_word_embeddings=False, layer_norm_eps=1e-2, num_hidden_layers=3
    ),
    "distilbert": distilbert,
    "distilbert relu, untied": lambda: distilbert(
        activation="relu", n_layers=3, tie_word_embeddings=False, sinusoidal_pos_embds=True
    ),
    "opt": opt,
    "opt norm after": lambda: opt(do_layer_norm_before=False, num_hidden_layers=4),
    "opt no biases, untied, gelu": lambda: opt(
        enable_bias=False, tie_word_embeddings=False, activation_function="gelu"
    ),
    "phi3": phi3,
    "phi3 window, tied": lambda: phi3(sliding_window=3, tie_word_embeddings=True, rms_norm_eps=1e-2, hidden_act="gelu"),
    "phi3 half rotated, one key head": lambda: phi3(
        hidden_size=32, num_key_value_heads=1, rope_parameters=rope("default", partial_rotary_factor=0.5)
    ),
    "phi3 longrope": lambda: phi3(
        hidden_size=32,
        max_position_embeddings=160,
        original_max_position_embeddings=64,
        rope_parameters=rope(
            "longrope",
            short_factor=[1.0, 1.5, 2.0, 4.0],
            long_factor=[3.0, 4.0, 5.0, 6.0],
            original_max_position_embeddings=64,
        ),
    ),
    "gpt_neox": neox,
    "gpt_neox one after the other, tied": lambda: neox(
        use_parallel_residual=False,
        tie_word_embeddings=True,
        num_attention_heads=2,
        hidden_act="relu",
        layer_norm_eps=1e-2,
        rope_parameters=rope("default", partial_rotary_factor=0.75),
    ),
    "gpt_neox no biases, all rotated, linear": lambda: neox(
        attention_bias=False, num_hidden_layers=3, rope_parameters=rope("linear", factor=2.0, partial_rotary_factor=1.0)
    ),
    "gemma2": gemma2,
    "gemma2 biases, untied, tight bounds, all heads": lambda: gemma2(
        attention_bias=True,
        tie_word_embeddings=False,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=1.5,
        num_key_value_heads=4,
        num_hidden_layers=3,
    ),
    "gemma2 no bounds, one key head, silu": lambda: gemma2(
        attn_logit_softcapping=None,
        final_logit_softcapping=None,
        num_key_value_heads=1,
        head_dim=10,
        hidden_activation="silu",
        rms_norm_eps=1e-2,
        layer_types=["full_attention", "sliding_attention"],
        rope_parameters=rope("linear", factor=2.0),
    ),
    "gemma3": gemma3,
    "gemma3 untied, biases, linear": lambda: gemma3(
        tie_word_embeddings=False,
        attention_bias=True,
        final_logit_softcapping=1.5,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={
            "full_attention": rope("linear", factor=4.0),
            "sliding_attention": {"rope_type": "default", "rope_theta": 7.0},
        },
    ),
    "gemma3 wide heads, one key head": lambda: gemma3(
        head_dim=12,
        num_key_value_heads=1,
        num_hidden_layers=2,
        layer_types=["full_attention", "sliding_attention"],
        rope_parameters={"full_attention": rope("default"), "sliding_attention": rope("default") | {"rope_theta": 3.0}},
        rms_norm_eps=1e-2,
    ),
    "bart": bart,
    "bart scaled, relu, one layer and three": lambda: bart(
        scale_embedding=True, activation_function="relu", encoder_layers=1, decoder_layers=3
    ),
    "t5": lambda: t5(relative_attention_num_buckets=8, relative_attention_max_distance=10),
    "t5 gated, untied": lambda: t5(
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        num_decoder_layers=3,
        d_kv=3,
        layer_norm_epsilon=1e-2,
    ),
    "t5 silu, few buckets": lambda: t5(
        feed_forward_proj="silu",
        num_layers=1,
        relative_attention_num_buckets=4,
        relative_attention_max_distance=4,
    ),
    "marian": lambda: marian(activation_function="silu", scale_embedding=True),
    "marian relu, one layer and three": lambda: marian(activation_function="relu", encoder_layers=1, decoder_layers=3),
    "marian two vocabularies": lambda: marian(
        share_encoder_decoder_embeddings=False, decoder_vocab_size=38, scale_embedding=True
    ),
}

EMBEDDING_STD = {"opt norm after": 0.8}
"""Larger embeddings where no norm follows them: else the scores of the first layer are nearly equal."""

# --- the models -------------------------------------------------------------------------------------------


def config_of(settings: Any, tensors: Iterable[str] = ()) -> TransformerConfig:
    """Our config for theirs, which must not have a key that is not used."""
    keys = ConfigKeys(Path("config.json"), settings.to_dict(), frozenset(tensors))
    config = FAMILIES[settings.model_type].config(keys)
    assert keys.unused() == ()
    return config


def weights_of(tensors: Mapping[str, Any], settings: Any) -> dict[str, Any]:
    """Their tensors (weights, or gradients of them) under our names and in our layout."""
    config = config_of(settings, tensors)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    places = FAMILIES[settings.model_type].places(shapes, config)
    return {name: place.of(tensors[place.tensor]) for name, place in places.items()}


class Pair(NamedTuple):
    """The Hugging Face model, our model with the same weights, its config and its weights."""

    theirs: Any
    ours: Transformer
    config: TransformerConfig
    weights: dict[str, Tensor]


@cache
def pair(name: str) -> Pair:
    """The Hugging Face model with random weights, and ours with the same."""
    settings = CASES[name]()
    settings._attn_implementation = "eager"  # the one that also returns weights
    theirs = MODELS[settings.model_type](settings).eval()
    if settings.model_type == "t5" and not settings.scale_decoder_outputs:
        theirs.lm_head.weight = nn.Parameter(torch.empty_like(theirs.lm_head.weight))  # as in files of version 1.1
    randomise(theirs, EMBEDDING_STD.get(name, 0.4))
    config = config_of(settings, theirs.state_dict())
    weights = weights_of(theirs.state_dict(), settings)
    ours = Transformer(config).eval()
    ours.load_state_dict(weights)
    return Pair(theirs, ours, config, weights)


def by_definition(name: str) -> reference.Transformer:
    """The NumPy reference model with the same weights."""
    _, _, config, weights = pair(name)
    return reference.Transformer(config, {name: weight.numpy() for name, weight in weights.items()})


@torch.no_grad()
def randomise(model: nn.Module, embedding_std: float = 0.4) -> None:
    """Set random weights, so large that attention is far from even, and such that every norm and bias has an effect.

    With weights 1.5 times as large, one rounding error of float32 in the first layer becomes 1e-4 in the last.
    """
    draw = torch.Generator().manual_seed(11)
    drawn: set[int] = set()
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            module.padding_idx = None  # else that row would get no gradient
        for name, weight in module.named_parameters(recurse=False):
            if not weight.requires_grad or id(weight) in drawn:  # Marian's computed positions, and shared weights
                continue
            drawn.add(id(weight))
            numbers = torch.empty_like(weight).normal_(generator=draw)
            if weight.ndim == 1 and name == "weight":  # of either sign, else a tied model only repeats its input
                plus_one = type(module).__name__ in ("Gemma2RMSNorm", "Gemma3RMSNorm")
                weight.copy_(torch.sign(numbers) + 0.2 * numbers - int(plus_one))
            elif weight.ndim == 1:
                weight.copy_(0.2 * numbers)
            elif isinstance(module, nn.Embedding):
                weight.copy_(embedding_std * numbers)
            else:
                inputs = weight.shape[0 if isinstance(module, Conv1D) else 1]
                weight.copy_(numbers / inputs**0.5)
        buffers = dict(module.named_buffers(recurse=False))
        if "final_logits_bias" in buffers:
            buffers["final_logits_bias"].normal_(std=0.3, generator=draw)


# --- inputs -----------------------------------------------------------------------------------------------


class Batch(NamedTuple):
    """The inputs of both models. A prompt is padded on the left, every other text on the right."""

    ids: Tensor
    keep: Tensor
    segments: Tensor | None = None
    positions: Tensor | None = None
    source: Tensor | None = None
    source_keep: Tensor | None = None

    def to_theirs(self) -> dict[str, Any]:
        if self.source is None:
            given = {"input_ids": self.ids, "attention_mask": self.keep.long()}
            given |= {} if self.segments is None else {"token_type_ids": self.segments}
            return given if self.positions is None else given | {"position_ids": self.positions}
        assert self.source_keep is not None
        return {
            "input_ids": self.source,
            "attention_mask": self.source_keep.long(),
            "decoder_input_ids": self.ids,
            "decoder_attention_mask": self.keep.long(),
        }

    def to_ours(self, masked: bool, as_given: Callable[[Tensor], Any] = lambda x: x) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in ("ids", "segments", "positions", "source")}
        given = {name: as_given(x) for name, x in given.items() if x is not None}
        if masked:
            given["mask"] = Mask.from_keep(as_given(self.keep))
            if self.source_keep is not None:
                given["source_mask"] = Mask.from_keep(as_given(self.source_keep))
        return given


def batch(config: TransformerConfig, padded: bool) -> Batch:
    """Three texts of at most thirteen ids, with sources of at most nine for encoder–decoder models."""
    # From 2 on: RoBERTa and OPT treat id 1 as padding and give it another position.
    draw = partial(torch.randint, 2, generator=torch.Generator().manual_seed(21))
    lengths = torch.tensor([13, 6, 1] if padded else [13, 13, 13])
    keep = torch.arange(13) < lengths[:, None]
    assert config.vocab_size is not None
    if config.kind == "encoder":
        kinds = config.embeddings.n_segments
        segments = None if kinds is None else torch.randint(kinds, (3, 13), generator=torch.Generator().manual_seed(4))
        return Batch(draw(config.vocab_size, (3, 13)), keep, segments)
    if config.kind == "decoder":
        keep = keep.flip(1)
        positions = (keep.cumsum(1) - 1).clamp(min=0)
        return Batch(draw(config.vocab_size, (3, 13)), keep, positions=positions if padded else None)
    source_lengths = torch.tensor([2, 9, 5] if padded else [9, 9, 9])
    return Batch(
        ids=draw(config.vocab_size, (3, 13)),
        keep=keep,
        source=draw(config.embeddings.source_vocab_size or config.vocab_size, (3, 9)),
        source_keep=torch.arange(9) < source_lengths[:, None],
    )
