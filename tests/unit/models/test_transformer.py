"""The Transformer of every family: weights, NumPy parity, records, files, devices, dtypes, errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import CONFIGS, DECODERS, random_ids, random_weights, torch_model
from narrowing import present
from public_folders import gpt2, llama
from tolerances import assert_close, assert_same_bits

from regard import Mask, See, reference
from regard.checkpoints import read_model
from regard.checkpoints.tensor_file import Weights, write_tensors
from regard.config import TransformerConfig
from regard.config.weights import weight_shapes
from regard.errors import RegardError
from regard.models import Transformer
from regard.models.inputs import full_span
from regard.models.transformer import stored_tensors
from regard.trace import Recorder

TRANSLATORS = [name for name, config in CONFIGS.items() if config.kind == "encoder-decoder"]


def model_called(name: str, dtype: str = "float32", seed: int = 0) -> Transformer:
    return torch_model(CONFIGS[name], random_weights(CONFIGS[name], seed, dtype))


def texts_of(model: Transformer, T: int = 9, S: int = 7) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Ids, and a source for an encoder-decoder; vectors without a vocabulary."""
    config, dtype = model.config, next(model.parameters()).dtype

    def given(length: int, source: bool) -> torch.Tensor:
        x = torch.from_numpy(random_ids(config, (2, length), seed=length, source=source))
        return x if config.vocab_size is not None else x.to(dtype)

    return given(T, False), given(S, True) if config.kind == "encoder-decoder" else None


@pytest.mark.parametrize("name", CONFIGS)
def test_weights_have_the_names_and_shapes_of_the_config(name: str) -> None:
    found = {weight: tuple(x.shape) for weight, x in Transformer(CONFIGS[name]).state_dict().items()}
    assert found == weight_shapes(CONFIGS[name])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONFIGS)
def test_torch_and_numpy_agree(name: str, dtype: str) -> None:
    model = model_called(name, dtype)
    ids, source = texts_of(model)
    there = {weight: x.numpy() for weight, x in model.state_dict().items()}
    expected = reference.Transformer(model.config, there)(ids.numpy(), None if source is None else source.numpy())
    with torch.no_grad():
        assert_close(model(ids, source), expected, "logits")


@pytest.mark.parametrize("name", CONFIGS)
def test_torch_and_numpy_agree_with_masks_and_positions(name: str) -> None:
    model = model_called(name, "float64")
    ids, source = texts_of(model)
    positions = torch.tensor([[0, 0, 0, 1, 2, 3, 4, 7, 8], [0, 1, 2, 3, 4, 6, 8, 9, 10]])
    keep = np.array([[0, 0, 1, 1, 1, 1, 1, 1, 1], [1] * 9])
    source_keep = np.array([[1] * 7, [1, 1, 1, 1, 0, 0, 0]])
    options: dict[str, Any] = {"mask": Mask.from_keep(keep)}
    if source is not None:
        options["source_mask"] = Mask.from_keep(source_keep)
    if model.config.embeddings.n_segments is not None:
        options["segments"] = np.array([[0] * 5 + [1] * 4] * 2)
    there = {weight: x.numpy() for weight, x in model.state_dict().items()}
    expected = reference.Transformer(model.config, there)(
        ids.numpy(), None if source is None else source.numpy(), positions=positions.numpy(), **options
    )
    if "segments" in options:
        options["segments"] = torch.from_numpy(options["segments"])
    with torch.no_grad():
        assert_close(model(ids, source, positions=positions, **options), expected, "logits")


@pytest.mark.parametrize("name", DECODERS)
def test_outputs_do_not_depend_on_later_tokens(name: str) -> None:
    """By the Jacobian: the gradient of a position's output with respect to later inputs is exactly 0."""
    model = model_called(name, "float64")
    ids, source = texts_of(model)
    x = model.embed(ids).detach().requires_grad_()
    assert model.decoder is not None
    memory = None if source is None else model.encode(source)
    hidden = model.decoder(x, full_span(x, len(model.decoder.layers), causal=True), memory)
    for t in range(ids.shape[1]):
        (gradient,) = torch.autograd.grad(hidden[:, t].square().sum(), x, retain_graph=True)
        assert not gradient[:, t + 1 :].any(), t
        assert gradient[:, t].any(), t


