"""Public models in Hugging Face's layout: our Transformer in NumPy and torch, and `transformers` itself, agree."""

import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from public_folders import SMALL, TEXTS, byte_tokenizer, gpt2, llama, saved
from safetensors.numpy import save_file
from tolerances import assert_close
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
)

import regard
from regard.errors import ArgumentError, FileError
from regard.language.generating import without_cut_character
from regard.language.hub_files import UnusedKeysWarning
from regard.language.loading import BackendName, convert
from regard.messages import LANGUAGES

BACKENDS: list[BackendName] = ["numpy", "torch", "transformers"]


def bert(path: Path, kind: type[Any] = BertForMaskedLM) -> Path:
    inner = byte_tokenizer(template=("<s>", "</s>"))
    return saved(path, kind(BertConfig(**SMALL, vocab_size=inner.get_vocab_size())), inner)


def marian(path: Path) -> Path:
    inner = byte_tokenizer(template=("", "</s>"))
    sizes: dict[str, Any] = {
        f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in _SIDE.items()
    }
    size = inner.get_vocab_size()
    config = MarianConfig(
        **sizes,
        d_model=16,
        vocab_size=size,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
        max_position_embeddings=64,
    )
    return saved(
        path, MarianMTModel(config), inner, num_beams=1, max_new_tokens=9, eos_token_id=1, decoder_start_token_id=0
    )


_SIDE = {"layers": 1, "attention_heads": 2, "ffn_dim": 32}
MAKERS: dict[str, Callable[[Path], Path]] = {"llama": llama, "gpt2": gpt2, "bert": bert, "marian": marian}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in MAKERS.items()}


def load(folder: Path, backend: BackendName | None = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedKeysWarning)
        return regard.load(folder, backend=backend)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", MAKERS)
def test_every_backend_sees_the_same_attention(name: str, text: str, folders: dict[str, Path]) -> None:
    seen = {backend: load(folders[name], backend).see(text) for backend in BACKENDS}
    theirs = seen["transformers"].trace
    for backend in ("numpy", "torch"):
        ours = seen[backend].trace
        assert seen[backend].output == seen["transformers"].output
        assert len(ours) == len(theirs)
        for one, other in zip(_by_kind(ours), _by_kind(theirs), strict=True):
            assert one.query_tokens == other.query_tokens
            assert one.key_tokens == other.key_tokens
            assert one.written == other.written
            assert_close(np.asarray(one.weights()), np.asarray(other.weights()), "logits")


def _by_kind(trace: regard.Trace) -> list[regard.Record]:
    """Encoder–decoder models may call their parts in another order."""
    return [record for kind in ("encoder", "decoder", "cross") for record in trace.select(kind=kind)]


@pytest.mark.parametrize("text", TEXTS)
def test_ids_are_those_of_transformers(text: str, folders: dict[str, Path]) -> None:
    from transformers import PreTrainedTokenizerFast

    for name in ("llama", "bert", "marian"):
        theirs = PreTrainedTokenizerFast(tokenizer_file=str(folders[name] / "tokenizer.json"))
        lm = load(folders[name], "numpy")
        ids = lm.tokenizer.encode(text)
        assert lm.special.around(ids) == theirs(text)["input_ids"]
        assert lm.tokenizer.decode(ids) == text


@pytest.mark.parametrize("backend", BACKENDS)
def test_generate_is_greedy_unless_the_folder_samples(backend: BackendName, tmp_path: Path) -> None:
    greedy = load(llama(tmp_path / "greedy"), backend)
    assert greedy.generate("The cat", max_new_tokens=6) == greedy.generate("The cat", max_new_tokens=6, seed=5)
    sampled = load(llama(tmp_path / "sampled", do_sample=True, temperature=1.5, max_new_tokens=6), backend)
    assert len({sampled.generate("The cat", seed=seed) for seed in range(8)}) > 1
    assert sampled.generate("The cat", temperature=0) == greedy.generate("The cat", max_new_tokens=6)


