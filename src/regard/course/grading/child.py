"""The learner's process: loads the learner's source, makes the calls, sends the answers one by one.

It receives neither the exercise nor the expected answers. The grader's process also uses `load`, `answer` and
`answer_repeatedly`, for trusted programs. `main` reads one request from stdin, applies the restrictions, and never
returns: the process ends without running the learner's exit handlers. After all answers a second request may ask for
one call again.
"""

import contextlib
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from hashlib import sha256
from types import ModuleType
from typing import IO, Any

import numpy as np

from regard.course.grading import restrictions, serialisation

FILE = "your file"
"""The file name of the learner's source in tracebacks."""


class CallError(Exception):
    """The requested call is impossible; `fault` is a diagnosis, `details` fill the placeholders of its message."""

    def __init__(self, fault: str, **details: str) -> None:
        super().__init__(fault)
        self.fault, self.details = fault, details


# --- loading ------------------------------------------------------------------------------------------------


def load(source: str) -> dict[str, Any]:
    """Run a program and return the names it defines; raises what the program raises.

    >>> load("two = 1 + 1")["two"]
    2
    """
    code = compile(source, FILE, "exec", dont_inherit=True)
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
    module = ModuleType("your_file")
    sys.modules["your_file"] = module  # dataclasses and type hints look up their module
    exec(code, module.__dict__)
    return module.__dict__


# --- calling ------------------------------------------------------------------------------------------------


def answer(namespace: Mapping[str, Any], call: Mapping[str, Any], track: str, place: int = 0) -> dict[str, Any]:
    """The result or the exception of one call, as plain data; catches every exception, also SystemExit.

    >>> answer({}, {"target": "f", "args": (), "kwargs": {}, "instance": None, "gradients": False}, "numpy")["fault"]
    'missing-name'
    """
    try:
        return run_call(namespace, call, track, place)
    except BaseException as error:
        return exception_data(error)


def run_call(namespace: Mapping[str, Any], call: Mapping[str, Any], track: str, place: int = 0) -> dict[str, Any]:
    """{"value", "gradients", "after"}: the result, and a digest of each argument after the call.

    `place` seeds PyTorch: the same call at two places shows whether the program draws random numbers, such as dropout.
    """
    target = _target(namespace, call["target"])
    given = {name: as_argument(value, track) for name, value in by_name(call).items()}
    if track == "torch":
        # Not torch.manual_seed, which formats a traceback for each kind of device that is not there.
        sys.modules["torch"].default_generator.manual_seed(place)
    function = target if call["instance"] is None else _instance(target, call["instance"], track, call["target"])
    leaves = _leaves(given, function) if call["gradients"] else {}
    args = [value for name, value in given.items() if name.startswith("args.")]
    kwargs = {name.removeprefix("kwargs."): value for name, value in given.items() if name.startswith("kwargs.")}
    value = function(*args, **kwargs)
    after = {name: digest(value, track) for name, value in given.items()}
    return {"value": value, "after": after, "gradients": _gradients(value, leaves) if call["gradients"] else None}


