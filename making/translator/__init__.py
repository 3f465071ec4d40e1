"""Scripts that build the translator: training text, recipes, int8 weights. README.md has the commands."""
