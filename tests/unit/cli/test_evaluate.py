"""regard evaluate: one table, JSON, the translations in a file; what a model is worth is judged elsewhere."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from regard.cli.evaluate_command import evaluate, table
from regard.errors import ArgumentError, FileError
from regard.evaluation import Score
from regard.language.loading import bundled
from regard.messages import speaking
from regard.recipes import evaluating
from regard.recipes.evaluating import Asked, Result

FLICKR = Result(
    set="test_2016_flickr",
    scores=(Score("bleu", 41.0249, "nrefs:1|case:lc"), Score("sacrebleu", 9.5, "nrefs:1|tok:13a")),
    hypotheses=["ein hund .", "", "zwei\nzeilen"],
    notes=("something to say",),
)
SPEARE = Result(set="held out", scores=(Score("loss", 1.46971, None), Score("perplexity", float("inf"), None)))
Judge = Callable[..., list[Any]]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Have these results come out of a folder `run`, and keep what was asked for."""
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    Path("run").mkdir()

    def results(*found: Result) -> list[Any]:
        calls: list[Any] = []

        def stand_in(folder: Path, asked: Asked) -> Iterator[Result]:
            calls.append((folder, asked))
            return iter(found)

        monkeypatch.setattr(evaluating, "evaluate", stand_in)
        return calls

    return results


def test_every_score_has_its_line(judge: Judge, capsys: pytest.CaptureFixture[str]) -> None:
    judge(FLICKR, SPEARE)
    evaluate("run", data=Path("d"))
    out, err = capsys.readouterr()
    head, *lines = out.splitlines()
    assert head.split() == ["set", "metric", "value", "signature"]
    assert lines[0].split() == [
        *("test_2016_flickr", "BLEU", "as", "in", "papers", "(lower-cased,", "tokenised)", "41.02", "nrefs:1|case:lc")
    ]
    assert lines[1].split()[-3:] == ["sacreBLEU", "9.50", "nrefs:1|tok:13a"]
    assert lines[2].split()[-1] == "1.4697"
    assert lines[3].split()[-1] == "inf"
    assert lines[0].index("41.02") + 5 == lines[1].index("9.50") + 4  # to the right
    assert err == "something to say\n"


def test_chinese_columns_are_aligned() -> None:
    with speaking("zh"):
        lines = table([FLICKR]).splitlines()
    starts = {cell_len(line[: line.index("nrefs")]) for line in lines[1:]}
    assert len(starts) == 1
    assert lines[0].split() == ["数据集", "指标", "数值", "签名"]


def test_json(judge: Judge, capsys: pytest.CaptureFixture[str]) -> None:
    judge(FLICKR, SPEARE)
    evaluate("run", data=Path("d"), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["model"] == "run"
    first, second = told["sets"]
    assert first["set"] == "test_2016_flickr"
    assert first["scores"]["bleu"] == {"value": 41.0249, "signature": "nrefs:1|case:lc"}
    assert first["notes"] == ["something to say"]
    assert second["scores"] == {
        "loss": {"value": 1.46971, "signature": None},
        "perplexity": {"value": None, "signature": None},
    }


def test_what_is_asked_for_arrives(judge: Judge) -> None:
    calls = judge(SPEARE)
    options: dict[str, Any] = {"beams": "7", "language": "zh", "skip_bad": True, "device": "cpu"}
    evaluate("run", data=Path("d"), split=["a", "b", "a"], **options)
    wanted = Asked(data=Path("d"), splits=("a", "b"), beams=7, language="zh", skip_bad=True, device="cpu")
    assert calls == [(Path("run"), wanted)]
    evaluate("run")
    assert calls[1] == (Path("run"), Asked())


def test_models_are_found_as_everywhere(judge: Judge) -> None:
    calls = judge(SPEARE)
    evaluate("translator")
    Path("run", "recipe.toml").touch()
    with pytest.raises(FileError, match="has not finished"):
        evaluate("run")
    Path("run", "model").mkdir()
    evaluate("run")
    Path("poet").mkdir()
    evaluate("./poet")
    assert [folder for folder, _ in calls] == [bundled("translator"), Path("run/model"), Path("poet")]
    with pytest.raises(FileError, match="there is no folder 'nowhere'; models that come with regard are: translator"):
        evaluate("nowhere")


def test_translations_go_into_a_file(judge: Judge, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge(FLICKR)
    file = tmp_path / "hypotheses.txt"
    evaluate("run", data=Path("d"), output=file)
    assert file.read_text(encoding="utf-8") == "ein hund .\n\nzwei zeilen\n"
    assert f"saved {file}" in capsys.readouterr().err
    with pytest.raises(FileError, match="cannot be written: there is no folder"):
        evaluate("run", data=Path("d"), output=tmp_path / "no" / "folder")


@pytest.mark.parametrize("found", [(FLICKR, FLICKR), (SPEARE,)])
def test_a_file_holds_one_sets_translations(judge: Judge, tmp_path: Path, found: tuple[Result, ...]) -> None:
    judge(*found)
    with pytest.raises(ArgumentError, match="--output takes the translations of one set, and here are: "):
        evaluate("run", data=Path("d"), output=tmp_path / "hypotheses.txt")
    assert not list(tmp_path.iterdir())


def test_what_is_missing_or_wrong() -> None:
    with pytest.raises(ArgumentError, match="which model"):
        evaluate()
    for beams in ("0", "x", "-1", "2.5", ""):
        with pytest.raises(ArgumentError, match="--beams must be a whole number of at least 1; found"):
            evaluate("run", beams=beams)
