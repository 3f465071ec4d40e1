"""Whole models on a CUDA device: training compared with nanoGPT, decoding with Hugging Face's compiled `generate`.

nanoGPT's model.py is imported from the folder NANOGPT; it is not part of this repository. With REGARD_TRIAL=1 the cases
of decoding run on the CPU with small sizes: python -m benchmarks.run gpu-decode-1 gpu-decode-1b-1 --rounds 2
"""

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.cases.case import Case
from benchmarks.measure import Contender, Measured, Ratio

if TYPE_CHECKING:
    import torch

# --- training --------------------------------------------------------------------------------------------

BATCH, LENGTH, VOCABULARY = 32, 1024, 50_304


def train() -> dict[str, Contender]:
    """One whole training step of each: forward, backward, clipping, AdamW."""
    import torch

    sys.path.insert(0, os.environ.get("NANOGPT", "."))
    from model import GPT, GPTConfig  # type: ignore[import-not-found]

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    ids, targets = (torch.randint(0, VOCABULARY, (BATCH, LENGTH), device="cuda") for _ in range(2))
    theirs = GPT(GPTConfig(block_size=LENGTH, vocab_size=VOCABULARY, dropout=0.0, bias=True)).cuda()
    optimizer = theirs.configure_optimizers(0.1, 6e-4, (0.9, 0.95), "cuda")
    compiled = torch.compile(theirs)

    def nano_gpt() -> None:
        """As in its train.py."""
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(ids, targets)[1]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()

    return {"regard": our_step(ids, targets), "nanoGPT": nano_gpt}


def our_step(ids: "torch.Tensor", targets: "torch.Tensor") -> Contender:
    """The step of `regard train gpt2-124m`, from its own code."""
    import torch

    from regard.config import TransformerConfig
    from regard.models import Transformer
    from regard.recipes import read_recipe
    from regard.recipes.running import decoder_logits
    from regard.training.processes import Ranks, StopRequest
    from regard.training.step import GraphedUpdate, Objective, Update, adamw

    plan = read_recipe("gpt2-124m").training
    model = Transformer(TransformerConfig.gpt2(vocab_size=VOCABULARY, dropout=0.0)).cuda().train()
    learner = torch.compile(Objective(model, decoder_logits))
    update = Update(learner, model, adamw(model, plan), plan, Ranks(0, 1, torch.device("cuda")), StopRequest())
    step = GraphedUpdate(update)

    def regard() -> None:
        update.prepare(lr=plan.lr, n_targets=targets.numel())
        step([({"ids": ids}, targets)])
        torch.cuda.synchronize()

    return regard


def training_rates(measured: Measured) -> dict[str, float]:
    """Tokens per second, and their share of the rate of matrix products on this device."""
    import torch

    from regard.training.run_reports import measured_peak

    parameters = 123.6e6  # GPT-2 124M without the position embeddings, which multiply nothing
    per_token = 6 * parameters + 12 * 12 * 768 * LENGTH  # forward and backward, attention included
    peak = measured_peak(torch.device("cuda"), torch.bfloat16)
    ours = BATCH * LENGTH / measured.median("regard")
    return {
        "regard, tokens/s": ours,
        "nanoGPT, tokens/s": BATCH * LENGTH / measured.median("nanoGPT"),
        "regard, share of the matrix products' rate": ours * per_token / peak,
    }


TRAIN = Case(
    name="gpu-train",
    what=f"GPT-2 124M shape, a whole training step (forward, backward, clipping, AdamW), bfloat16 autocast, "
    f"batch {BATCH} × {LENGTH}, compiled, ours captured as a graph",
    prepare=train,
    rounds=15,
    warm_up=4,
    gpu=True,
    facts=training_rates,
    fact_bounds=(
        ("regard, tokens/s", "", None),
        ("nanoGPT, tokens/s", "", None),
        ("regard, share of the matrix products' rate", "", None),
    ),
    ratios=(
        Ratio(label="speed over nanoGPT", over="nanoGPT", under="regard", must=1.0, aim=1.15, higher_is_better=True),
    ),
)

# --- decoding --------------------------------------------------------------------------------------------

PROMPT, NEW = 64, 256
OURS, INT8, THEIRS = "regard", "regard, int8", "Hugging Face generate"
SHAPES = {"": "GPT-2 124M", "1b-": "Llama 1B: 16 layers, width 2,048, 32 heads, 8 of keys"}
IS_TRIAL = bool(os.environ.get("REGARD_TRIAL"))
"""Small sizes on the CPU: whether the cases run at all, before a machine with a GPU is at hand."""


