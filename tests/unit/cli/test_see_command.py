"""regard see, with models of random weights in place of the bundled ones."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Run
from narrowing import present
from tiny_language import poet_folder, translator_folder

from regard import read_trace
from regard.dispatch import attend_in_model
from regard.errors import ArgumentError
from regard.language import LanguageModel, load
from regard.views.caption import opening_head
from stored_pages import overview_in

pytestmark = pytest.mark.usefixtures("bundled")


def records(finished: Any) -> list[dict[str, Any]]:
    assert finished.code == 0, finished.err
    return json.loads(finished.out)["records"]


def test_the_translation_and_the_head_that_aligns_best(run: Run, bundled: Path) -> None:
    code, out, err = run("see", "I", "love", "you")
    first, empty, named, title, *_ = out.splitlines()
    assert code == 0
    assert first == f"I love you → {load(bundled / 'translator').translate('I love you')}"
    assert (empty, named) == ("", "decoder layer 1, head 2: the head that best aligns what is written with the text")
    assert title.startswith("decoder.layers.1.cross_attention · cross-attention · head 2 of 4")
    assert "love" in out
    assert "\x1b" not in out
    assert err == "more: --head all, --layer all, --kind encoder or decoder; --json for numbers\n"
    code, again, message = run("see")
    assert (code, again) == (0, out)
    assert message == f"this is an example; give your own text after the command, or - to read it from stdin\n{err}"
    assert "解码器第 1 层，头 2：写出的词与原文对齐得最好的头" in run("see", "--lang", "zh").out


def test_see_calls_the_method_of_the_model(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    see = LanguageModel.see

    def recorded(model: LanguageModel, text: str, **options: Any) -> Any:
        calls.append((text, options))
        return see(model, text, **options)

    monkeypatch.setattr(LanguageModel, "see", recorded)
    assert run("see", "I", "love", "you").code == 0
    assert run("see", "--output", "我", "The cat").code == 0
    assert calls == [("I love you", {"output": None}), ("The cat", {"output": "我"})]


def test_hints(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("see", "--head", "all", "I love you").err == ""
    whole = translator_folder(tmp_path / "whole", alignment_heads=[])
    assert run("see", "--model", str(whole), "I love you").err.startswith("more: --layer all shows an overview")
    assert "several sentences are read as one" in run("see", "--layer", "0", "I love you. The cat sat.").err
    assert run("see", "--json", "I love you. The cat sat.").err == ""
    monkeypatch.chdir(tmp_path)
    Path("the cat.txt").write_text("I love you", encoding="utf-8")
    for command in ("see", "translate"):
        assert run(command, "the cat.txt").err.endswith(f"regard {command} - < 'the cat.txt'\n")
        assert "name of a file" not in run(command, "the", "cat.txt").err


def test_a_given_output(run: Run, bundled: Path) -> None:
    found = json.loads(run("see", "--json", "--output", "我爱你。", "The cat").out)
    right = load(bundled / "translator").see("The cat", output="我爱你。")
    assert (found["text"], found["output"]) == ("The cat", "我爱你。")
    assert np.allclose(
        found["records"][0]["weights"], right.trace["decoder.layers.1.cross_attention"].weights()[0, [2]]
    )
    alone = json.loads(run("see", "--json", "--model", "poet", "--output", "", "明月").out)
    assert alone["output"] == ""
    assert alone["records"][0]["queries"][-2:] == ["明", "月"]
    code, _, err = run("see", "--model", "handmade", "--output", "x", "I love you")
    assert code == 2
    assert "writes nothing" in err


def test_the_line_end_of_stdin_is_not_part_of_a_poem(run: Run) -> None:
    piped = run("see", "--model", "poet", "-", stdin="明月\n".encode())
    assert piped == run("see", "--model", "poet", "明月")


def test_the_poet_continues_and_shows_self_attention(run: Run, bundled: Path) -> None:
    code, out, _ = run("see", "--model", "poet", "明月")
    assert code == 0
    seen = load(bundled / "poet").see("明月")
    assert out.splitlines()[0] == f"明月{seen.output}"
    assert out.splitlines()[2] == "decoder layer 0, head 1: the most informative head"
    assert run("see", "--model", "poet").out.startswith("床前明月光")
    code, out, err = run("see", "--model", "poet", "--kind", "cross", "明月")
    assert (code, out) == (2, "")
    assert "no cross attention; it has: decoder" in err


@pytest.mark.parametrize(
    ("options", "drawn"),
    [
        ([], [("cross", 1, [2])]),
        (["--layer", "0"], [("cross", 0, [0, 1, 2, 3])]),
        (["--layer", "all"], [("cross", 0, [0, 1, 2, 3]), ("cross", 1, [0, 1, 2, 3])]),
        (["--head", "0"], [("cross", 1, [0])]),
        (["--head", "all"], [("cross", 1, [0, 1, 2, 3])]),
        (["--head", "mean"], [("cross", 1, ["mean"])]),
        (["--layer", "0", "--head", "3"], [("cross", 0, [3])]),
        (["--layer", "all", "--head", "mean"], [("cross", 0, ["mean"]), ("cross", 1, ["mean"])]),
        (["--kind", "encoder"], [("encoder", 0, [0, 1, 2, 3]), ("encoder", 1, [0, 1, 2, 3])]),
        (["--kind", "decoder", "--layer", "1", "--head", "2"], [("decoder", 1, [2])]),
        (["--model", "poet"], [("decoder", 0, [1])]),
    ],
    ids=str,
)
def test_json_and_the_picture_choose_the_same_heads(run: Run, options: list[str], drawn: list[Any]) -> None:
    found = records(run("see", "--json", *options))
    assert [(one["kind"], one["layer"], one["heads"]) for one in found] == drawn
    for one in found:
        weights = np.array(one["weights"])
        assert weights.shape == (len(one["heads"]), len(one["queries"]), len(one["keys"]))
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    out = run("see", *options).out
    overview = "--head" not in options and len(drawn[0][2]) > 1
    for one in found if not overview else []:
        for head in one["heads"]:
            assert f"{one['name']} · " in out
            assert ("mean of all heads" if head == "mean" else f"head {head} of ") in out
    if overview and len(found) == 1:
        assert "cross-attention · 4 heads" in out
    elif overview:
        assert "2 layers · 4 heads" in out


@pytest.mark.parametrize(
    ("model", "text"),
    [
        *(("unnamed", text) for text in ("I love you", "The cat sat on the mat.", "You love me")),
        *(("named", "I love you"), ("poet", "明月"), ("poet-unnamed", "明月")),
    ],
)
def test_every_view_opens_with_the_same_head(run: Run, bundled: Path, tmp_path: Path, model: str, text: str) -> None:
    """Once the screen showed the head in the settings, and the page another one that seems to align."""
    folder = bundled / ("poet" if model.startswith("poet") else "translator")
    if model == "unnamed":
        folder = translator_folder(tmp_path / "whole", alignment_heads=[])
    elif model == "poet-unnamed":
        folder = poet_folder(tmp_path / "whole", alignment_heads=[])
    command = ["see", "--model", str(folder), text]
    out = run(*command, "--html", str(tmp_path / "p.html"), "--save", str(tmp_path / "t.safetensors")).out
    (record,) = records(run(*command, "--json"))
    (head,) = record["heads"]
    assert re.search(rf"layer {record['layer']}, head {head}: ", out)
    assert f"{record['name']} · " in out
    assert f"head {head} of " in out
    data = overview_in(tmp_path / "p.html")
    place, opened = data["open"]
    assert (data["records"][place]["name"], opened) == (record["name"], head)
    back = read_trace(tmp_path / "t.safetensors")
    assert opening_head(back, list(back)) == (place, head)
    screen = io.StringIO()
    back.show(file=screen, width=200, color="none")
    assert f"{record['name']} · " in screen.getvalue()
    assert f"head {head} of " in screen.getvalue()


def test_json_equals_the_records_of_the_model(run: Run, bundled: Path) -> None:
    result = json.loads(run("see", "--json", "--head", "mean", "The cat").out)
    seen = load(bundled / "translator").see("The cat")
    assert (result["model"], result["text"], result["output"]) == ("translator", "The cat", seen.output)
    (record,) = result["records"]
    expected = seen.trace["decoder.layers.1.cross_attention"]
    assert record["name"] == expected.name
    assert (record["queries"], record["keys"]) == (
        list(present(expected.query_tokens)[0]),
        list(present(expected.key_tokens)[0]),
    )
    assert record["keys"][-1] == "<eos>"
    np.testing.assert_allclose(record["weights"], [expected.weights()[0].mean(0)], atol=1e-6)


def test_text_from_stdin_is_saved_and_drawn(run: Run, bundled: Path, tmp_path: Path) -> None:
    trace, png = tmp_path / "t.safetensors", tmp_path / "p.png"
    folder = str(bundled / "translator")
    finished = run("see", "-", "--model", folder, "--save", str(trace), "--png", str(png), stdin=b"I love you\n")
    assert finished.code == 0
    assert finished.out.startswith("I love you → ")
    assert finished.out.count("\n") == 1
    assert finished.err == f"saved {trace}\nsaved {png}\n"
    assert len(read_trace(trace)) == 6
    assert read_trace(trace)[0].weights().shape == (1, 4, 4, 4)
    assert png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("options", [["--head", "mean"], ["--layer", "all"], ["--kind", "encoder", "--head", "1"]])
def test_png_of_several_heads(run: Run, tmp_path: Path, options: list[str]) -> None:
    finished = run("see", "--json", "--png", str(tmp_path / "p.png"), *options)
    assert records(finished)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<?xml"), ("PDF", b"%PDF"), ("png", b"\x89PNG")])
def test_the_file_ending_chooses_the_format(run: Run, tmp_path: Path, ending: str, start: bytes) -> None:
    path = tmp_path / f"p.{ending}"
    for model in ("translator", "handmade"):
        assert run("see", "--model", model, "--png", str(path)).code == 0
        assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("model", ["translator", "handmade", "nowhere"])
def test_other_file_endings_are_refused_before_a_model_runs(run: Run, tmp_path: Path, model: str) -> None:
    wrong = (("--png", "p.jpg", "p.png"), ("--save", "s.csv", "s.safetensors"), ("--html", "h.pdf", "h.html"))
    for option, name, better in wrong:
        code, out, err = run("see", "--model", model, option, str(tmp_path / name))
        assert (code, out) == (2, "")
        assert f"call it {tmp_path / better} (possible: " in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("model", ["translator", "handmade"])
def test_a_page_is_saved_in_addition_to_the_output(run: Run, tmp_path: Path, model: str) -> None:
    page = tmp_path / "seen.html"
    shown = run("see", "--model", model, "I love you")
    code, out, err = run("see", "--model", model, "--html", str(page), "I love you")
    assert (code, out) == (0, shown.out)
    assert f"saved {page}\n" in err
    assert any("love" in labels for labels in overview_in(page)["labels"])


def test_the_folder_of_a_run_uses_its_model(run: Run, tmp_path: Path) -> None:
    translator_folder(tmp_path / "model")
    (tmp_path / "recipe.toml").write_text("")
    for command in ("see", "heads", "translate"):
        by_run, by_model = (run(command, "--model", str(place), "The cat") for place in (tmp_path, tmp_path / "model"))
        assert (by_run.code, by_run.out) == (0, by_model.out), by_run.err


def test_png_needs_matplotlib_and_a_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = run("see", "--png", str(tmp_path / "none" / "p.png"))
    assert (code, out) == (3, "")
    assert "none" in err
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, out, err = run("see", "--png", str(tmp_path / "p.png"))
    assert (code, out) == (4, "")
    assert "--png needs matplotlib" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--layer", "2"], 2, "there is no --layer 2: numbers go from 0 to 1"),
        (["--head", "4"], 2, "there is no --head 4: numbers go from 0 to 3"),
        (["--head", "-1"], 2, "--head must be a number counted from 0, or all or mean; found '-1'"),
        (["--layer", "mean"], 2, "--layer must be a number counted from 0, or all; found 'mean'"),
        (["--head", "9" * 5000], 2, "--head must be"),
        (["--kind", "both"], 2, "choose one of encoder, decoder, cross"),
        (["--width", "x"], 2, "--width must be a whole number of at least 24; found 'x'"),
        (["--width", "19"], 2, "--width must be"),
        (["--width", "9" * 5000], 2, "--width must be"),
        (
            ["--model", "nowhere"],
            3,
            "the bundled models are: translator, poet, handmade",
        ),
        (["我爱你"], 2, "already in Chinese characters"),
        ([" \x00\x1b "], 2, "nothing to translate"),
        (["😀"], 2, "knows none of the characters"),
        (["love " * 5000], 5, "one sentence"),
    ],
)
def test_bad_arguments_are_refused(run: Run, arguments: list[str], code: int, message: str) -> None:
    finished = run("see", *arguments)
    assert (finished.code, finished.out) == (code, "")
    assert message in finished.err
    assert finished.err.count("\n") == 1


def test_odd_text_is_harmless(run: Run) -> None:
    finished = run("see", "I\x1b[31m love\x07 you\u202e 😀 love\udcff")
    assert finished.code == 0
    assert not set(finished.out) & set("\x1b\x07\u202e\udcff")


def test_json_limits_the_number_of_weights(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.cli.see_command.MOST_WEIGHTS_IN_JSON", 100)
    code, out, err = run("see", "--json", "--layer", "all")
    assert (code, out) == (5, "")
    assert "at most 100 of them" in err
    assert run("see", "--json", "--kind", "encoder", "--layer", "0", "--head", "mean").code == 0


def test_a_model_without_a_named_head(run: Run, tmp_path: Path) -> None:
    folder = translator_folder(tmp_path / "plain", alignment_heads=[])
    assert "2 layers · 4 heads" in run("see", "--model", str(folder), "--layer", "all").out
    assert "2 layers · 4 heads" not in run("see", "--model", str(folder)).out, "one head, whole"
    found = records(run("see", "--model", str(folder), "--json", "--head", "1"))
    assert [(one["layer"], one["heads"]) for one in found] == [(0, [1]), (1, [1])]


@pytest.mark.parametrize(("model", "text"), [("translator", "I love you"), ("poet", "床前明月光")])
def test_silence_prints_what_the_head_does(run: Run, model: str, text: str) -> None:
    options = ("--model", model, "--layer", "0", "--head", "1", "--silence", text)
    found = json.loads(run("see", *options, "--json").out)
    assert [one["written"] for one in found["silenced"]] == [token for token in found["records"][0]["written"] if token]
    finished = run("see", *options)
    assert finished.code == 0
    printed = re.findall(r"(\d\.\d\d) → (\d\.\d\d)", finished.out)
    assert 0 < len(printed) <= 5
    for before, after in printed:
        assert any(f"{one['before']:.2f}" == before and f"{one['after']:.2f}" == after for one in found["silenced"])


@pytest.mark.parametrize(("model", "text"), [("translator", "I love you"), ("poet", "床前明月光")])
def test_silence_says_what_the_head_reads_in_the_row_that_changes_most(run: Run, model: str, text: str) -> None:
    options = ("--model", model, "--layer", "0", "--head", "1", "--silence", text)
    found = json.loads(run("see", *options, "--json").out)
    (record,), silenced = found["records"], found["silenced"]
    most = min(range(len(silenced)), key=lambda at: silenced[at]["after"] - silenced[at]["before"])
    row = [at for at, token in enumerate(record["written"]) if token][most]
    weights = record["weights"][0][row]
    key = record["keys"][weights.index(max(weights))].strip()
    (read,) = re.findall(
        r"^row .* → .*: this head looks at (.*) \(weight (\d\.\d\d)\)$", run("see", *options).out, re.M
    )
    assert read == (key, f"{max(weights):.2f}")


def test_silence_of_an_encoder_head_has_no_row_that_writes(run: Run) -> None:
    out = run("see", "--kind", "encoder", "--layer", "0", "--head", "1", "--silence", "I love you").out
    assert "without this head" in out
    assert "this head looks at" not in out


def test_silence_sets_the_output_of_the_head_to_zero() -> None:
    poet = load("poet")
    seen = poet.see("床前明月光")
    module = seen.trace[0].name

    def without(head: int) -> Any:
        def attend(q: Any, k: Any, v: Any, *, name: str, kind: Any, **options: Any) -> Any:
            out = attend_in_model(q, k, v, name=name, kind=kind, **options)
            return out * (np.arange(out.shape[1]) != head)[:, None, None] if name == module else out

        return poet.model(np.array(seen.ids), attend=attend)[0]

    for head in range(2):
        logits = without(head)
        for one in poet.silence(seen, module, head):
            assert any(np.isclose(one.after, np.exp(row - np.logaddexp.reduce(row)), atol=1e-6).any() for row in logits)
    with pytest.raises(ArgumentError, match="head=9"):
        poet.silence(seen, module, 9)


@pytest.mark.parametrize("options", [["--head", "all"], ["--layer", "1"], ["--head", "mean"], ["--model", "handmade"]])
def test_silence_needs_one_head(run: Run, options: list[str]) -> None:
    code, _, err = run("see", "--silence", *options, "I love you")
    assert code == 2
    assert "--silence needs" in err


@pytest.mark.parametrize("options", [[], ["--model", "handmade", "--head", "0"]])
def test_svg_of_one_head_has_its_tokens(run: Run, tmp_path: Path, options: list[str]) -> None:
    path = tmp_path / "head.svg"
    finished = run("see", "I love you", "--svg", str(path), *options)
    assert finished.code == 0
    assert f"saved {path}" in finished.err
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<svg ")
    assert ">love<" in text


@pytest.mark.parametrize("options", [["--head", "all"], ["--model", "handmade"]])
def test_svg_of_several_heads_is_refused_before_anything_is_written(
    run: Run, tmp_path: Path, options: list[str]
) -> None:
    finished = run("see", "I love you", "--svg", str(tmp_path / "h.svg"), "--html", str(tmp_path / "h.html"), *options)
    assert finished.code == 2
    assert "--svg draws one head" in finished.err
    assert list(tmp_path.iterdir()) == []
