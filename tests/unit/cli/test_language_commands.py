"""`regard chat` through a pipe and interrupted, `regard convert`; in both languages."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Run
from public_folders import SMALL, byte_tokenizer, gpt2, llama, saved
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    PegasusConfig,
    PegasusForConditionalGeneration,
)

from regard.messages import printable

TEMPLATE = "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}<s>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = llama(tmp_path_factory.mktemp("chat") / "llama")
    (path / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    return path


def test_each_line_is_a_turn(run: Run, folder: Path) -> None:
    from regard import load

    done = run("chat", "--model", str(folder), "--max-tokens", "5", "--json", stdin="The cat\n\nsat 猫\n".encode())
    assert done.code == 0, done.err
    first, second = map(json.loads, done.out.splitlines())
    talk = [{"role": "user", "content": "The cat"}]
    assert first == {"text": "The cat", "answer": load(folder).chat(talk, max_new_tokens=5), "stopped": False}
    assert second["text"] == "sat 猫"


def test_weights_and_prompt_lookup(run: Run, folder: Path) -> None:
    plain = run("generate", "The cat", "--model", str(folder), "--max-tokens", "6", "--temperature", "0")
    options = ["--max-tokens", "6", "--temperature", "0", "--prompt-lookup", "4"]
    assert run("generate", "The cat", "--model", str(folder), *options).out == plain.out
    rounded = run("generate", "The cat", "--model", str(folder), *options, "--weights", "int8")
    assert rounded.code == 0, rounded.err
    assert rounded.out.startswith("The cat")
    done = run("chat", "--model", str(folder), *options, "--weights", "int8", "--json", stdin=b"The cat\n")
    assert done.code == 0, done.err
    assert run("generate", "a", "--model", str(folder), "--weights", "int3").code == 2
    assert run("generate", "a", "--model", str(folder), "--prompt-lookup", "0").code == 2


def test_options_of_sampling(run: Run, folder: Path) -> None:
    from regard import load

    options = [
        "--max-tokens",
        "9",
        "--temperature",
        "3",
        "--top-k",
        "9",
        "--top-p",
        "0.9",
        "--min-p",
        "0.01",
        "--seed",
        "5",
    ]
    done = run("chat", "--model", str(folder), "--json", *options, stdin=b"The cat\n")
    talk = [{"role": "user", "content": "The cat"}]
    lm = load(folder)
    wanted = lm.chat(talk, max_new_tokens=9, temperature=3.0, top_k=9, top_p=0.9, min_p=0.01, seed=5)
    assert json.loads(done.out)["answer"] == wanted
    stop = wanted.strip()[2]
    done = run("chat", "--model", str(folder), "--json", *options, "--stop", stop, stdin=b"The cat\n")
    assert json.loads(done.out)["answer"] == wanted[: wanted.index(stop)].strip()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_commands(run: Run, folder: Path, lang: str) -> None:
    lines = b"/see\nThe cat\n/see\n/help\n/new\n/nope\n/exit\nnot read\n"
    done = run("chat", "--model", str(folder), "--max-tokens", "4", "--lang", lang, stdin=lines)
    assert done.code == 0, done.err
    assert done.out.count("█") > 3
    assert " %" in done.out
    assert "cat" in done.out
    assert {"en": "/see   which", "zh": "/see   上一个"}[lang] in done.out
    assert {"en": "no answer yet", "zh": "还没有回答"}[lang] in done.err
    assert "/nope" in done.err
    assert "not read" not in done.out


def test_what_is_refused(run: Run, folder: Path, tmp_path: Path) -> None:
    assert (found := run("chat")).code == 2
    assert "--model" in found.err
    found = run("chat", "--model", str(gpt2(tmp_path / "gpt2")), stdin=b"x\n")
    assert found.code == 2
    assert "chat template" in found.err
    assert run("chat", "--model", "org/not-there", stdin=b"").code == 3


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
@pytest.mark.usefixtures("signals_at_default")
def test_ctrl_c_stops_one_answer(folder: Path) -> None:
    program = "import sys; from regard.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "chat", "--model", str(folder), "--max-tokens", "100000", "--lang", "en"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"The cat\n")
        process.stdin.flush()
        process.stdout.read(1)  # it writes
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(b"/help\n", timeout=120)
    assert process.returncode == 0, err
    assert b"(stopped)" in err
    assert b"/exit" in out


def test_convert(run: Run, folder: Path, tmp_path: Path) -> None:
    done = run("convert", str(folder), str(tmp_path / "new"), "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["family"] == "llama"
    assert run("chat", "--model", str(tmp_path / "new"), stdin=b"").code == 0
    assert run("convert", str(folder), str(tmp_path / "new")).code == 2


@pytest.mark.parametrize(
    ("lang", "note"), [("en", "computed by the transformers package"), ("zh", "由 transformers 计算")]
)
def test_the_backend_is_chosen_and_named(run: Run, folder: Path, tmp_path: Path, lang: str, note: str) -> None:
    """The text is the same; stderr says when the package transformers computes, and why, if nobody asked for it."""
    for command, more in (("generate", ["--max-tokens", "3", "The cat"]), ("see", ["The cat"]), ("heads", ["The cat"])):
        found = [
            run(command, "--model", str(folder), "--backend", one, "--lang", lang, *more)
            for one in ("numpy", "torch", "transformers")
        ]
        assert [one.code for one in found] == [0, 0, 0], found[2].err
        assert found[0].out == found[1].out
        assert found[0].out.splitlines()[0] == found[2].out.splitlines()[0]
        assert not any(note in one.err for one in found)
    other = saved(
        tmp_path / "scaled",
        GPT2LMHeadModel(
            GPT2Config(
                vocab_size=byte_tokenizer().get_vocab_size(),
                n_embd=16,
                n_layer=2,
                n_head=2,
                bos_token_id=1,
                eos_token_id=1,
                scale_attn_by_inverse_layer_idx=True,
            )
        ),
        byte_tokenizer(),
    )
    done = run("see", "--model", str(other), "--lang", lang, "The cat")
    assert done.code == 0
    assert note in done.err
    assert "scale_attn_by_inverse_layer_idx" in done.err
    assert run("see", "--model", str(other), "--backend", "numpy", "The cat").code == 3
    assert run("see", "--model", str(folder), "--backend", "mps", "The cat").code == 2


def test_translate_by_transformers(run: Run, tmp_path: Path) -> None:
    inner = byte_tokenizer(template=("", "</s>"))
    sizes: dict[str, Any] = {
        f"{side}_{name}": 2 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")
    }
    config = PegasusConfig(
        **sizes,
        d_model=16,
        vocab_size=inner.get_vocab_size(),
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
    )
    folder = saved(tmp_path / "pegasus", PegasusForConditionalGeneration(config), inner)
    done = run("translate", "--model", str(folder), "--lang", "en", "The cat. The mat.")
    assert done.code == 0, done.err
    assert "models of type pegasus" in done.err
    from regard import load

    assert done.out.rstrip("\n") == printable(load(folder).translate("The cat. The mat."))


@pytest.mark.parametrize(("lang", "what"), [("en", "is an encoder and"), ("zh", "是编码器，不")])
def test_an_encoder_does_not_write(run: Run, tmp_path: Path, lang: str, what: str) -> None:
    inner = byte_tokenizer(template=("<s>", "</s>"))
    folder = saved(tmp_path / "bert", BertModel(BertConfig(**SMALL, vocab_size=inner.get_vocab_size())), inner)
    for command in (["generate"], ["chat"], ["translate", "a"]):
        done = run(*command, "--model", str(folder), "--lang", lang, stdin=b"a\n")
        assert done.code == 2
        assert what in done.err
