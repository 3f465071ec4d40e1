"""The cost of `regard.survey`: the same texts, read one by one, by the bare forward passes and by a survey."""

from typing import Any

from benchmarks.cases.case import Case
from benchmarks.measure import Contender, Ratio

LENGTH, TEXTS, VOCABULARY = 512, 2, 5000


def contenders() -> dict[str, Contender]:
    """GPT-2's shape on the CPU, with texts of random tokens of which many repeat."""
    import numpy as np
    import torch
    from transformers import GPT2Config, GPT2Model

    import regard
    from regard.text.tokenizer import IdTokenizer

    torch.manual_seed(0)
    model: Any = GPT2Model._from_config(GPT2Config(vocab_size=VOCABULARY), attn_implementation="sdpa").eval()
    rows = np.random.default_rng(0).zipf(1.3, (TEXTS, LENGTH)) % VOCABULARY
    tokenizer = IdTokenizer(VOCABULARY)
    texts = [" ".join(map(str, row)) for row in rows.tolist()]

    def forward() -> None:
        with torch.no_grad():
            for text in texts:
                model(torch.tensor([tokenizer.encode(text)]))

    return {"forward passes": forward, "survey": lambda: regard.survey(model, texts, tokenizer)}


CASES = (
    Case(
        name="survey",
        what=f"GPT-2 124M shape without output layer, float32, texts of {LENGTH} tokens, 64 queries of each measured",
        prepare=contenders,
        rounds=7,
        warm_up=1,
        ratios=(
            Ratio(
                label="survey, tokens per second of the forward passes",
                over="survey",
                under="forward passes",
                work=(TEXTS * LENGTH, TEXTS * LENGTH),
                must=0.8,
                higher_is_better=True,
            ),
        ),
    ),
)