def by_name(call: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, by position or keyword.

    >>> by_name({"args": (3,), "kwargs": {"scale": 2}})
    {'args.0': 3, 'kwargs.scale': 2}
    """
    by_place = {f"args.{place}": value for place, value in enumerate(call["args"])}
    return by_place | {f"kwargs.{name}": value for name, value in call["kwargs"].items()}


def digest(value: Any, track: str) -> str:
    """A hash of a value; the grader uses it to detect changed arguments."""
    return sha256(serialisation.encode(value, track)).hexdigest()[:32]


def as_argument(value: Any, track: str) -> Any:
    """An argument as the learner receives it: a fresh copy, arrays as tensors in the torch track."""
    if isinstance(value, np.ndarray):
        return sys.modules["torch"].from_numpy(value.copy()) if track == "torch" else value.copy()
    if isinstance(value, list | tuple):
        return type(value)(as_argument(part, track) for part in value)
    if isinstance(value, dict):
        return {key: as_argument(part, track) for key, part in value.items()}
    return value


def _target(namespace: Mapping[str, Any], name: str) -> Callable[..., Any]:
    if name not in namespace:
        own = [found for found in namespace if not found.startswith("__")]
        raise CallError("missing-name", name=name, nearest=(get_close_matches(name, own, 1, 0.6) or [""])[0])
    if not callable(namespace[name]):
        raise CallError("not-callable", name=name, found=serialisation.type_name(namespace[name]))
    return namespace[name]


def _instance(cls: Callable[..., Any], spec: Mapping[str, Any], track: str, name: str) -> Callable[..., Any]:
    """An instance with the given parameters, so that the result does not depend on random initial values."""
    args = [as_argument(value, track) for value in spec["args"]]
    instance = cls(*args, **{key: as_argument(value, track) for key, value in spec["kwargs"].items()})
    if track != "torch":
        return instance
    torch = sys.modules["torch"]
    if not isinstance(instance, torch.nn.Module):
        raise CallError("not-a-module", name=name, found=serialisation.type_name(instance))
    own = dict(instance.named_parameters(remove_duplicate=False))
    places = own | dict(instance.named_buffers(remove_duplicate=False))
    for missing in (key for key in spec["state"] if key not in places):
        raise CallError(_missing(instance, missing), name=missing, found=", ".join(own)[:200])
    for extra in (key for key in own if key not in spec["state"]):
        raise CallError("extra-parameter", name=extra, wanted=", ".join(spec["state"])[:200])
    for key, value in spec["state"].items():
        if tuple(places[key].shape) != value.shape:
            found, wanted = str(tuple(places[key].shape)), str(value.shape)
            raise CallError("wrong-parameter", name=key, wanted=wanted, found=found)
        with torch.no_grad():
            places[key].copy_(as_argument(value, track))
    instance.train(bool(spec["training"]))
    return instance


def _missing(instance: Any, name: str) -> str:
    """The fault of a module without this parameter: there may be a tensor or a layer in its place."""
    torch, found = sys.modules["torch"], getattr(instance, name, None)
    if isinstance(found, torch.nn.Module):
        return "layer-for-parameter"
    is_plain = isinstance(found, torch.Tensor) and not isinstance(found, torch.nn.Parameter)
    return "plain-tensor" if is_plain else "missing-parameter"


REPEATS = 8
"""The number of times one call is made again. A draw may repeat by chance."""


def answer_repeatedly(source: str, call: Mapping[str, Any], track: str, place: int) -> Iterator[dict[str, Any]]:
    """The answers to one call, made several times by the program as loaded anew; none if it does not load again.

    Nothing is left then of the calls before, so the first answer differs from the one in their order if the program
    keeps something between calls. Both have the same seed for PyTorch; the others differ, which shows dropout.
    """
    try:
        namespace = load(source)
    except BaseException:
        return
    for turn in range(REPEATS):
        yield answer(namespace, call, track, place + turn)


# --- gradients ----------------------------------------------------------------------------------------------


def _leaves(given: dict[str, Any], function: Any) -> dict[str, Any]:
    """The tensors to differentiate by: float arguments and parameters. Arguments are passed as clones, because PyTorch
    forbids in-place changes of a leaf; a learner who changes an argument should get our own message."""
    torch = sys.modules["torch"]
    leaves = {}
    for name, value in given.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            leaves[name] = value.requires_grad_()
            given[name] = value.clone()
    return leaves | (dict(function.named_parameters()) if isinstance(function, torch.nn.Module) else {})


def _gradients(value: Any, leaves: dict[str, Any]) -> dict[str, Any]:
    """The gradient of sum(out * c) by each leaf, c depending only on the shape of out; None for an unused leaf."""
    torch = sys.modules["torch"]
    out = value[0] if isinstance(value, list | tuple) and value else value
    if not isinstance(out, torch.Tensor) or not out.requires_grad:
        return dict.fromkeys(leaves)
    weight = torch.sin(1.0 + torch.arange(out.numel())).reshape(out.shape)
    found = torch.autograd.grad((out * weight).sum(), list(leaves.values()), allow_unused=True)
    return dict(zip(leaves, found, strict=True))


# --- exceptions as data -------------------------------------------------------------------------------------


def exception_data(error: Any) -> dict[str, Any]:
    """An exception as plain data: type, shortened message, line of the learner's source, and fault with details.

    The exception is untrusted: `type(error)` is used, never its `__class__`.
    """
    kind: type = type(error)
    fault, details = "", {}
    if issubclass(kind, CallError):
        return {"raised": "", "message": "", "line": None, "fault": error.fault, "details": error.details}
    try:
        message, line = str(error)[:500], _line(error)
    except BaseException:  # __str__ can do anything, even exit
        message, line = "", None
    if issubclass(kind, restrictions.RefusedError):
        kind, fault, details = PermissionError, "refused", {"what": str(error.what)}
    elif issubclass(kind, MemoryError) or "can't allocate memory" in message:
        fault = "too-much-memory"
    elif issubclass(kind, SyntaxError) and error.filename == FILE:
        message, line, details = str(error.msg)[:500], error.lineno, {"column": str(error.offset or 0)}
    return {"raised": serialisation.name_of(kind), "message": message, "line": line, "fault": fault, "details": details}


def _line(error: BaseException) -> int | None:
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


# --- the program --------------------------------------------------------------------------------------------


def main() -> None:
    """Read the request, answer it, exit. The answers get a pipe of their own, separate from printed output."""
    leave = os._exit
    request_file, pipe = os.fdopen(os.dup(0), "rb"), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    nonce, receive = request_file.read(serialisation.NONCE), _receiver(request_file)
    request = receive()
    sys.path.extend(path for path in request["paths"] if path not in sys.path)
    load_libraries(request["track"])
    send, silence = _sender(pipe, nonce, request["track"]), _silencer()
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    enforced = restrictions.apply_restrictions(FILE, request["limits"], request["hidden"], request["messages"])
    _unload_own_modules()
    _provide(request["given"], request["messages"]["package"])
    send({"enforced": enforced})
    try:
        if _answer_all(request, send):
            place = receive()
            silence()
            repeats = answer_repeatedly(_source(request), request["calls"][place], request["track"], place)
            for result in repeats:
                send(result)
        leave(0)
    finally:  # the learner's program broke this process; our own traceback would not help
        leave(1)


def _receiver(file: IO[bytes]) -> Callable[[], Any]:
    """A function that waits for the next request; at the end of the pipe the process exits."""
    read, leave, length = file.read, os._exit, serialisation.LENGTH

    def receive() -> Any:
        head = read(length.size)
        if len(head) < length.size:
            leave(0)
        return serialisation.decode(read(*length.unpack(head)))

    return receive


def _silencer() -> Callable[[], None]:
    """A function that discards everything printed from then on: the learner wants to read it once."""
    null, dup2 = os.open(os.devnull, os.O_WRONLY), os.dup2

    def silence() -> None:
        dup2(null, 1)
        dup2(null, 2)

    return silence


def _sender(pipe: int, nonce: bytes, track: str) -> Callable[[Any], None]:
    write, leave, count = os.write, os._exit, 0

    def send(value: Any) -> None:
        nonlocal count
        data = serialisation.encode(value, track)
        data = serialisation.HEADER.pack(nonce, count, len(data)) + data
        count += 1
        try:
            while data:
                data = data[write(pipe, data) :]
        except OSError:  # the learner closed the pipe: no further message can be sent
            leave(1)

    return send


def load_libraries(track: str) -> None:
    """Import torch if needed, before the limits apply, so that they count only the learner's own work."""
    if track == "torch":
        import torch  # noqa: F401


def _unload_own_modules() -> None:
    """Remove our modules and their folder from the import system, so that the learner's program cannot import them."""
    for name in [name for name in sys.modules if name.split(".")[0] == "regard"]:
        del sys.modules[name]
    del sys.path[0]


def _provide(sources: Mapping[str, str], sentence: str) -> None:
    """Install the modules that an answer may import, each in a package that refuses anything else."""

    def refuse(name: str) -> Any:
        if name.startswith("__"):  # lookups by the import system itself
            raise AttributeError(name)
        raise restrictions.RefusedError("package", sentence)

    for name, source in sources.items():
        home, _, own = name.rpartition(".")
        package, module = ModuleType(home), ModuleType(name)
        exec(compile(source, f"<{name}>", "exec", dont_inherit=True), module.__dict__)
        package.__dict__.update({own: module, "__path__": [], "__getattr__": refuse})
        module.__dict__["__getattr__"] = refuse
        sys.modules |= {home: package, name: module}


def _source(request: Mapping[str, Any]) -> str:
    return str(request["source"].tobytes().decode())


def _answer_all(request: dict[str, Any], send: Callable[[Any], None]) -> bool:
    """Whether every call was answered."""
    stdout, track = sys.stdout, request["track"]
    try:
        namespace = load(_source(request))
    except BaseException as error:
        send({"load": exception_data(error)})
        return False
    send({"load": None})
    for place, call in enumerate(request["calls"]):
        result = answer(namespace, call, track, place)
        send(result)
        if result.get("fault") == "too-much-memory":  # the next call would fail too, and filling memory is slow
            return False
    with contextlib.suppress(OSError, ValueError):  # closed by the learner
        stdout.flush()
    return True
