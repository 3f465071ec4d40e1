"""Bundling a run's model: int8 weights, the same tokenizer, unchanged hand-written files.

Also the bounds in the benchmarks of bundled models; the benchmarks do not run here.
"""

from pathlib import Path

import numpy as np
import pytest
from tiny_language import translator_folder

import regard
from benchmarks.cases import CASES
from benchmarks.cases.bundled import megabytes, sentences
from benchmarks.measure import Measured
from benchmarks.report import rows
from making import bundle
from regard.checkpoints import read_model
from regard.checkpoints.tensor_file import TensorFile


def trained(folder: Path) -> Path:
    """The model of a finished run."""
    (folder / "run").mkdir()
    return translator_folder(folder / "run" / "model")


def test_int8_weights_and_unchanged_files(tmp_path: Path) -> None:
    source, target = trained(tmp_path), tmp_path / "bundled"
    translator_folder(target)  # an older model
    (target / "README.md").write_text("A card.", encoding="utf-8")
    (target / "model.safetensors").write_bytes(b"worn out")
    size = bundle.bundle(source, target)
    assert size == sum(path.stat().st_size for path in target.iterdir())
    assert (target / "README.md").read_text(encoding="utf-8") == "A card."
    assert (target / "tokenizer.json").read_bytes() == (source / "tokenizer.json").read_bytes()
    assert "int8" in TensorFile(target / "model.safetensors").dtypes.values()
    exact, stored = (read_model(folder).tensors.arrays("float32") for folder in (source, target))
    assert exact.keys() == stored.keys()
    for name, weight in exact.items():
        step = np.abs(weight).max(-1, keepdims=True) / 127
        assert (np.abs(stored[name] - weight) <= 0.501 * step).all(), name
    assert regard.load(target).translate("I love you.")


def run_command(monkeypatch: pytest.MonkeyPatch, assets: Path, *arguments: object) -> None:
    assets.mkdir()
    monkeypatch.setattr(bundle, "ASSETS", assets)
    monkeypatch.setattr("sys.argv", ["bundle", *map(str, arguments)])
    bundle.main()


def test_command_accepts_a_run_or_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = trained(tmp_path)
    run_command(monkeypatch, tmp_path / "one", source.parent, "translator")
    run_command(monkeypatch, tmp_path / "two", source, "translator")
    one, two = ((tmp_path / each / "translator" / "model.safetensors").read_bytes() for each in ("one", "two"))
    assert one == two
    assert f"{tmp_path / 'one' / 'translator'}" in capsys.readouterr().out


def test_too_large_model_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "LARGEST", 1000)
    with pytest.raises(SystemExit, match="1,000 bytes"):
        run_command(monkeypatch, tmp_path / "assets", trained(tmp_path), "translator")


# --- benchmarks -------------------------------------------------------------------------------------------


def test_thousand_sentences_of_each_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TATOEBA", raising=False)
    assert (len(sentences()), len(set(sentences()))) == (1000, 100)
    lines = [f"Sentence {n // 2}.\t第{n}句。" for n in range(2200)]
    (tmp_path / "dev.tsv").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setenv("TATOEBA", str(tmp_path))
    assert sentences() == [f"Sentence {n}." for n in range(1000)]


def verdicts(case: str, times: dict[str, list[float]]) -> list[str]:
    measured = Measured(times=times)
    measured.facts = CASES[case].facts(measured)
    return [row[-1] for row in rows(CASES[case], measured)]


def test_bounds_match_the_requirements() -> None:
    assert verdicts("translate-lines", {"regard translate -": [66.0, 60.0, 70.0]}) == ["must", "–"]
    assert verdicts("translate-lines", {"regard translate -": [67.0] * 3}) == ["short", "–"]
    see = 'regard see "I love you"'
    assert verdicts("see-cold", {see: [0.9, 1.0, 1.5], "import numpy": [0.1] * 3}) == ["–", "must", "–"]
    assert verdicts("see-cold", {see: [0.9, 1.1, 1.5], "import numpy": [0.1] * 3}) == ["–", "short", "–"]


def test_size_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "one").write_bytes(bytes(250_000))
    (tmp_path / "in" / "two").write_bytes(bytes(500_000))
    assert (megabytes(tmp_path), megabytes(tmp_path / "one")) == (0.75, 0.25)
