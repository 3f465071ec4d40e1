"""Scripts that build the bundled models from the source texts."""
