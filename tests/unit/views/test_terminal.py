"""The terminal view: exact text of small examples, and no line wider than the width."""

import io
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard import Record, Trace
from regard.errors import ArgumentError, NotKeptError, UnknownNameError
from regard.messages import Language
from regard.reference import softmax

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def shown(trace: Trace, **options: Any) -> str:
    out = io.StringIO()
    chosen: dict[str, Any] = {"width": 80, "color": "none", "lang": "en"} | options
    trace.show(file=out, **chosen)
    return out.getvalue()


def causal(T: int, H: int = 1, seed: int = 0) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(H, T, T))
    return softmax(np.where(np.tri(T, dtype=bool), scores, -np.inf))


HAND = Trace.from_weights(
    np.array([[0.82, 0.1, 0.08], [0.07, 0.85, 0.08], [0.05, 0.15, 0.8]]),
    ["我", "爱", "你"],
    ["I", "love", "you"],
    name="decoder.0.cross",
    kind="cross",
)
FULLY_MASKED = Trace.from_weights(
    np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 0], [0.25, 0.25, 0.25, 0.25]]),
    ["the", "cat", "", "a\nmat"],
    name="h.0.attn",
    kind="decoder",
)


def test_a_notebook_shows_it_as_one_output(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs: list[str] = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda segments, text: outputs.append(text))
    trace = Trace.from_weights(causal(3, H=2))
    trace.show(0, head=[0, 1], color="none", lang="en")
    assert len(outputs) == 1
    assert outputs[0].count("attention · self-attention · head") == 2


# --- exact text ------------------------------------------------------------------------------------------


def test_exact_text_in_english() -> None:
    assert shown(HAND) == (
        "decoder.0.cross · cross-attention · queries × keys: 3 × 3\n"
        "\n"
        "     I    love  you\n"
        "我  █.82  ░.10  ░.08\n"
        "爱  ░.07  █.85  ░.08\n"
        "你  ░.05  ░.15  █.80\n"
        "\n"
        "░ ≥ .04   ▒ ≥ .16   ▓ ≥ .36   █ ≥ .64\n"
        "rows look at columns\n"
    )


def test_exact_text_in_chinese() -> None:
    assert shown(HAND, lang="zh") == (
        "decoder.0.cross · 交叉注意力 · 查询 × 键：3 × 3\n"
        "\n"
        "     I    love  you\n"
        "我  █.82  ░.10  ░.08\n"
        "爱  ░.07  █.85  ░.08\n"
        "你  ░.05  ░.15  █.80\n"
        "\n"
        "░ ≥ .04   ▒ ≥ .16   ▓ ≥ .36   █ ≥ .64\n"
        "行：查询；列：键（被关注的词元）\n"
    )


def test_masked_cells_and_fully_masked_rows_are_marked() -> None:
    assert shown(FULLY_MASKED) == (
        "h.0.attn · decoder self-attention · queries × keys: 4 × 4\n"
        "\n"
        '        the    cat    ""    a␊mat\n'
        "  the  █1.0     ·      ·      ·\n"
        "  cat  ▓.50   ▓.50     ·      ·\n"
        '   ""    ·      ·      ·      ·    ∅\n'
        "a␊mat  ▒.25   ▒.25   ▒.25   ▒.25\n"
        "\n"
        "░ ≥ .04   ▒ ≥ .16   ▓ ≥ .36   █ ≥ .64\n"
        "rows look at columns · dots: masked or exactly 0 · ∅ sees nothing\n"
    )


def test_exact_text_of_several_heads() -> None:
    w = np.stack([np.eye(2), np.full((2, 2), 0.5), np.array([[1, 0], [0.9, 0.1]])])
    assert shown(Trace.from_weights(w, ["a", "b"]), width=60) == (
        "attention · self-attention · 3 heads · queries × keys: 2 × 2\n"
        "tokens: a b\n"
        "\n"
        "head 0              head 1              head 2\n"
        + "████████· · · ·     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓    ████████· · · ·\n" * 4
        + "· · · · ████████    ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓    ████████░░░░░░░░\n" * 4
        + "\n"
        "░ ≥ .04   ▒ ≥ .16   ▓ ≥ .36   █ ≥ .64\n"
        "rows look at columns · dots: masked or exactly 0\n"
        "first token receives over 75 % in heads: 2\n"
    )


