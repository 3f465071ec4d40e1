"""Every command without an optional package: it works, or reports what to install; it never crashes."""

import shutil
from pathlib import Path

import pytest
from without_packages import CommandResult, commands_of, run_without

from regard.cli.application import application
from regard.cli.entry import message_and_code
from regard.course.catalogue import entries
from regard.errors import CORE, EXTRAS, MissingPackageError, import_error, require_package

MISSING = 4
TORCH_EXERCISES = [row.id for row in entries() if row.track == "torch"]
NUMPY_EXERCISE, SHEET = "softmax", "by-hand"
SMALL = ("training.steps=2", "film.every=1", "model.d_model=16", "model.n_heads=2", "model.d_ff=16", "model.n_layers=1")
TRAINING = ["train", "copy", "--out", "run", "--film", *(part for change in SMALL for part in ("--set", change))]
"""Creates the run that the other commands use."""
NEW = ("copy", "--out", "new", "--set", "training.steps=1")

CASES: dict[tuple[str, ...], list[list[str]]] = {
    (): [["--version"], ["--lang", "zh", "--help"]],
    ("see",): [
        ["I love you"],
        ["--json", "-"],
        ["--model", "poet"],
        ["--model", "handmade"],
        ["--png", "a.png"],
        ["--html", "a.html"],
        ["--save", "a.safetensors"],
    ],
    ("heads",): [[], ["--json", "I love you"]],
    ("survey",): [["--model", "poet", "--texts", "poems.txt", "--out", "survey", "--queries", "2"]],
    ("chat",): [["--model", "poet"], ["--model", "MISSING", "--json"]],
    ("convert",): [["poet", "converted"], ["MISSING", "converted"]],
    ("pull",): [],  # with an ID it needs a network
    ("translate",): [["hello"], ["-"], ["--json", "hello"]],
    ("generate",): [["--form", "五绝"], ["床前明月光", "--json"]],
    ("explain",): [[], ["--causal", "--json"], ["--code"]],
    ("train",): [["--json"], ["copy"], [*NEW], ["en-zh", "--out", "new", "--data", "pairs.tsv"]],
    ("evaluate",): [["run"], ["translator"], ["translator", "--data", "pairs.tsv"], ["poet", "--data", "poems.txt"]],
    ("plot",): [["run"], ["run", "--json"], ["run", "--png", "loss.png"], ["run", "--png", "loss.svg"]],
    ("film",): [["run", "--speed", "60"], ["run", "--json"], ["run", "--gif", "film.gif"]],
    ("doctor",): [["--json"]],
    ("learn",): [["--json"]],
    ("learn", "list"): [["--json"]],
    ("learn", "path"): [["2"], ["--json"]],
    ("learn", "start"): [[NUMPY_EXERCISE], [TORCH_EXERCISES[0]], [SHEET]],
    ("learn", "check"): [[NUMPY_EXERCISE], [SHEET], [TORCH_EXERCISES[0]], [TORCH_EXERCISES[0], "--json"]],
    ("learn", "hint"): [[TORCH_EXERCISES[0]]],
    ("learn", "solution"): [[TORCH_EXERCISES[0], "--give-up"], [SHEET, "--give-up"]],
    ("learn", "reset"): [[TORCH_EXERCISES[0]], ["--all"]],
    ("learn", "ask"): [["--list"], ["why-sqrt-d-k", "--reveal"]],
    ("learn", "interview"): [["--seed", "1"], ["--list"]],
    ("learn", "build"): [["--json"]],
    ("learn", "read"): [["1"], ["2", "--json"]],
    ("learn", "notebook"): [["1", "lesson.ipynb"]],
    ("learn", "export"): [["progress.json"]],
    ("learn", "import"): [["progress.json"]],
    ("learn", "certificate"): [["mine.html"]],
    ("learn", "new"): [["mean-pooling", "--dir", "own"]],
    ("learn", "verify"): [["own/mean-pooling"]],
    ("learn", "grade"): [["own/mean-pooling", "own/mean-pooling/right"], [TORCH_EXERCISES[0], "."]],
}
"""Arguments of each command, besides none and --help. A new command needs an entry here."""
EVERY = [
    [*path, *arguments]
    for path, cases in CASES.items()
    for arguments in ([], ["--help"], *cases)
    if [*path, *arguments] not in (["learn", "ask"], ["learn", "interview"])  # which are random
]

WITHOUT = {
    "matplotlib": ("matplotlib", "PIL", *(name for name, extra in EXTRAS.items() if extra in ("train", "making"))),
    "torch": ("torch", "triton", "transformers"),
}
Results = dict[tuple[str, ...], CommandResult]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    """The results of every command in every environment. The first, which has torch, trains the run."""
    here = tmp_path_factory.mktemp("here")
    (here / "pairs.tsv").write_text("I love you.\t我爱你。\nHello.\t你好。\n" * 20, encoding="utf-8")
    (here / "poems.txt").write_text("床前明月光，疑是地上霜。\n" * 20, encoding="utf-8")
    found = {}
    for name, packages in WITHOUT.items():
        commands = EVERY if (here / "run").exists() else [TRAINING, *EVERY]
        result = run_without(packages, tmp_path_factory.mktemp(name), commands, here)
        found[name] = {tuple(arguments): results for arguments, results in result}
        for changed in (here / "new", here / f"{TORCH_EXERCISES[0]}.py"):
            shutil.rmtree(changed, ignore_errors=True)
    assert found["matplotlib"][tuple(TRAINING)].code == 0
    return found


