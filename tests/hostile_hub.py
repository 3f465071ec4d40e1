"""Folders in Hugging Face's layout that are invalid or hostile, each with what its refusal must say.

`FOLDERS[name]` changes a valid folder and gives a part of the message. Only small files are written.
"""

import json
import os
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 11,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "num_hidden_layers": 1,
    "intermediate_size": 6,
    "max_position_embeddings": 16,
    "tie_word_embeddings": True,
}
_SIZES: dict[str, Any] = {name: value for name, value in CONFIG.items() if name != "model_type"}
_GROUPED = _SIZES | {"num_key_value_heads": 1, "head_dim": 6, "num_hidden_layers": 2, "rope_theta": 1e4}
_WINDOWS = {"sliding_window": 3, "layer_types": ["sliding_attention", "full_attention"]}
_PAIR: dict[str, Any] = {
    "vocab_size": 11,
    "d_model": 8,
    "max_position_embeddings": 16,
    "is_encoder_decoder": True,
    "activation_function": "gelu",
    "scale_embedding": True,
    **{f"{side}_{name}": 2 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")},
    **{f"{side}_ffn_dim": 6 for side in ("encoder", "decoder")},
}
_LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
_ENCODER = _SIZES | {"num_key_value_heads": None, "hidden_act": "gelu", "layer_norm_eps": 1e-12}
_GEMMA = _GROUPED | _WINDOWS | {"query_pre_attn_scalar": 6, "hidden_activation": "gelu_pytorch_tanh"}
_GPT2 = {"vocab_size": 11, "n_embd": 8, "n_head": 2, "n_layer": 2, "n_positions": 16, "n_inner": None}
CONFIGS: dict[str, dict[str, Any]] = {
    "bart": _PAIR,
    "bert": _ENCODER | {"type_vocab_size": 2},
    "distilbert": {"vocab_size": 11, "dim": 8, "n_heads": 2, "n_layers": 2, "hidden_dim": 6},
    "gemma2": _GEMMA | {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    "gemma3_text": _GEMMA | {"rope_local_base_freq": 1e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    "gpt2": _GPT2 | {"activation_function": "gelu_new"},
    "gpt_neox": _SIZES | {"num_key_value_heads": None, "rotary_pct": 0.5, "use_parallel_residual": True},
    "llama": _GROUPED | {"rope_scaling": _LLAMA3 | {"original_max_position_embeddings": 8}, "attention_bias": True},
    "marian": _PAIR | {"activation_function": "swish", "decoder_vocab_size": 11},
    "mistral": _GROUPED | {"sliding_window": 4},
    "opt": _SIZES | {"ffn_dim": 6, "word_embed_proj_dim": 8, "do_layer_norm_before": True},
    "phi3": _SIZES | {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}},
    "qwen2": _SIZES | {"use_sliding_window": True, "max_window_layers": 1, "sliding_window": 4},
    "qwen3": _GROUPED | _WINDOWS | {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}, "use_sliding_window": True},
    "roberta": _ENCODER | {"type_vocab_size": 1, "max_position_embeddings": 18},
    "t5": {"vocab_size": 11, "d_model": 8, "d_kv": 4, "d_ff": 6, "num_heads": 2, "num_layers": 2}
    | {"feed_forward_proj": "gated-gelu", "relative_attention_num_buckets": 8, "is_encoder_decoder": True},
}
"""A small config.json of every family; `model_type` is its name."""
_LAYER = "model.layers.0"
SHAPES: dict[str, tuple[int, ...]] = {
    "model.embed_tokens.weight": (11, 8),
    f"{_LAYER}.input_layernorm.weight": (8,),
    **{f"{_LAYER}.self_attn.{part}_proj.weight": (8, 8) for part in "qkvo"},
    f"{_LAYER}.post_attention_layernorm.weight": (8,),
    f"{_LAYER}.mlp.gate_proj.weight": (6, 8),
    f"{_LAYER}.mlp.up_proj.weight": (6, 8),
    f"{_LAYER}.mlp.down_proj.weight": (8, 6),
    "model.norm.weight": (8,),
}
WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
EMBEDDING = "model.embed_tokens.weight"
Header = dict[str, Any]


def header(shapes: dict[str, tuple[int, ...]] | None = None) -> Header:
    """The header of a valid file with these tensors."""
    found, end = {}, 0
    for name, shape in (SHAPES if shapes is None else shapes).items():
        stop = end + 4 * int(np.prod(shape, dtype=int))
        found[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [end, stop]}
        end = stop
    return found


def size_of(about: Header) -> int:
    return max(entry["data_offsets"][1] for entry in about.values())


def content(about: Header | bytes, numbers: int | None = None) -> bytes:
    """A safetensors file with any header, also an invalid one, and that many bytes of numbers."""
    text = about if isinstance(about, bytes) else json.dumps(about).encode()
    count = size_of(header()) if numbers is None else numbers
    return len(text).to_bytes(8, "little") + text + bytes(count)


def write_valid(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / WHOLE).write_bytes(content(header()))


# --- changes ----------------------------------------------------------------------------------------------

Change = Callable[[Path], None]


def weights(data: bytes) -> Change:
    return lambda folder: none((folder / WHOLE).write_bytes(data))


def entry(name: str = EMBEDDING, **values: Any) -> Change:
    """One entry of the header changed; a value of ... removes a key."""

    def change(folder: Path) -> None:
        about = header()
        about[name] = {key: value for key, value in (about[name] | values).items() if value is not ...}
        (folder / WHOLE).write_bytes(content(about))

    return change


def config(**values: Any) -> Change:
    return lambda folder: none((folder / "config.json").write_text(json.dumps(CONFIG | values)))


def config_text(data: bytes) -> Change:
    return lambda folder: none((folder / "config.json").write_bytes(data))


def with_number(name: str, number: str) -> Change:
    """A number that Python's json would not write."""
    return config_text(json.dumps(CONFIG | {name: "@"}).replace('"@"', number).encode())


def adapter(base: Any, *, config: bool = True) -> Change:
    """An adapter in place of the weights, with the config.json of its base or without; bytes are its settings."""

    def change(folder: Path) -> None:
        (folder / WHOLE).rename(folder / "adapter_model.safetensors")
        if not config:
            (folder / "config.json").unlink()
        about = base if isinstance(base, bytes) else json.dumps({"base_model_name_or_path": base}).encode()
        (folder / "adapter_config.json").write_bytes(about)

    return change


def split(folder: Path, names: Iterable[str] = ("a.safetensors", "b.safetensors")) -> dict[str, Any]:
    """The valid model in two files, with their index, which is returned."""
    (folder / WHOLE).unlink()
    half, parts = len(SHAPES) // 2, list(SHAPES.items())
    weight_map: dict[str, str] = {}
    for name, part in zip(names, (dict(parts[:half]), dict(parts[half:])), strict=True):
        (folder / name).write_bytes(content(header(part), size_of(header(part))))
        weight_map |= dict.fromkeys(part, name)
    index = {"metadata": {"total_size": size_of(header())}, "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(index))
    return index


def index(change: Callable[[dict[str, Any]], Any]) -> Change:
    """The model in two files, with a changed index."""

    def changed(folder: Path) -> None:
        about = split(folder)
        change(about["weight_map"])
        (folder / INDEX).write_text(json.dumps(about))

    return changed


def shard(name: str) -> Change:
    """An index that names this file; where it is a valid path, a file is there: it must not be opened."""

    def change(folder: Path) -> None:
        about = split(folder)
        about["weight_map"][EMBEDDING] = name
        (folder / INDEX).write_text(json.dumps(about))
        (folder.parent / "secret.safetensors").write_bytes(content(header()))

    return change


def index_text(data: bytes | Callable[[], bytes]) -> Change:
    def change(folder: Path) -> None:
        split(folder)
        (folder / INDEX).write_bytes(data if isinstance(data, bytes) else data())

    return change


def instead(make: Callable[[Path], Any], name: str = WHOLE) -> Change:
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return change


def both_shards(folder: Path) -> None:
    split(folder)
    part = {EMBEDDING: SHAPES[EMBEDDING]} | dict(list(SHAPES.items())[len(SHAPES) // 2 :])
    (folder / "b.safetensors").write_bytes(content(header(part), size_of(header(part))))


def only_pickle(folder: Path) -> None:
    (folder / WHOLE).rename(folder / "pytorch_model.bin")


def listening(path: Path) -> None:
    # A socket's path is limited to about 100 bytes, so it is bound from its folder.
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(before)


def none(_: object) -> None:
    """For a lambda that returns nothing."""


def of_many(count: int) -> bytes:
    return json.dumps({"weight_map": {f"t{i}": f"{i}.safetensors" for i in range(count)}}).encode()


HUGE = "9" * 400
DEEP = b'{"model_type": "llama", "x": ' + b"[" * 200 + b"]" * 200 + b"}"
FOLDERS: dict[str, tuple[Change, str]] = {
    # F1 to F3: no header, or not one
    "empty weights": (weights(b""), "empty"),
    "one byte": (weights(b"\x01"), "header"),
    "seven bytes": (weights(bytes(7)), "header"),
    "header longer than the file": (weights((10**6).to_bytes(8, "little") + b"{}"), "header"),
    "header of 2^63 bytes": (weights((2**63).to_bytes(8, "little") + b"{" + bytes(64)), "header"),
    "header of 100 MB": (weights((10**8).to_bytes(8, "little") + b"{" + bytes(64)), "header"),
    "header not UTF-8": (weights(content(b'{"\xff\xfe": 1}')), "header"),
    "header not JSON": (weights(content(b'{"a": ')), "header"),
    "header a list": (weights(content(b"{}".replace(b"{}", b'["a"]'))), "header"),
    # F4 to F9: the entries
    "a name twice": (weights(content(b'{"a": {}, "a": {}}')), "header, a"),
    "hole": (entry(data_offsets=[4, 356]), EMBEDDING),
    "overlap": (entry("model.norm.weight", data_offsets=[0, 32]), "model"),
    "bytes after the last tensor": (weights(content(header(), size_of(header()) + 8)), "cut off|complete|bytes|B"),
    "cut in the numbers": (weights(content(header())[:-8]), "cut off|complete|bytes|B"),
    "cut in the header": (weights(content(header())[:60]), "header"),
    "begin after end": (entry(data_offsets=[352, 0]), EMBEDDING),
    "other number of bytes": (entry(shape=[11, 9]), EMBEDDING),
    "negative size": (entry(shape=[-11, -8]), EMBEDDING),
    "product overflows": (entry(shape=[2**32, 2**32]), EMBEDDING),
    "2^62 times 0": (entry(shape=[2**62, 0], data_offsets=[0, 0]), EMBEDDING),
    "size with a point": (entry(shape=[11.0, 8]), EMBEDDING),
    "size as text": (entry(shape=["11", 8]), EMBEDDING),
    "nine axes": (entry(shape=[1] * 7 + [11, 8]), EMBEDDING),
    "10,000 axes": (entry(shape=[1] * 10_000 + [11, 8]), EMBEDDING),
    "true as a size": (entry(shape=[True, 88]), EMBEDDING),
    "unknown dtype": (entry(dtype="F8_E4M3"), "F8_E4M3"),
    "dtype as a number": (entry(dtype=4), EMBEDDING),
    "no dtype": (entry(dtype=...), EMBEDDING),
    "no offsets": (entry(data_offsets=...), EMBEDDING),
    "one more key": (entry(stride=[0, 0]), EMBEDDING),
    "integers for weights": (entry(dtype="I32"), "I32"),
    "8-bit integers for weights": (
        weights(content({EMBEDDING: {"dtype": "I8", "shape": [352], "data_offsets": [0, 352]}}, 352)),
        "missing",
    ),
    "200,000 tensors": (
        weights(content(b"{" + b",".join(b'"%d":{}' % n for n in range(200_000)) + b"}", 2**23)),
        "header",
    ),
    # F10, F11: not the tensors of this config
    "other shape": (
        weights(content(header(SHAPES | {"model.norm.weight": (9,)}), size_of(header()) + 4)),
        "decoder.norm.weight",
    ),
    "a number for a table": (
        weights(content(header(SHAPES | {EMBEDDING: ()}), size_of(header(SHAPES | {EMBEDDING: ()})))),
        "embedding.weight",
    ),
    "missing tensors": (
        weights(content(header({EMBEDDING: (11, 8)}), 352)),
        "10 weights are missing|missing",
    ),
    "unknown tensors": (
        weights(content(header(SHAPES | {f"x.{i}": () for i in range(7)}), size_of(header()) + 28)),
        "x.0",
    ),
    "a layer too far": (
        weights(content(header(SHAPES | {"model.layers.999999999999.mlp.up_proj.weight": (6, 8)}), None)),
        "B|cut",
    ),
    # F13: other formats
    "pickle": (weights(b"\x80\x04\x95" + bytes(64)), "pickle"),
    "torch archive": (weights(b"PK\x03\x04" + bytes(22) + b"\x10\0\0\0archive/data.pkl" + bytes(64)), "PyTorch|torch"),
    "pickle beside the config": (only_pickle, "pickle"),
    "GGUF": (weights(b"GGUF\x03\0\0\0" + bytes(64)), "GGUF"),
    "NumPy": (weights(b"\x93NUMPY\x01\0" + bytes(64)), "NumPy"),
    "web page": (weights(b"<!DOCTYPE html><html><body>404</body></html>"), "page|HTML"),
    "LFS pointer": (weights(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"), "git lfs pull"),
    "HDF5": (weights(b"\x89HDF\r\n\x1a\n" + bytes(64)), "HDF5"),
    "gzip": (weights(b"\x1f\x8b\x08\0" + bytes(64)), "archive|compressed"),
    "zeros": (weights(bytes(4096)), "zero"),
    # F14: not regular files
    "folder for weights": (instead(Path.mkdir), "folder"),
    "FIFO": (instead(os.mkfifo), "FIFO|pipe"),
    "socket": (instead(listening), "socket"),
    "device": (instead(lambda path: path.symlink_to("/dev/zero")), "/dev/zero|device"),
    "link to nothing": (instead(lambda path: path.symlink_to("nothing")), WHOLE),
    "link to itself": (instead(lambda path: path.symlink_to(path.name)), WHOLE),
    "link out of the folder": (instead(lambda path: path.symlink_to("/etc/passwd")), "/etc/passwd"),
    "config a FIFO": (instead(os.mkfifo, "config.json"), "FIFO|pipe"),
    "config a link out": (instead(lambda path: path.symlink_to("/etc/passwd"), "config.json"), "/etc/passwd"),
    "no weights": (lambda folder: (folder / WHOLE).unlink(), "no weights"),
    # F15 to F21: the index
    "shard above": (shard("../secret.safetensors"), "secret"),
    "shard above, Windows": (shard("..\\secret.safetensors"), "secret"),
    "shard in a folder": (shard("more/a.safetensors"), "more/a"),
    "shard at an absolute path": (shard("/etc/passwd"), "/etc/passwd"),
    "shard on a drive": (shard("C:a.safetensors"), "C:a"),
    "shard on a share": (shard("\\\\host\\a.safetensors"), "host"),
    "shard with NUL": (shard("a.safetensors\0.safetensors"), "a.safetensors"),
    "shard with a line break": (shard("a\n.safetensors"), "safetensors"),
    "shard a device of Windows": (shard("NUL.safetensors"), "NUL"),
    "shard a URL": (shard("https://example.org/a.safetensors"), "example.org"),
    "shard hidden": (shard(".safetensors"), "safetensors"),
    "shard a pickle": (shard("pytorch_model.bin"), "pytorch_model.bin"),
    "shard with a long name": (shard("a" * 5000 + ".safetensors"), "aaa"),
    "shard missing": (index(lambda found: found.update({EMBEDDING: "c.safetensors"})), "c.safetensors"),
    "shard a number": (index(lambda found: found.update({EMBEDDING: 7})), "7"),
    "shard null": (index(lambda found: found.update({EMBEDDING: None})), "None"),
    "tensor in two shards": (both_shards, EMBEDDING),
    "tensor in the other shard": (index(lambda found: found.update({EMBEDDING: "b.safetensors"})), EMBEDDING),
    "tensor in no shard": (index(lambda found: found.update({"more": "a.safetensors"})), "more"),
    "tensor not listed": (index(lambda found: found.pop(EMBEDDING)), EMBEDDING),
    "index a list": (index_text(b"[]"), "weight_map"),
    "index empty": (index_text(b'{"weight_map": {}}'), "weight_map"),
    "index of lists": (index_text(b'{"weight_map": [["a", "b"]]}'), "weight_map"),
    "index not JSON": (index_text(b'{"weight_map": {'), INDEX),
    "20,000 shards": (index_text(lambda: of_many(20_000)), "weight_map"),
    "200,000 tensors listed": (index_text(lambda: of_many(200_000)), "weight_map"),
    # F22: not a config
    "config a list": (config_text(b"[1, 2]"), "config.json"),
    "config a word": (config_text(b'"llama"'), "config.json"),
    "config empty": (config_text(b""), "empty"),
    "config of 2 MB": (config_text(json.dumps(CONFIG | {"x": "y" * 2**21}).encode()), "2.0 MB|MB|MiB"),
    "config 200 deep": (config_text(DEEP), "64"),
    "config 100,000 deep": (config_text(b"[" * 100_000), "config.json"),
    "a key twice": (config_text(json.dumps(CONFIG)[:-1].encode() + b', "vocab_size": 12}'), "vocab_size"),
    "byte order mark": (config_text(b"\xef\xbb\xbf" + json.dumps(CONFIG).encode()), "1:1"),
    "config in UTF-16": (config_text(json.dumps(CONFIG).encode("utf-16")), "UTF-16"),
    "config a pickle": (config_text(b"\x80\x04\x95" + bytes(64)), "pickle"),
    "NaN": (with_number("rms_norm_eps", "NaN"), "NaN"),
    "Infinity": (with_number("rms_norm_eps", "Infinity"), "Infinity"),
    "an integer of 5,000 digits": (with_number("vocab_size", "9" * 5000), "JSON"),
    # F23: numbers that no model has
    "1,000,000 layers": (config(num_hidden_layers=10**6), "num_hidden_layers"),
    "10^18 layers of Qwen": (config(model_type="qwen2", num_hidden_layers=10**18), "num_hidden_layers"),
    "10^9 layers of Gemma": (config(model_type="gemma2", num_hidden_layers=10**9), "num_hidden_layers"),
    "no layers": (config(num_hidden_layers=0), "num_hidden_layers"),
    "less than no layers": (config(num_hidden_layers=-1), "num_hidden_layers"),
    "a width of 400 digits": (with_number("hidden_size", HUGE), "hidden_size"),
    "a width of 2^24": (config(hidden_size=2**24), "d_model"),
    "10^12 words": (config(vocab_size=10**12), "vocab_size"),
    "10^7 words": (config(vocab_size=10**7), "vocab_size"),
    "10^9 positions": (config(max_position_embeddings=10**9), "max_position_embeddings"),
    "heads that do not divide": (config(num_attention_heads=3), "num_attention_heads = 3"),
    "key heads that do not divide": (config(num_attention_heads=4, num_key_value_heads=3), "num_key_value_heads = 3"),
    "text for a number": (config(hidden_size="8"), "hidden_size"),
    "a list for a number": (config(hidden_size=[8]), "hidden_size"),
    "true for a number": (config(num_attention_heads=True), "num_attention_heads"),
    "a point in a number": (config(num_attention_heads=2.0), "num_attention_heads"),
    "text for a flag": (config(tie_word_embeddings="yes"), "tie_word_embeddings"),
    # F24 to F27
    "unknown family": (config(model_type="../../evil"), "llama"),
    "no family": (config(model_type=None), "model_type"),
    "family a list": (config(model_type=["llama"]), "model_type"),
    "unknown activation": (config(hidden_act="__import__('os')"), "hidden_act"),
    "activation null in a list": (config(hidden_act=[None]), "hidden_act"),
    "unknown rope": (config(rope_scaling={"rope_type": "longrope"}), "longrope"),
    "rope a list": (config(rope_scaling=["linear"]), "rope_scaling"),
    "rope with an unknown key": (config(rope_scaling={"rope_type": "linear", "factor": 2, "spin": 1}), "spin"),
    "rope factor 0": (config(rope_scaling={"rope_type": "linear", "factor": 0}), "factor"),
    "rope factor 1e999": (with_number("rope_scaling", '{"rope_type": "linear", "factor": 1e999}'), "factor"),
    "rope base below 0": (config(rope_theta=-1.0), "rope_theta"),
    "eps 0": (config(rms_norm_eps=0), "rms_norm_eps"),
    "eps below 0": (config(rms_norm_eps=-1e-6), "rms_norm_eps"),
    "eps 1e999": (with_number("rms_norm_eps", "1e999"), "rms_norm_eps"),
    "eps as text": (config(rms_norm_eps="1e-6"), "rms_norm_eps"),
    # F37: changes of another model, whose name is never followed
    "an adapter": (adapter("meta-llama/Llama-3.2-1B", config=False), "adapter.*Llama-3.2-1B.*merge"),
    "an adapter beside a config": (adapter("a/b"), "adapter.*'a/b'"),
    "an adapter of an absolute path": (adapter("/etc/passwd"), "adapter.*'/etc/passwd'"),
    "an adapter of a folder outside": (adapter("../secret"), "adapter"),
    "an adapter of a list": (adapter(["x" * 10**5]), "adapter"),
    "an adapter that is not JSON": (adapter(b"\x1b[2J", config=False), "adapter_config.json"),
    "quantised": (config(quantization_config={"quant_method": "awq"}), "quantization_config"),
    "pruned": (config(pruned_heads={"0": [1]}), "pruned_heads"),
}

HARMLESS: dict[str, Change] = {
    "code beside it": lambda folder: none(
        ((folder / "modeling.py").write_text("raise SystemExit"), config(auto_map={"AutoModel": "modeling.M"})(folder))
    ),
    "remote code trusted": config(trust_remote_code=True, auto_map={"AutoModel": "evil--model.M"}),
    "a kernel from elsewhere": config(_attn_implementation_internal="evil/kernel", use_kernels=True),
    "a size of the index that lies": lambda folder: none(
        (folder / INDEX).write_text(json.dumps(split(folder) | {"metadata": {"total_size": -5}}))
    ),
}
"""Folders that are read, and whose other contents must never be used."""


# --- folders that the package transformers computes ---------------------------------------------------------


def changed(**values: Any) -> Change:
    """Keys of config.json changed; a value of ... removes one."""

    def change(folder: Path) -> None:
        about = json.loads((folder / "config.json").read_text()) | values
        (folder / "config.json").write_text(json.dumps({key: one for key, one in about.items() if one is not ...}))

    return change


def beside(name: str, value: Any) -> Change:
    """One more file, or another content of one: text, bytes or a value to write as JSON."""

    def change(folder: Path) -> None:
        data = value if isinstance(value, bytes) else (value if isinstance(value, str) else json.dumps(value)).encode()
        (folder / name).write_bytes(data)

    return change


CODE = "import os\nos.system('touch evil')\nraise SystemExit"
REMOTE = {"AutoConfig": "modeling_evil.C", "AutoModelForCausalLM": "modeling_evil.M"}


def with_code(**values: Any) -> Change:
    def change(folder: Path) -> None:
        (folder / "modeling_evil.py").write_text(CODE)
        changed(**values)(folder)

    return change


def renamed_tensor(folder: Path) -> None:
    """A tensor of the last layer has another name: the model would have random numbers in its place."""
    data = (folder / WHOLE).read_bytes()
    assert data.count(b"transformer.h.1.attn.k_proj.weight") == 1
    (folder / WHOLE).write_bytes(
        data.replace(b"transformer.h.1.attn.k_proj.weight", b"transformer.h.1.attn.k_prox.weight")
    )


def shard_outside(folder: Path) -> None:
    (folder / WHOLE).rename(folder.parent / "secret.safetensors")
    beside(INDEX, {"weight_map": {"transformer.wte.weight": "../secret.safetensors"}})(folder)


def code_to_generate(folder: Path) -> None:
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "generate.py").write_text(CODE)


OTHER_FOLDERS: dict[str, tuple[Change, str]] = {
    "a layer more than there is": (changed(n_layer=3), "wt|weights|numbers"),
    "no layers": (changed(n_layer=0), "n_layer"),
    "fewer layers than none": (changed(n_layer=-1), "n_layer"),
    "10,000 layers": (changed(n_layer=10_000), "n_layer"),
    "10^6 layers": (changed(n_layer=10**6), "n_layer"),
    "10^30 layers": (changed(n_layer=10**30), "n_layer"),
    "layers as text": (changed(n_layer="2"), "n_layer"),
    "layers with a point": (changed(n_layer=2.5), "n_layer"),
    "2 10^7 words": (changed(vocab_size=2 * 10**7), "vocab_size"),
    "10^12 words": (changed(vocab_size=10**12), "vocab_size"),
    "words below 0": (changed(vocab_size=-5), "vocab_size"),
    "twice as many words": (changed(vocab_size=600), "numbers|weights|size|mismatch"),
    "width 2^24": (changed(n_embd=2**24), "n_embd"),
    "width below 0": (changed(n_embd=-16), "n_embd"),
    "twice as wide": (changed(n_embd=32), "numbers|weights|size|mismatch"),
    "10^9 positions": (changed(n_positions=10**9), "n_positions"),
    "10^7 positions": (changed(n_positions=10**7), "numbers"),
    "a number of 400 digits": (changed(n_inner=10**400), "n_inner"),
    "heads that do not divide": (changed(n_head=5), "transformers"),
    "no heads": (changed(n_head=0), "transformers"),
    "an unknown activation": (changed(activation_function="__import__('os')"), "transformers"),
    "an activation that is a list": (changed(activation_function=["gelu"]), "transformers"),
    "GPTQ": (changed(quantization_config={"quant_method": "gptq", "bits": 4}), "quantization_config"),
    "quantisation of unknown kind": (changed(quantization_config={"quant_method": "evil"}), "quantization_config"),
    "quantisation as text": (changed(quantization_config="../evil"), "quantization_config"),
    "a family of elsewhere": (with_code(model_type="evilx", auto_map=REMOTE), "evilx"),
    "a family as a path": (changed(model_type="../../evil"), "evil"),
    "a family as a list": (changed(model_type=["gptj"]), "model_type"),
    "a tensor of another name": (renamed_tensor, r"1 weights.*transformer\.h\.1\.attn\.k_proj\.weight"),
    "architectures as a number": (changed(architectures=5, n_layer=3), "weights|numbers"),
    "cut weights": (lambda folder: none((folder / WHOLE).write_bytes((folder / WHOLE).read_bytes()[:-40])), "safetens"),
    "pickled weights": (only_pickle, "pickle"),
    "a shard outside": (
        shard_outside,
        "secret",
    ),
    # The files beside the weights
    "tokenizer cut": (beside("tokenizer.json", '{"version": "1.0", "model"'), "tokenizer.json"),
    "tokenizer a list": (beside("tokenizer.json", "[]"), "tokenizer.json"),
    "tokenizer a link out": (
        instead(lambda path: path.symlink_to("/etc/passwd"), "tokenizer.json"),
        "/etc/passwd",
    ),
    "tokenizer settings not JSON": (beside("tokenizer_config.json", "{'a': 1}"), "tokenizer_config.json"),
    "tokenizer settings a list": (beside("tokenizer_config.json", "[1]"), "tokenizer_config.json"),
    "tokenizer settings of 20 MB": (beside("tokenizer_config.json", b" " * (20 * 2**20)), "tokenizer_config.json"),
    "generation settings not JSON": (beside("generation_config.json", "{"), "generation_config.json"),
    "temperature below 0": (beside("generation_config.json", {"temperature": -1}), "temperature"),
    "temperature as text": (beside("generation_config.json", {"temperature": "hot"}), "temperature"),
    "10^9 beams": (beside("generation_config.json", {"num_beams": 10**9}), "num_beams"),
    "10^12 new tokens": (beside("generation_config.json", {"max_new_tokens": 10**12}), "max_new_tokens"),
    "an end outside the vocabulary": (beside("generation_config.json", {"eos_token_id": 10**9}), "eos_token_id"),
    "10^5 ends": (beside("generation_config.json", {"eos_token_id": [1] * 10**5}), "eos_token_id"),
    "a chat template of 2 MB": (beside("chat_template.jinja", b"x" * 2**21), "chat_template.jinja"),
    "a chat template not UTF-8": (beside("chat_template.jinja", b"\xff\xfe\x00"), "chat_template.jinja"),
}
"""Changes of a folder of GPT-J, and a part of the message of `regard.load`."""

OTHER_HARMLESS: dict[str, Change] = {
    "remote code": with_code(auto_map=REMOTE, trust_remote_code=True),
    "remote code of another repository": changed(auto_map={"AutoModelForCausalLM": "evil--model.M"}),
    "nested remote code": changed(more_config={"trust_remote_code": True, "auto_map": {"AutoConfig": "evil--m.C"}}),
    "a kernel of the hub": changed(_attn_implementation="evil/kernel"),
    "a kernel of the hub, new name": changed(attn_implementation="kernels-community/evil"),
    "a kernel inside": changed(_attn_implementation_internal="evil/kernel", use_kernels=True),
    "experts of the hub": changed(_experts_implementation="evil/experts", experts_implementation="evil/experts"),
    "another name and path": changed(_name_or_path="evil/evil", _commit_hash="0" * 40),
    "a plan for several machines": changed(base_model_tp_plan={"x": "y"}, base_model_pp_plan={"x": [["a"], ["b"]]}),
    "a dtype that does not exist": changed(dtype="evil", torch_dtype="evil"),
    "code of a tokenizer": lambda folder: none(
        (
            (folder / "modeling_evil.py").write_text(CODE),
            beside(
                "tokenizer_config.json",
                {"tokenizer_class": "Evil", "auto_map": {"AutoTokenizer": ["modeling_evil.T", None]}},
            )(folder),
        )
    ),
    "code of a generation": code_to_generate,
}
"""Changes that are loaded, and whose other contents must never be used."""
