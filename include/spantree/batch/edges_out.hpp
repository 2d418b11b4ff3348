// Where a sentence's edge results go, and how they are written: in the caller's order of axes, type and width.
#pragma once

#include <algorithm>
#include <cstddef>

#include "sentence.hpp"

namespace spantree {

/// Strides in cells of max(labels, 1) numbers.
template <class Out>
struct EdgeTarget {
    Out* data = nullptr;
    std::ptrdiff_t head_stride = 0, dep_stride = 0;
    int width = 0;  // nodes per row, padding included

    Out* edge(int head, int dep, int labels) const {
        return data + (head * head_stride + dep * dep_stride) * std::max(labels, 1);
    }
};

/// 0 wherever there is no edge: column 0, the diagonal, the padding. All of it is written if there is padding or labels.
template <class T, class Out>
void clear_edges(const Sentence<T>& sentence, const EdgeTarget<Out>& target) {
    const std::size_t cell = static_cast<std::size_t>(std::max(sentence.labels, 1));
    std::fill_n(target.data, static_cast<std::size_t>(target.width) * target.width * cell, Out{0});
}

/// Writes edge(h, d), h != d, of an unlabelled sentence, and 0 elsewhere.
template <class T, class Out, class Edge>
void write_edges(const Sentence<T>& sentence, const EdgeTarget<Out>& target, Edge edge) {
    if (sentence.words + 1 < target.width) clear_edges(sentence, target);
    for (int h = 0; h <= sentence.words; ++h) {
        *target.edge(h, 0, 0) = Out{0};
        for (int d = 1; d <= sentence.words; ++d)
            *target.edge(h, d, 0) = h == d ? Out{0} : static_cast<Out>(edge(h, d));
    }
}

}  // namespace spantree
