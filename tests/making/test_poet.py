"""Building the poet: prepared poems, the 5-gram baseline, and their comparison."""

import argparse
from pathlib import Path

import numpy as np
import pytest
from narrowing import present
from tiny_language import POEMS, poet_folder

from benchmarks.poet import HEADINGS, bits, markdown, measured
from making.poet import data
from making.poet.data import LONGEST, cleaned, held_out, pieces, prepare
from making.poet.ngram import END, START, KneserNey
from regard.generation import Sampling
from regard.language.loading import load

HAN = "春江花月夜山高水远风清云淡雁来人去草木深鸟啼客愁"


def poems(count: int, seed: int = 0) -> list[str]:
    """Quatrains of five characters per line, in which each character mostly determines the next."""
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        at, text = int(draw.integers(len(HAN))), ""
        for line in range(4):
            for _ in range(5):
                at = int((at + draw.choice([1, 2, 5], p=[0.7, 0.2, 0.1])) % len(HAN))
                text += HAN[at]
            text += "，。"[line % 2]
        found.append(f"五绝｜{text}")
    return found


# --- prepared poems ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("闻道（一作「说（又作讲）」）风雨，来。", "闻道风雨，来。"),
        ("问：「早晚发西京？」来日《长恨曲》、柳，", "问，早晚发西京？来日长恨曲，柳。"),
        ("[爽]节在重九，物华新雨余。（按：下缺）。", "爽节在重九，物华新雨余。"),
        ("冰□已镂津，春。", None),
        ("疲{艹/尔}竟何人，泪。", None),
        ("敌abc人，来。", None),
        ("来。（没有结束", None),
        ("。", None),
        ("", None),
    ],
)
def test_notes_are_removed_and_gaps_detected(text: str, wanted: str | None) -> None:
    assert cleaned(text) == wanted


def test_each_poem_once_with_its_form() -> None:
    five, seven = "白日依山盡，黃河入海流。", "朝辭白帝彩雲間，千里江陵一日還。"
    texts = [five * 2, seven * 2, five * 4, seven * 4, five * 3, five + seven, five * 2, "楓落吳江冷。", "□，□。"]
    train, heldout, counts = prepare(texts)
    assert [line.partition("｜")[0] for line in train + heldout] == ["五绝", "七绝", "五律", "七律", "杂", "杂"]
    assert train[0] == "五绝｜白日依山尽，黄河入海流。白日依山尽，黄河入海流。"
    assert (counts["poems"], counts["seen before"], counts["single line"], counts["gap or garbled"]) == (9, 1, 1, 1)


def test_long_poems_are_split_at_sentences() -> None:
    poem = "白日依山尽，黄河入海流。" * 30
    parts = list(pieces(poem))
    assert "".join(parts) == poem
    assert [len(part) <= LONGEST and part.endswith("。") for part in parts] == [True, True]
    train, heldout, counts = prepare([poem])
    assert [line.partition("｜")[0] for line in train + heldout] == ["杂", "杂"]
    assert counts["long, in pieces"] == 1
    assert list(map(len, pieces("山" * 600))) == [250, 250, 100]


def test_held_out_poems_are_fixed_and_unseen() -> None:
    draw = np.random.default_rng(3)
    different = [f"{''.join(draw.choice(list(HAN), 5))}，{''.join(draw.choice(list(HAN), 5))}。" for _ in range(500)]
    # These differ only in the last line: a held-out one is known from the others.
    alike = [f"白日依山尽，黄河入海流。欲穷千里目，人{poem[6:]}" for poem in different]
    train, heldout, counts = prepare(alike + different)
    assert 1 <= len(heldout) <= 30
    assert counts["held out, but known"] >= 1
    assert not set(train) & set(heldout)
    assert {line.partition("｜")[2] for line in heldout} <= {poem for poem in different if held_out(poem)}
    assert prepare(different[::-1])[1] == heldout[::-1]


