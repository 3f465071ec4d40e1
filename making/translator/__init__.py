"""How the translator is made: its text, its recipe, its weights in eight bits. README.md has the commands."""