def test_layers_by_heads() -> None:
    weights = [causal(5, H=2, seed=i) for i in range(2)]
    weights[0][1] = np.where(np.tri(5), 0.1 / np.maximum(1, np.arange(5))[:, None], 0)
    weights[0][1, :, 0] = [1, *[0.9] * 4]
    layers = [Trace.from_weights(w, name=f"h.{i}.attn", kind="decoder")[0] for i, w in enumerate(weights)]
    lines = shown(Trace(layers), layer="all").splitlines()
    assert lines[0] == "h.*.attn · decoder self-attention · 2 layers · 2 heads · queries × keys: 5 × 5"
    assert lines[2].split() == ["head", "0", "1"]
    assert re.findall(r"^layer \d", "\n".join(lines), flags=re.MULTILINE) == ["layer 0", "layer 1"]
    assert re.findall(r"^层 \d", shown(Trace(layers), layer="all", lang="zh"), flags=re.MULTILINE) == ["层 0", "层 1"]
    assert lines[-1] == "first token receives over 68 % in 1 of 4 heads"


def test_one_head_of_every_layer() -> None:
    layers = [Trace.from_weights(causal(4, H=3, seed=i), name=f"h.{i}.attn")[0] for i in range(3)]
    text = shown(Trace(layers), head=-1)
    assert text.startswith("h.*.attn · head 2 · 3 layers\n")
    assert text.splitlines()[2].split() == ["layer", "0", "layer", "1", "layer", "2"]


def translated(*sizes: tuple[int, int]) -> Trace:
    """Layers of cross-attention with two heads each. All heads attend evenly except the last one."""
    even = [np.full((2, T, S), 1 / S) for T, S in sizes]
    even[-1][1] = np.eye(*sizes[-1])
    names = (f"decoder.layers.{i}.cross_attention" for i in range(len(sizes)))
    return Trace(Trace.from_weights(w, name=name, kind="cross")[0] for w, name in zip(even, names, strict=True))


def test_of_many_layers_the_clearest_head_is_shown() -> None:
    text = shown(translated((5, 5), (5, 5)))
    assert text.startswith("decoder.layers.1.cross_attention · cross-attention · head 1 of 2")
    assert text.count("█1.0") == 5
    assert text.endswith("of 4 heads, the one with the clearest pattern here\n")
    assert "4 个头中，在这段文本上模式最清晰的一个" in shown(translated((5, 5), (5, 5)), lang="zh")


@pytest.mark.parametrize("color", ["none", "truecolor"])
def test_an_overview_is_drawn_if_no_head_fits(color: str) -> None:
    long = translated((300, 300), (300, 300))
    assert shown(long, color=color) == shown(long, layer="all", color=color)
    assert "2 layers" in ANSI.sub("", shown(long, color=color))


def test_a_shade_means_the_same_in_every_picture_with_numbers() -> None:
    weak, strong = np.full((3, 3), 1 / 3), np.eye(3) * 0.7 + 0.1
    for weights in (weak, strong):
        assert "░ ≥ .04   ▒ ≥ .16   ▓ ≥ .36   █ ≥ .64" in shown(Trace.from_weights(weights))
    assert "▒.33" in shown(Trace.from_weights(weak))
    assert " 1 " in ANSI.sub("", shown(Trace.from_weights(weak), color="truecolor")).splitlines()[-2]


def test_a_layer_and_a_head_are_selected() -> None:
    trace = Trace([Trace.from_weights(causal(3, H=2, seed=i), name=f"h.{i}.attn")[0] for i in range(2)])
    alone = Trace([trace[1]])
    assert shown(trace, layer=1) == shown(trace, layer="1.attn") == shown(trace, layer=-1) == shown(alone)
    assert shown(trace, layer=1, head=1) == shown(alone, head=1)
    assert "head 1 of 2" in shown(alone, head=1)


def test_samples_are_selected_and_named() -> None:
    w = np.stack([np.eye(2), np.eye(2)[::-1]])[:, None]
    trace = Trace.from_weights(w, [["a", "b"], ["c", "d"]])
    assert "sample 1 of 2" in shown(trace, sample=1)
    assert shown(trace, sample=1) == shown(trace, sample=-1)
    assert re.search(r"c +· +█1.0", shown(trace, sample=1))


