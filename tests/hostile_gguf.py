"""GGUF files that are invalid or hostile, written byte by byte, each with what its refusal must say."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

U32, F32, BOOL, STRING, LIST, U64 = 4, 6, 7, 8, 9, 10
NAME = "model.gguf"


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def value(given: Any) -> bytes:
    """A value with its type; bytes are used as they are."""
    match given:
        case bytes():
            return given
        case bool():
            return struct.pack("<I?", BOOL, given)
        case int():
            return struct.pack("<II", U32, given)
        case float():
            return struct.pack("<If", F32, given)
        case str():
            return struct.pack("<I", STRING) + text(given)
        case list():
            inside = b"".join(map(text, given))
            return struct.pack("<IIQ", LIST, STRING, len(given)) + inside
    raise TypeError(given)


METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.context_length": 16,
    "llama.embedding_length": 8,
    "llama.feed_forward_length": 6,
    "llama.block_count": 1,
    "llama.attention.head_count": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}
SHAPES: dict[str, tuple[int, ...]] = {
    "token_embd.weight": (11, 8),
    "blk.0.attn_norm.weight": (8,),
    **{f"blk.0.attn_{part}.weight": (8, 8) for part in ("q", "k", "v", "output")},
    "blk.0.ffn_norm.weight": (8,),
    "blk.0.ffn_gate.weight": (6, 8),
    "blk.0.ffn_up.weight": (6, 8),
    "blk.0.ffn_down.weight": (8, 6),
    "output_norm.weight": (8,),
}


def tensors(shapes: dict[str, tuple[int, ...]] | None = None) -> dict[str, list[Any]]:
    """The entries of float32 tensors: shape, type and offset by name."""
    found, end = {}, 0
    for name, shape in (SHAPES if shapes is None else shapes).items():
        found[name] = [shape, 0, end]
        end += -(-4 * int(np.prod(shape, dtype=int)) // 32) * 32
    return found


def entry(name: str, shape: Any, kind: int, offset: int) -> bytes:
    sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
    return text(name) + sizes + struct.pack("<IQ", kind, offset)


def content(
    metadata: dict[str, Any] | None = None,
    entries: dict[str, list[Any]] | None = None,
    *,
    head: bytes = b"GGUF\3\0\0\0",
    counts: tuple[int, int] | None = None,
    data: int | None = None,
) -> bytes:
    """A file with these parts; without arguments a valid one."""
    about = METADATA | (metadata or {})
    about = {name: one for name, one in about.items() if one is not ...}
    entries = tensors() if entries is None else entries
    header = head + struct.pack("<QQ", *(counts or (len(entries), len(about))))
    header += b"".join(text(name) + value(one) for name, one in about.items())
    header += b"".join(entry(name, *one) for name, one in entries.items())
    size = max((one[2] + 4 * int(np.prod(one[0], dtype=float)) for one in tensors().values()), default=0)
    return header + bytes(-len(header) % 32) + bytes(size if data is None else data)


def changed(name: str = "blk.0.attn_q.weight", **values: Any) -> bytes:
    """One entry with another shape, type or offset."""
    entries = tensors()
    for number, key in enumerate(("shape", "kind", "offset")):
        entries[name][number] = values.get(key, entries[name][number])
    return content(entries=entries)


def strings(count: int, of: bytes = text("")) -> bytes:
    return struct.pack("<IIQ", LIST, STRING, count) + of * min(count, 2_000_000)


def numbers(kind: int, count: int, raw: bytes = b"") -> bytes:
    return struct.pack("<IIQ", LIST, kind, count) + raw


TOKENS = "tokenizer.ggml.tokens"
FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "gguf: nothing but its name": (lambda: b"GGUF", "4 B"),
    "gguf: empty": (lambda: b"", "empty"),
    "gguf: three bytes": (lambda: b"GGU", "GGU|B,"),
    "gguf: other file": (lambda: b"PK\3\4" + bytes(90), "archive|compressed|zip"),
    "gguf: old version": (lambda: content(head=b"GGUF\1\0\0\0"), "'1'"),
    "gguf: future version": (lambda: content(head=b"GGUF\x63\0\0\0"), "'99'"),
    "gguf: big-endian": (lambda: content(head=b"GGUF\0\0\0\3"), "big-endian"),
    "gguf: old format": (lambda: b"lmgg" + content()[4:], "lmgg"),
    "gguf: cut in the header": (lambda: content()[:200], "200 B"),
    "gguf: cut in the data": (lambda: content(data=1000), "1000 B|1,000 B"),
    "gguf: trailing bytes": (lambda: content() + bytes(4096), "…"),
    "gguf: 2^63 tensors": (lambda: content(counts=(2**63, 7)), "tensors"),
    "gguf: a million tensors": (lambda: content(counts=(10**6, 7)), "1,000,000"),
    "gguf: 2^63 values": (lambda: content(counts=(11, 2**63)), "metadata"),
    "gguf: more values than there are": (lambda: content(counts=(11, 60)), "."),
    "gguf: name of 2^60 bytes": (lambda: content(head=b"GGUF\3\0\0\0", data=0)[:24] + b"\xff" * 8, "metadata"),
    "gguf: name of 300 bytes": (lambda: content({"a" * 300: 1}), "300"),
    "gguf: name that is not UTF-8": (
        lambda: content().replace(b"llama.block_count", b"llama.block_cou\xff\xfe"),
        "metadata",
    ),
    "gguf: text of 2^60 bytes": (lambda: content({"x": struct.pack("<IQ", STRING, 2**60)}), "x"),
    "gguf: a type of value that is not known": (lambda: content({"x": struct.pack("<I", 77)}), "x"),
    "gguf: list of lists": (lambda: content({"x": numbers(LIST, 1, bytes(24))}), "x"),
    "gguf: 2^62 numbers": (lambda: content({"x": numbers(F32, 2**62)}), "x"),
    "gguf: list longer than the file": (lambda: content({"x": numbers(F32, 10**6)}), "MiB|MB|GiB"),
    "gguf: 2^40 strings": (lambda: content({TOKENS: strings(2**40, b"")}), "tokens"),
    "gguf: two million strings": (lambda: content({TOKENS: strings(2_000_000)}), "2,000,000"),
    "gguf: a string of 2^50 bytes in a list": (
        lambda: content({TOKENS: strings(1, struct.pack("<Q", 2**50))}),
        "tokens",
    ),
    "gguf: the same value twice": (
        lambda: content({"llama.xlock_count": 1}).replace(b"llama.xlock_count", b"llama.block_count"),
        "block_count",
    ),
    "gguf: no architecture": (lambda: content({"general.architecture": ...}), "None"),
    "gguf: another architecture": (lambda: content({"general.architecture": "os.system"}), "os.system"),
    "gguf: an architecture that is a number": (lambda: content({"general.architecture": 3}), "'3'"),
    "gguf: no block_count": (lambda: content({"llama.block_count": ...}), "block_count"),
    "gguf: a million layers": (lambda: content({"llama.block_count": 10**6}), "num_hidden_layers"),
    "gguf: no layers": (lambda: content({"llama.block_count": 0}), "num_hidden_layers"),
    "gguf: layers as text": (lambda: content({"llama.block_count": "12"}), "num_hidden_layers"),
    "gguf: no heads": (lambda: content({"llama.attention.head_count": 0}), "num_attention_heads"),
    "gguf: heads that do not divide": (lambda: content({"llama.attention.head_count": 3}), "3"),
    "gguf: heads that differ": (
        lambda: content({"llama.attention.head_count": numbers(U32, 2, struct.pack("<II", 2, 4))}),
        "head_count",
    ),
    "gguf: an empty list of heads": (lambda: content({"llama.attention.head_count": numbers(U32, 0)}), "head_count"),
    "gguf: eps is NaN": (
        lambda: content({"llama.attention.layer_norm_rms_epsilon": float("nan")}),
        "rms_norm_eps",
    ),
    "gguf: width beyond 32 bits": (
        lambda: content({"llama.embedding_length": struct.pack("<IQ", U64, 2**40)}),
        "hidden_size",
    ),
    "gguf: base is infinite": (lambda: content({"llama.rope.freq_base": float("inf")}), "rope_theta"),
    "gguf: another kind of scaling": (lambda: content({"llama.rope.scaling.type": "x"}), "scaling"),
    "gguf: experts": (lambda: content({"llama.expert_count": 8}), "expert_count"),
    "gguf: one part of three": (lambda: content({"split.count": 3}), "gguf-split"),
    "gguf: alignment 0": (lambda: content({"general.alignment": 0}), "alignment"),
    "gguf: alignment 24": (lambda: content({"general.alignment": 24}), "alignment"),
    "gguf: alignment as text": (lambda: content({"general.alignment": "32"}), "alignment"),
    "gguf: no axes": (lambda: changed(shape=()), "attn_q"),
    "gguf: 2^31 axes": (
        lambda: content().replace(
            text("blk.0.attn_q.weight") + b"\2\0\0\0", text("blk.0.attn_q.weight") + b"\0\0\0\x80"
        ),
        "attn_q",
    ),
    "gguf: a size of 2^63": (lambda: changed(shape=(2**63, 2)), "attn_q"),
    "gguf: sizes whose product overflows": (lambda: changed(shape=(2**31 - 1, 2**31 - 1, 2**31 - 1)), "attn_q"),
    "gguf: a size of 0": (lambda: changed(shape=(0, 8)), "attn_q|attn_k"),
    "gguf: another shape": (lambda: changed(shape=(4, 16)), "self_attention"),
    "gguf: a type that is not known": (lambda: changed(kind=9999), "9999"),
    "gguf: whole numbers": (lambda: changed(kind=26), "I32"),
    "gguf: a row that is no whole block": (lambda: changed(kind=8), "attn_q"),
    "gguf: an offset beyond the file": (lambda: changed(offset=2**40), "attn_q|attn_k"),
    "gguf: an offset of 2^64 - 1": (lambda: changed(offset=2**64 - 1), "attn_q"),
    "gguf: an offset that is not aligned": (lambda: changed(offset=353), "attn_q"),
    "gguf: two tensors at one place": (lambda: changed(offset=tensors()["blk.0.attn_k.weight"][2]), "attn_"),
    "gguf: the same tensor twice": (
        lambda: content().replace(b"blk.0.attn_q.weight", b"blk.0.attn_k.weight"),
        "attn_k",
    ),
    "gguf: a tensor that is missing": (
        lambda: content(entries=tensors({name: SHAPES[name] for name in list(SHAPES)[:-1]}), data=2000),
        "norm|…|cut|B",
    ),
    "gguf: a tensor that no family has": (
        lambda: content().replace(b"blk.0.attn_q.weight", b"blk.0.attn_z.weight"),
        "attn_z",
    ),
    "gguf: a tensor of a layer that is not there": (
        lambda: content().replace(b"blk.0.attn_q.weight", b"blk.9.attn_q.weight"),
        r"q_proj",
    ),
}
HARMLESS = {"gguf: a valid file": content}


def write(folder: Path, make: Callable[[], bytes]) -> None:
    """The file in place of the other files of a folder."""
    for path in folder.iterdir():
        path.unlink()
    (folder / NAME).write_bytes(make())
