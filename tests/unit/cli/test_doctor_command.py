"""regard doctor."""

import json
from importlib.util import find_spec
from typing import Any

import pytest
from command_line import Run

from regard.cli import doctor_command
from regard.cli.doctor_command import report
from regard.messages import use_language


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return doctor_command.inspect()


def test_json_and_text_have_the_same_content(run: Run, found: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_command, "inspect", lambda: found)
    code, out, err = run("doctor", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == found
    text = run("doctor").out
    for package in found["packages"]:
        assert package["name"] in text
        assert package["version"] is None or package["version"] in text
    for answers in found["backends"].values():
        assert all(name in text and answer in text for name, answer in answers.items())


def test_installed_packages_are_reported(found: dict[str, Any]) -> None:
    import numpy as np
    import torch

    versions = {package["name"]: package["version"] for package in found["packages"]}
    assert versions["numpy"] == np.__version__
    assert found["torch"]["version"] == torch.__version__
    assert found["machine"]["cores"] >= 1
    assert found["blas"]
    assert found["backends"]["numpy"]["blocked"].startswith("yes")
    assert found["backends"]["torch"]["sdpa"].startswith("yes")


def test_a_missing_package_shows_its_use_and_command(monkeypatch: pytest.MonkeyPatch) -> None:
    real = find_spec
    monkeypatch.setattr(
        doctor_command, "find_spec", lambda name: None if name in ("torch", "matplotlib") else real(name)
    )
    found = doctor_command.inspect()
    assert found["torch"] is found["cjk_font"] is found["backends"]["torch"] is None
    for lang, message in (("en", "pictures with trace.plot()"), ("zh", "用 trace.plot() 画图")):
        with use_language(lang):  # type: ignore[arg-type]
            text = report(found)
        assert message in text
        assert "pip install 'regard[plot]'" in text
        assert "pip install 'regard[torch]'" in text


def test_a_broken_torch_is_reported(found: dict[str, Any]) -> None:
    text = report({**found, "torch": {"broken": "OSError: libcudart.so"}})
    assert "cannot be imported: OSError: libcudart.so" in text


@pytest.mark.parametrize(
    ("terminal", "message"),
    [
        ({"colors": "truecolor"}, "colours: truecolor"),
        ({"colors": None, "no_color": True}, "(NO_COLOR is set)"),
        ({"colors": None}, "stdout is not a terminal"),
        ({"colors": None, "is_terminal": True}, "a terminal without colours"),
    ],
)
def test_colours(found: dict[str, Any], terminal: dict[str, Any], message: str) -> None:
    plain = {"is_terminal": False, "no_color": False, "columns": 80, "encoding": "utf-8"}
    assert message in report({**found, "terminal": {**plain, **terminal}})


def test_the_terminal_in_chinese(found: dict[str, Any]) -> None:
    terminal = {"is_terminal": False, "colors": None, "no_color": False, "columns": 80, "encoding": "utf-8"}
    with use_language("zh"):
        assert "80 列，utf-8；不使用颜色（标准输出不是终端）" in report({**found, "terminal": terminal})


@pytest.mark.parametrize(
    ("variables", "spoken", "because"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh", "LANG=zh_CN.UTF-8"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en", "LC_ALL=C"),
        ({"LANG": "en_GB.UTF-8"}, "zh", "--lang"),
        ({}, "en", None),
        ({}, "zh", "--lang"),
    ],
)
def test_the_source_of_the_language(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], spoken: Any, because: str | None
) -> None:
    for name in doctor_command.LANGUAGE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with use_language(spoken):
        assert doctor_command._language() == {"spoken": spoken, "because": because}