def test_only_a_share_far_above_an_even_one_is_a_sink() -> None:
    def text(share: float, **options: Any) -> str:
        row = np.array([share, *[(1 - share) / 3] * 3])
        return shown(Trace.from_weights(np.stack([np.tile(row, (4, 1))] * 2)), **options)

    assert "first token" not in text(0.37)
    assert "first token" not in text(0.37, head=0)
    assert "first token receives 40 %" in text(0.40, head=0)
    assert "first token receives over 38 % in heads: 0, 1" in text(0.40)
    assert "把 38% 以上的注意力放在第一个词元上的头：0、1" in text(0.40, lang="zh")


@pytest.mark.parametrize("T", [3, 4, 5, 8, 12])
def test_a_head_that_attends_evenly_has_no_sink_under_any_mask(T: int) -> None:
    """A causal mask alone gives the first of four tokens half of all attention."""
    even, first = np.tri(T) / np.arange(1, T + 1)[:, None], np.where(np.tri(T), 1e-4, 0)
    first[:, 0] = 1 - 1e-4 * np.arange(T)
    text = shown(Trace.from_weights(np.stack([even, first]), kind="decoder"))
    assert text.splitlines()[-1].endswith("% in heads: 1")
    assert "first token" not in shown(Trace.from_weights(even, kind="decoder"))
    assert "first token receives 100 %" in shown(Trace.from_weights(first, kind="decoder"))


# --- what fits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lang", "expected"), [("en", "numbers are thousandths"), ("zh", "数字以千分之一为单位")])
def test_small_weights_are_shown_in_thousandths(lang: Language, expected: str) -> None:
    """Otherwise a part of a long text would show only `.00`."""
    weights = np.array([[0.0, 0.0021, 0.9979], [0.0123, 0.0501, 0.9376]])
    text = shown(Trace.from_weights(weights), lang=lang, cols=slice(0, 2))
    assert expected in text
    assert re.findall(r"(?<= )[\d.]+|·", text.split("\n\n")[1].split("\n", 1)[1]) == ["·", "2.1", "12", "50"]
    whole = shown(Trace.from_weights(weights), lang=lang)
    assert expected not in whole
    assert ".00" in whole


@pytest.mark.parametrize(("lang", "expected"), [("en", "weights times 100,000"), ("zh", "数字是权重的 100,000 倍")])
def test_smaller_weights_have_two_digits_and_several_shades(lang: Language, expected: str) -> None:
    weights = np.array([[0.00021, 0.00003, 0.99976], [0.00077, 0.00048, 0.99875]])
    text = shown(Trace.from_weights(weights), lang=lang, cols=slice(0, 2))
    assert expected in text
    table = text.split("\n\n")[1].split("\n", 1)[1]
    assert re.findall(r"[\d.]+", table)[1::1] == ["21", "3.0", "1", "77", "48"]
    assert len(set(re.findall(r"[░▒▓█]", table))) >= 3


def test_seventeen_words_get_numbers_in_eighty_columns() -> None:
    words = [f"w{i}" for i in range(17)]
    assert ".00" in shown(Trace.from_weights(np.full((17, 17), 1 / 17) * 0.02 + np.eye(17) * 0.98, words))


def test_few_columns_have_complete_labels() -> None:
    words = ["深度学习模型", "Deep Learning", "is"]
    trace = Trace.from_weights(np.full((3, 3), 1 / 3), ["a", "b", "c"], words, kind="cross")
    for color in ("none", "truecolor"):
        text = ANSI.sub("", shown(trace, color=color))
        assert all(word in text for word in words)
    many = Trace.from_weights(np.full((1, 7), 1 / 7), ["a"], ["Deep Learning"] * 7, kind="cross")
    assert "Deep Learning" not in shown(many, width=200)


def test_one_word_is_a_small_block() -> None:
    text = shown(Trace.from_weights(np.ones((4, 1, 1))))
    assert text.count("█" * 8) == 4 * 4
    assert "█" * 9 not in text


def test_narrow_columns_have_labels_written_downwards() -> None:
    text = shown(Trace.from_weights(causal(30), ["ab"] * 15 + ["注意"] * 15))
    lines = text.splitlines()
    assert lines[2].split()[0] == "a"
    assert lines[3].endswith("意意")
    assert "≥" in text  # no numbers, so a legend


