"""python -m benchmarks.alignment [--model translator] [--report]: which head of a translator aligns words best.

The model reads each sentence of sentences/aligned.tsv and its translation, as if it had written it. The alignment error
rate of each head (0 is best) is computed over all sentences, for two choices of rows: the row of a Chinese character is
the one that has read it, or the one before, which writes it and by which `regard see` chooses its head. A head is
useful if it is better than the diagonal and than random words.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import regard
from benchmarks.dated import finish, heading
from regard.evaluation.alignment import (
    Aligned,
    AlignedHead,
    alignment_error_rate,
    best_heads,
    chance_error_rate,
    diagonal,
    head_links,
    read_aligned,
)
from regard.language import LanguageModel
from regard.trace import Trace

SENTENCES = Path(__file__).parent / "sentences" / "aligned.tsv"


def main() -> None:
    options = parse()
    model = regard.load(options.model)
    pairs = read_aligned(SENTENCES)
    known = [pair for pair in pairs if is_known(model, pair)]
    if not known:
        raise SystemExit(f"{options.model} knows the characters of none of the sentences in {SENTENCES}")
    finish("alignment", markdown(model, pairs, known, options.best), report=options.report)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alignment", description=__doc__)
    parser.add_argument("--model", default="translator", help="a bundled model or a folder; default: translator")
    parser.add_argument("--best", type=int, default=8, help="how many heads to show; default: 8")
    parser.add_argument("--report", action="store_true", help="also write a dated report to benchmarks/results/")
    return parser.parse_args()


def is_known(model: LanguageModel, pair: Aligned) -> bool:
    """Whether the tokenizer knows every character: unknown ones are never read."""
    return not any(model.tokenizer.unknown in ids for ids in model.tokenizer.encode_all([pair.text, pair.output]))


def markdown(model: LanguageModel, pairs: Sequence[Aligned], known: Sequence[Aligned], best: int) -> str:
    """The report: the best heads, the baselines, and whether the model's settings name the same heads."""
    seen = [(pair, model.see(pair.text, output=pair.output).trace) for pair in known]
    read, written = best_heads(seen, "read"), best_heads(seen, "written")
    even = alignment_error_rate((pair, diagonal(pair)) for pair in known)
    sure, possible = (sum(map(len, each)) for each in zip(*((p.sure, p.possible) for p in known), strict=True))
    lines = [
        *heading(f"Alignment of {model.name}"),
        f"{len(known)} of the {len(pairs)} sentences of {SENTENCES.name}, all of whose characters the model knows; "
        f"{sure} sure links, {possible - sure} possible ones. Layers and heads are counted from 0.",
        "",
        "| cross-attention | row that has read | row that writes |",
        "|---|---|---|",
        *rows(read, written, best),
        f"| the diagonal | {even:.3f} | {even:.3f} |",
        f"| words by lot | {chance_error_rate(known):.3f} | {chance_error_rate(known):.3f} |",
        "",
        f"The best head by the row that has read is {name(read[0])}, by the row that writes {name(written[0])}.",
        agreement(model, written),
        f"“{known[0].text}” by {name(written[0])}: {alignment_text(*seen[0], written[0])}.",
        "",
    ]
    return "\n".join(lines)


def rows(read: Sequence[AlignedHead], written: Sequence[AlignedHead], best: int) -> list[str]:
    """The best heads by either choice of rows."""
    errors = [{each[:2]: each.error for each in heads} for heads in (read, written)]
    ranked = sorted(errors[0], key=lambda head: min(each[head] for each in errors))[:best]
    return [f"| layer {head[0]}, head {head[1]} | {errors[0][head]:.3f} | {errors[1][head]:.3f} |" for head in ranked]


def name(head: AlignedHead) -> str:
    return f"layer {head.layer}, head {head.head} ({head.error:.3f})"


def agreement(model: LanguageModel, heads: Sequence[AlignedHead]) -> str:
    """Whether the model's settings name the best head, which `regard see` shows."""
    named = model.settings.alignment_heads
    if not named:
        return f"The model names no alignment_heads; they should begin with {list(heads[0][:2])}."
    place = [head[:2] for head in heads].index(named[0])
    if not place:
        return f"The model's alignment_heads begin with the same: {list(named[0])}."
    return (
        f"The model's alignment_heads begin with {list(named[0])}, number {place + 1} of {len(heads)} with "
        f"{heads[place].error:.3f}; they should begin with {list(heads[0][:2])}."
    )


def alignment_text(pair: Aligned, trace: Trace, head: AlignedHead) -> str:
    """The source word with the highest weight in the row that writes each character."""
    record = trace.select("cross")[head.layer]
    linked = {j: pair.source[i] for i, j in head_links(record, pair, "written")[head.head]}
    return ", ".join(f"{linked.get(j, 'nothing')}–{word}" for j, word in enumerate(pair.target))


if __name__ == "__main__":
    main()
