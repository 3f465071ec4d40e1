"""Measured ratios: ours against our peers and against what the machine can do, in one run."""