@pytest.mark.parametrize("color", ["none", "truecolor"])
@pytest.mark.parametrize("T", [49, 100])
def test_numbered_columns_report_the_width_for_words(T: int, color: str) -> None:
    tokens = [f"word{i}" for i in range(T)]
    trace = Trace.from_weights(causal(T), tokens)
    text = ANSI.sub("", shown(trace, color=color))
    width = int(re.findall(r"columns show positions: width (\d+), or html, shows the tokens", text)[0])
    assert f"width 设为 {width}，或改用 html" in ANSI.sub("", shown(trace, color=color, lang="zh"))
    wide = ANSI.sub("", shown(trace, color=color, width=width))
    assert "columns show positions" not in wide
    assert re.search(r"^ +(w ){9,}", wide, flags=re.MULTILINE)  # written downwards
    assert "columns show positions" in ANSI.sub("", shown(trace, color=color, width=2 * T))


def test_if_no_screen_is_wide_enough_the_page_is_suggested() -> None:
    trace = Trace.from_weights(causal(200), [f"word{i}" for i in range(200)])
    assert "columns show positions: html shows the tokens" in shown(trace)
    assert "改用 html 可看到词元" in shown(trace, lang="zh")
    assert "columns show positions" not in shown(Trace.from_weights(causal(200)))  # no tokens


def test_a_large_map_is_pooled_and_shows_its_cell_size() -> None:
    text = shown(Trace.from_weights(causal(200)))
    assert "each cell is 6 × 6 tokens" in text
    assert len(text.splitlines()) < 50
    zh = shown(Trace.from_weights(causal(200)), lang="zh")
    assert "每格为 6 × 6 个词元" in zh


def test_a_pooled_map_has_exact_sums() -> None:
    """Half of the attention on the first of 100 keys in cells of ten: the picture must show .50."""
    w = np.zeros((100, 100))
    w[:, 0], w[:, 99] = 0.5, 0.5
    out = shown(Trace.from_weights(w, map=10))
    assert ".50" in out
    assert "each cell is 10 × 10 tokens" in out
    assert "first token receives 50 %" in out


def test_an_empty_map_is_reported() -> None:
    assert "nothing to draw: 0 queries, 3 keys" in shown(Trace.from_weights(np.zeros((0, 3))))
    assert "nothing to draw: 3 queries, 0 keys" in shown(Trace.from_weights(np.zeros((2, 3, 0))))


def test_nan_is_shown_as_nan() -> None:
    w = causal(3)[0]
    w[1] = np.nan
    assert shown(Trace.from_weights(w)).count("nan") == 3
    assert "NaN" in shown(Trace.from_weights(np.stack([w, causal(3)[0]])))


def test_tensors_are_drawn() -> None:
    w = torch.softmax(torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0)), -1)
    assert shown(Trace.from_weights(w), head=1) == shown(Trace.from_weights(w.numpy()), head=1)


TOKENS = st.text(
    st.characters(categories=None, codec=None)
    | st.sampled_from("abc注意力ＡＢ가🤗👍🏽🇨🇳Ġ▁\n\t\x1b[\u200d\ufe0f\u0301\u0000 "),
    max_size=12,
)


