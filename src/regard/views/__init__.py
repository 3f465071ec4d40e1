"""Views of a Trace: terminal, matplotlib, HTML page, film and curves. No view runs a model."""
