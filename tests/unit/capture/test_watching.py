"""`watch` on models of all kinds, and its messages if there is nothing to record."""

import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from narrowing import present
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

import regard
from regard import See
from regard.capture.image_grids import visible
from regard.config import TransformerConfig
from regard.errors import ArgumentError, RegardError
from regard.models import Transformer
from regard.records import Kind
from regard.text import learn_tokenizer


def names_of(ids: list[int]) -> list[str]:
    return [f"<{i}>" for i in ids]


class Attention(nn.Module):
    """Hand-written attention with a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x: Tensor, past: list[tuple[Tensor, Tensor]] | None = None) -> Tensor:
        q, k, v = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        if past is not None:
            k, v = (torch.cat([old, new], 2) for old, new in zip(past.pop(0), (k, v), strict=True))
        if past is not None:
            past.append((k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1).transpose(1, 2).flatten(2)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tok, self.pos = nn.Embedding(30, 16), nn.Embedding(30, 16)
        self.layers = nn.ModuleList(Attention() for _ in range(2))

    def forward(self, ids: Tensor, past: list[tuple[Tensor, Tensor]] | None = None) -> Tensor:
        start = past[0][0].shape[2] if past else 0
        x = self.tok(ids) + self.pos(torch.arange(start, start + ids.shape[1]))
        for layer in self.layers:
            x = x + layer(x, past)
        return x


@pytest.fixture
def model() -> Model:
    torch.manual_seed(0)
    return Model().eval()


IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def test_names_kinds_and_tokens(model: Model) -> None:
    with regard.watch(model, names_of) as trace:
        model(IDS)
    assert trace.names == ["layers.0", "layers.1"]
    assert {record.kind for record in trace} == {"decoder"}
    for record in trace:
        assert record.query_tokens == record.key_tokens == tuple(tuple(names_of(row)) for row in IDS.tolist())
        assert record.ids is not None
        assert record.ids.tolist() == IDS.tolist()


def test_without_a_tokenizer_there_are_no_tokens(model: Model) -> None:
    with regard.watch(model) as trace:
        model(IDS)
    assert trace[0].query_tokens is None
    assert trace[0].key_tokens is None


def test_second_calls_are_numbered(model: Model) -> None:
    with regard.watch(model) as trace:
        model(IDS)
        model(IDS)
    assert trace.names == ["layers.0", "layers.1", "layers.0#1", "layers.1#1"]


def test_only_the_chosen_layers_are_recorded(model: Model) -> None:
    with regard.watch(model, layers=["layers.1"]) as trace:
        model(IDS)
    assert trace.names == ["layers.1"]


def test_no_layers_install_no_mode_and_do_not_warn(model: Model) -> None:
    with regard.watch(model, layers=[]) as trace:
        assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
        model(IDS)
    assert len(trace) == 0


def test_attention_of_other_models_is_not_recorded(model: Model) -> None:
    other = Model()
    with regard.watch(model) as trace:
        other(IDS)
        model(IDS)
    assert len(trace) == 2


def test_two_watches_at_once(model: Model) -> None:
    with regard.watch(model) as outer, regard.watch(model.layers[1]) as inner:
        model(IDS)
    assert (outer.names, inner.names) == (["layers.0", "layers.1"], ["attention"])


def test_an_exception_ends_the_watch(model: Model) -> None:
    def fail() -> None:
        model(IDS)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), regard.watch(model) as trace:
        fail()
    assert len(trace) == 2
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
    model(IDS)
    assert len(trace) == 2


def test_threads_are_watched_separately(model: Model) -> None:
    found: dict[int, Any] = {}

    def work(at: int) -> None:
        with regard.watch(model) as trace:
            for _ in range(at + 1):
                model(IDS)
        found[at] = len(trace)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: 2, 1: 4, 2: 6}


# --- warnings and errors ---------------------------------------------------------------------------------


def test_a_model_that_runs_in_another_thread(model: Model) -> None:
    def elsewhere() -> None:
        thread = threading.Thread(target=model, args=(IDS,))
        thread.start()
        thread.join()

    with pytest.warns(UserWarning, match="another thread"), regard.watch(model):
        elsewhere()


@pytest.mark.parametrize("fault", [lambda ids: [["a"][i] for i in ids], lambda ids: ["a"]], ids=["raises", "too few"])
def test_a_tokenizer_that_fails_does_not_stop_the_model(model: Model, fault: Any) -> None:
    match = "the tokenizer failed while the model ran"
    with pytest.warns(UserWarning, match=match) as caught_warnings, regard.watch(model, fault) as trace:
        outputs = [model(IDS) for _ in range(2)]
    assert len(caught_warnings) == 1
    assert all(torch.equal(one, model(IDS)) for one in outputs)
    assert len(trace) == 4
    assert {record.key_tokens for record in trace} == {None}


def test_attention_of_other_models_only(model: Model) -> None:
    with pytest.warns(UserWarning, match="something else computed attention 2 times"), regard.watch(model):
        Model()(IDS)


def test_attention_of_other_layers_only(model: Model) -> None:
    with pytest.warns(UserWarning, match="these did: layers.0"), regard.watch(model, layers="layers.1"):
        model.layers[0](torch.ones(1, 2, 16))


def test_no_attention_at_all() -> None:
    layer = nn.Linear(2, 2)
    with pytest.warns(UserWarning, match="nothing is recorded") as caught_warnings, regard.watch(layer):
        layer(torch.ones(2))
    assert caught_warnings[0].filename == __file__


class Pipeline:
    model = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("target", "arguments", "key"),
    [
        (3, {}, "module-wanted"),
        (Pipeline(), {}, "module-inner"),
        (nn.Linear(2, 2, device="meta"), {}, "watch-meta"),
        (nn.Linear(2, 2), {"see": 256}, "watch-see"),
        (nn.Linear(2, 2), {"layers": "h.0"}, "watch-layer-unlike"),
        (nn.Sequential(nn.Linear(2, 2)), {"layers": 9}, "watch-layer-number"),
        (nn.Linear(2, 2), {"layers": 2.5}, "watch-layers"),
        (nn.Linear(2, 2), {"tokenizer": 2.5}, "watch-tokenizer"),
        (nn.Linear(2, 2), {"budget": "much"}, "watch-budget"),
    ],
)
def test_invalid_arguments_raise_when_called(target: Any, arguments: dict[str, Any], key: str) -> None:
    with pytest.raises(RegardError) as error:
        regard.watch(target, **arguments)
    assert error.value.key == key


def test_use_without_with_raises(model: Model) -> None:
    watch: Any = regard.watch(model)
    for ask in (lambda: watch.select(kind="cross"), lambda: watch[0], lambda: len(watch), lambda: list(watch)):
        with pytest.raises((AttributeError, RegardError), match=r"with regard\.watch"):
            ask()
    assert not hasattr(watch, "html")
    assert "with regard.watch" in repr(watch)


def test_a_watch_opens_once(model: Model) -> None:
    watch = regard.watch(model)
    with watch as trace:
        model(IDS)
    count = len(trace)
    with pytest.raises(ArgumentError, match="opened once"), watch:
        pytest.fail("the block was entered")
    assert len(trace) == count


# --- compiled --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.long)])
def test_a_compiled_model_is_named_by_order_and_not_recompiled(model: Model, backend: str) -> None:
    compiled: Any = torch.compile(model, backend=backend)  # annotated as a function
    with torch.no_grad():
        expected = compiled(IDS)
        with torch.compiler.set_stance("fail_on_recompile"), regard.watch(compiled, names_of) as trace:
            out = compiled(IDS)
        with regard.watch(model) as plain:
            model(IDS)
    assert_same_bits(out, expected)
    assert trace.names == ["layers.0", "layers.1"]
    assert trace[0].query_tokens == tuple(tuple(names_of(row)) for row in IDS.tolist())
    for one, other in zip(trace, plain, strict=True):
        assert_close(one.map, other.map, "weights")


def test_a_mismatched_order_warns() -> None:
    class Once(Model):
        def forward(self, ids: Tensor, past: Any = None) -> Tensor:
            q = self.tok(ids)[:, None]
            return F.scaled_dot_product_attention(q, q, q)

    odd = Once()
    with pytest.warns(UserWarning, match="1 attentions do not fit 2 modules"), regard.watch(odd):
        odd(IDS)


# --- whole models ----------------------------------------------------------------------------------------


def test_our_model_with_its_own_tokenizer() -> None:
    tokenizer = learn_tokenizer(["床前明月光疑是地上霜"], "characters")
    sizes: dict[str, Any] = {"vocab_size": tokenizer.vocab_size, "d_model": 16, "n_heads": 2, "d_ff": 32}
    ours = Transformer(TransformerConfig.paper_2017(**sizes, n_encoder_layers=1, n_decoder_layers=1)).eval()
    source, target = ([tokenizer.encode(text)] for text in ("床前明月", "地上"))
    with torch.no_grad(), regard.watch(ours, tokenizer) as trace:
        ours(torch.tensor(target), torch.tensor(source))
    assert [record.kind for record in trace] == ["encoder", "decoder", "cross"]
    assert trace.select(kind="encoder")[0].key_tokens == (("床", "前", "明", "月"),)
    assert trace.select(kind="decoder")[0].query_tokens == (("地", "上"),)
    cross = trace.select(kind="cross")[0]
    assert (cross.query_tokens, cross.key_tokens) == ((("地", "上"),), (("床", "前", "明", "月"),))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # nn.Transformer's warning about its own default
def test_nn_transformer_with_positions_first() -> None:
    class Translator(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.source, self.target = nn.Embedding(9, 16), nn.Embedding(9, 16)
            self.transformer = nn.Transformer(16, 2, 1, 1, 32)

        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            hidden = nn.Transformer.generate_square_subsequent_mask(len(target))
            return self.transformer(self.source(source), self.target(target), tgt_mask=hidden)

    translator = Translator().eval()
    source, target = torch.tensor([[1, 5], [2, 6], [3, 7], [4, 8]]), torch.tensor([[1, 3], [2, 4]])
    with torch.no_grad(), regard.watch(translator, names_of) as trace:
        translator(source, target)
    assert [(record.kind, record.shape[2:]) for record in trace] == [
        ("encoder", (4, 4)),
        ("decoder", (2, 2)),
        ("cross", (2, 4)),
    ]
    assert trace[0].query_tokens == (("<1>", "<2>", "<3>", "<4>"), ("<5>", "<6>", "<7>", "<8>"))
    assert trace[1].query_tokens == trace[2].query_tokens == (("<1>", "<2>"), ("<3>", "<4>"))
    assert trace[2].key_tokens == trace[0].key_tokens


class TwoTables(nn.Module):
    """Tokens and positions, in tables of one size; the names do not distinguish them."""

    def __init__(self) -> None:
        super().__init__()
        self.where, self.tok = nn.Embedding(20, 8), nn.Embedding(20, 8)
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Any) -> Tensor:
        y = self.where(torch.arange(len(x[0]))[None]) + self.tok(torch.as_tensor(x))
        return self.attn(y, y, y, need_weights=False)[0]


def test_tokens_are_the_model_inputs_not_ids_of_another_table() -> None:
    model = TwoTables().eval()
    texts = [[11, 12, 13], [14, 15, 16], [17, 18, 19]]
    with torch.no_grad(), regard.watch(model, names_of) as trace:
        for text in texts:
            model(torch.tensor([text]))
    assert [record.query_tokens for record in trace] == [(tuple(names_of(text)),) for text in texts]


def test_ambiguous_token_tables_warn() -> None:
    model = TwoTables().eval()
    with torch.no_grad(), pytest.warns(UserWarning, match="several embedding tables"), regard.watch(model, names_of):
        model([[11, 12, 13]])
    model.get_input_embeddings = lambda: model.tok  # type: ignore[assignment]
    with torch.no_grad(), regard.watch(model, names_of) as trace:
        model([[11, 12, 13]])
    assert trace[0].query_tokens == (tuple(names_of([11, 12, 13])),)


# --- generation ------------------------------------------------------------------------------------------

TOKENS: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
SIZES: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}


def llama(**more: Any) -> Any:
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(vocab_size=50, num_key_value_heads=2, **SIZES, **TOKENS, **more)
    )


def bart() -> Any:
    sides: dict[str, Any] = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in SIDES.items()}
    config = transformers.BartConfig(
        vocab_size=50, d_model=32, decoder_start_token_id=2, forced_eos_token_id=None, init_std=0.3, **sides, **TOKENS
    )
    return transformers.BartForConditionalGeneration(config)


SIDES = {"layers": 2, "attention_heads": 4, "ffn_dim": 48}
MODELS = {
    "gpt2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3, **TOKENS)
    ),
    "llama": llama,
    "mistral": lambda: transformers.MistralForCausalLM(
        transformers.MistralConfig(vocab_size=50, num_key_value_heads=2, sliding_window=4, **SIZES, **TOKENS)
    ),
    "gemma2": lambda: transformers.Gemma2ForCausalLM(  # eager: a layer with a window, then one without
        transformers.Gemma2Config(
            vocab_size=50, num_key_value_heads=2, head_dim=8, sliding_window=4, initializer_range=0.3, **SIZES, **TOKENS
        )
    ),
    "bart": bart,
}


def built(name: str) -> Any:
    torch.manual_seed(0)
    return MODELS[name]().eval()


def read_at_once(model: Any, prompt: Tensor, text: Tensor) -> dict[Kind, list[Tensor]]:
    """The weights of the text read at once, as `eager` computes them, by kind."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        if not model.config.is_encoder_decoder:
            return {"decoder": model(text, output_attentions=True).attentions}
        source = prompt.repeat_interleave(len(text) // len(prompt), 0)
        found = model(input_ids=source, decoder_input_ids=text, output_attentions=True)
    return {"decoder": found.decoder_attentions, "cross": found.cross_attentions}


@pytest.mark.parametrize("map", [64, 4], ids=["rows are weights", "rows are longer than maps"])
@pytest.mark.parametrize("more", [{}, {"num_beams": 3, "num_return_sequences": 2}], ids=["greedy", "beams"])
@pytest.mark.parametrize("name", MODELS)
def test_a_generated_text_is_one_matrix(name: str, more: dict[str, Any], map: int) -> None:
    model = built(name)
    prompt = torch.randint(3, 50, (2, 5))
    options = {"max_new_tokens": 6, "do_sample": False, **more}
    expected = model.generate(prompt, **options)
    with regard.watch(model, names_of, see=See(map=map, entropy=True)) as trace:
        text = model.generate(prompt, **options)
    assert_same_bits(text, expected)
    whole = trace.stitched(text, map=map)
    for kind, layers in read_at_once(model, prompt, text).items():
        records = list(whole.select(kind=kind))
        assert len(records) == len(layers)
        for record, weights in zip(records, layers, strict=True):
            T, S = record.shape[2:]
            assert text.shape[1] == T + 1  # the last token is not read
            assert record.prompt == (1 if name == "bart" else 5)
            assert (record.weights() - weights[:, :, :T, :S]).abs().max() <= 1e-5
            read = tuple(tuple(names_of(row[:-1])) for row in text.tolist())
            assert record.query_tokens == read
            assert record.key_tokens is not None
            assert (
                record.key_tokens == read
                if kind == "decoder"
                else record.key_tokens[0] == tuple(names_of(prompt[0].tolist()))
            )


def test_left_padding() -> None:
    model = built("llama")
    prompt = torch.randint(3, 50, (2, 5))
    keep = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    with regard.watch(model, see=See(map=3)) as trace:
        text = model.generate(prompt, attention_mask=keep, max_new_tokens=4, do_sample=False)
    (record, _) = trace.stitched()
    alone = model.generate(prompt[:1, 2:], max_new_tokens=4, do_sample=False)
    assert alone[0].tolist() == text[0, 2:].tolist()
    weights = read_at_once(model, prompt[:1, 2:], alone)["decoder"][0]
    assert (record.weights()[0, :, 2:, 2:] - weights[0, :, :-1, :-1]).abs().max() <= 1e-5
    assert not record.weights()[0, :, :, :2].any()


def test_a_static_cache() -> None:
    model = built("llama")
    prompt = torch.randint(3, 50, (1, 5))
    with regard.watch(model, see=See(map=3)) as trace:
        text = model.generate(prompt, max_new_tokens=4, do_sample=False, cache_implementation="static")
    (record, _) = trace.stitched()
    weights = read_at_once(model, prompt, text)["decoder"][0]
    assert (record.weights() - weights[:, :, :-1, :-1]).abs().max() <= 1e-5


def test_generation_of_models_with_their_own_softmax() -> None:
    model = built("gpt2")
    model.set_attn_implementation("eager")
    prompt = torch.randint(3, 50, (2, 5))
    with regard.watch(model, names_of, see=See(map=3)) as trace:
        text = model.generate(prompt, max_new_tokens=4, do_sample=False)
    (record, _) = trace.stitched()
    weights = read_at_once(model, prompt, text)["decoder"][0]
    assert (record.weights() - weights[:, :, :-1, :-1]).abs().max() <= 1e-5


def test_a_hand_written_cache_needs_linear_memory(model: Model) -> None:
    """Each step keeps only its own keys."""
    past: list[tuple[Tensor, Tensor]] | None = None
    with torch.no_grad(), regard.watch(model, names_of, see=See(map=2)) as trace:
        past = [(torch.empty(1, 2, 0, 8), torch.empty(1, 2, 0, 8))] * 2
        model(IDS[:1, :3], past)
        for at in (3, 4):
            model(IDS[:1, at : at + 1], past)
    with pytest.raises(RegardError):  # nothing announced that this text would continue
        trace.stitched()
    with torch.no_grad(), regard.watch(model, see=See(map=8)) as whole:
        model(IDS[:1])
    step = trace["layers.1#2"]
    assert_close(step.weights(), whole["layers.1"].weights()[:, :, 4:], "weights")
    assert step.step is not None
    assert step.step.start == 4


def test_watching_generation_adds_no_warnings(model: Model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with regard.watch(model) as trace:
            model(IDS)
    assert len(trace) == 2


def test_assistants_and_rejected_tokens_are_left_out() -> None:
    model, assistant = built("gpt2"), built("gpt2")
    with torch.no_grad():
        for parameter in assistant.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    assistant.generation_config.num_assistant_tokens = 3
    prompt = torch.randint(3, 50, (1, 5))
    with regard.watch(model, see=See(map=3)) as trace:
        text = model.generate(prompt, assistant_model=assistant, max_new_tokens=6, do_sample=False)
    weights = read_at_once(model, prompt, text)["decoder"]
    for record, expected in zip(trace.stitched(), weights, strict=True):
        T = record.shape[2]
        assert (record.weights() - expected[:, :, :T, :T]).abs().max() <= 1e-5


@pytest.mark.parametrize("more", ({"assistant": True}, {"prompt_lookup_num_tokens": 3}, {}), ids=str)
def test_proposals_of_an_assistant_are_not_the_prompt(more: dict[str, Any]) -> None:
    """The first call may read proposals together with the prompt; rows of accepted ones stay."""
    model = built("gpt2")
    prompt = torch.randint(3, 50, (1, 5)).repeat(1, 2)
    assistant = {"assistant_model": built("gpt2")} if "assistant" in more else more
    with regard.watch(model) as trace:
        text = model.generate(prompt, max_new_tokens=6, do_sample=False, **assistant)
    assert [record.prompt for record in trace.stitched(text)] == [10, 10]


@pytest.mark.parametrize("name", ["mistral", "gemma2"])
def test_a_cropped_window(name: str) -> None:
    """Rejected guesses are removed from a cache that has dropped the start of the text."""
    model = built(name)
    prompt = torch.randint(3, 50, (1, 5)).repeat(1, 2)
    with regard.watch(model, names_of) as trace:
        text = model.generate(prompt, max_new_tokens=8, do_sample=False, prompt_lookup_num_tokens=3)
    calls = [record.shape[2] for record in trace if record.name.startswith("model.layers.0")]
    assert sum(calls) > text.shape[1], "something was taken back"
    whole = trace.stitched(text)
    for record, expected in zip(whole, read_at_once(model, prompt, text)["decoder"], strict=True):
        T = record.shape[2]
        assert record.query_tokens == (tuple(names_of(text[0, :T].tolist())),)
        assert (record.weights() - expected[:, :, :T, :T]).abs().max() <= 1e-5


def test_values_of_a_generation_are_those_of_the_prompt() -> None:
    """A step keeps neither keys nor values: requesting them must not end the generation."""
    sizes: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "vocab_size": 9}
    config = transformers.LlamaConfig(**sizes, num_attention_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    model = transformers.LlamaForCausalLM(config).eval()
    inputs = {"input_ids": torch.tensor([[0, 3, 4], [5, 6, 7]]), "attention_mask": torch.tensor([[0, 1, 1], [1, 1, 1]])}
    with regard.watch(model, see=See(qk=True, v=True)) as trace:
        model.generate(**inputs, max_new_tokens=3, min_new_tokens=3)
    assert len(trace) == 3
    with torch.no_grad(), regard.watch(model, see=See(outputs=True)) as again:
        model(**inputs)
    assert_close(trace[0].with_outputs().outputs, again[0].outputs, "output")
    assert trace[1].weights().shape == (2, 2, 1, 4)


@pytest.mark.parametrize("what", ["watch", "edit", "pixels", "attend"])
def test_another_default_device_changes_nothing(what: str) -> None:
    """Without `device=`, PyTorch makes tensors on the default device, here one without numbers."""
    model, ids, keep = model_with_padding()
    q = torch.linspace(-1, 1, 8 * 64).reshape(1, 1, 64, 8)
    pixels = torch.linspace(-2.1, 2.6, 3 * 4 * 4).reshape(3, 4, 4)

    def watched() -> Tensor:
        with regard.watch(model, see=See(map=4, entropy=True, received=True, top=2, distance=True)) as trace:
            model(ids, attention_mask=keep)
        return torch.cat([present(record.map).flatten() for record in trace])

    def edited() -> Tensor:
        with regard.edit(model, cut={"h.0.attn": [(8, 2), (1, 7, 3)]}):
            return present(model(ids).last_hidden_state)

    runs: dict[str, Callable[[], Any]] = {
        "watch": watched,
        "edit": edited,
        "pixels": lambda: torch.from_numpy(present(visible(pixels, ((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))))),
        "attend": lambda: regard.attend(q, q, q, mask=regard.Mask.causal(), see=See(map=1))[1].lse,
    }
    with torch.no_grad():
        wanted = runs[what]()
        with torch.device("meta"):
            found = runs[what]()
    assert_same_bits(found, wanted)


def model_with_padding() -> tuple[Any, Tensor, Tensor]:
    sizes: dict[str, Any] = {"vocab_size": 30, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}
    ids = torch.arange(2 * 9).reshape(2, 9) + 1
    keep = torch.ones_like(ids)
    keep[0, :3] = 0
    return transformers.GPT2Model(transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).eval(), ids, keep
