import torch
import torch.nn as nn
import torch.nn.functional as F


class SingleHeadSelfAttention_Manual(nn.Module):
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
        batch, seq_len, d_model = x.shape
        Q = torch.matmul(x, self.W_Q) + self.b_Q
        K = torch.matmul(x, self.W_K) + self.b_K
        V = torch.matmul(x, self.W_V) + self.b_V
        scores = torch.matmul(Q, K.transpose(-2, -1)) / (d_model**0.5)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        attn_weights = F.softmax(scores, dim=-1)
        out = torch.matmul(attn_weights, V)
        return torch.matmul(out, self.W_O) + self.b_O, attn_weights


if __name__ == "__main__":
    torch.manual_seed(42)
    print(SingleHeadSelfAttention_Manual(8)(torch.randn(2, 4, 8))[0].shape)
