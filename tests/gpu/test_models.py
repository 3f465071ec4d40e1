"""Models on a GPU: the same results as on the CPU, also when decoding with compiled steps captured as a graph."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
import torch
from models import CONFIGS, DECODERS, random_ids, random_weights, torch_model
from narrowing import present

from regard import See
from regard.generation import Sampling, beam_search, generate
from regard.models import Transformer
from regard.trace import Recorder

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    # torch warns whenever it compiles; here products must be exact.
    pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores:UserWarning"),
]


@pytest.fixture(autouse=True)
def exact_products() -> Iterator[None]:
    """float32 products in float32: TF32 has ten bits."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


def both_of(name: str) -> tuple[Transformer, Transformer]:
    cpu_model, gpu_model = (torch_model(CONFIGS[name], random_weights(CONFIGS[name])) for _ in range(2))
    return cpu_model, gpu_model.cuda()


def texts_of(name: str, B: int = 2, T: int = 9) -> tuple[torch.Tensor, torch.Tensor | None]:
    config = CONFIGS[name]
    ids = torch.from_numpy(random_ids(config, (B, T)))
    source = None
    if config.kind == "encoder-decoder":
        source = torch.from_numpy(random_ids(config, (B, 7), 1, source=True))
    if config.vocab_size is None:
        ids, source = ids.float(), present(source).float()
    return ids, source


def near(found: torch.Tensor, expected: torch.Tensor, atol: float = 1e-5) -> None:
    np.testing.assert_allclose(found.cpu().numpy(), expected.cpu().numpy(), atol=atol, rtol=0)


@pytest.mark.parametrize("name", CONFIGS)
def test_gpu_and_cpu_give_the_same_results(name: str) -> None:
    cpu_model, gpu_model = both_of(name)
    ids, source = texts_of(name)
    recorder = Recorder(See(map=32))
    with torch.no_grad():
        expected = cpu_model(ids, source)
        on_gpu = (ids.cuda(), None if source is None else source.cuda())
        near(gpu_model(*on_gpu), expected, 1e-4)  # another device sums in another order
        near(gpu_model(*on_gpu, attend=recorder), gpu_model(*on_gpu))
    assert all(present(record.map).is_cuda for record in recorder.trace)


@pytest.mark.parametrize("name", ["paper_2017", "gpt2", "llama", "t5", "gemma"])
def test_captured_steps_equal_one_forward(name: str) -> None:
    torch._dynamo.reset()
    _, model = both_of(name)
    ids, source = texts_of(name, T=16)
    ids, source = ids.cuda(), None if source is None else source.cuda()
    with torch.no_grad():
        expected = model(ids, source)
    keep = np.ones((2, 16), dtype=bool)
    keep[0, :2] = False
    decoding = model.begin(source, cache="static", max_len=20, compile=True)
    for _ in range(2):
        near(decoding.step(ids[:, :4]), expected[:, 3])
        for t in range(4, 12):
            near(decoding.step(ids[:, t : t + 1]), expected[:, t])
        decoding.crop(6)
        decoding.select([1, 0])
        near(decoding.step(ids[[1, 0], 6:7])[[1, 0]], expected[:, 6])
        near(decoding.step(ids[[1, 0], 7:])[[1, 0]], expected[:, -1])
        decoding.select([1, 0])
        decoding.crop(0)
    decoding.step(ids[:, :4], keep[:, :4])
    for t in range(4, 9):
        found = decoding.step(ids[:, t : t + 1])
    with torch.no_grad():
        near(found[1], expected[1, 8])
        near(found[0], model(ids[:1, 2:9], None if source is None else source[:1])[0, -1])


@pytest.mark.parametrize("name", [name for name in DECODERS if name in ("paper_2017", "gpt2", "llama", "bloom")])
def test_generated_texts_are_the_same_as_on_the_cpu(name: str) -> None:
    cpu_model, gpu_model = both_of(name)
    ids, source = texts_of(name)
    prompts = [ids[0].tolist(), ids[1, :4].tolist()]
    sources = None if source is None else [source[0].tolist(), source[1, :5].tolist()]
    for write in (
        partial(generate, max_new=12),
        partial(generate, max_new=12, eos=3, cache="static", max_len=24),
        partial(generate, max_new=12, pick=Sampling(top_k=8, seed=1)),
        lambda *args, **options: [
            [beam.ids for beam in row] for row in beam_search(*args, max_new=8, eos=3, beams=3, **options)
        ],
    ):
        assert write(gpu_model, prompts, sources=sources) == write(cpu_model, prompts, sources=sources)


def test_half_precision_trains_compiled() -> None:
    torch._dynamo.reset()
    _, model = both_of("llama")
    ids, _ = texts_of("llama")
    compiled = torch.compile(model.train(), fullgraph=True)
    with torch.autocast("cuda", torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(
            compiled(ids.cuda()[:, :-1]).flatten(0, 1), ids.cuda()[:, 1:].flatten()
        )
    loss.backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())
