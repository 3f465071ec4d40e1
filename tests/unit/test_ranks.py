"""The import ranks of DESIGN.md: a file imports only from packages of lower rank, and torch only where allowed."""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

# Rank 0 has an order of its own: messages, errors that use them, modules that raise errors.
RANKS = {
    "messages": 0.05,
    "errors": 0.1,
    "axes": 0.2,
    "arrays": 0.2,
    "memory": 0.2,
    "files": 0.4,
    "masks": 1,
    "exact_weights": 1.1,  # of masks
    "statistics_table": 1,
    "records": 1.2,
    "images": 0.5,
    "patterns": 1,
    "layer_checks": 1,
    "config": 1.1,  # made of values that `layer_checks` checks
    "text": 1,
    "attention_call": 1.3,  # made of masks and of what `records` requests
    "reference": 2,
    "functional": 2,
    "kernels": 2,
    "cuda_graph": 2,
    "dispatch": 3,
    "hand_calculation": 3,
    "layers": 4,
    "trace": 4,
    "checkpoints": 4,
    "generation": 4,
    "models": 5,
    "training": 5,
    "capture": 5,
    "evaluation": 5.5,
    "recipes": 6,
    "language": 6,
    "surveys": 6.5,
    "views": 6,
    "course": 7,
    "server": 8,
    "cli": 9,
    "__main__": 10,
}

# Modules that need torch, by the start of their names.
TORCH = (
    "regard.functional",
    "regard.cuda_graph",
    "regard.kernels.chunked",
    "regard.kernels.triton",
    "regard.dispatch.torch_backends",
    "regard.dispatch.observation",
    "regard.dispatch.overflow",
    "regard.layers",
    "regard.models",
    "regard.training",
    "regard.evaluation",
    "regard.recipes",
    "regard.capture",
    "regard.language.by_transformers",
    "regard.language.transformers_loading",
    "deep_learning.nn",
)

# Deferred imports (inside functions) from a higher rank or of torch: (importing module, imported module).
DEFERRED_IMPORTS = {
    ("regard.messages", "regard.errors"),
    ("regard.masks.rules", "torch"),
    ("regard.masks.mask", "torch"),
    ("regard.masks.bound", "torch"),
    ("regard.masks.mask", "torch"),
    ("regard.masks.padding", "torch"),
    ("regard.attention_call", "regard.functional.attention"),
    ("regard.dispatch.backend_choice", "regard.dispatch.torch_backends"),
    ("regard.trace.trace", "regard.views.terminal"),
    ("regard.trace.trace", "regard.views.plots"),
    ("regard.trace.trace", "regard.views.explorer.page"),
    ("regard.trace.trace", "regard.views.explorer.widget"),
    ("regard.trace.processes", "torch"),
    ("regard.trace.processes", "torch.distributed"),
    ("regard.trace.trace", "regard.views.image_attention"),
    ("regard.trace.comparison", "regard.views.tables"),
    ("regard.trace.comparison", "regard.views.explorer.compared"),
    ("regard.hand_calculation.steps", "regard.views.explorer.widget"),
    ("regard.views.explorer.source", "regard.capture.effects"),
    ("regard.trace.measures.heads", "regard.views.tables"),
    ("regard.dispatch.backend_choice", "regard.dispatch.overflow"),
    ("regard.dispatch.backend_choice", "regard.functional.attention"),
    ("regard.dispatch.backend_choice", "regard.functional.fused"),
    ("regard.dispatch.backend_choice", "regard.dispatch.torch_backends"),
    ("regard.language.loading", "regard.models"),
    ("regard.language.loading", "regard.functional.int8_weight"),
    ("regard.cli.doctor_command", "torch"),
    ("regard.cli.training_commands", "regard.recipes.evaluating"),
    ("regard.cli.training_commands", "regard.recipes.recipe"),
    ("regard.cli.training_commands", "regard.recipes.running"),
    ("regard.views.curves", "regard.training.metrics"),  # needs no torch, which a test checks
    ("regard.course.grading.child", "torch"),  # the learner's process, where the exercise needs it
    ("regard.course.grading.sandbox", "torch"),
    ("regard.language.loading", "regard.language.transformers_loading"),  # models of other families
    ("regard.surveys.running", "torch"),
    ("regard.surveys.running", "regard.capture"),
    ("regard.surveys.running", "regard.training.processes"),
    ("regard.dispatch.backend", "torch"),
    ("regard.dispatch.backend", "regard.dispatch.overflow"),
}


