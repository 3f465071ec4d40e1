import numpy as np


def grouped_query_attention(queries, keys, values):
    owner = np.arange(len(queries)) * len(keys) // len(queries)
    scores = np.matmul(queries, np.transpose(keys[owner], (0, 2, 1)))
    scores *= 1 / np.sqrt(queries.shape[2])
    scores -= np.max(scores, axis=2)[:, :, None]
    weights = np.exp(scores)
    weights /= np.sum(weights, axis=2)[:, :, None]
    return np.matmul(weights, values[owner])
