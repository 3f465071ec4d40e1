"""The keys that config.json of well-known models has: none is refused, and their random weights load, in tiny sizes."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from model_pairs import MODELS, randomise
from safetensors.torch import save_file
from transformers import AutoConfig

from regard.checkpoints import read_model
from regard.models import Transformer

TOP: dict[str, Any] = {
    "architectures": ["X"],
    "torch_dtype": "float16",
    "transformers_version": "4.40.0",
    "use_cache": True,
}
SMALL: dict[str, Any] = {"hidden_size": 24, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 40}
GROUPED: dict[str, Any] = SMALL | {
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-5,
}
ENDS: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "vocab_size": 33, "tie_word_embeddings": False}
LLAMA3: dict[str, Any] = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_type": "llama3"}
LLAMA3 |= {"original_max_position_embeddings": 8192}
BERT: dict[str, Any] = SMALL | {"attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1}
BERT |= {"initializer_range": 0.02, "layer_norm_eps": 1e-12, "max_position_embeddings": 40, "type_vocab_size": 2}
BERT |= {"vocab_size": 37}
GEMMA: dict[str, Any] = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "head_dim": 8,
    "rope_theta": 10000.0,
    "vocab_size": 33,
}
GEMMA |= {"max_position_embeddings": 64, "bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
SUMMARY: dict[str, Any] = {"summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True}
SUMMARY |= {"summary_type": "cls_index", "summary_use_proj": True}
SEQ: dict[str, Any] = {"is_encoder_decoder": True, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "d_model": 24}
SEQ |= {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
SEQ |= {"encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "max_position_embeddings": 64, "num_hidden_layers": 2}
SEQ |= {"attention_dropout": 0.0, "activation_dropout": 0.0, "dropout": 0.1, "init_std": 0.02, "vocab_size": 36}
SEQ |= {"num_beams": 4, "classifier_dropout": 0.0, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
T5: dict[str, Any] = {
    "is_encoder_decoder": True,
    "d_ff": 40,
    "d_kv": 6,
    "d_model": 24,
    "dropout_rate": 0.1,
    "num_heads": 4,
}
T5 |= {"num_layers": 2, "relative_attention_num_buckets": 32, "layer_norm_epsilon": 1e-6, "vocab_size": 35}
T5 |= {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, "output_past": True, "n_positions": 512}
T5 |= {"initializer_factor": 1.0, "model_type": "t5"}

CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": SUMMARY
    | {"activation_function": "gelu_new", "attn_pdrop": 0.1, "bos_token_id": 30, "embd_pdrop": 0.1, "n_ctx": 40}
    | {"eos_token_id": 30, "initializer_range": 0.02, "layer_norm_epsilon": 1e-5, "model_type": "gpt2", "n_embd": 24}
    | {"n_head": 4, "n_layer": 2, "n_positions": 40, "resid_pdrop": 0.1, "vocab_size": 31}
    | {"task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}},
    "bert-base-uncased": BERT | {"gradient_checkpointing": False, "model_type": "bert", "pad_token_id": 0}
    | {"position_embedding_type": "absolute", "classifier_dropout": None},
    "bert-base-chinese": BERT | {"directionality": "bidi", "model_type": "bert", "pad_token_id": 0}
    | {"pooler_fc_size": 768, "pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3}
    | {"pooler_size_per_head": 128, "pooler_type": "first_token_transform"},
    "all-MiniLM-L6-v2": BERT | {"gradient_checkpointing": False, "model_type": "bert", "_name_or_path": "x/y"}
    | {"pad_token_id": 0, "position_embedding_type": "absolute"},
    "roberta-base": BERT | {"model_type": "roberta", "bos_token_id": 0, "eos_token_id": 2, "layer_norm_eps": 1e-5}
    | {"max_position_embeddings": 42, "pad_token_id": 1, "type_vocab_size": 1},
    "distilbert-base-uncased": {"activation": "gelu", "attention_dropout": 0.1, "dim": 24, "dropout": 0.1}
    | {"hidden_dim": 40, "initializer_range": 0.02, "max_position_embeddings": 40, "model_type": "distilbert"}
    | {"n_heads": 4, "n_layers": 2, "pad_token_id": 0, "qa_dropout": 0.1, "seq_classif_dropout": 0.2}
    | {"sinusoidal_pos_embds": False, "tie_weights_": True, "vocab_size": 37},
    "Llama-2-7b-hf": GROUPED | ENDS | {"model_type": "llama", "max_position_embeddings": 64, "pretraining_tp": 1}
    | {"rope_scaling": None, "_name_or_path": "x", "num_key_value_heads": 4},
    "Llama-3.1-8B-Instruct": GROUPED | ENDS | {"model_type": "llama", "max_position_embeddings": 131072}
    | {"attention_bias": False, "attention_dropout": 0.0, "mlp_bias": False, "pretraining_tp": 1}
    | {"rope_scaling": LLAMA3, "rope_theta": 500000.0, "eos_token_id": [1, 2, 3]},
    "Llama-3.2-1B": GROUPED | ENDS | {"model_type": "llama", "max_position_embeddings": 131072, "head_dim": 6}
    | {"attention_bias": False, "attention_dropout": 0.0, "mlp_bias": False, "pretraining_tp": 1}
    | {"rope_scaling": LLAMA3 | {"factor": 32.0}, "rope_theta": 500000.0, "tie_word_embeddings": True},
    "SmolLM2-135M": GROUPED | ENDS | {"model_type": "llama", "max_position_embeddings": 8192, "is_llama_config": True}
    | {"attention_bias": False, "attention_dropout": 0.0, "mlp_bias": False, "pretraining_tp": 1}
    | {"rope_interleaved": False, "rope_scaling": None, "rope_theta": 100000, "tie_word_embeddings": True},
    "TinyLlama-1.1B": GROUPED | ENDS | {"model_type": "llama", "max_position_embeddings": 64, "pretraining_tp": 1}
    | {"attention_bias": False, "rope_scaling": None, "rope_theta": 10000.0},
    "Mistral-7B-v0.1": GROUPED | ENDS | {"model_type": "mistral", "max_position_embeddings": 32768}
    | {"rope_theta": 10000.0, "sliding_window": 4096},
    "Mistral-7B-Instruct-v0.3": GROUPED | ENDS | {"model_type": "mistral", "max_position_embeddings": 32768}
    | {"attention_dropout": 0.0, "rope_theta": 1000000.0, "sliding_window": None},
    "Qwen2.5-0.5B-Instruct": GROUPED | ENDS | {"model_type": "qwen2", "max_position_embeddings": 32768}
    | {"attention_dropout": 0.0, "max_window_layers": 2, "rope_theta": 1000000.0, "sliding_window": 32768}
    | {"use_sliding_window": False, "tie_word_embeddings": True},
    "Qwen2.5-Math": GROUPED | ENDS | {"model_type": "qwen2", "max_position_embeddings": 4096, "use_mrope": False}
    | {"attention_dropout": 0.0, "max_window_layers": 2, "rope_theta": 10000, "sliding_window": None}
    | {"use_sliding_window": False},
    "Qwen3-0.6B": GROUPED | ENDS | {"model_type": "qwen3", "max_position_embeddings": 40960, "head_dim": 8}
    | {"attention_bias": False, "attention_dropout": 0.0, "max_window_layers": 2, "rope_scaling": None}
    | {"rope_theta": 1000000, "sliding_window": None, "use_sliding_window": False, "tie_word_embeddings": True},
    "gemma-2-2b": GEMMA | GROUPED | {"model_type": "gemma2", "attn_logit_softcapping": 50.0}
    | {"cache_implementation": "hybrid", "final_logit_softcapping": 30.0, "hidden_act": "gelu_pytorch_tanh"}
    | {"hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 256, "sliding_window": 4096},
    "gemma-3-1b-it": GEMMA | GROUPED | {"model_type": "gemma3_text", "attn_logit_softcapping": None}
    | {"cache_implementation": "hybrid", "final_logit_softcapping": None, "hidden_activation": "gelu_pytorch_tanh"}
    | {"query_pre_attn_scalar": 256, "rope_local_base_freq": 10000, "rope_scaling": None, "rope_theta": 1000000}
    | {"sliding_window": 512, "sliding_window_pattern": 6, "eos_token_id": [1, 3]},
    "pythia-70m": SMALL | {"model_type": "gpt_neox", "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "gelu"}
    | {"initializer_range": 0.02, "layer_norm_eps": 1e-5, "max_position_embeddings": 64, "rotary_emb_base": 10000}
    | {"hidden_size": 32, "rotary_pct": 0.25, "tie_word_embeddings": False, "use_parallel_residual": True}
    | {"vocab_size": 33},
    "opt-125m": {"activation_dropout": 0.0, "activation_function": "relu", "attention_dropout": 0.0, "ffn_dim": 40}
    | {"bos_token_id": 2, "do_layer_norm_before": True, "dropout": 0.1, "eos_token_id": 2, "hidden_size": 24}
    | {"init_std": 0.02, "layerdrop": 0.0, "max_position_embeddings": 64, "model_type": "opt", "pad_token_id": 1}
    | {"num_attention_heads": 4, "num_hidden_layers": 2, "prefix": "</s>", "vocab_size": 33}
    | {"word_embed_proj_dim": 24},
    "Phi-3-mini-4k-instruct": GROUPED | ENDS | {"model_type": "phi3", "attention_bias": False, "embd_pdrop": 0.0}
    | {"_name_or_path": "x", "attention_dropout": 0.0, "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}}
    | {"max_position_embeddings": 4096, "original_max_position_embeddings": 4096, "pad_token_id": 0}
    | {"resid_pdrop": 0.0, "rope_scaling": None, "rope_theta": 10000.0, "sliding_window": 2047},
    "Phi-3-mini-128k-instruct": GROUPED | ENDS | {"model_type": "phi3", "attention_bias": False, "embd_pdrop": 0.0}
    | {"attention_dropout": 0.0, "max_position_embeddings": 131072, "original_max_position_embeddings": 4096}
    | {"resid_pdrop": 0.0, "rope_theta": 10000.0, "sliding_window": 262144, "pad_token_id": 0}
    | {"rope_scaling": {"long_factor": [1.5, 2.0, 9.0], "short_factor": [1.0, 1.1, 1.3], "type": "longrope"}},
    "Phi-4-mini-instruct": GROUPED | ENDS | {"model_type": "phi3", "attention_bias": False, "embd_pdrop": 0.0}
    | {"attention_dropout": 0.0, "max_position_embeddings": 131072, "original_max_position_embeddings": 4096}
    | {"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False, "mlp_bias": False, "pad_token_id": 0}
    | {"partial_rotary_factor": 0.75, "resid_pdrop": 0.0, "rope_theta": 10000.0, "sliding_window": 262144}
    | {"rope_scaling": {"long_factor": [1.0, 2.0, 9.0], "short_factor": [1.0] * 3, "type": "longrope"}}
    | {"hidden_size": 32, "tie_word_embeddings": True},
    "t5-small": T5 | {"feed_forward_proj": "relu"}
    | {"task_specific_params": {"summarization": {"early_stopping": True, "num_beams": 4}}},
    "flan-t5-base": T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "dense_act_fn": "gelu_new"}
    | {"is_gated_act": True, "relative_attention_max_distance": 128, "num_decoder_layers": 2},
    "opus-mt-en-zh": SEQ | {"model_type": "marian", "_num_labels": 3, "activation_function": "swish", "bos_token_id": 0}
    | {"add_bias_logits": False, "add_final_layer_norm": False, "bad_words_ids": [[35]], "classif_dropout": 0.0}
    | {"decoder_start_token_id": 35, "decoder_vocab_size": 36, "eos_token_id": 0, "extra_pos_embeddings": 36}
    | {"force_bos_token_to_be_generated": False, "forced_eos_token_id": 0, "max_length": 512, "normalize_before": False}
    | {"normalize_embedding": False, "pad_token_id": 35, "scale_embedding": True, "static_position_embeddings": True}
    | {"share_encoder_decoder_embeddings": True},
    "bart-base": SEQ | {"model_type": "bart", "_num_labels": 3, "activation_function": "gelu", "bos_token_id": 0}
    | {"add_bias_logits": False, "add_final_layer_norm": False, "classif_dropout": 0.1, "decoder_start_token_id": 2}
    | {"early_stopping": True, "eos_token_id": 2, "forced_bos_token_id": 0, "forced_eos_token_id": 2}
    | {"gradient_checkpointing": False, "no_repeat_ngram_size": 3, "normalize_before": False, "pad_token_id": 1}
    | {"normalize_embedding": True, "scale_embedding": False, "task_specific_params": {"summarization": {}}},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # of Hugging Face, about sizes this small
@pytest.mark.parametrize("name", CONFIGS)
def test_it_is_read(name: str, tmp_path: Path) -> None:
    given: dict[str, Any] = TOP | CONFIGS[name]
    settings = AutoConfig.for_model(**given)
    settings._attn_implementation = "eager"
    theirs = MODELS[given["model_type"]](settings).eval()
    if given["model_type"] == "t5" and not settings.scale_decoder_outputs:
        theirs.lm_head.weight = torch.nn.Parameter(torch.empty_like(theirs.lm_head.weight))
    randomise(theirs)
    tensors = {key: value.clone() for key, value in theirs.state_dict().items()}
    for tied in theirs.all_tied_weights_keys:
        if torch.equal(tensors[tied], theirs.get_input_embeddings().weight):
            del tensors[tied]
    save_file({key: value.contiguous() for key, value in tensors.items()}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(given))
    stored = read_model(tmp_path)
    ids = torch.arange(3, 12)[None]
    ours = Transformer.read(tmp_path)
    with torch.no_grad():
        if settings.is_encoder_decoder:
            expected = theirs(input_ids=ids, decoder_input_ids=ids).logits
            found = ours(ids, source=ids)
        else:
            expected, found = theirs(ids).logits, ours(ids)
    assert (found - expected).abs().max() <= 1e-4
    assert stored.config.max_len is None or stored.config.max_len >= 40
    assert set(stored.unused) <= {
        "auto_map",
        "force_bos_token_to_be_generated",
        "lm_head_bias",
        "mlp_bias",
        "rope_interleaved",
        "use_mrope",
    }