@pytest.mark.parametrize("name", CONFIGS)
def test_every_weight_is_used(name: str) -> None:
    model = model_called(name, "float64")
    ids, source = texts_of(model)
    segments = torch.arange(9).remainder(2).expand(2, 9) if model.config.embeddings.n_segments else None
    model(ids, source, segments=segments).square().sum().backward()
    unused = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    # With only one visible key, the weights are 1 for all q and k.
    alone = [f"decoder.layers.{i}.self_attention" for i, w in enumerate(_windows(model)) if w == 1]
    assert not [name for name in unused if not name.startswith(tuple(alone) or ("-",))]


def _windows(model: Transformer) -> list[int | None]:
    return [] if model.decoder is None else model.decoder.windows


# --- records ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGS)
def test_every_attention_is_recorded(name: str) -> None:
    model = model_called(name)
    ids, source = texts_of(model)
    recorder = Recorder(See(map=32))
    with torch.no_grad():
        seen, plain = model(ids, source, attend=recorder), model(ids, source)
    assert_close(seen, plain, "logits")
    config, names = model.config, recorder.trace.names
    encoder = [f"encoder.layers.{i}.self_attention" for i in range(config.n_encoder_layers or 0)]
    decoder = [f"decoder.layers.{i}.{part}" for i in range(config.n_decoder_layers or 0) for part in _parts(config)]
    assert names == encoder + decoder
    assert [r.kind for r in recorder.trace] == ["encoder"] * len(encoder) + [
        "cross" if "cross" in name else "decoder" for name in decoder
    ]
    modules = dict(model.named_modules())
    assert all(name in modules for name in names)
    for record in recorder.trace:
        assert_close(present(record.map).sum(-1), torch.ones(present(record.map).shape[:-1]), "weights")


def _parts(config: TransformerConfig) -> list[str]:
    return ["self_attention", "cross_attention"] if config.kind == "encoder-decoder" else ["self_attention"]


@pytest.mark.parametrize("name", [name for name in TRANSLATORS if CONFIGS[name].vocab_size is not None])
def test_tokens_of_records(name: str) -> None:
    model = model_called(name)
    ids, source = texts_of(model, T=3, S=2)
    recorder = Recorder()
    with torch.no_grad():
        model(ids, source, attend=recorder)
    trace = recorder.label(["<s>", "我", "爱"], ["I", "love"])
    assert trace["encoder.layers.0.self_attention"].query_tokens == (("I", "love"),)
    assert trace["decoder.layers.0.self_attention"].key_tokens == (("<s>", "我", "爱"),)
    cross = trace["decoder.layers.0.cross_attention"]
    assert (cross.query_tokens, cross.key_tokens) == ((("<s>", "我", "爱"),), (("I", "love"),))


def test_torch_and_numpy_record_the_same() -> None:
    model = model_called("paper_2017")
    ids, source = texts_of(model)
    assert source is not None
    ours, theirs = Recorder(See(entropy=True)), Recorder(See(entropy=True))
    with torch.no_grad():
        model(ids, source, attend=ours)
    there = {weight: x.numpy() for weight, x in model.state_dict().items()}
    reference.Transformer(model.config, there)(ids.numpy(), source.numpy(), attend=theirs)
    assert ours.trace.names == theirs.trace.names
    for one, other in zip(ours.trace, theirs.trace, strict=True):
        np.testing.assert_allclose(present(one.map).numpy(), present(other.map), atol=1e-5)
        np.testing.assert_allclose(present(one.entropy).numpy(), present(other.entropy), atol=1e-5)


