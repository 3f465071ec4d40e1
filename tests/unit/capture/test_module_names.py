"""ModuleNames finds the running module from the stack, without hooks and without keeping tensors alive."""

import gc
import weakref

import torch
from narrowing import present
from torch import Tensor, nn

from regard.capture.module_names import Generation, ModuleNames, running_arguments, running_generation, running_modules


class Probe(nn.Module):
    """Records the running modules during its forward."""

    def __init__(self, ask: object) -> None:
        super().__init__()
        self.ask = ask
        self.softmax = nn.Softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        self.ask()  # type: ignore[operator]
        return self.softmax(x)


def probed(depth: int = 1) -> tuple[nn.Sequential, list[object]]:
    found: list[object] = []
    names: list[ModuleNames] = []
    model = nn.Sequential(nn.ModuleDict({"inner": Probe(lambda: found.append(list(names[0].running())))})["inner"])
    names.append(ModuleNames(model))
    model(torch.ones(2))
    return model, found


def test_the_innermost_comes_first() -> None:
    model, found = probed()
    assert found == [[("0", model[0]), ("", model)]]


def test_no_module_is_running() -> None:
    assert ModuleNames(nn.Linear(2, 2)).innermost() is None
    assert list(running_modules()) == []


def test_modules_of_another_model_are_not_listed() -> None:
    found = []
    other = ModuleNames(nn.Linear(2, 2))
    Probe(lambda: found.append(other.innermost()))(torch.ones(1))
    assert found == [None]


def test_a_model_called_by_the_watched_one_is_not_listed() -> None:
    """`generate` calls an assistant from inside the watched model."""
    found = []
    names: ModuleNames
    assistant = Probe(lambda: found.append(names.innermost()))
    model = Probe(lambda: assistant(torch.ones(1)))
    names = ModuleNames(model)
    model(torch.ones(1))
    assert found == [None]


def test_a_graph_of_the_model_counts_as_the_model() -> None:
    found = []
    model = Probe(lambda: None)
    names = ModuleNames(model)

    def graph(self: nn.Module) -> None:
        found.append(names.innermost())

    model.ask = lambda: graph(torch.fx.GraphModule({}, torch.fx.Graph()))
    model(torch.ones(1))
    assert found == [("", model)]


def test_a_function_with_a_module_argument() -> None:
    """Hugging Face's attention is a function whose first argument is `module`."""
    layer = nn.Linear(2, 2)
    names = ModuleNames(nn.Sequential(layer))

    def attention(module: nn.Module, x: int) -> object:
        return names.innermost()

    assert attention(layer, 3) == ("0", layer)


def test_modules_without_parameters_are_skipped(monkeypatch: object) -> None:
    found = []

    class Softmax(nn.Softmax):
        __module__ = "torch.nn.modules.activation"

        def forward(self, x: Tensor) -> Tensor:
            found.append(names.innermost())
            return x

    model = Probe(lambda: None)
    model.softmax = Softmax(-1)
    names = ModuleNames(model)
    model(torch.ones(1))
    assert [present(place).name for place in found] == [""]


def test_compiled_modules_have_the_names_of_the_wrapped_modules() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1] = torch.compile(model[1])  # type: ignore[assignment]
    assert list(ModuleNames(model)) == ["", "0", "1"]
    assert list(ModuleNames(torch.compile(model))) == ["", "0", "1"]  # type: ignore[arg-type]


def test_ancestors_go_from_the_model_to_the_module() -> None:
    inner = nn.Sequential(nn.Linear(2, 2))
    model = nn.Sequential(inner)
    names = ModuleNames(model)
    assert names.ancestors("0.0") == [model, inner, inner[0]]
    assert names.ancestors("") == [model]


def test_submodules_of_a_place() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    names = ModuleNames(model)
    (root, *_) = names.places
    assert names.submodule(root, "0") == ("0", model[0])
    assert names.submodule(root, "nothing") == root
    assert names.submodule(root, "") == root


def test_reading_frames_keeps_nothing_alive() -> None:
    """In Python 3.11 the locals of a frame stay with it once read: a tensor deleted there would stay alive."""
    names = ModuleNames(nn.Linear(2, 2))

    class Model(nn.Module):
        def forward(self) -> bool:
            large = torch.ones(3)
            ghost = weakref.ref(large)
            names.innermost()
            del large
            gc.collect()
            return ghost() is None

    names = ModuleNames(Model())
    assert Model()()


def test_arguments_of_running_modules() -> None:
    class Model(nn.Module):
        def forward(self, ids: Tensor, **more: Tensor) -> list[str]:
            return [name for name, _ in running_arguments()]

    found = Model()(torch.ones(1), mask=torch.ones(1))
    assert {"ids", "mask"} <= set(found)


def test_generation_is_detected_by_the_function_name() -> None:
    def generate() -> Generation:
        return running_generation()

    def generate_ids(input_ids: Tensor) -> Generation:
        return running_generation()

    assert generate() == Generation(True, None)
    assert generate_ids(torch.ones(2, 7)) == Generation(True, 7)
    assert running_generation() == Generation(False, None)
