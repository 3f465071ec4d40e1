"""Attention on a GPU in Triton: one pass computes the output and the exact map.

`support.refusal` reports in advance what is not supported, without Triton. This module imports nothing, so that it also
works where Triton is not installed.
"""