def test_command_writes_both_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "poems.tsv"
    source.write_text("題\t\t人\t白日依山盡，黃河入海流。欲窮千里目，更上一層樓。\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["data", "--poems", str(source), "--out", str(tmp_path / "out")])
    data.main()
    written = [(tmp_path / "out" / name).read_text(encoding="utf-8") for name in ("train.txt", "heldout.txt")]
    assert written == ["五绝｜白日依山尽，黄河入海流。欲穷千里目，更上一层楼。\n", ""]


# --- Kneser–Ney -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_sum_to_one_and_agree(order: int) -> None:
    model = KneserNey(poems(50), order)
    draw = np.random.default_rng(1)
    for poem in [*poems(3, seed=2), "五绝｜", "杂｜" + "".join(draw.choice(list(HAN + "火，。"), 30))]:
        bits = model.bits(poem)
        text = poem.partition("｜")[2]
        assert len(bits) == len(text) + 1
        for at, found in enumerate(bits):
            chances = model.chances(poem[: len(poem) - len(text) + at])
            assert chances.sum() == pytest.approx(1)
            assert chances[START] == 0 < chances[1:].min()
            symbol = model.ids.get(text[at], 2) if at < len(text) else END
            assert -np.log2(chances[symbol]) == pytest.approx(found)


def test_counts_match_the_paper() -> None:
    """Calculated by hand: 山 is followed by 高 twice and 水 once; the discounts go to single characters."""
    model = KneserNey(["｜山高", "｜山高", "｜山水"], order=2)
    # Pairs: (｜山) 3, (山高) 2, (高 end) 2, (山水) 1, (水 end) 1. Discounts: 1 − 2·Y·n2/n1 … with n1 = n2 = 2, n3 = 1.
    Y = 2 / (2 + 2 * 2)
    D = [0, 1 - 2 * Y * 2 / 2, 2 - 3 * Y * 1 / 2, 3 - 4 * Y * 1 / 1]
    # Characters 山, 高, 水 follow one other each, the end two: 5 in all. n1 = 3, n2 = 1, n3 = n4 = 0, taken as 1.
    Z = 3 / (3 + 2 * 1)
    E = [0, 1 - 2 * Z * 1 / 3, 2 - 3 * Z * 1 / 1]
    left = (3 * E[1] + E[2]) / 5 / (len(model.symbols) - 1)
    high = (1 - E[1]) / 5 + left
    wanted = (2 - D[2]) / 3 + (D[1] + D[2]) / 3 * high
    assert model.chances("｜山")[model.ids["高"]] == pytest.approx(wanted)


def test_longer_context_is_better() -> None:
    train, heldout = poems(400), poems(40, seed=5)
    bits = [np.concatenate([KneserNey(train, order).bits(poem) for poem in heldout]).mean() for order in (1, 2, 3)]
    # The poems depend on one previous character, and a line ends after five.
    assert bits[0] > bits[1] + 1
    assert bits[1] < np.log2(len(HAN))
    own = [np.concatenate([KneserNey(train, order).bits(poem) for poem in train[:40]]).mean() for order in (2, 3, 5)]
    assert own[0] > own[1] > own[2]


def test_generation_depends_on_the_seed() -> None:
    model = KneserNey(poems(100))
    texts = [model.write("五绝｜", Sampling(seed=seed)) for seed in (1, 2, 1)]
    assert texts[0] == texts[2] != texts[1]
    assert set("".join(texts)) <= set(HAN + "，。")


# --- comparison -------------------------------------------------------------------------------------------


def test_bits_equal_those_of_each_step(tmp_path: Path) -> None:
    model = load(poet_folder(tmp_path))
    header, _, text = POEMS[0].partition("｜")
    ids = [model.tokenizer.eos, *model.tokenizer.encode(f"{header}｜")]
    wanted = 0.0
    for token in [*model.tokenizer.encode(text), model.tokenizer.eos]:
        scores = model.model(np.array([ids]))[0, -1].astype(np.float64)
        wanted -= np.log2(np.exp(scores[token]) / np.exp(scores).sum())
        ids.append(token)
    assert bits(model, POEMS[0]) == pytest.approx(wanted, rel=1e-5)


def test_table_has_a_row_per_model(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("\n".join(POEMS * 2), encoding="utf-8")
    (tmp_path / "heldout.txt").write_text(f"{POEMS[0]}\n五绝｜火。\n", encoding="utf-8")
    options = argparse.Namespace(data=tmp_path, model=str(poet_folder(tmp_path / "poet")), count=2)
    rows, counted_on = measured(options)
    assert counted_on == "1 of 2 held-out poems, 25 characters and ends"
    assert [row.name for row in rows] == ["regard, poet", "5-gram", "held-out poems"]
    assert present(rows[0].bits) > present(rows[1].bits) > 0  # random weights are worse
    assert rows[2].shares[:3:2] == [0.5, 0.5]  # 火。 is not a quatrain
    assert rows[2].shares[4] == 0.8  # four of the five lines are in train.txt
    table = markdown(options, rows, counted_on).splitlines()[-4:]
    assert [line.count("|") for line in table] == [len(HEADINGS) + 1] * 4
