"""`regard survey` and `regard heads --survey`."""

import json
from pathlib import Path

from command_line import Run

import regard

POEMS = [
    "五绝｜床前明月光，疑是地上霜。举头望明月，低头思故乡。",
    "",
    "五绝｜白日依山尽，黄河入海流。欲穷千里目，更上一层楼。",
]


def test_survey_is_printed_saved_and_shown_by_heads(run: Run, tmp_path: Path) -> None:
    texts, out = tmp_path / "poems.txt", str(tmp_path / "out")
    texts.write_text("\n".join(POEMS), encoding="utf-8")
    expected = regard.survey("poet", POEMS)
    done = run("survey", "--model", "poet", "--texts", str(texts), "--out", out, "--lang", "en")
    assert (done.code, done.err) == (0, "")
    assert done.out.strip() == expected.text(lang="en").strip()
    again = json.loads(run("survey", "--model", "poet", "--texts", str(texts), "--out", out, "--json").out)
    assert (again["texts"], again["skipped"], len(again["heads"])) == (2, {"empty": 1}, 48)
    shown = run("heads", "--survey", out, "--find", "separator", "--count", "3", "--lang", "zh")
    assert shown.out.strip() == expected.text("separator", 3, "zh").strip()
    found = json.loads(run("heads", "--survey", out, "--json").out)
    assert found["heads"][0]["looks_at"] == expected.heads[0].best
    both = run("heads", "text", "--survey", out)
    assert both.code == 2
    assert "--survey" in both.err


def test_what_is_missing_is_named(run: Run, tmp_path: Path) -> None:
    for options in (["--model", "poet"], ["--model", "poet", "--texts", "x"], []):
        answer = run("survey", *options)
        assert answer.code == 2
        assert "regard survey" in answer.err
    none = run("heads", "--survey", str(tmp_path))
    assert none.code != 0
    assert str(tmp_path) in none.err
