"""A few odd arguments for every command; `make test-hostile` tries many."""

from pathlib import Path

from odd_arguments import odd_commands, run_commands, violations
from without_packages import commands_of

from regard.cli.application import application


def test_every_command_handles_odd_arguments(tmp_path: Path) -> None:
    (place := tmp_path / "place").mkdir()
    commands = list(odd_commands(application(), seed=1, count=3 * len(list(commands_of(application())))))
    results = run_commands(commands, place)
    assert len(results) == len(commands)
    assert not violations(results)
    assert {0, 2, 3} <= {one.code for one in results}