@cache
def modules() -> dict[str, Path]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        if any(path.match(f"course/exercises/*/{name}") for name in ("stub.py", "solution.py", "right/*.py")):
            continue  # texts for learners, which are never imported
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports(path: Path, name: str) -> list[tuple[str, bool]]:
    """(module, whether at the top of the file) for each import; imports for type checkers are left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: list[tuple[str, bool]] = []

    def collect(node: ast.AST, top: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.Import):
                found.extend((alias.name, top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{name}: relative import"
                assert child.module is not None
                known = modules()
                for alias in child.names:
                    full = f"{child.module}.{alias.name}"
                    found.append((full if full in known else child.module, top))
            collect(child, top and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    collect(tree, True)
    return found


def package(module: str) -> str:
    parts = module.split(".")
    return parts[1] if parts[0] == "regard" and len(parts) > 1 else parts[0]


def rank(module: str) -> float:
    return 10 if module.split(".")[0] == "deep_learning" else RANKS[package(module)]


def needs_torch(module: str) -> bool:
    return module == "torch" or module.startswith("torch.") or module.startswith(TORCH)


MODULES = modules()


@pytest.mark.parametrize("name", sorted(set(MODULES) - {"regard"}))
def test_files_import_only_from_lower_ranks(name: str) -> None:
    for target, top in imports(MODULES[name], name):
        if not target.startswith(("regard", "deep_learning")) or target == "regard":
            continue
        if package(target) == package(name) or (not top and (name, target) in DEFERRED_IMPORTS):
            continue
        assert rank(target) < rank(name), f"{name} (rank {rank(name)}) imports {target} (rank {rank(target)})"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_torch_is_imported_only_where_it_is_allowed(name: str) -> None:
    if needs_torch(name):
        return
    for target, top in imports(MODULES[name], name):
        if needs_torch(target):
            assert not top, f"{name} imports {target} at its top"
            assert (name, target) in DEFERRED_IMPORTS, (
                f"{name} imports {target} inside a function: list it or remove it"
            )


def test_every_package_has_a_rank() -> None:
    assert {package(name) for name in MODULES if name.startswith("regard.")} <= set(RANKS)


def test_every_listed_deferred_import_exists() -> None:
    used = {(name, target) for name in MODULES for target, top in imports(MODULES[name], name) if not top}
    assert used >= DEFERRED_IMPORTS


def test_no_file_has_more_than_500_lines() -> None:
    """Texts and programs of single exercises aside. A longer file has several subjects: give each its own."""
    lengths = {
        path.relative_to(SOURCE).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in SOURCE.rglob("*.py")
        if "exercises" not in path.parts
    }
    assert lengths
    assert not {name: length for name, length in lengths.items() if length > 500}


def test_no_module_has_the_name_of_a_public_function() -> None:
    import regard

    functions = {name for name in regard.__all__ if name.islower() and callable(getattr(regard, name))}
    clashing = [name for name in MODULES if name.split(".")[-1] in functions]
    assert not clashing, f"a module would hide a function: {clashing}"


PACKAGES_WITH_FUNCTIONS = [
    "reference",
    "functional",
    "config",
    "layers",
    "models",
    "checkpoints",
    "generation",
]


@pytest.mark.parametrize("name", [f"regard.{package}" for package in PACKAGES_WITH_FUNCTIONS])
def test_no_module_hides_a_function_of_its_package(name: str) -> None:
    """`from regard.reference import softmax` must not depend on which of two things was imported last."""
    exported = set(import_module(name).__all__)
    assert not exported & {module.split(".")[-1] for module in MODULES if module.startswith(f"{name}.")}