@pytest.mark.parametrize(("backend", "penalty"), [("numpy", 1.3), ("torch", 0.8), ("transformers", 1.3)])
def test_repetition_penalty_of_the_folder_and_of_the_call(backend: BackendName, penalty: float, tmp_path: Path) -> None:
    """As Hugging Face: also where the most likely token is taken, which a penalty alone does not change to sampling."""
    plain = load(llama(tmp_path / "plain"), backend)
    penalised = load(llama(tmp_path / "penalised", repetition_penalty=penalty), backend)
    ids = plain.special.around(plain.tokenizer.encode("The cat"))
    hf = LlamaForCausalLM.from_pretrained(tmp_path / "plain").eval()
    options: dict[str, Any] = {"max_new_tokens": 24, "do_sample": False}
    theirs = hf.generate(torch.tensor([ids]), repetition_penalty=penalty, **options)[0].tolist()
    whole = without_cut_character(plain.tokenizer, theirs[1 : theirs.index(1) if 1 in theirs else None])
    expected = plain.tokenizer.decode(whole)
    assert penalised.generate("The cat", max_new_tokens=24) == expected
    assert plain.generate("The cat", max_new_tokens=24, repetition_penalty=penalty) == expected
    assert penalised.generate("The cat", max_new_tokens=24, repetition_penalty=1.0) == plain.generate(
        "The cat", max_new_tokens=24
    )
    assert plain.generate("The cat", max_new_tokens=24) != expected
    assert penalised.see("The cat").output == plain.tokenizer.decode(theirs[len(ids) : len(ids) + 12])


def test_min_p_of_the_folder(tmp_path: Path) -> None:
    folder = llama(tmp_path, do_sample=True, min_p=1.0, top_k=10**9, max_length=10**12, max_new_tokens=9)
    lm = load(folder)  # no warning about an unused key
    assert (lm.settings.min_p, lm.settings.top_k) == (1.0, 10**9)
    written = {lm.generate("The cat", seed=seed) for seed in range(4)}
    assert written == {lm.generate("The cat", temperature=0)}  # only the most likely token is left
    assert len({lm.generate("The cat", seed=seed, min_p=0.0) for seed in range(4)}) > 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -1),
        ("top_k", -1),
        ("top_k", 2.5),
        ("top_p", 0),
        ("min_p", 1.5),
        ("repetition_penalty", 0),
        ("repetition_penalty", "1.1"),
        ("eos_token_id", 10**6),
        ("eos_token_id", -1),
        ("max_new_tokens", 10**12),
        ("num_beams", 10**6),
    ],
)
def test_invalid_settings_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    folder = llama(tmp_path, **{name: value})
    with pytest.raises(FileError, match=rf"generation_config\.json.*{name}"):
        load(folder)


def test_backends_write_the_same_text(folders: dict[str, Path]) -> None:
    for name in ("llama", "gpt2"):
        written = {load(folders[name], backend).generate("The cat", max_new_tokens=20) for backend in BACKENDS}
        assert len(written) == 1
    translated = {load(folders["marian"], backend).translate("The cat sat on the mat.") for backend in BACKENDS}
    assert len(translated) == 1


def test_silence_agrees_with_transformers(folders: dict[str, Path]) -> None:
    found = {}
    for backend in BACKENDS:
        lm = load(folders["llama"], backend)
        seen = lm.see("The cat sat")
        found[backend] = [
            (one.written, round(one.before, 4), round(one.after, 4), one.instead)
            for one in lm.silence(seen, seen.trace[1].name, 0)
        ]
    assert found["numpy"][:-1] == found["torch"][:-1]
    assert found["numpy"][: len(found["transformers"])] == found["transformers"]


def test_a_folder_without_a_tokenizer_works_in_ids(tmp_path: Path) -> None:
    config = LlamaConfig(**SMALL, vocab_size=40, bos_token_id=None, eos_token_id=None)
    lm = load(saved(tmp_path, LlamaForCausalLM(config)))
    seen = lm.see("3 1 4")
    assert seen.trace[0].query_tokens[0][:3] == ("3", "1", "4")
    with pytest.raises(ArgumentError, match="ids from 0 to 39"):
        lm.see("hello")


