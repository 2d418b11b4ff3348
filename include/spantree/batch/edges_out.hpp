// Where a sentence's edge results go, and how they are written: in the caller's order of axes, type and width.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sentence.hpp"

namespace spantree {

/// The labels of an edge lie next to each other; strides in numbers, not in edges.
template <class Out>
struct EdgeTarget {
    Out* data = nullptr;
    std::ptrdiff_t head_stride = 0, dep_stride = 0;
    int width = 0;  // nodes per row, padding included

    Out* edge(int head, int dep) const { return data + head * head_stride + dep * dep_stride; }
};

/// For the gradient of a tree's loss: marginals are written times `weight`; and, if there are any, others[i][d] is the sum of
/// what is written of all edges into word d of sentence i but those from heads[i][d].
struct LossGradient {
    double weight = 1.0;
    std::vector<const Heads*> heads;
    std::vector<double*> others;

    /// marginal(h, d), times the weight already, of sentence i.
    template <class Marginal>
    void sum_others(std::size_t i, int words, Marginal marginal) const {
        if (others.empty()) return;
        std::fill_n(others[i], words + 1, 0.0);
        for (int h = 0; h <= words; ++h)
            for (int d = 1; d <= words; ++d) others[i][d] += heads[i][d] == h || h == d ? 0.0 : marginal(h, d);
    }
};

/// The same everywhere, the padding included.
template <class Out>
void fill_edges(const EdgeTarget<Out>& target, int labels, Out value) {
    const std::ptrdiff_t cell = std::max(labels, 1), row = cell * target.width;
    const bool rows_follow = target.dep_stride == cell && target.head_stride == row,
               columns_follow = target.head_stride == cell && target.dep_stride == row;
    if (rows_follow || columns_follow) {
        std::fill_n(target.data, row * target.width, value);
        return;
    }
    for (int head = 0; head < target.width; ++head)
        for (int dep = 0; dep < target.width; ++dep) std::fill_n(target.edge(head, dep), cell, value);
}

template <class Out>
void clear_edges(const EdgeTarget<Out>& target, int labels) {
    fill_edges(target, labels, Out{0});
}

/// Writes edge(h, d), h != d, of an unlabelled sentence, and 0 wherever there is no edge: column 0, the diagonal, the
/// padding.
template <class T, class Out, class Edge>
void write_edges(const Sentence<T>& sentence, const EdgeTarget<Out>& target, Edge edge) {
    if (sentence.words + 1 < target.width) clear_edges(target, 0);
    for (int h = 0; h <= sentence.words; ++h) {
        Out* const row = target.edge(h, 0);
        const auto write = [&](int first, int last) {
            if (target.dep_stride == 1)  // compilers see that these lie side by side
                for (int d = first; d <= last; ++d) row[d] = static_cast<Out>(edge(h, d));
            else
                for (int d = first; d <= last; ++d) row[d * target.dep_stride] = static_cast<Out>(edge(h, d));
        };
        *row = Out{0};
        *target.edge(h, h) = Out{0};
        write(1, h - 1);
        write(h + 1, sentence.words);
    }
}

}  // namespace spantree
