"""Views: each draws a Trace, none runs a model. The terminal and matplotlib are here."""