def test_no_weights_are_computed_without_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call uses PyTorch's fused kernel; no other backend runs, and no T × S array is created."""
    from regard.dispatch import torch_backends

    monkeypatch.setattr(torch_backends, "BACKENDS", torch_backends.BACKENDS[:1])
    fused, asked = torch.nn.functional.scaled_dot_product_attention, []

    def counted(*args: Any, **options: Any) -> Any:
        asked.append(options.get("attn_mask"))
        return fused(*args, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", counted)
    model = model_called("paper_2017")
    ids, source = texts_of(model)
    with torch.no_grad():
        model(ids, source)
    assert asked == [None] * 6


# --- files, devices, precisions ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["paper_2017", "bert", "gpt2", "llama", "gemma"])
def test_save_and_read(name: str, tmp_path: Path) -> None:
    model = model_called(name)
    model.save(tmp_path / "model")
    again = Transformer.read(tmp_path / "model")
    ids, source = texts_of(model)
    with torch.no_grad():
        assert_same_bits(again(ids, source), model(ids, source))
    assert not again.training
    stored = read_model(tmp_path / "model")
    numpy = reference.Transformer(stored.config, stored.tensors)
    with torch.no_grad():
        logits = model(ids, source)
    assert_close(logits, numpy(ids.numpy(), None if source is None else source.numpy()), "logits")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_save_and_read_keep_the_dtype(dtype: torch.dtype, tmp_path: Path) -> None:
    model = model_called("gpt2").to(dtype)
    model.save(tmp_path / "model")
    for name, weight in Transformer.read(tmp_path / "model").state_dict().items():
        assert weight.dtype == dtype
        assert torch.equal(weight, model.state_dict()[name])


def test_state_dict_round_trip() -> None:
    model, other = model_called("gemma"), Transformer(CONFIGS["gemma"]).eval()
    other.load_state_dict(model.state_dict())
    ids, _ = texts_of(model)
    with torch.no_grad():
        assert_same_bits(other(ids), model(ids))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_on_the_meta_device(name: str) -> None:
    """After loading weights nothing is left on the meta device: there are no other tensors than weights."""
    with torch.device("meta"):
        model = Transformer(CONFIGS[name])
    assert all(x.is_meta for x in model.parameters())
    ids, source = texts_of(model_called(name))
    model.to_empty(device="cpu").load_state_dict(model_called(name).state_dict())
    with torch.no_grad():
        assert_same_bits(model.eval()(ids, source), model_called(name)(ids, source))


@pytest.mark.parametrize("name", ["paper_2017", "bert", "gpt2", "llama", "t5", "bloom", "gemma"])
def test_autocast_is_close_to_float32(name: str) -> None:
    model = model_called(name)
    ids, source = texts_of(model)
    exact = model(ids, source)
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(ids, source)
    rough.float().square().sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())
    assert rough.dtype == torch.bfloat16
    assert 0 < (rough - exact).abs().max() < 0.1 * exact.abs().max()


@pytest.mark.parametrize("name", ["paper_2017", "gpt2", "llama", "gemma"])
def test_half_precision_is_close_to_float32(name: str) -> None:
    model = model_called(name)
    ids, source = texts_of(model)
    with torch.no_grad():
        exact, rough = model(ids, source), model.bfloat16()(ids, source)
    assert rough.dtype == torch.bfloat16
    assert (rough - exact).abs().max() < 0.15 * exact.abs().max()


@pytest.mark.parametrize(
    "name",
    ["llama", *(pytest.param(name, marks=pytest.mark.long) for name in ("paper_2017", "bert", "gpt2", "t5", "gemma"))],
)
def test_it_compiles_as_one_graph(name: str) -> None:
    model = model_called(name)
    ids, source = texts_of(model)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    assert_close(compiled(ids, source), model(ids, source), "logits")
    compiled(ids, source).sum().backward()


def test_dropout_is_applied_only_in_training() -> None:
    model = Transformer(TransformerConfig.gpt2(vocab_size=9, d_model=8, n_heads=2, d_ff=8, n_layers=1, dropout=0.5))
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        assert not torch.equal(model(ids), model(ids))
        model.eval()
        assert_same_bits(model(ids), model(ids))


