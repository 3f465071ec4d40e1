"""A run judged by its recipe: translators by split or by a file, language models by what was held out, puzzles."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ArgumentError, FileError
from regard.evaluation import chrf, paper_bleu, sacre_bleu, text_loss
from regard.models import Transformer
from regard.recipes import config_of, read_recipe, to_toml
from regard.recipes.data import split_end
from regard.recipes.evaluating import Asked, evaluate
from regard.recipes.puzzles import puzzle_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_training import learn_tokenizer
from regard.training.batches import BlockBatches

SMALL = {"model.n_layers": "1", "model.d_model": "16", "model.n_heads": "2", "model.d_ff": "16", "data.max_len": "24"}
ENGLISH = ["A man's dog runs.", "Two red hats.", "A dog."]
GERMAN = ["Der Hund eines Mannes rennt.", "Zwei rote Hüte.", "Ein Hund."]


def a_run(folder: Path, name: str, tokenizer: Tokenizer, changes: Mapping[str, str] = SMALL) -> Path:
    """What training leaves behind, untrained."""
    recipe = read_recipe(name, changes)
    torch.manual_seed(0)
    model = Transformer(config_of(recipe, tokenizer.vocab_size)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)  # far from even
    folder.mkdir()
    model.save(folder / "model")
    tokenizer.save(folder / "model" / "tokenizer.json")
    (folder / "recipe.toml").write_text(to_toml(recipe), encoding="utf-8")
    return folder


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def german(tmp_path: Path) -> Path:
    words = learn_tokenizer(["a man 's dog runs . two red hats der hund eines rennt zwei hüte ein"], "words", 60)
    for split in ("test_2016_flickr", "test_2017_flickr", "own"):
        write(tmp_path / f"{split}.en", ENGLISH)
        write(tmp_path / f"{split}.de", GERMAN)
    return a_run(tmp_path / "run", "multi30k-en-de", words)


def test_the_recipes_tests_are_scored(german: Path) -> None:
    found = list(evaluate(german, Asked(data=german.parent, beams=2, device="cpu")))
    assert [each.set for each in found] == ["test_2016_flickr", "test_2017_flickr"]
    assert [score.name for score in found[0].scores] == ["bleu", "sacrebleu", "chrf"]
    assert found[0].scores == found[1].scores  # the same sentences
    assert found[0].hypotheses is not None
    assert len(found[0].hypotheses) == 3
    assert found[0].notes == ()


def test_splits_and_beams_can_be_chosen(german: Path) -> None:
    (german.parent / "own.de").unlink()
    (german.parent / "tok").mkdir()
    write(german.parent / "tok" / "own.lc.norm.tok.de", ["x y z", "zwei", "."])
    one, two = (next(evaluate(german, Asked(data=german.parent, splits=("own",), beams=n))) for n in (1, 4))
    assert one.hypotheses != two.hypotheses
    assert one.scores == (paper_bleu(one.hypotheses or [], ["x y z", "zwei", "."]),)
    assert [note for note in one.notes if "no sacreBLEU" in note and "own.de" in note] == list(one.notes) != []


def test_a_file_of_ones_own(german: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    write(pairs, [f"{a}\t{b}" for a, b in zip(ENGLISH, GERMAN, strict=True)])
    [found] = evaluate(german, Asked(data=pairs, beams=2))
    [split] = evaluate(german, Asked(data=tmp_path, splits=("own",), beams=2))
    assert (found.set, found.scores, found.hypotheses) == ("pairs.tsv", split.scores, split.hypotheses)


def test_bad_lines_stop_it_or_are_counted(german: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    write(pairs, [f"{ENGLISH[0]}\t{GERMAN[0]}", "alone", f"{'a ' * 30}\t{GERMAN[1]}"])
    with pytest.raises(FileError, match="line 2"):
        evaluate(german, Asked(data=pairs))
    [found] = evaluate(german, Asked(data=pairs, skip_bad=True, beams=1))
    assert len(found.hypotheses or []) == 2
    assert "1 bad lines were left out" in found.notes[0]
    assert "1 sentences were cut to the 24 tokens" in found.notes[1]


def test_a_sentence_that_is_too_long_is_named_by_its_line(german: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    write(pairs, [f"{ENGLISH[0]}\t{GERMAN[0]}", f"{ENGLISH[0]}\t{GERMAN[1]}", f"{'a ' * 30}\t{GERMAN[1]}"])
    with pytest.raises(FileError, match=r"pairs\.tsv: line 3 is 61 tokens long .*the model reads at most 24"):
        evaluate(german, Asked(data=pairs))


def test_chinese_is_counted_as_chinese(tmp_path: Path) -> None:
    pieces = learn_tokenizer(["Hi there. 你好。再见！"], "pieces", 60)
    run = a_run(tmp_path / "run", "en-zh", pieces)
    write(tmp_path / "dev.tsv", ["Hi.\t你好。", "Hi.\t嗨。", "there\t再见！"])
    [found] = evaluate(run, Asked(data=tmp_path, beams=2))
    references = [["你好。", "嗨。"], ["再见！"]]
    said = found.hypotheses or []
    assert found.scores == (sacre_bleu(said, references, language="zh"), chrf(said, references))
    # A model without its run is told the language, and gets a file.
    (run / "recipe.toml").unlink()
    [alone] = evaluate(run / "model", Asked(data=tmp_path / "dev.tsv", beams=2, language="zh"))
    assert alone.scores == found.scores
    with pytest.raises(ArgumentError, match=r"is a folder, and without a recipe\.toml"):
        evaluate(run / "model", Asked(data=tmp_path))
    # Where nobody tells it, the model's settings do, or the references; and it is said.
    [guessed] = evaluate(run / "model", Asked(data=tmp_path / "dev.tsv", beams=2))
    assert (guessed.scores, len(guessed.notes)) == (found.scores, 1)
    assert guessed.notes[0].startswith("dev.tsv: counted as zh (sacreBLEU's tokenizer zh), by the look of")
    (run / "model" / "generation_config.json").write_text('{"target_language": "de"}')
    [named] = evaluate(run / "model", Asked(data=tmp_path / "dev.tsv", beams=2))
    assert "tok:13a" in (named.scores[0].signature or "")
    assert "counted as de (sacreBLEU's tokenizer 13a), the language that the model's" in named.notes[0]
    assert alone.notes == found.notes == ()


def test_a_file_is_one_set(german: Path, tmp_path: Path) -> None:
    write(tmp_path / "pairs.tsv", [f"{ENGLISH[0]}\t{GERMAN[0]}"])
    with pytest.raises(
        ArgumentError, match=r"--split own, b chooses .* but .*pairs\.tsv is one set; leave --split out"
    ):
        evaluate(german, Asked(data=tmp_path / "pairs.tsv", splits=("own", "b")))


# --- language models -------------------------------------------------------------------------------------

TEXT = "床前明月光，疑是地上霜。\nTo be, or not to be.\n" * 9


def test_two_plain_files_are_one_set_and_without_tests_the_held_out_end_is_scored(tmp_path: Path) -> None:
    english, chinese = ["one dog", "two dogs", "red hat", "a dog"], ["一只狗", "两只狗", "红帽子", "狗"]
    write(tmp_path / "a.en", english)
    write(tmp_path / "a.zh", chinese)
    tokenizer = learn_tokenizer([*english, *chinese], "pieces", 60)
    changes = {**SMALL, "data.train": '["a.en", "a.zh"]', "data.tests": "[]", "data.valid_share": "0.5"}
    run = a_run(tmp_path / "run", "en-zh", tokenizer, changes)
    [found] = evaluate(run, Asked(data=tmp_path, beams=1))
    assert found.hypotheses is not None
    assert len(found.hypotheses) == 2
    [found] = evaluate(run, Asked(data=tmp_path, beams=1, splits=("a.en", "a.zh")))
    assert found.hypotheses is not None
    assert len(found.hypotheses) == 4


def test_the_end_of_the_text_is_held_out(tmp_path: Path) -> None:
    tokenizer = learn_tokenizer([TEXT], "characters", specials=())
    run = a_run(tmp_path / "run", "shakespeare-char", tokenizer)
    (tmp_path / "tinyshakespeare.txt").write_text(TEXT, encoding="utf-8")
    [found] = evaluate(run, Asked(data=tmp_path))
    end = TEXT[int(len(TEXT) * 0.9) :]
    ids = np.array(tokenizer.encode(end))
    model = Transformer.read(run / "model")
    wanted = text_loss(model, BlockBatches(ids, block=24, batch_size=3, seed=0, shuffle=False))
    scores = {score.name: score.value for score in found.scores}
    assert scores["loss"] == pytest.approx(wanted.loss, rel=1e-5)
    assert scores["perplexity"] == pytest.approx(math.exp(wanted.loss), rel=1e-4)
    assert scores["bits-per-byte"] == pytest.approx(wanted.nats / math.log(2) / len(end.encode()), rel=1e-5)
    assert scores["bits-per-character"] == pytest.approx(wanted.nats / math.log(2) / len(end), rel=1e-5)
    assert found.hypotheses is None
    [own] = evaluate(run, Asked(data=tmp_path / "tinyshakespeare.txt"))
    assert own.set == "tinyshakespeare.txt"
    assert own.scores != found.scores


def test_poems_are_texts_of_their_own(tmp_path: Path) -> None:
    poems = ["床前明月光", "疑是地上霜", "举头望明月", "低头思故乡"]
    tokenizer = learn_tokenizer(poems, "characters")
    run = a_run(tmp_path / "run", "tang-poet", tokenizer, {**SMALL, "data.valid_share": "0.5"})
    write(tmp_path / "tang_poems.tsv", [f"t\ta\t{poem}" for poem in poems])
    [found] = evaluate(run, Asked(data=tmp_path))
    ids = tokenizer.pack(poems[2:], end=tokenizer.eos)
    wanted = text_loss(
        Transformer.read(run / "model"), BlockBatches(ids, block=24, batch_size=1, seed=0, shuffle=False)
    )
    scores = {score.name: score.value for score in found.scores}
    assert wanted.tokens == 11  # ten characters and two ends, less the first
    assert scores["loss"] == pytest.approx(wanted.loss, rel=1e-5)
    assert scores["bits-per-character"] == pytest.approx(wanted.nats / math.log(2) / 12, rel=1e-5)


@given(st.lists(st.text("ab\n", max_size=6), min_size=1, max_size=5), st.floats(0.01, 0.99))
def test_a_split_loses_nothing(texts: list[str], share: float) -> None:
    before, after = split_end(texts, share, "text")
    assert "".join(before) + "".join(after) == "".join(texts)
    assert sum(map(len, before)) == int(sum(map(len, texts)) * (1 - share))
    lines = split_end(texts, share, "lines")
    assert lines[0] + lines[1] == texts
    assert lines[1]


# --- puzzles, and what cannot be judged ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["copy", "induction"])
def test_puzzles_need_no_data(tmp_path: Path, kind: str) -> None:
    small = {"puzzle.valid_examples": "20", "model.n_layers": "2"}
    run = a_run(tmp_path / "run", kind, puzzle_tokenizer(kind), small)  # type: ignore[arg-type]
    [found] = evaluate(run, Asked())
    scores = {score.name: score.value for score in found.scores}
    assert list(scores) == ["solved", "loss", "perplexity"]
    assert 0 <= scores["solved"] < 50
    assert found.notes == ()
    [same] = evaluate(run, Asked(data=tmp_path))
    assert same.scores == found.scores
    assert "--data is not used" in same.notes[0]


def test_what_is_wrong_is_told_first(german: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="on which text"):
        evaluate(german, Asked())
    with pytest.raises(FileError, match=r"there is no .*nowhere; check --data"):
        evaluate(german, Asked(data=tmp_path / "nowhere"))
    with pytest.raises(ArgumentError, match="no device='abacus'; choose one of: cpu, cuda"):
        evaluate(german, Asked(data=tmp_path, device="abacus"))
    with pytest.raises(FileError, match="no set 'test_1999'"):
        evaluate(german, Asked(data=tmp_path, splits=("own", "test_1999")))
