"""Whole models on a CUDA device: training compared with nanoGPT, decoding with Hugging Face's compiled `generate`.

nanoGPT's model.py is imported from the folder NANOGPT; it is not part of this repository.
"""

import os
import sys
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


def decode(batch: int) -> dict[str, Contender]:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    from regard.config import TransformerConfig
    from regard.generation import generate
    from regard.models import Transformer

    torch.manual_seed(0)
    ours = Transformer(TransformerConfig.gpt2()).to("cuda", torch.bfloat16).eval()
    theirs: Any = GPT2LMHeadModel(GPT2Config())  # mypy cannot follow its methods
    theirs = theirs.to("cuda", torch.bfloat16).eval()
    theirs.generation_config.eos_token_id = None
    prompt = torch.randint(0, 50_257, (batch, PROMPT), device="cuda")
    decoding = ours.begin(cache="static", max_len=PROMPT + NEW, compile=True)

    def regard() -> None:
        generate(decoding, prompt, max_new=NEW)
        torch.cuda.synchronize()

    def hugging_face() -> None:
        theirs.generate(prompt, max_new_tokens=NEW, do_sample=False, cache_implementation="static", pad_token_id=0)
        torch.cuda.synchronize()

    return {"regard": regard, "Hugging Face generate": hugging_face}


def decode_case(batch: int, must: float) -> Case:
    def rates(measured: Measured) -> dict[str, float]:
        return {f"{name}, tokens/s": batch * NEW / measured.median(name) for name in measured.times}

    return Case(
        name=f"gpu-decode-{batch}",
        what=f"GPT-2 124M shape, bfloat16, greedy, batch {batch}, {PROMPT} tokens in and {NEW} out; static caches, "
        "compiled, ours captured as a graph",
        prepare=lambda: decode(batch),
        rounds=7,
        warm_up=3,
        gpu=True,
        facts=rates,
        fact_bounds=(("regard, tokens/s", "", None), ("Hugging Face generate, tokens/s", "", None)),
        ratios=(
            Ratio(
                label="speed over Hugging Face generate, static cache and compile",
                over="Hugging Face generate",
                under="regard",
                must=must,
                higher_is_better=True,
            ),
        ),
    )


CASES = (TRAIN, decode_case(1, must=2.0), decode_case(32, must=1.2))
