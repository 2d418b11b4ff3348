"""A biaffine graph-based parser: scores for every edge, and for every label of an edge.

    x_d      = word vector, characters' vector and tag vector of word d
    r_d      = two layers of BiLSTM over x_0 ... x_n
    s(h, d)  = H(r_h) W D(r_d) + u H(r_h)                       score of the edge h -> d
    l(h, d)  = H'(r_h) W' D'(r_d) + U' [H'(r_h); D'(r_d)]       one score for each label of that edge

Dozat and Manning (2017), "Deep Biaffine Attention for Neural Dependency Parsing".
"""

from __future__ import annotations

from data import PAD, ROOT, UNKNOWN, Batch, Vocabulary
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import torch
from torch import Tensor, nn


class Parser(nn.Module):
    def __init__(self, vocabulary: Vocabulary, dropout: float = 0.33) -> None:
        super().__init__()
        word, character, form, tag, state, edge, label = 100, 32, 64, 32, 128, 128, 64  # lengths of vectors
        special = vocabulary.number["words"]
        self.unknown, self.root, self.pad = special[UNKNOWN], special[ROOT], special[PAD]
        self.word = nn.Embedding(vocabulary.size("words"), word)
        self.character = nn.Embedding(vocabulary.size("characters"), character, padding_idx=self.pad)
        self.form = nn.Conv1d(character, form, kernel_size=3, padding=2)
        self.tag = nn.Embedding(vocabulary.size("tags"), tag)
        self.states = nn.LSTM(
            word + form + tag,
            state,
            num_layers=2,
            dropout=dropout,
            bidirectional=True,
            batch_first=True,
        )
        self.edge_head, self.edge_dep, self.label_head, self.label_dep = (
            nn.Sequential(nn.Dropout(dropout), nn.Linear(2 * state, size), nn.LeakyReLU(0.1), nn.Dropout(dropout))
            for size in (edge, edge, label, label)
        )
        self.edge = nn.Parameter(torch.zeros(edge + 1, edge))
        self.label = nn.Linear(label, vocabulary.size("labels") * label, bias=False)  # a bilinear form for each label
        self.label_linear = nn.Linear(2 * label, vocabulary.size("labels"))
        self.embedding_dropout = nn.Dropout(dropout)
        nn.init.normal_(self.word.weight, std=0.1)

    def encode(self, batch: Batch) -> Tensor:
        """States (B, n+1, 2 * state)."""
        forms = self.form(self.character(batch.forms).transpose(1, 2)).amax(dim=2)
        vectors = [self.word(self._forget(batch.words)), forms[batch.form_of], self.tag(self._forget(batch.tags))]
        inputs = self.embedding_dropout(torch.cat(vectors, dim=-1))
        packed = pack_padded_sequence(inputs, batch.lengths + 1, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.states(packed)[0], batch_first=True)[0]

    def _forget(self, numbers: Tensor) -> Tensor:
        """In training one word (and one tag) in five is unknown: the other inputs learn to do without it."""
        if not self.training:
            return numbers
        forgotten = (torch.rand(numbers.shape) < 0.2) & (numbers != self.root) & (numbers != self.pad)
        return numbers.masked_fill(forgotten, self.unknown)

    def edges(self, states: Tensor) -> Tensor:
        """Scores (B, n+1, n+1), [head, dependent]."""
        heads, dependents = self.edge_head(states), self.edge_dep(states)
        return torch.cat([heads, heads.new_ones(*heads.shape[:2], 1)], dim=-1) @ self.edge @ dependents.transpose(1, 2)

    def labels(self, states: Tensor, heads: Tensor) -> Tensor:
        """Log-probabilities (B, n+1, Y) of the labels of the edges heads[d] -> d."""
        head = self.label_head(states).take_along_dim(heads[..., None], dim=1)
        dependent = self.label_dep(states)
        turned = self.label(head).unflatten(-1, (-1, dependent.shape[-1]))
        bilinear = (turned @ dependent[..., None]).squeeze(-1)
        return (bilinear + self.label_linear(torch.cat([head, dependent], dim=-1))).log_softmax(dim=-1)
