"""Whole models on the CPU, compared with Hugging Face's of the same shape, with random weights."""

from math import prod
from typing import TYPE_CHECKING

from benchmarks.cases.case import Case
from benchmarks.measure import Contender, Measured, Ratio

if TYPE_CHECKING:
    from regard.config import TransformerConfig

# --- forward ---------------------------------------------------------------------------------------------


def forward() -> dict[str, Contender]:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    from regard.config import TransformerConfig
    from regard.models import Transformer

    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    ours = Transformer(TransformerConfig.gpt2()).eval()
    theirs = GPT2LMHeadModel._from_config(GPT2Config(), attn_implementation="sdpa").eval()
    ids = torch.randint(0, 50_257, (1, 1024))
    return {"regard": lambda: ours(ids), "Hugging Face, sdpa": lambda: theirs(ids, use_cache=False)}


FORWARD = Case(
    name="model-forward",
    what="GPT-2 124M shape, torch on the CPU, float32, 1 × 1,024 tokens, logits of all positions",
    prepare=forward,
    rounds=9,
    ratios=(Ratio(label="forward, time over Hugging Face", over="regard", under="Hugging Face, sdpa", must=1.0),),
)

# --- decoding --------------------------------------------------------------------------------------------

PROMPT, NEW = 32, 64


def decode() -> dict[str, Contender]:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from regard.config import TransformerConfig
    from regard.generation import generate
    from regard.models import Transformer

    torch.manual_seed(0)
    ours = Transformer(TransformerConfig.llama("135M")).eval()
    theirs = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=49_152,
            hidden_size=576,
            intermediate_size=1536,
            num_hidden_layers=30,
            num_attention_heads=9,
            num_key_value_heads=3,
            max_position_embeddings=8192,
            tie_word_embeddings=True,
        )
    ).eval()
    theirs.generation_config.eos_token_id = None
    prompt = torch.randint(0, 49_152, (1, PROMPT))
    compiled = ours.begin(cache="static", max_len=PROMPT + NEW, compile=True)

    return {
        "regard": lambda: generate(ours, prompt, max_new=NEW),
        "regard, static and compiled": lambda: generate(compiled, prompt, max_new=NEW),
        "Hugging Face generate": lambda: theirs.generate(prompt, max_new_tokens=NEW, do_sample=False, pad_token_id=0),
    }


def tokens_per_second(measured: Measured) -> dict[str, float]:
    return {f"{name}, tokens/s": NEW / measured.median(name) for name in measured.times}


DECODE = Case(
    name="model-decode",
    what=f"SmolLM2-135M shape, torch on the CPU, float32, greedy, {PROMPT} tokens in and {NEW} out, prefill included",
    prepare=decode,
    rounds=7,
    facts=tokens_per_second,
    fact_bounds=(
        ("regard, tokens/s", "", None),
        ("regard, static and compiled, tokens/s", "", None),
        ("Hugging Face generate, tokens/s", "", None),
    ),
    ratios=(
        Ratio(
            label="speed over Hugging Face generate",
            over="Hugging Face generate",
            under="regard",
            must=1.5,
            higher_is_better=True,
        ),
        Ratio(
            label="the same, static cache and compiled step",
            over="Hugging Face generate",
            under="regard, static and compiled",
            must=1.5,
            higher_is_better=True,
        ),
    ),
)

# --- NumPy -----------------------------------------------------------------------------------------------

WORDS, CHARACTERS = 12, 12


def translator() -> "TransformerConfig":
    from regard.config import Embeddings, TransformerConfig

    both = Embeddings(scaled=True, source_vocab_size=6000)
    return TransformerConfig.paper_2017(vocab_size=3000, d_model=256, n_heads=4, d_ff=1024, n_layers=2, embeddings=both)


def translate() -> dict[str, Contender]:
    import numpy as np

    from regard.config.weights import weight_shapes
    from regard.dispatch import attend_in_model
    from regard.generation import generate
    from regard.reference import Transformer

    rng = np.random.default_rng(0)
    config = translator()
    weights = {
        name: (rng.standard_normal(shape) * 0.05).astype(np.float32) for name, shape in weight_shapes(config).items()
    }
    model = Transformer(config, weights, attend=attend_in_model)
    source = rng.integers(0, 6000, WORDS).tolist()
    return {"translate": lambda: generate(model, [1], sources=source, max_new=CHARACTERS)}


def translate_facts(measured: Measured) -> dict[str, float]:
    from regard.config.weights import weight_shapes

    config = translator()
    return {
        "time of a sentence": measured.median("translate") * 1e3,
        "parameters": sum(prod(shape) for shape in weight_shapes(config).values()) / 1e6,
    }


TRANSLATE = Case(
    name="numpy-translate",
    what=f"the NumPy Transformer, encoder-decoder, float32, {WORDS} words in, {CHARACTERS} characters out with cache",
    prepare=translate,
    rounds=15,
    facts=translate_facts,
    fact_bounds=(("time of a sentence", "ms", 150.0), ("parameters", "million", None)),
    ratios=(),
)

CASES = (FORWARD, DECODE, TRANSLATE)