def models_of(shape: str) -> tuple[Any, Any]:
    """Our model and Hugging Face's, of the same shape with random weights, in bfloat16."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    from regard.config import TransformerConfig
    from regard.models import Transformer

    small: dict[str, Any] = {"n_layers": 2, "d_model": 64, "n_heads": 2, "d_ff": 128} if IS_TRIAL else {}
    theirs: Any  # mypy cannot follow their methods
    if shape == "":
        config = TransformerConfig.gpt2(**small)
        theirs = GPT2LMHeadModel(
            GPT2Config(n_embd=config.d_model, n_layer=small.get("n_layers", 12), n_head=config.n_heads)
        )
    else:
        config = TransformerConfig.llama("1B", **small, **({"n_kv_heads": 1} if small else {}))
        theirs = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=config.vocab_size or 0,
                hidden_size=config.d_model,
                intermediate_size=config.d_ff,
                num_hidden_layers=config.layers_of("decoder"),
                num_attention_heads=config.n_heads,
                num_key_value_heads=config.key_value_heads,
                head_dim=config.head_width,
                max_position_embeddings=8192,
                tie_word_embeddings=True,
            )
        )
    device = "cpu" if IS_TRIAL else "cuda"
    theirs.generation_config.eos_token_id = None
    with torch.device(device):
        ours = Transformer(config)
    return ours.to(torch.bfloat16).eval(), theirs.to(device, torch.bfloat16).eval()


def decode(shape: str, batch: int) -> dict[str, Contender]:
    import torch

    from regard.generation import generate
    from regard.models.cpu_decoding import round_weights

    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    ours, theirs = models_of(shape)
    prompt = torch.randint(0, ours.config.vocab_size, (batch, PROMPT), device=next(ours.parameters()).device)
    decodings = {OURS: ours.begin(cache="static", max_len=PROMPT + NEW, compile=True)}
    if batch == 1:
        rounded, _ = models_of(shape)
        round_weights(rounded)
        rounded.to(torch.bfloat16)  # the scales too: products are of one dtype
        decodings[INT8] = rounded.begin(cache="static", max_len=PROMPT + NEW, compile=True)

    def finished() -> None:
        if prompt.is_cuda:
            torch.cuda.synchronize()

    def regard(decoding: Any) -> None:
        generate(decoding, prompt, max_new=NEW)
        finished()

    def hugging_face() -> None:
        theirs.generate(prompt, max_new_tokens=NEW, do_sample=False, cache_implementation="static", pad_token_id=0)
        finished()

    return {name: partial(regard, decoding) for name, decoding in decodings.items()} | {THEIRS: hugging_face}


def decode_facts(shape: str, batch: int, measured: Measured) -> dict[str, float]:
    """Tokens per second, and the share of the memory limit: all weights are read once for each step."""
    import torch

    bandwidth = memory_bandwidth()
    found = {"memory read at": bandwidth / 1e9}
    count = sum(each.numel() for each in models_of(shape)[0].parameters())
    for name in measured.times:
        each = measured.median(name) / NEW
        found[f"{name}, tokens/s"] = batch / each
        if name != THEIRS:
            size = 1 if name == INT8 else torch.bfloat16.itemsize
            found[f"{name}, share of the memory limit"] = count * size / bandwidth / each
    return found


def memory_bandwidth() -> float:
    """Bytes per second at which a tensor of 4 GB is added up; the best of five."""
    import time

    import torch

    device = "cpu" if IS_TRIAL else "cuda"
    numbers, best = torch.ones(2**24 if IS_TRIAL else 2**31, dtype=torch.bfloat16, device=device), 0.0
    for _ in range(5):
        start = time.perf_counter()
        numbers.sum().item()
        best = max(best, numbers.nbytes / (time.perf_counter() - start))
    return best


def decode_case(shape: str, batch: int, must: float) -> Case:
    ours = (OURS, INT8) if batch == 1 else (OURS,)
    return Case(
        name=f"gpu-decode-{shape}{batch}",
        what=f"{SHAPES[shape]}, bfloat16, greedy, batch {batch}, {PROMPT} tokens in and {NEW} out; static caches, "
        "compiled, ours captured as a graph",
        prepare=lambda: decode(shape, batch),
        rounds=5,
        warm_up=3,
        gpu=True,
        facts=lambda measured: decode_facts(shape, batch, measured),
        fact_bounds=(
            ("memory read at", "GB/s", None),
            *((f"{name}, tokens/s", "", None) for name in (*ours, THEIRS)),
            *((f"{name}, share of the memory limit", "", None) for name in ours),
        ),
        ratios=tuple(
            Ratio(
                label=f"{name}: speed over Hugging Face generate, static cache and compile",
                over=THEIRS,
                under=name,
                must=must if name == OURS else None,
                higher_is_better=True,
            )
            for name in ours
        ),
    )


CASES = (TRAIN, *(decode_case(shape, batch, must) for shape in SHAPES for batch, must in ((1, 2.5), (32, 1.7))))