def test_older_vocabulary_files(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s"]
    config = BertConfig(**SMALL, vocab_size=len(words))
    folder = saved(tmp_path / "bert", BertModel(config))
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    assert load(folder).see("The cats sat").trace[0].query_tokens == (("[CLS]", "the", "cat", "##s", "sat", "[SEP]"),)
    inner = byte_tokenizer()
    model = json.loads(inner.to_str())["model"]
    folder = saved(
        tmp_path / "gpt2", GPT2LMHeadModel(GPT2Config(vocab_size=len(model["vocab"]), n_embd=16, n_layer=1, n_head=2))
    )
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    (folder / "generation_config.json").unlink(missing_ok=True)
    config_path = folder / "config.json"
    about = json.loads(config_path.read_text(encoding="utf-8")) | {"eos_token_id": 1, "bos_token_id": 1}
    config_path.write_text(json.dumps(about), encoding="utf-8")
    assert load(folder).tokenizer.encode(TEXTS[1]) == inner.encode(TEXTS[1], add_special_tokens=False).ids


def test_unused_keys_are_named_once(tmp_path: Path) -> None:
    folder = llama(tmp_path, eos_token_id=1, watermark_strength=3)
    with pytest.warns(UnusedKeysWarning, match="watermark_strength") as caught:
        regard.load(folder)
    assert len(caught) == 1


@pytest.mark.parametrize("backend", ["numpy", "transformers"])
def test_an_adapter_beside_the_weights_is_named_and_not_applied(backend: Any, tmp_path: Path) -> None:
    folder = llama(tmp_path / "model")
    before = load(folder, backend=backend).see("The cat").output
    adapter = {"base_model_name_or_path": "/etc", "peft_type": "LORA"}
    (folder / "adapter_config.json").write_text(json.dumps(adapter), encoding="utf-8")
    (folder / "adapter_model.bin").write_bytes(b"not read")
    with pytest.warns(UnusedKeysWarning, match=r"adapter_config\.json describes an adapter.*not apply") as caught:
        model = regard.load(folder, backend=backend)
    assert len(caught) == 1
    assert model.see("The cat").output == before
    with pytest.warns(UnusedKeysWarning, match="adapter"):
        convert(folder, tmp_path / "converted")
    assert not (tmp_path / "converted" / "adapter_config.json").exists()


def test_transformers_gets_no_adapter_where_peft_would_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = llama(tmp_path)
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/etc"}', encoding="utf-8")
    monkeypatch.setattr("regard.language.transformers_loading.find_spec", lambda name: name)
    with pytest.raises(FileError) as caught:
        load(folder, backend="transformers")
    assert caught.value.key == "adapter-with-peft"


def test_names_of_control_tokens_in_a_file_of_their_own(tmp_path: Path) -> None:
    """special_tokens_map.json of older folders; what tokenizer_config.json says takes precedence."""
    folder = llama(tmp_path)
    (folder / "chat_template.jinja").write_text("{{ eos_token }}")
    names = {"eos_token": {"content": "</s>"}, "bos_token": "<s>", "additional_special_tokens": []}
    (folder / "special_tokens_map.json").write_text(json.dumps(names), encoding="utf-8")
    template = load(folder).template
    assert (template.values["eos_token"], template.values["bos_token"]) == ("</s>", "<s>")
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<s>"}), encoding="utf-8")
    assert load(folder).template.values["eos_token"] == "<s>"


# --- embeddings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["mean", "cls", "max"])
def test_embeddings_are_pooled_as_the_folder_says(mode: str, tmp_path: Path) -> None:
    folder = bert(tmp_path, partial(BertModel, add_pooling_layer=False))  # type: ignore[arg-type]
    modules = [
        {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    (folder / "1_Pooling").mkdir()
    names = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
    settings = {f"pooling_mode_{name}": key == mode for key, name in names.items()}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    lm = load(folder)
    found = lm.embed(TEXTS)
    assert found.shape == (3, 16)
    theirs = load(folder, "transformers")
    ids = lm.special.around(lm.tokenizer.encode(TEXTS[0]))
    with torch.no_grad():
        vectors = theirs.model(torch.tensor([ids])).last_hidden_state[0].numpy()
    expected = {"mean": vectors.mean(0), "cls": vectors[0], "max": vectors.max(0)}[mode]
    assert_close(found[0], expected, "logits")
    assert_close(lm.embed(TEXTS[0]), found[0], "logits")  # alone as in a batch with padding
    assert lm.embed([]).shape == (0, 16)


def test_embeddings_are_normalised_without_a_rule(folders: dict[str, Path]) -> None:
    lm = load(folders["bert"], "torch")
    np.testing.assert_allclose(np.linalg.norm(lm.embed(TEXTS), axis=1), 1, atol=1e-6)
    with pytest.raises(ArgumentError, match="needs an encoder"):
        load(folders["llama"]).embed("a")


# --- bad folders --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGUAGES)
def test_bad_folders_are_refused_with_the_fix(lang: Any, tmp_path: Path) -> None:
    folder = llama(tmp_path / "llama")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(FileError) as caught:
        regard.load(folder)
    assert "pytorch_model.bin" in caught.value.text(lang)
    (folder / "pytorch_model.bin").unlink()
    index = {"metadata": {}, "weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(FileError, match="model-00001-of-00002"):
        regard.load(folder)


def without_weights(folder: Path, name: str) -> None:
    (folder / "model.safetensors").rename(folder / name)


def with_config(folder: Path, **changes: Any) -> None:
    about = json.loads((folder / "config.json").read_text(encoding="utf-8")) | changes
    kept = {name: value for name, value in about.items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(kept), encoding="utf-8")


def into_subfolder(folder: Path) -> None:
    (folder / "checkpoint-100").mkdir()
    for one in list(folder.iterdir()):
        if one.is_file():
            one.rename(folder / "checkpoint-100" / one.name)


def quantised_by_gptq(folder: Path) -> None:
    """As older folders have it: weights under a name of their own, and no quantization_config in config.json."""
    without_weights(folder, "gptq_model-4bit-128g.safetensors")
    (folder / "quantize_config.json").write_text('{"bits": 4, "group_size": 128}', encoding="utf-8")


def packed(folder: Path) -> None:
    """Packed weights under the usual name, and nothing beside them that says so."""
    name = "model.layers.0.self_attn.q_proj."
    parts = {"qweight": np.zeros((2, 16), np.int32), "qzeros": np.zeros((1, 2), np.int32)}
    save_file({name + part: array for part, array in parts.items()}, folder / "model.safetensors")


def packed_bloom(folder: Path) -> None:
    packed(folder)
    with_config(folder, model_type="bloom")


OTHER_FOLDERS: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "weights of TensorFlow": (lambda f: without_weights(f, "tf_model.h5"), "weights-other", "tf_model.h5"),
    "half downloaded": (lambda f: without_weights(f, "model.safetensors.incomplete"), "weights-other", "incomplete"),
    "shards without their index": (
        lambda f: without_weights(f, "model-00001-of-00001.safetensors"),
        "weights-without-index",
        "model.safetensors.index.json",
    ),
    "no config": (lambda f: (f / "config.json").unlink(), "model-no-config", "config.json"),
    "checkpoints of a training": (into_subfolder, "model-in-subfolder", "checkpoint-100"),
    "no model_type": (lambda f: with_config(f, model_type=...), "family-missing", "model_type"),
    "quantised": (
        lambda f: with_config(f, quantization_config={"quant_method": "awq", "bits": 4}),
        "config-quantised",
        "awq",
    ),
    "quantised, in a file of its own": (quantised_by_gptq, "weights-quantised", "quantize_config.json"),
    "packed weights": (packed, "weights-quantised", "q_proj.qweight"),
    "packed weights of another family": (packed_bloom, "weights-quantised", "q_proj.qweight"),
    "code of its own": (
        lambda f: with_config(f, model_type="chatglm", auto_map={"AutoModel": "modeling_chatglm.Model"}),
        "family-code",
        "regard.watch",
    ),
}


@pytest.mark.parametrize("name", OTHER_FOLDERS)
def test_other_folders_are_refused_with_the_fix(name: str, tmp_path: Path) -> None:
    change, key, part = OTHER_FOLDERS[name]
    change(llama(tmp_path / "model"))
    with pytest.raises(FileError) as caught:
        load(tmp_path / "model")
    assert caught.value.key == key
    assert all(part in caught.value.text(lang) for lang in LANGUAGES)


def test_a_file_of_the_folder_names_the_folder(tmp_path: Path) -> None:
    folder = llama(tmp_path / "model")
    with pytest.raises(FileError, match=f"use {folder}$"):
        load(folder / "model.safetensors")


def test_the_folder_of_the_cache_itself(tmp_path: Path) -> None:
    """models--org--name holds its revisions as links to its own files."""
    top, commit = tmp_path / "models--org--a name", "0" * 40
    llama(top / "blobs")
    (top / "snapshots" / commit).mkdir(parents=True)
    for one in (top / "blobs").iterdir():
        (top / "snapshots" / commit / one.name).symlink_to(Path("../../blobs") / one.name)
    assert load(top).see("The cat").trace
    (top / "refs").mkdir()
    (top / "refs" / "main").write_text(commit)
    assert load(top).folder == top / "snapshots" / commit


@pytest.mark.parametrize("name", ["bos_token_id", "pad_token_id"])
@pytest.mark.parametrize("value", [-1, 99_999])
def test_begin_and_padding_outside_of_the_vocabulary_are_none(name: str, value: int, tmp_path: Path) -> None:
    """Old conversions of Llama have pad_token_id -1; a model with fewer tokens keeps the bos_token_id of its origin."""
    folder = llama(tmp_path)
    with_config(folder, **{name: value})
    (folder / "generation_config.json").unlink()
    assert load(folder).see("The cat").trace


def test_a_failure_inside_transformers_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lm = load(llama(tmp_path), "transformers")

    def fail(*args: Any, **kwargs: Any) -> None:
        raise ValueError("get_seq_length can only be called on Attention layers")

    monkeypatch.setattr(lm.model, "forward", fail)
    for run in (lambda: lm.see("The cat"), lambda: lm.generate("The cat", max_new_tokens=2)):
        with pytest.raises(ArgumentError, match="transformers: get_seq_length"):
            run()


def test_ids_outside_of_the_vocabulary_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"eos_token_id must be 0 … \d+; found 99999"):
        regard.load(llama(tmp_path, eos_token_id=99_999))
