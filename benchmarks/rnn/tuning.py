"""Runs of a recipe, and the learning rate of each model: short runs with several rates, the lowest loss decides."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from regard.recipes.recipe import Recipe
from regard.recipes.running import train

RATES = (0.001, 0.003, 0.01)
BELOW, ABOVE = (0.0003, 0.0001), (0.03, 0.1)
"""Tried too, one after the other, as long as the lowest or the highest rate so far is the best."""
TRIAL_SEED = 0
"""The results come from other seeds."""


class Place(NamedTuple):
    """Where runs are trained: the folder of their data, None for puzzles, their own folder, and the device."""

    data: Path | None
    out: Path
    device: str

    def below(self, name: str) -> "Place":
        """A folder in this one, named after a model: LSTM + Luong is lstm-luong."""
        return self._replace(out=self.out / name.replace(" ", "").replace("+", "-").lower())


def run(recipe: Recipe, place: Place) -> Mapping[str, Any]:
    """The final figures of a run, which is trained, continued, or read if it is finished."""
    result = train(recipe, data=place.data, out=place.out, device=place.device)
    if result.reason == "signal":
        raise KeyboardInterrupt(f"stopped; the same command continues the run in {place.out}")
    return result.figures


def with_rate(recipe: Recipe, lr: float) -> Recipe:
    """The recipe with another highest rate; the last one keeps its ratio to it."""
    plan = recipe.training
    return replace(recipe, training=replace(plan, lr=lr, lr_end=plan.lr_end * lr / plan.lr))


def shortened(recipe: Recipe, steps: int) -> Recipe:
    """The recipe with fewer steps, and warm-up shortened with them; validated and saved only at the end."""
    plan = recipe.training
    warmup = plan.warmup * steps // plan.steps
    once: dict[str, Any] = {"valid_every": None, "patience": None, "save_every": steps, "average": 1}
    return replace(recipe, training=replace(plan, steps=steps, warmup=warmup, seed=TRIAL_SEED, **once))


def losses_by_rate(loss: Callable[[float], float]) -> dict[str, float]:
    """The loss for each of RATES, and beyond them while the best is at an end; rates are strings, as in JSON.

    >>> losses_by_rate(lambda rate: abs(rate - 0.01))
    {'0.001': 0.009, '0.003': 0.007, '0.01': 0.0, '0.03': 0.02}
    """
    found = {rate: loss(rate) for rate in RATES}
    for end, more in ((min, BELOW), (max, ABOVE)):
        for rate in more:
            if min(found, key=found.__getitem__) == end(found):
                found[rate] = loss(rate)
    return {str(rate): round(found[rate], 4) for rate in sorted(found)}


def trials(recipe: Recipe, steps: int, place: Place) -> dict[str, float]:
    """The validation loss of a short run of the recipe, by learning rate."""
    short = shortened(recipe, steps)

    def loss(rate: float) -> float:
        folder = place.out / f"rate-{rate}-{steps}-steps"
        return float(run(with_rate(short, rate), place._replace(out=folder))["valid_loss"])

    return losses_by_rate(loss)


def seeded(recipe: Recipe, seed: int, place: Place) -> tuple[Recipe, Place]:
    """The recipe with a seed, which draws the weights and orders the data, and the folder of its run."""
    plan = replace(recipe.training, seed=seed)
    folder = place.out / f"seed-{seed}-rate-{plan.lr}-{plan.steps}-steps"
    return replace(recipe, training=plan), place._replace(out=folder)


def finalists(losses: Mapping[str, float]) -> list[float]:
    """The rate with the lowest loss and the next lower one that was tried: short runs favour rates that are too high.

    >>> finalists({"0.001": 5.4, "0.003": 4.8, "0.01": 4.9})
    [0.003, 0.001]
    """
    best = best_rate(losses)
    return [best, *sorted((rate for rate in map(float, losses) if rate < best), reverse=True)[:1]]


def best_rate(losses: Mapping[str, float]) -> float:
    """The rate with the lowest loss."""
    return float(min(losses, key=losses.__getitem__))
