"""Fast attention, one folder an implementation: blocked (NumPy and threads), chunked (torch operations).

Both take B H T E arrays that `dispatch` has already looked at, walk the score matrix in blocks of rows, and take
the statistics of a block while it is still in the cache. Nothing T × S is ever made.
"""
