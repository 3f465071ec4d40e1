"""regard evaluate: the table, JSON and translations in a file; scores are tested elsewhere."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from regard.cli.training_commands import evaluate, table
from regard.errors import ArgumentError, FileError
from regard.evaluation import Score
from regard.language.loading import bundled
from regard.messages import use_language
from regard.recipes import evaluating
from regard.recipes.evaluating import EvaluationOptions, Result

FLICKR = Result(
    set="test_2016_flickr",
    scores=(Score("bleu", 41.0249, "nrefs:1|case:lc"), Score("sacrebleu", 9.5, "nrefs:1|tok:13a")),
    hypotheses=["ein hund .", "", "zwei\nzeilen"],
    notes=("something to say",),
)
SPEARE = Result(set="held out", scores=(Score("loss", 1.46971, None), Score("perplexity", float("inf"), None)))
PatchResults = Callable[..., list[Any]]


@pytest.fixture
def patch_results(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> PatchResults:
    """Patch `evaluate` to return given results, and return the recorded calls."""
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    Path("run").mkdir()

    def results(*found: Result) -> list[Any]:
        calls: list[Any] = []

        def fake_evaluate(folder: Path, request: EvaluationOptions) -> Iterator[Result]:
            calls.append((folder, request))
            return iter(found)

        monkeypatch.setattr(evaluating, "evaluate", fake_evaluate)
        return calls

    return results


def test_every_score_has_its_line(patch_results: PatchResults, capsys: pytest.CaptureFixture[str]) -> None:
    patch_results(FLICKR, SPEARE)
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
    assert lines[0].index("41.02") + 5 == lines[1].index("9.50") + 4  # right-aligned
    assert err == "something to say\n"


def test_chinese_columns_are_aligned() -> None:
    with use_language("zh"):
        lines = table([FLICKR]).splitlines()
    starts = {cell_len(line[: line.index("nrefs")]) for line in lines[1:]}
    assert len(starts) == 1
    assert lines[0].split() == ["数据集", "指标", "数值", "签名"]


def test_no_column_for_signatures_without_one() -> None:
    assert table([SPEARE]).splitlines()[0].split() == ["set", "metric", "value"]


def test_json(patch_results: PatchResults, capsys: pytest.CaptureFixture[str]) -> None:
    patch_results(FLICKR, SPEARE)
    evaluate("run", data=Path("d"), as_json=True)
    result = json.loads(capsys.readouterr().out)
    assert result["model"] == "run"
    first, second = result["sets"]
    assert first["set"] == "test_2016_flickr"
    assert first["scores"]["bleu"] == {"value": 41.0249, "signature": "nrefs:1|case:lc"}
    assert first["notes"] == ["something to say"]
    assert second["scores"] == {
        "loss": {"value": 1.46971, "signature": None},
        "perplexity": {"value": None, "signature": None},
    }


def test_options_are_passed_on(patch_results: PatchResults) -> None:
    calls = patch_results(SPEARE)
    options: dict[str, Any] = {"beams": "7", "language": "zh", "skip_bad": True, "device": "cpu"}
    evaluate("run", data=Path("d"), split=["a", "b", "a"], **options)
    wanted = EvaluationOptions(data=Path("d"), splits=("a", "b"), beams=7, language="zh", skip_bad=True, device="cpu")
    assert calls == [(Path("run"), wanted)]
    evaluate("run")
    assert calls[1] == (Path("run"), EvaluationOptions())


def test_models_are_found_by_name_run_or_folder(patch_results: PatchResults) -> None:
    calls = patch_results(SPEARE)
    evaluate("translator")
    Path("run", "recipe.toml").touch()
    with pytest.raises(FileError, match="has not finished"):
        evaluate("run")
    Path("run", "model").mkdir()
    evaluate("run")
    Path("poet").mkdir()
    evaluate("./poet")
    assert [folder for folder, _ in calls] == [bundled("translator"), Path("run/model"), Path("poet")]
    with pytest.raises(FileError, match="there is no folder 'nowhere'; the bundled models are: translator"):
        evaluate("nowhere")


def test_translations_are_saved(
    patch_results: PatchResults, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patch_results(FLICKR)
    file = tmp_path / "hypotheses.txt"
    evaluate("run", data=Path("d"), output=file)
    assert file.read_text(encoding="utf-8") == "ein hund .\n\nzwei zeilen\n"
    assert f"saved {file}" in capsys.readouterr().err
    with pytest.raises(FileError, match="cannot be written: there is no folder"):
        evaluate("run", data=Path("d"), output=tmp_path / "no" / "folder")


@pytest.mark.parametrize("found", [(FLICKR, FLICKR), (SPEARE,)])
def test_output_takes_one_set_of_translations(
    patch_results: PatchResults, tmp_path: Path, found: tuple[Result, ...]
) -> None:
    patch_results(*found)
    with pytest.raises(ArgumentError, match="--output takes the translations of one set, and here are: "):
        evaluate("run", data=Path("d"), output=tmp_path / "hypotheses.txt")
    assert not list(tmp_path.iterdir())


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match="which model"):
        evaluate()
    for beams in ("0", "x", "-1", "2.5", ""):
        with pytest.raises(ArgumentError, match="--beams must be a whole number of at least 1; found"):
            evaluate("run", beams=beams)