def test_every_command_has_its_cases() -> None:
    assert {path for path, _ in commands_of(application())} == set(CASES)


def test_every_command_works_or_reports_what_to_install(results: dict[str, Results]) -> None:
    """One test, so that parallel workers do not each start these processes."""
    for name, found in results.items():
        _assert_no_crash(name, found)
        _assert_messages(name, found)
        _assert_marks_and_warnings(name, found)


def _assert_no_crash(name: str, found: Results) -> None:
    for arguments, result in found.items():
        about = f"without {name}: regard {' '.join(arguments)}: {result.code} {result.err[-300:]}"
        assert result.code in (0, 1, 2, 3, 4, 5), about
        assert "Traceback" not in result.err, about
        if result.code == MISSING:
            assert "pip install 'regard[" in result.err, about
            assert len([line for line in result.err.splitlines() if line.startswith("regard: ")]) == 1, about


def _assert_messages(name: str, found: Results) -> None:
    exercise = TORCH_EXERCISES[0]
    wanted = {
        "torch": {
            ("learn", "check", exercise): "this exercise needs torch",
            ("learn", "check", exercise, "--json"): "this exercise needs torch",
            ("learn", "grade", exercise, "."): "this exercise needs torch",
            ("train", *NEW): "regard train needs torch",
            ("evaluate", "run"): "regard evaluate needs torch",
            ("evaluate", "translator"): "regard evaluate needs torch",
        },
        "matplotlib": {
            ("see", "--png", "a.png"): "--png needs matplotlib",
            ("plot", "run", "--png", "loss.png"): "--png needs matplotlib",
            ("film", "run", "--gif", "film.gif"): "--gif needs matplotlib",
            ("evaluate", "translator", "--data", "pairs.tsv"): "needs sacrebleu",
        },
    }[name]
    for arguments, message in wanted.items():
        result = found[arguments]
        assert result.code == MISSING, (arguments, result)
        assert message in result.err, (arguments, result)
        assert not result.out
    missing = {arguments for arguments, result in found.items() if result.code == MISSING}
    allowed = {("evaluate", "poet", "--data", "poems.txt"), ("train", "en-zh", "--out", "new", "--data", "pairs.tsv")}
    pictures = {one for one in missing if one[0] in ("see", "plot", "film") and name == "matplotlib"}
    commands = {one for one in missing if one[0] in ("train", "evaluate") and name == "torch"}
    assert missing - wanted.keys() - allowed - pictures - commands == set()


def _assert_marks_and_warnings(name: str, found: Results) -> None:
    listed, started = found["learn", "list"], found["learn", "start", TORCH_EXERCISES[0]]
    marked = [line.split()[1] for line in listed.out.splitlines() if line.startswith("  × ")]
    assert started.code == listed.code == 0
    if name == "torch":
        assert marked == TORCH_EXERCISES
        assert "needs PyTorch" in listed.out
        assert "× needs PyTorch" in found["learn",].out
        assert "pip install 'regard[torch]'" in listed.err
        assert "this exercise needs torch" in started.err
        assert "regard train needs torch" in found["train",].err
    else:
        assert marked == []
        assert "needs" not in started.err + found["train",].err


# --- the table --------------------------------------------------------------------------------------------


def test_the_table_names_every_optional_package() -> None:
    """Compared with pyproject.toml, whose names are those of the imports except for Pillow."""
    import tomllib

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = project["optional-dependencies"]
    optional = {extra: [line.partition(">=")[0] for line in groups[extra]] for extra in set(EXTRAS.values())}
    for package, extra in EXTRAS.items():
        if package not in ("PIL", "triton"):
            assert package in optional[extra], package
    names = {name for extra in ("torch", "plot", "notebook", "web", "gguf", "train") for name in optional[extra]}
    assert names - {"regard[torch]"} <= EXTRAS.keys()
    assert sorted(CORE) == sorted(line.partition(">=")[0] for line in project["dependencies"])


@pytest.mark.parametrize("package", [*EXTRAS, *CORE])
def test_a_failed_import_is_reported(package: str) -> None:
    error = ModuleNotFoundError(f"No module named '{package}.sub'", name=f"{package}.sub")
    message, code = message_and_code(error)
    assert code == MISSING
    assert message is not None
    assert f"this command needs {package}" in message
    assert "pip install" in message


def test_a_broken_package_is_not_reported_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gguf.py").write_text("raise OSError('libgguf.so.1: cannot open shared object file')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "gguf", raising=False)
    with pytest.raises(MissingPackageError, match=r"installed but cannot be imported: libgguf\.so\.1") as caught:
        require_package("gguf", "this")
    assert caught.value.exit_code == MISSING
    message, code = message_and_code(ImportError("libtorch_cpu.so: cannot open shared object file", name="torch._C"))
    assert code == MISSING
    assert message is not None
    assert "cannot be imported: libtorch_cpu.so" in message


def test_a_failed_import_of_regard_is_a_bug() -> None:
    assert import_error(ModuleNotFoundError("No module named 'regard.nowhere'", name="regard.nowhere"), "this") is None
    assert message_and_code(ImportError("cannot import name 'x'", name="regard.cli"))[1] == 70