@pytest.mark.parametrize(("name", "depth"), [("gpt2", 24), ("paper_2017", 6)])
def test_initial_activations_and_gradients_are_neither_tiny_nor_huge(name: str, depth: int) -> None:
    """Post-norm is tested at the paper's depth: gradients of deeper models do vanish without warm-up."""
    torch.manual_seed(0)
    deep = {"d_model": 64, "n_heads": 4, "d_ff": 128, "n_layers": depth, "vocab_size": 50}
    model = Transformer(getattr(TransformerConfig, name)(**deep)).eval()
    ids = torch.randint(0, 50, (2, 16))
    logits = model(ids, ids if name == "paper_2017" else None)
    assert 0.05 < logits.std() < 5
    logits.square().mean().backward()
    layers: Any = present(model.decoder).layers
    first, last = (layers[i].feed_forward.up.weight.grad.norm() for i in (0, -1))
    assert 0.02 < first / last < 50


# --- errors ----------------------------------------------------------------------------------

IDS = torch.tensor([[1, 2, 3]])


@pytest.mark.parametrize(
    ("name", "args", "options", "key"),
    [
        ("gpt2", (torch.tensor([[1, 31]]),), {}, "ids-out-of-range"),
        ("gpt2", (torch.tensor([[1, -1]]),), {}, "ids-out-of-range"),
        ("gpt2", (torch.tensor([[1.0, 2.0]]),), {}, "ids-kind"),
        ("gpt2", (torch.tensor([1, 2]),), {}, "ids-axes"),
        ("gpt2", (torch.zeros(1, 0, dtype=torch.long),), {}, "ids-axes"),
        ("gpt2", (torch.zeros(1, 30, dtype=torch.long),), {}, "ids-too-long"),
        ("gpt2", (IDS, IDS), {}, "source-unneeded"),
        ("gpt2", (IDS,), {"source_mask": Mask.prefix(1)}, "source-unneeded"),
        ("gpt2", (IDS,), {"segments": IDS}, "segments-unneeded"),
        ("gpt2", (IDS,), {"positions": torch.tensor([0, 1])}, "positions-of-ids"),
        ("gpt2", (IDS,), {"positions": torch.tensor([0, 1, 29])}, "value-out-of-range"),
        ("bert", (IDS,), {"segments": torch.tensor([[0, 1]])}, "segments-shape"),
        ("bert", (IDS,), {"segments": torch.tensor([[0, 1, 2]])}, "value-out-of-range"),
        ("gpt2", (torch.tensor([[]]),), {}, "ids-axes"),
        ("gpt2", (IDS.expand(3, 3),), {"mask": torch.ones(3, 3, dtype=torch.bool)}, "mask-two-ways"),
        ("gpt2", (IDS.expand(2, 3),), {"mask": torch.ones(2, 3, dtype=torch.bool)}, "mask-two-ways"),
        ("paper_2017", (IDS,), {}, "source-missing"),
        ("paper_2017", (IDS, IDS.expand(2, 3)), {}, "batches-of-source"),
        ("pre-norm translator", (IDS, torch.tensor([[41]])), {}, "ids-out-of-range"),
        ("vectors", (IDS, IDS), {}, "vectors-wanted"),
        ("gpt2", ([[1, 2]],), {}, "ids-tensor"),
        ("gpt2", (IDS,), {"positions": [0, 1, 2]}, "ids-tensor"),
        ("bert", (IDS,), {"segments": np.zeros((1, 3), int)}, "ids-tensor"),
    ],
)
def test_messages_about_bad_input_have_the_values(
    name: str, args: tuple[Any, ...], options: dict[str, Any], key: str
) -> None:
    with pytest.raises(RegardError) as caught:
        model_called(name)(*args, **options)
    assert caught.value.key == key
    assert caught.value.text("en")
    assert caught.value.text("zh")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_ids_of_any_integer_dtype(dtype: torch.dtype) -> None:
    model = model_called("gpt2")
    with torch.no_grad():
        assert_same_bits(model(IDS.to(dtype)), model(IDS))