@given(data=st.data())
def test_no_line_is_wider_than_the_width(data: st.DataObject) -> None:
    lengths = st.integers(0, 8) | st.sampled_from([17, 18, 34, 35, 70, 71, 130])
    T, S, H = data.draw(lengths), data.draw(lengths), data.draw(st.sampled_from([1, 1, 2, 5, 17]))
    seed = data.draw(st.integers(0, 99))
    w = softmax(np.random.default_rng(seed).normal(size=(1, H, T, S)) * 3)
    w[:, :, : T // 3] = 0
    if T > 4 and S:
        w[:, :, T - 1] = np.nan
    few = data.draw(st.lists(TOKENS, min_size=1, max_size=5))
    queries = [few[i % len(few)] for i in range(T)] if data.draw(st.booleans()) else None
    keys = [few[-i % len(few)] for i in range(S)] if data.draw(st.booleans()) else None
    name, bins = data.draw(TOKENS), data.draw(st.sampled_from([3, 50, 256]))
    records = [Trace.from_weights(w, queries, keys, kind="cross", name=f"{name}.{i}.x", map=bins)[0] for i in range(2)]
    layers = data.draw(st.sampled_from([1, 2]))
    width = data.draw(st.integers(24, 40) | st.sampled_from([60, 80, 100, 200]))
    options = {
        "width": width,
        "color": data.draw(st.sampled_from(["none", "truecolor", "256"])),
        "lang": data.draw(st.sampled_from(["en", "zh"])),
        "head": data.draw(st.sampled_from([None, 0, -1])),
    }
    text = shown(Trace(records[:layers]), **options)
    for line in ANSI.sub("", text).splitlines():
        assert cell_len(line) <= width, (line, options)


@given(labels=st.lists(TOKENS, min_size=2, max_size=9))
def test_all_rows_have_the_same_width_with_any_label(labels: list[str]) -> None:
    n = len(labels)
    trace = Trace.from_weights(np.full((n, n), 1 / n), labels)
    lines = ANSI.sub("", shown(trace, color="256")).splitlines()
    rows = [line for line in lines if line.count(f"{1 / n:.2f}"[1:]) == n]
    assert len(rows) == n
    assert len({cell_len(line) for line in rows}) == 1


# --- colour ----------------------------------------------------------------------------------------------


def test_true_colour_uses_viridis() -> None:
    text = shown(HAND, color="truecolor")
    assert "48;2;253;231;37m" in text  # 1 is yellow
    assert "38;2;0;0;0;48;2;253;231;37m" in text  # with black text
    assert ".85" in ANSI.sub("", text)


def test_256_colours_use_palette_numbers() -> None:
    text = shown(HAND, color="256")
    assert "48;5;220m" in text
    assert "48;2;" not in text


def test_colours_do_not_depend_on_earlier_calls() -> None:
    before = shown(HAND, color="truecolor")
    shown(HAND, color="256")
    assert shown(HAND, color="truecolor") == before


def test_pixels_show_two_rows_per_line() -> None:
    text = shown(Trace.from_weights(causal(60)), color="truecolor")
    assert sum("▀" in line for line in text.splitlines()) == 30
    assert "blank: masked" in text
    assert "two rows per line" in text
    assert "每行文字对应图中上下两行" in shown(Trace.from_weights(causal(60)), color="truecolor", lang="zh")
    few = shown(Trace.from_weights(np.full((3, 90), 1 / 90)), color="truecolor")
    assert "two rows" not in few  # few rows get a line each


def test_few_rows_are_drawn_large_with_colour() -> None:
    lines = ANSI.sub("", shown(HAND, color="truecolor")).splitlines()
    assert [".85" in line for line in lines].index(True) == 7  # title, blank, labels, three lines per row


class Screen(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({"TERM": "xterm-256color"}, "48;5;"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "48;2;"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, "█"),
        ({"TERM": "xterm"}, "█"),  # sixteen colours are too few for a scale
        ({"TERM": "dumb"}, "█"),
    ],
)
def test_the_terminal_determines_the_colours(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], wanted: str
) -> None:
    for name in ("NO_COLOR", "COLORTERM", "FORCE_COLOR", "TTY_COMPATIBLE", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    screen = Screen()
    HAND.show(file=screen, width=80)
    assert wanted in screen.getvalue()
    assert ("48;" in screen.getvalue()) == ("48;" in wanted)


def test_a_requested_colour_overrides_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "48;2;" in shown(HAND, color="truecolor")


def test_a_file_gets_no_colour(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    HAND.show(lang="en")
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out == shown(HAND)


@pytest.mark.parametrize("encoding", ["ascii", "gbk", "latin-1"])
@pytest.mark.parametrize("color", ["none", "truecolor"])
def test_encodings_without_our_characters_get_plain_ones(encoding: str, color: str) -> None:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding=encoding) as file:
        FULLY_MASKED.show(file=file, width=80, color=color, lang="zh")  # type: ignore[arg-type]
        file.flush()
        text = raw.getvalue().decode(encoding)
    if encoding == "ascii":
        assert "@1.0" in text
    assert ".50" in text


# --- errors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"head": 1}, "head=1 .* 0 to 0"),
        ({"head": "all"}, "head='all' .* 0 to 0"),
        ({"layer": 3}, "layer=3 .* 0 to 0"),
        ({"sample": 1}, "sample=1 .* 0 to 0"),
        ({"width": 5}, "at least 24"),
        ({"width": "wide"}, "at least 24"),
        ({"color": "red"}, "truecolor, 256, none"),
        ({"lang": "fr"}, "en, zh"),
    ],
)
def test_invalid_arguments_report_the_valid_ones(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        shown(HAND, **options)


def test_an_unknown_layer_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"decoder\.0\.cross"):
        shown(HAND, layer="decoder.0.croos")


