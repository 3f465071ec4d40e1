"""regard heads, with models of random weights in place of the bundled ones, and with `handmade`."""

import json
import shlex
from pathlib import Path

import pytest
from command_line import Run
from public_folders import llama
from safetensors.numpy import load_file, save_file

from regard.cli import heads_commands
from regard.language import load

pytestmark = pytest.mark.usefixtures("bundled")


def test_a_table_below_the_text(run: Run, bundled: Path) -> None:
    code, out, err = run("heads", "The", "cat", "sat")
    first, empty, title, *_ = out.splitlines()
    assert code == 0, err
    assert first == f"The cat sat → {load(bundled / 'translator').translate('The cat sat')}"
    assert empty == ""
    assert title.startswith("What 24 heads look at, measured on ")
    assert "Attention is not explanation" in out
    assert "\x1b" not in out
    assert err.startswith("to look at the first: regard see --model translator --kind ")
    assert err.endswith(" 'The cat sat'\n")
    again = run(*shlex.split(err.strip().partition(": regard ")[2]))
    assert (again.code, again.out.splitlines()[0]) == (0, first)
    assert "注意力不等于解释" in run("heads", "--lang", "zh").out


def test_the_hint_uses_the_same_text(run: Run) -> None:
    for text in ("-5 cats", "don't", "Tom & Mary"):
        out, err = run("heads", "--", text)[1:]
        shown = run(*shlex.split(err.strip().splitlines()[-1].partition(": regard ")[2]))
        assert shown.out.splitlines()[0] == out.splitlines()[0], err
    ours = run("heads", "--model", "poet")
    assert run(*shlex.split(ours.err.partition(": regard ")[2])).out.splitlines()[0] == ours.out.splitlines()[0]
    assert run("heads", "-", stdin=b"The cat").err.endswith(" -\n")


def test_a_short_default_text_for_a_small_model(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(heads_commands.TEXTS, "translation", "cat " * 5000)
    code, out, _ = run("heads")
    assert code == 0
    assert out.startswith("I love you → ")
    assert run("heads", "cat " * 5000).code == 5


def test_the_handmade_heads(run: Run) -> None:
    code, out, err = run("heads", "--model", "handmade", "to be or not to be that is to be")
    assert code == 0
    table = [line.split() for line in out.splitlines() if line.startswith("handmade.attention")]
    assert {line[1]: line[2] for line in table} == {"0": "previous", "1": "same", "2": "first"}
    assert "built by hand" in err
    assert run("heads", "--model", "handmade").code == 0
    assert "there is no word" in run("heads", "--model", "handmade", " ").err


def test_json_has_every_score(run: Run) -> None:
    result = json.loads(run("heads", "--model", "handmade", "--json", "to be or not to be").out)
    assert (result["model"], result["text"], result["output"]) == ("handmade", "to be or not to be", None)
    by_head = {head["head"]: head for head in result["heads"]}
    assert by_head[0]["looks_at"] == "previous"
    assert by_head[3]["looks_at"] is None
    assert by_head[1]["scores"]["same"]["queries"] == 2
    assert by_head[0]["scores"]["previous"]["score"] > 0.9
    result = json.loads(run("heads", "-", "--json", stdin=b"The cat sat").out)
    assert result["text"] == "The cat sat"
    assert len(result["heads"]) == 24


def test_find_and_count(run: Run) -> None:
    code, out, err = run("heads", "--find", "alignment", "--count", "3")
    assert code == 0, err
    assert sum("(alignment)" in line for line in out.splitlines()) == 3
    assert "… and 5 more" in out
    assert "--kind cross" in err
    result = json.loads(run("heads", "--find", "alignment", "--json").out)
    assert {head["kind"] for head in result["heads"]} == {"cross"}


def test_bad_options_are_refused_before_a_model_runs(run: Run) -> None:
    code, out, err = run("heads", "--find", "inductoin", "--model", "nowhere")
    assert (code, out) == (2, "")
    assert "there is no pattern 'inductoin'; choose one of previous, itself, first" in err
    code, _, err = run("heads", "--count", "0")
    assert code == 2
    assert "--count" in err
    assert run("heads", "--model", "nowhere/at/all").code in (3, 4)


def test_the_hint_of_an_empty_table_names_no_first(run: Run, tmp_path: Path) -> None:
    folder = llama(tmp_path / "flat")
    path = folder / "model.safetensors"
    weights = {name: array * (0.0 if "q_proj" in name else 1.0) for name, array in load_file(path).items()}
    save_file(weights, path)
    code, out, err = run("heads", "--model", str(folder), "The cat sat")
    assert code == 0, err
    assert "heads without any of the known patterns" in out
    assert "to look at one: regard see --model " in err
