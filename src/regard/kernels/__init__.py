"""Fast attention with statistics, one package per implementation: blocked (NumPy), chunked (torch), triton (GPU).

The kernels take an `AttentionCall`, valid and in B H T E, compute the scores in blocks, and collect the statistics
of a block while it is in fast memory. No T × S array is allocated.
"""
