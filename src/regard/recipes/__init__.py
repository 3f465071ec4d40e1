"""Recipes: a training run described by one TOML file. This package reads it, prepares data and model, and trains."""

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
