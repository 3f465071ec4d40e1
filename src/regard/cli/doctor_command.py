"""`regard doctor`: what can run on this machine, and why not."""

from typing import Annotated, Any

import typer

from regard.cli.streams import put, write_json
from regard.messages import say


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.cli.environment import inspect

    found = inspect()
    if as_json:
        write_json(found)
    else:
        put(report(found))


def report(found: dict[str, Any]) -> str:
    """The report as aligned lines."""
    blocks = [_environment(found), _packages(found)]
    for kind, answers in found["backends"].items():
        if answers is not None:
            blocks.append([(say(f"doctor-backends-{kind}"), ""), *((f"  {name}", a) for name, a in answers.items())])
    return "\n\n".join(_aligned(block) for block in blocks)


def _environment(found: dict[str, Any]) -> list[tuple[str, str]]:
    from regard.memory import format_bytes

    machine, terminal, spoken = found["machine"], found["terminal"], found["language"]
    memory = machine["memory_free"]
    free = say("doctor-memory-unknown") if memory is None else say("doctor-memory", free=format_bytes(memory))
    if terminal["colors"] is None:
        plain = "doctor-plain-terminal" if terminal["is_terminal"] else "doctor-no-colors"
        colors = say("doctor-no-color-asked" if terminal["no_color"] else plain)
    else:
        colors = say("doctor-colors", system=terminal["colors"])
    why = spoken["because"] or say("doctor-language-default")
    return [
        ("regard", found["regard"]),
        ("python", f"{found['python']['version']}, {found['python']['platform']}"),
        (say("doctor-machine"), say("doctor-cores", count=machine["cores"]) + free),
        (say("doctor-language"), say("doctor-speaks", why=why)),
        (
            say("doctor-terminal"),
            say(
                "doctor-terminal-is",
                colors=colors,
                columns=terminal["columns"],
                encoding=terminal["encoding"],
            ),
        ),
    ]


def _packages(found: dict[str, Any]) -> list[tuple[str, str]]:
    more = {
        "numpy": lambda: say("doctor-blas", name=found["blas"]) if found["blas"] else "",
        "torch": lambda: _torch(found["torch"]),
        "matplotlib": lambda: _font(found["cjk_font"]),
    }
    rows = []
    for package in found["packages"]:
        name, version, extra = package["name"], package["version"], package["extra"]
        if version is not None:
            rows.append((name, version + more.get(name, str)()))
        elif extra is None:
            rows.append((name, say("doctor-core-missing")))
        else:
            rows.append((name, say("doctor-missing", gives=say(f"extra-{extra}"), extra=extra)))
    return rows


def _torch(found: dict[str, Any]) -> str:
    if "broken" in found:
        return say("doctor-torch-broken", reason=found["broken"])
    cuda = ", ".join(found["cuda"]) or say("doctor-no-cuda")
    triton = found["triton"] or say("doctor-no-triton")
    return say("doctor-torch", cuda=cuda, triton=triton, threads=found["threads"])


def _font(found: dict[str, Any]) -> str:
    return say("doctor-font", name=found["name"]) if found["name"] else say("doctor-no-font")


def _aligned(rows: list[tuple[str, str]]) -> str:
    from rich.cells import cell_len

    first = max((cell_len(name) for name, text in rows if text), default=0) + 2
    return "\n".join((name + " " * max(0, first - cell_len(name)) + text).rstrip() for name, text in rows)
