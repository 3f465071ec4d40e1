"""Attention on a GPU whose single pass also yields the exact map, in Triton.

`refusal` says beforehand what cannot be done, without Triton; `attention` does the rest. Nothing is imported here, so
that one may ask where Triton is not installed.
"""
