"""regard train in this process: output, files and exit codes; bad data is reported in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

SMALL = """
[model]
preset = "{preset}"
n_layers = 1
d_model = 16
n_heads = 2
d_ff = 16
dropout = 0.0

[training]
steps = 3
lr = 0.001
save_every = 2
valid_every = 2
"""
COPY = """
task = "synthetic"
[puzzle]
kind = "copy"
shortest = 2
longest = 4
valid_examples = 8
[data]
max_len = 5
batch_size = 4
[film]
text = "abba"
every = 2
""" + SMALL.format(preset="paper_2017")
PAIRS = """
task = "translation"
[data]
train = "train.tsv"
valid_share = 0.25
source = "en"
target = "zh"
max_len = 12
batch_tokens = 48
""" + SMALL.format(preset="paper_2017")
PARALLEL = PAIRS.replace('"train.tsv"', '["train.en", "train.zh"]')
TEXT = """
task = "language"
[data]
train = "*.txt"
valid_share = 0.25
max_len = 8
batch_size = 2
[film]
text = "to be"
every = 10
""" + SMALL.format(preset="gpt2")
GOOD_PAIRS = "hello\t你好\nbye\t再见\nyes\t是\nno\t不\n"


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., CommandResult]


@pytest.fixture
def recipe(tmp_path: Path) -> Callable[[str], str]:
    """Write a recipe and return its path."""

    def write(text: str) -> str:
        path = tmp_path / "tiny.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


# --- recipes ---------------------------------------------------------------------------------------------


def test_without_arguments_recipes_are_listed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = run("train")
    assert code == 0
    listed = [line.split()[0] for line in out.splitlines()]
    assert {"copy", "multi30k-en-de", "shakespeare-char", "induction"} <= set(listed)
    assert err == "Train one of them: regard train copy --out runs/copy\n"
    result = json.loads(run("train", "--json").out)
    assert list(result) == listed
    monkeypatch.setenv("REGARD_LANG", "zh")
    assert json.loads(run("train", "--json").out)["copy"].startswith("照抄一串字母")


@pytest.mark.parametrize(
    ("arguments", "en", "zh"),
    [
        (("copi", "--out", "OUT"), "copy", "copy"),
        (("copy",), "regard train copy needs --out", "需要 --out"),
        (("nope",), "there is no recipe 'nope'; known are: ", "没有名为 'nope' 的配方；现有："),
        (("copy", "--out", "OUT", "--set", "training.steps"), "--set takes KEY=VALUE", "--set 的形式是 键=值"),
        (("copy", "--out", "OUT", "--set", "=3"), "--set takes KEY=VALUE", "--set 的形式是 键=值"),
        (("copy", "--out", "OUT", "--set", "training.stepz=3"), "steps", "steps"),
        (("copy", "--out", "OUT", "--set", "training.steps=many"), "training.steps", "training.steps"),
        (("copy", "--out", "OUT", "--seed", "-1"), "--seed must be a whole number", "--seed 必须是不小于 0 的整数"),
        (("copy", "--out", "OUT", "--seed", "1.5"), "--seed must be a whole number", "--seed 必须是不小于 0 的整数"),
        (("copy", "--out", "OUT", "--timeout", "0"), "--timeout must be a number", "--timeout 必须是大于 0 的秒数"),
        (("en-zh", "--out", "OUT"), "needs text: add --data", "需要文本"),
    ],
)
def test_bad_arguments_are_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], en: str, zh: str
) -> None:
    out = tmp_path / "out"
    command = ["train", *(str(out) if each == "OUT" else each for each in arguments)]
    for language, message in (("en", en), ("zh", zh)):
        monkeypatch.setenv("REGARD_LANG", language)
        code, stdout, err = run(*command)
        assert (code, stdout, len(err.splitlines())) == (2, "", 1)
        assert message in err
    assert not out.exists() or [path.name for path in out.iterdir()] == ["lock"]


# --- one run, and every command that reads it ------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "begun", "ended", "again", "solved"),
    [
        ("en", "ranks: 1, steps: 3", "finished: 3 steps done", "nothing was changed", "solved without a mistake"),
        ("zh", "进程数 1，共 3 步", "训练完成：共 3 步", "什么也没有改动", "完全答对的比例"),
    ],
)
def test_a_run_is_trained_evaluated_and_shown(
    run: Run,
    recipe: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    language: str,
    begun: str,
    ended: str,
    again: str,
    solved: str,
) -> None:
    monkeypatch.setenv("REGARD_LANG", language)
    out = str(tmp_path / "out")
    command = ("train", recipe(COPY), "--out", out, "--film", "--seed", "7", "--set", "training.lr=0.01", "--json")
    code, stdout, err = run(*command)
    assert code == 0, err
    assert begun in err
    assert ended in err
    result = json.loads(stdout)
    assert (result["out"], result["step"], result["seed"], result["reason"]) == (out, 3, 7, "steps")
    assert result["valid_loss"] > 0
    code, stdout, err = run(*command)
    assert (code, json.loads(stdout)["reason"]) == (0, "already")
    assert again in err

    code, stdout, err = run("evaluate", out)
    assert (code, err) == (0, "")
    assert solved in stdout
    [evaluated] = json.loads(run("evaluate", out, "--json").out)["sets"]
    assert evaluated["scores"]["loss"]["value"] == pytest.approx(result["valid_loss"], rel=1e-5)
    curves = json.loads(run("plot", out, "--json").out)["curves"]
    assert [(one["metric"], one["steps"]) for one in curves] == [("loss", [1, 2, 3]), ("valid_loss", [2, 3])]
    assert run("plot", out).code == 0
    film = json.loads(run("film", out, "--json").out)
    assert [frame["step"] for frame in film["frames"]] == [0, 2, 3]
    assert film["frames"][1]["loss"] == curves[0]["values"][1]
    assert run("film", out).code == 0


def test_another_recipe_needs_another_folder(run: Run, recipe: Callable[[str], str], tmp_path: Path) -> None:
    command = ("train", recipe(COPY), "--out", str(tmp_path / "out"))
    assert run(*command).code == 0
    code, stdout, err = run(*command, "--set", "training.lr=0.5", "--seed", "3")
    assert (code, stdout) == (3, "")
    assert "other values of: training.lr, training.seed" in err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    code, stdout, err = run("train", recipe(COPY), "--out", str(tmp_path / "mine"))
    assert (code, stdout) == (3, "")
    assert "holds no run (thesis.tex)" in err


# --- bad data --------------------------------------------------------------------------------------------

LATIN = "hello\t你好\n".encode() + "caf\u00e9\tx\n".encode("latin-1") + b"no\tn\n" * 4
BAD = {
    "empty": (PAIRS, {"train.tsv": b""}, "train.tsv is empty"),
    "one column": (PAIRS, {"train.tsv": b"a\tb\nalone\nc\td\n"}, "train.tsv, line 2: columns found"),
    "latin-1": (PAIRS, {"train.tsv": LATIN}, "train.tsv, line 2: byte 4 (0xE9) is not UTF-8"),
    "a long line": (PAIRS, {"train.tsv": b"a\tb\n" + b"x" * 10_000_000 + b"\ty\n"}, "train.tsv, line 2 has 10,000,002"),
    "a long sentence": (
        PAIRS,
        {"train.tsv": b"a\tb\n" * 3 + b"aaaaaaaaaaaa\tb\n"},
        "train.tsv, line 4 makes 13 tokens",
    ),
    "blank": (PAIRS, {"train.tsv": b"a\tb\n\nc\td\n"}, "train.tsv, line 2 is empty"),
    "one pair": (PAIRS, {"train.tsv": b"a\tb\n"}, "train.tsv has too little text"),
    "unequal": (PARALLEL, {"train.en": b"a\nb\nc\n", "train.zh": b"a\nb\n"}, "train.en has 3 lines and"),
    "blank parallel": (PARALLEL, {"train.en": b"a\n\nc\n", "train.zh": b"a\nb\nc\n"}, "line 2: column 1 is empty"),
    "no files": (PAIRS, {"dev.tsv": b"a\tb\n"}, "train.tsv; check --data and the file names"),
    "no text": (TEXT, {"dev.tsv": b"a\tb\n"}, "*.txt; check --data and the file names"),
    "empty text": (TEXT, {"a.txt": b"\n\n"}, "a.txt is empty"),
    "short text": (TEXT, {"a.txt": b"to be or\n"}, "the text to train on makes 6 tokens"),
    "a letter": (TEXT, {"a.txt": b"t"}, "has too little text"),
    "not UTF-8": (TEXT, {"a.txt": b"to be\nor \xff not\n" * 9}, "a.txt, line 2: byte 4 (0xFF) is not UTF-8"),
}
GOOD = {PAIRS: {"train.tsv": GOOD_PAIRS}, PARALLEL: {"train.en": "a\nb\nc\n", "train.zh": "x\ny\nz\n"}}


@pytest.mark.parametrize("name", BAD)
def test_bad_data_is_reported_in_one_line_and_leaves_no_files(
    run: Run, recipe: Callable[[str], str], tmp_path: Path, name: str
) -> None:
    text, files, message = BAD[name]
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    for file, content in files.items():
        (data / file).write_bytes(content)
    command = ("train", recipe(text), "--data", str(data), "--out", str(out))
    code, stdout, err = run(*command)
    assert (code, stdout, len(err.splitlines())) == (3, "", 1)
    assert message in err
    assert str(data) in err
    assert len(err) < 600
    assert [path.name for path in out.iterdir()] in ([], ["lock"])
    # With fixed data the same folder works, even for other values.
    for file, good in GOOD.get(text, {"a.txt": "to be, or not to be, that is the question\n" * 3}).items():
        (data / file).write_text(good, encoding="utf-8")
    code, stdout, err = run(*command, "--set", "training.lr=0.002")
    assert code == 0, err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"source": "a", "target"', "own.jsonl, line 2 is not JSON"),
        (b'{"source": "a"}', "own.jsonl, line 2 has no text in field 'target'; its fields: source"),
        (b'["a", "b"]', "own.jsonl, line 2: found a JSON list where an object belongs"),
        (b"", "own.jsonl, line 2 is empty"),
    ],
)
def test_bad_records_are_reported_or_skipped(
    run: Run, recipe: Callable[[str], str], tmp_path: Path, line: bytes, message: str
) -> None:
    good = [json.dumps({"source": a, "target": b}).encode() for a, b in ("ab", "cd", "ef", "gh")]
    own = tmp_path / "own.jsonl"
    own.write_bytes(b"\n".join([good[0], line, *good[1:]]) + b"\n")
    command = ("train", recipe(PAIRS), "--data", str(own), "--out", str(tmp_path / "out"))
    code, _, err = run(*command)
    assert (code, len(err.splitlines())) == (3, 1)
    assert message in err
    code, _, err = run(*command, "--skip-bad")
    assert code == 0, err
    assert err.startswith(f"own.jsonl: 1 lines were left out; the first: {own}, line 2")


def test_skip_bad_continues_and_counts(
    run: Run, recipe: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.tsv"
    own.write_bytes(LATIN + b"alone\n\n" + b"x" * 2**21 + b"\ty\n" + b"aaaaaaaaaaaa\tb\n")
    monkeypatch.setenv("REGARD_LANG", "zh")
    command = ("train", recipe(PAIRS), "--data", str(own), "--out", str(tmp_path / "out"))
    code, _, err = run(*command)
    assert (code, len(err.splitlines())) == (3, 1)
    assert "own.tsv 第 2 行：第 4 个字节（0xE9）不是 UTF-8" in err
    assert "另有 3 行也有问题" in err
    code, _, err = run(*command, "--skip-bad")
    assert code == 0, err
    # Four bad ones, and one with too many tokens for the model.
    assert err.startswith(f"own.tsv：跳过了 5 行；第一处：{own} 第 2 行")
    code, stdout, _ = run("evaluate", str(tmp_path / "out"), "--data", str(own), "--skip-bad", "--json")
    assert code == 0
    assert "own.tsv：跳过了 4 行" in json.loads(stdout)["sets"][0]["notes"][0]


def test_an_impossible_model_leaves_no_files(run: Run, recipe: Callable[[str], str], tmp_path: Path) -> None:
    own = tmp_path / "own.tsv"
    own.write_text(GOOD_PAIRS, encoding="utf-8")
    command = ("train", recipe(PAIRS), "--data", str(own), "--out", str(tmp_path / "out"))
    code, _, err = run(*command, "--set", "model.vocab_size=5")
    assert code == 2
    assert "model.vocab_size=5 is less than the tokenizer's" in err
    assert run(*command).code == 0


@pytest.mark.parametrize(
    ("text", "name", "content"), [(PAIRS, "own.tsv", GOOD_PAIRS), (TEXT, "own.txt", "to be or not to be\n" * 6)]
)
def test_evaluation_on_the_training_file_uses_its_held_out_end(
    run: Run, recipe: Callable[[str], str], tmp_path: Path, text: str, name: str, content: str
) -> None:
    own, out = tmp_path / name, str(tmp_path / "out")
    own.write_text(content, encoding="utf-8")
    code, result, err = run("train", recipe(text), "--data", str(own), "--out", out, "--json")
    assert code == 0, err
    sets = []
    for file in (own, tmp_path / f"end-{name}"):
        code, stdout, err = run("evaluate", out, "--data", str(file), "--json")
        assert code == 0, err
        sets += json.loads(stdout)["sets"]
        # A quarter is held out: the same part as its own file gives the same scores.
        end = content.splitlines(keepends=True)[3:] if text == PAIRS else content[len(content) * 3 // 4 :]
        (tmp_path / f"end-{name}").write_text("".join(end), encoding="utf-8")
    assert [each["set"] for each in sets] == ["held out", f"end-{name}"]
    assert sets[0]["scores"] == sets[1]["scores"]
    if text == TEXT:
        assert sets[0]["scores"]["loss"]["value"] == pytest.approx(json.loads(result)["valid_loss"], rel=1e-5)


# --- a language model's text -----------------------------------------------------------------------------


def test_characters_of_the_held_out_end_are_in_the_vocabulary(
    run: Run, recipe: Callable[[str], str], tmp_path: Path
) -> None:
    own = tmp_path / "own.txt"
    own.write_text("to be or not to be\n" * 4 + "Zürich 苏黎世\n", encoding="utf-8")
    out = str(tmp_path / "out")
    code, _, err = run("train", recipe(TEXT), "--data", str(own), "--out", out)
    assert code == 0, err
    code, stdout, _ = run("evaluate", out, "--data", str(own), "--json")
    assert code == 0
    assert set(json.loads(stdout)["sets"][0]["scores"]) == {"loss", "perplexity", "bits-per-byte", "bits-per-character"}


def test_a_film_text_outside_the_vocabulary_is_refused(run: Run, recipe: Callable[[str], str], tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("to be or not to be\n" * 4, encoding="utf-8")
    command = ("train", recipe(TEXT), "--data", str(own), "--out", str(tmp_path / "out"), "--film")
    code, _, err = run(*command, "--set", "film.text=床前 to")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "film.text cannot be filmed: the tokenizer has no id for '前' '床'" in err
    code, _, err = run(*command, "--set", "film.text=to be or not")
    assert code == 2
    assert "film.text makes 12 tokens, its marks included, and the model reads 1 to 8" in err
    assert run(*command, "--set", "film.text=not to").code == 0
