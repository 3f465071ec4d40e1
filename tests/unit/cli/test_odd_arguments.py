"""A few odd arguments for every command; `make test-hostile` draws many."""

from pathlib import Path

from odd_arguments import odd_commands, run_all, wrong
from without_packages import commands_of

from regard.cli.application import application


def test_every_command_bears_odd_arguments(tmp_path: Path) -> None:
    (place := tmp_path / "place").mkdir()
    commands = list(odd_commands(application(), seed=1, count=3 * len(list(commands_of(application())))))
    ran = run_all(commands, place)
    assert len(ran) == len(commands)
    assert not wrong(ran)
    assert {0, 2, 3} <= {one.code for one in ran}
