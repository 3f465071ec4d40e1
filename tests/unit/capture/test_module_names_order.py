"""Names by order, if one frame runs many modules."""

from torch import nn

from regard.capture.module_names import CompiledOrder, ModuleNames


class SelfAttention(nn.Module):
    pass


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn, self.mlp = SelfAttention(), nn.Linear(2, 2)


def test_calls_are_assigned_in_order() -> None:
    names = ModuleNames(nn.Sequential(Layer(), Layer()))
    order, root = CompiledOrder(names), names.places[0]
    assert [order.next_place(root).name for _ in range(4)] == ["0.attn", "1.attn", "0.attn", "1.attn"]
    assert order.mismatch() is None
    order.next_place(root)
    assert order.mismatch() == (5, 2)


def test_an_attention_module_keeps_its_calls() -> None:
    names = ModuleNames(nn.Sequential(Layer()))
    place = next(place for place in names.places if place.name == "0.attn")
    assert CompiledOrder(names).next_place(place) == place


def test_a_model_without_attention_classes_keeps_its_calls() -> None:
    names = ModuleNames(nn.Sequential(nn.Linear(2, 2)))
    order = CompiledOrder(names)
    assert order.next_place(names.places[0]) == names.places[0]
    assert order.mismatch() is None