def test_an_empty_batch() -> None:
    for name in ("gpt2", "llama"):
        model = model_called(name)
        nothing = torch.zeros(0, 3, dtype=torch.long)
        there = {weight: x.numpy() for weight, x in model.state_dict().items()}
        assert model(nothing).shape == (0, 3, model.config.vocab_size)
        assert reference.Transformer(model.config, there)(nothing.numpy()).shape == (0, 3, model.config.vocab_size)


def test_a_wrong_config_and_a_missing_encoder() -> None:
    for call in (lambda: Transformer("gpt2"), lambda: model_called("gpt2").encode(IDS)):  # type: ignore[arg-type]
        with pytest.raises(RegardError):
            call()


def test_an_id_outside_the_vocabulary_is_reported_with_its_index() -> None:
    with pytest.raises(RegardError) as caught:
        model_called("gpt2")(torch.tensor([[1, 2], [3, 99]]))
    assert caught.value.values["value"] == 99
    assert caught.value.values["place"] == [1, 1]
    assert caught.value.values["last"] == 30


DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def weights(path: Path, dtype: torch.dtype) -> tuple[torch.Tensor, Weights]:
    """A tensor with infinities, NaN and a subnormal number, and the file that holds it."""
    tensor = torch.randn(5, 7, generator=torch.Generator().manual_seed(3)).to(dtype)
    tensor[0, :4] = torch.tensor([float("inf"), -float("inf"), float("nan"), 1e-40])
    with path.open("wb") as file:
        write_tensors(file, {"w": tensor, "empty": torch.zeros(0, 3, dtype=dtype)})
    return tensor, Weights(path)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("wanted", [None, *DTYPES])
@pytest.mark.parametrize("stored", DTYPES)
def test_every_dtype(stored: torch.dtype, wanted: torch.dtype | None, mapped: bool, tmp_path: Path) -> None:
    tensor, file = weights(tmp_path / "w", stored)
    found = stored_tensors(file, None if wanted is None else str(wanted).removeprefix("torch."), mapped=mapped)
    expected = tensor.to(stored if wanted is None else wanted)
    assert found["w"].dtype == expected.dtype
    assert torch.equal(found["w"].view(torch.uint8), expected.view(torch.uint8))  # NaN included
    assert found["empty"].shape == (0, 3)


@pytest.mark.parametrize("mapped", [False, True])
def test_writing_to_a_weight_does_not_change_the_file(mapped: bool, tmp_path: Path) -> None:
    tensor, file = weights(tmp_path / "w", torch.float32)
    before = (tmp_path / "w").read_bytes()
    stored_tensors(file, mapped=mapped)["w"].fill_(1)
    assert (tmp_path / "w").read_bytes() == before
    assert torch.equal(stored_tensors(Weights(tmp_path / "w"))["w"].nan_to_num(), tensor.nan_to_num())


def test_only_weights_that_need_a_conversion_are_copied(tmp_path: Path) -> None:
    """Llama's matrices have our layout; GPT-2's are transposed, and one holds q, k and v."""
    for make, most in ((llama, 0), (gpt2, 4 * 2)):
        stored = read_model(make(tmp_path / make.__name__))
        found = stored_tensors(stored.tensors, "float32", mapped=True)
        copied = [name for name, tensor in found.items() if not _is_view(stored.tensors.raw(name), tensor)]
        assert len({name.replace("k_proj", "q_proj").replace("v_proj", "q_proj") for name in copied}) == most, copied
        assert all(tensor.is_contiguous() for tensor in found.values())
        assert not any(_is_view(stored.tensors.raw(n), x) for n, x in stored_tensors(stored.tensors).items())


def _is_view(array: np.ndarray, tensor: torch.Tensor) -> bool:
    return array.ctypes.data == tensor.data_ptr()


def test_a_mapped_model_computes_the_same_and_outlives_its_folder(tmp_path: Path) -> None:
    folder, ids = llama(tmp_path / "llama"), torch.arange(9)[None]
    copied = Transformer.read(folder)
    mapped = Transformer.of_stored(read_model(folder), "float32", mapped=True)
    (folder / "model.safetensors").unlink()
    assert torch.equal(copied(ids), mapped(ids))
