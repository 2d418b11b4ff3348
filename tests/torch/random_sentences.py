"""A dataset that workers of a DataLoader can import."""

from __future__ import annotations

from torch.utils.data import Dataset

import spantree.torch
import torch


class Sentences(Dataset):
    """Marginals of random scores, and how many threads there were to compute them."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        scores = torch.randn(4, 6, 6, generator=torch.Generator().manual_seed(i), dtype=torch.float64)
        return spantree.torch.TreeDistribution(scores).marginals(), torch.tensor(torch.get_num_threads())
