"""Loops while it is loaded."""
while True:
    pass
