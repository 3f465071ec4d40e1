"""`python examples/attention_demo.py`: five demonstrations, either language, with or without matplotlib."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DEMO = "examples/attention_demo.py"

# Leave only the core: both packages are made impossible to import before the example runs.
CORE_ONLY = (
    "import runpy, sys; sys.modules['torch'] = sys.modules['matplotlib'] = None; sys.argv = sys.argv[1:]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python from the repository's root, without what the surroundings say about language and colour."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "REGARD_"))}
    return subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        env={**kept, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1", "COLUMNS": "80", **environment},
        timeout=120,
    )


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("attention_demo", ROOT / DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_it_runs_with_the_core_alone(lang: str, tmp_path: Path) -> None:
    done = run("-c", CORE_ONLY, DEMO, "--lang", lang, "--save", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.findall(r"^(\d)  ", done.stdout, flags=re.MULTILINE) == ["1", "2", "3", "4", "5"]
    assert done.stdout.count("█") > 5  # heatmaps
    assert "[0.4011  0.1978  0.4011]" in done.stdout
    assert "pip install 'regard[plot]'" in done.stdout.splitlines()[-1]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_it_saves_a_picture_of_each_where_matplotlib_is(lang: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures are drawn with matplotlib")
    folder = tmp_path / "new"
    done = run(DEMO, "--lang", lang, "--save", str(folder))
    assert done.returncode == 0, done.stderr
    names = [f"attention_demo_{number}.png" for number in range(1, 6)]
    assert sorted(path.name for path in folder.iterdir()) == names
    for name in names:
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
        assert name in done.stdout.splitlines()[-1]


def test_its_language_is_the_environments() -> None:
    assert "自注意力" in run("-c", CORE_ONLY, DEMO, LANG="zh_CN.UTF-8").stdout
    assert "Self-attention" in run("-c", CORE_ONLY, DEMO, LANG="en_GB.UTF-8").stdout


def test_its_pictures_are_never_committed() -> None:
    assert "/attention_demo_*.png" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_both_languages_tell_the_same_numbers(demo: ModuleType) -> None:
    for demonstrate in demo.DEMONSTRATIONS:
        english, chinese = demonstrate(lambda en, zh: en), demonstrate(lambda en, zh: zh)
        numbers = [re.findall(r"-?\d+(?:\.\d+)?", " ".join(printed.lines)) for printed in (english, chinese)]
        assert numbers[0] == numbers[1]
        assert len(english.lines) == len(chinese.lines)
        assert re.search(r"[\u4e00-\u9fff]", chinese.title)


def test_what_it_says_is_true(demo: ModuleType) -> None:
    def shown(demonstrate: object) -> tuple[np.ndarray, str]:
        printed = demonstrate(lambda en, zh: en)  # type: ignore[operator]
        return np.asarray(printed.trace[0].weights()), " ".join(printed.lines)

    weights, lines = shown(demo.self_attention)
    assert weights.shape == (1, 1, 7, 7)
    assert f"{weights[0, 0, 2, 2]:.3f} and {weights[0, 0, 2, 4]:.3f}" in lines
    assert weights[0, 0, 2, 2] == pytest.approx(weights[0, 0, 2, 4])

    weights, _ = shown(demo.query_key_value)
    np.testing.assert_allclose(weights[0, 0], [[0.40111, 0.19778, 0.40111]], atol=5e-6)

    weights, lines = shown(demo.causal_mask)
    assert (np.triu(weights[0, 0], 1) == 0).all()
    assert "change by 0:" in lines

    weights, lines = shown(demo.heads_compared)
    assert weights.shape == (1, 4, 7, 7)
    assert "these weights are random" in lines.lower()

    weights, lines = shown(demo.weights_drawn)
    assert weights[0, 0].argmax(-1).tolist() == [0, 1, 2]
    assert f"我→I {weights[0, 0, 0, 0]:.3f}" in lines
