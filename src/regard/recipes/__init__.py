"""Recipes: a training told by one small TOML file, its data prepared, its model built, both handed to training."""

from regard.recipes.recipe import (
    DataSpec,
    EvaluationSpec,
    FilmSpec,
    Puzzle,
    Recipe,
    config_of,
    differences,
    read_recipe,
    recipe_names,
    to_toml,
)

__all__ = [
    "DataSpec",
    "EvaluationSpec",
    "FilmSpec",
    "Puzzle",
    "Recipe",
    "config_of",
    "differences",
    "read_recipe",
    "recipe_names",
    "to_toml",
]
