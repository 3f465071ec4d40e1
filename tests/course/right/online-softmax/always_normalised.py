import numpy as np


def online_softmax_attention(Q, K, V, block):
    T = Q.shape[0]
    m = np.full((T, 1), -np.inf)
    l = np.zeros((T, 1))  # noqa: E741
    O = np.zeros((T, V.shape[1]))  # noqa: E741
    n_blocks = -(-len(K) // block)
    for j in range(n_blocks):
        Kj, Vj = K[j * block : (j + 1) * block], V[j * block : (j + 1) * block]
        Sij = (Q @ Kj.T) / np.sqrt(K.shape[1])
        m_new = np.maximum(m, Sij.max(axis=1, keepdims=True))
        P = np.exp(Sij - m_new)
        l_new = np.exp(m - m_new) * l + P.sum(axis=1, keepdims=True)
        O = (l * np.exp(m - m_new) * O + P @ Vj) / l_new  # noqa: E741
        m, l = m_new, l_new  # noqa: E741
    return O, (m + np.log(l)).squeeze(1)
