"""python -m making.translator.card: translates the hundred sentences and writes them into the model card.

Human judgements come from benchmarks/sentences/judged.tsv; an output without one is marked "not judged".
"""

from benchmarks.translator import HUNDRED, JUDGED, read_judged, read_sentences
from regard.language import load
from regard.language.loading import bundled

BEGIN, END = "<!-- the hundred: written by making/translator/card.py -->", "<!-- end of the hundred -->"


def main() -> None:
    card = bundled("translator") / "README.md"
    before, _, rest = card.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    card.write_text(f"{before}{BEGIN}\n\n{hundred()}\n{END}{after}", encoding="utf-8")


def hundred() -> str:
    """The table: sentence, output, ✓ or ✗, and the reason."""
    english, judged = read_sentences(HUNDRED), read_judged(JUDGED)
    pairs = list(zip(english, load("translator").translate(english), strict=True))
    verdicts = [judged.get(pair) for pair in pairs]
    good = sum(verdict is not None and verdict.acceptable for verdict in verdicts)
    table = ["| | | | |", "|---|---|---|---|"]
    for (source, output), verdict in zip(pairs, verdicts, strict=True):
        sign, why = ("not judged", "") if verdict is None else ("✓" if verdict.acceptable else "✗", verdict.why)
        table.append(f"| {source} | {output} | {sign} | {why} |")
    return "\n".join([f"{good} of {len(pairs)} are acceptable.", "", *table, ""])


if __name__ == "__main__":
    main()
