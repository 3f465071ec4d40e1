"""The names that the source documents use, each a thin door to `regard`.

    deep_learning.activations    softmax                                            NumPy
    deep_learning.attention      003's functions and MultiHeadAttention             NumPy
    deep_learning.nn             the attention classes of 000, 001, 002 and 004     PyTorch

A door takes its document's own masks and converts them; what attention means is said in `regard` alone.
"""