def test_a_record_without_a_map_is_rejected() -> None:
    with pytest.raises(NotKeptError, match=r"See\(map=256\)"):
        shown(Trace([Record(shape=(1, 2, 3, 3))]))
    with pytest.raises(ArgumentError, match="no records"):
        shown(Trace())


# --- tokens and texts ------------------------------------------------------------------------------------

MOON = ["æľ", "Ī", "Ġun", "likely"]  # 月 unlikely, in the spelling of GPT-2


def test_parts_of_characters_are_merged_except_with_merge_tokens() -> None:
    trace = Trace.from_weights(causal(4), MOON)
    assert shown(trace).splitlines()[2].split() == ["月", "␣un", "likely"]
    assert shown(trace).splitlines()[-1] == "parts of characters are merged: keys summed, queries averaged"
    assert shown(trace, merge="words").splitlines()[2].split() == ["月", "unlikely"]
    assert shown(trace, merge="words", lang="zh").splitlines()[-1] == "词元已合并成词：键相加，查询取平均"
    tokens = shown(trace, merge="tokens")
    assert "⟨E6 9C⟩" in tokens
    assert "merged" not in tokens
    assert "æ" not in tokens


def test_a_batch_is_merged_sample_by_sample() -> None:
    trace = Trace.from_weights(np.stack([causal(4), causal(4)]), [["a", "b", "c", "d"], MOON])
    assert "月" in shown(trace, sample=1)
    assert "sample 1 of 2" in shown(trace, sample=-1)
    assert "sample 0 of 2" in shown(trace)


def test_a_pooled_map_is_not_merged() -> None:
    assert "æ" not in shown(Trace.from_weights(causal(40), MOON * 10, map=20))
    with pytest.raises(ArgumentError, match="tokens, characters, words"):
        shown(HAND, merge="letters")


def test_a_line_ends_the_prompt() -> None:
    record = replace(Trace.from_weights(causal(4), list("abcd"))[0], prompt=3)
    lines = shown(Trace([record])).splitlines()
    assert lines[6].strip() == "╌" * 20
    assert "rows of the prompt: 3" in lines[-1] + lines[-2]
    assert "前 3 行是提示" in shown(Trace([record]), lang="zh")
    merged = replace(Trace.from_weights(causal(4), MOON)[0], prompt=2)
    assert "rows of the prompt: 1" in shown(Trace([merged]))


def test_a_closed_pipe_raises_broken_pipe_error() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    with pytest.raises(
        BrokenPipeError
    ):  # rich alone would exit with status 1, which the command line uses for a failed check
        Trace.from_weights(causal(3)).show(file=Gone(), width=80)


def header(keys: list[str], width: int) -> list[str]:
    """The lines above the map of one head."""
    S = len(keys)
    lines = shown(Trace.from_weights(np.full((S, S), 1 / S), keys, keys), width=width).splitlines()
    first = next(place for place, line in enumerate(lines) if line.lstrip().startswith(("<eos> ", "<bos> ")))
    return lines[lines.index("") + 1 : first]


@pytest.mark.parametrize("count", [8, 20])
def test_a_special_token_is_one_sign_in_narrow_columns(count: int) -> None:
    assert header(["<eos>", *"床前明月光疑是地上霜举头望明月低头思故乡"[:count]], 60)[0].split() == ["␃", "<eos>"]
    assert len(header(["<eos>", *"床前明月光疑是地上霜举头望明月低头思故乡"[:count]], 60)) == 2
    words = header(["<bos>", *["never"] * count, "<mask>"], 60)
    assert words[0].split() == ["␂", "<bos>", "◇", "<mask>"]
    assert len(words) == 1 + len("never")


def test_a_special_token_in_wide_columns_keeps_its_name() -> None:
    assert shown(Trace.from_weights(np.eye(3), ["<eos>", "I", "love"])).splitlines()[2].split() == [
        "<eos>",
        "I",
        "love",
    ]
