import torch
from torch import nn


class SingleHeadSelfAttentionWithMask(nn.Module):
    """A very small number equals -inf if at least one key is visible."""

    def __init__(self, d_model):
        super().__init__()
        self.d_model = d_model
        self.W_Q = nn.Parameter(torch.randn(d_model, d_model))
        self.W_K = nn.Parameter(torch.randn(d_model, d_model))
        self.W_V = nn.Parameter(torch.randn(d_model, d_model))
        self.W_O = nn.Parameter(torch.randn(d_model, d_model))
        self.b_Q = nn.Parameter(torch.zeros(d_model))
        self.b_K = nn.Parameter(torch.zeros(d_model))
        self.b_V = nn.Parameter(torch.zeros(d_model))
        self.b_O = nn.Parameter(torch.zeros(d_model))

    def forward(self, x, mask=None):
        Q, K, V = x @ self.W_Q + self.b_Q, x @ self.W_K + self.b_K, x @ self.W_V + self.b_V
        scores = torch.baddbmm(torch.zeros(1), Q, K.mT, alpha=self.d_model**-0.5)
        if mask is not None:
            scores = scores + (1.0 - mask.to(scores.dtype)) * -1e9
        weights = torch.log_softmax(scores, dim=-1).exp()
        return torch.matmul(weights @ V, self.W_O).add(self.b_O), weights
