"""RNN against Transformer at equal parameters and data: recall, gradients, time, memory, translation."""
