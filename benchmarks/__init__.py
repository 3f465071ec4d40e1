"""Benchmarks: our times compared with other implementations and with the limits of the machine, in one run."""
