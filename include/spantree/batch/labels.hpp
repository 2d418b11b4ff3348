// Labelled edges: the best label of an edge, and the sentence in which every edge has its best label's score.
#pragma once

#include <algorithm>
#include <vector>

#include "../simd/dispatch.hpp"
#include "../simd/vector.hpp"
#include "sentence.hpp"

namespace spantree {

namespace details {

/// out[i] = max of the `labels` scores from in + i * stride, for i in [0, count).
struct MaxOverLabels {
    template <class Registers>
    struct Kernel {
        template <class T>
        static void run(const T* in, std::ptrdiff_t stride, int count, int labels, T* out) {
            with_lanes<Registers::template lanes<T>>(labels, [&]<int Lanes>() __attribute__((always_inline)) {
                for (int i = 0; i < count; ++i, in += stride) {
                    auto best = Vector<T, Lanes>{} + minus_infinity<T>;
                    const auto look = [&](const T* at) __attribute__((always_inline)) {
                        const auto x = load<Lanes>(at);
                        best = x > best ? x : best;
                    };
                    const T* const last = in + labels - Lanes;  // may overlap the one before
                    for (const T* at = in; at < last; at += Lanes) look(at);
                    look(last);
                    out[i] = largest_lane<T, Lanes>(best);
                }
            });
        }
    };
};

}  // namespace details

/// Labels of one edge lie next to each other (label_stride 1).
template <class T>
int best_label(const Sentence<T>& sentence, int head, int dep) {
    const T* scores = sentence.edge(head, dep);
    return static_cast<int>(std::max_element(scores, scores + sentence.labels) - scores);
}

/// The unlabelled sentence whose edges score what their best labels do, in `storage`. O(n^2 labels).
template <class T>
Sentence<T> best_labels(const Sentence<T>& sentence, std::vector<T>& storage) {
    const int nodes = sentence.words + 1;
    storage.resize(static_cast<std::size_t>(nodes) * nodes);
    for (int head = 0; head < nodes; ++head)
        dispatch_on_registers<details::MaxOverLabels>(sentence.edge(head, 0), sentence.dep_stride, nodes,
                                                      sentence.labels,
                                                      storage.data() + static_cast<std::ptrdiff_t>(head) * nodes);
    return {storage.data(), sentence.words, nodes, 1, 0, 0};
}

/// Writes labels[0..words]: the best label of every edge of the tree, the first among equals.
template <class T>
void label_tree(const Sentence<T>& sentence, const Heads* heads, Heads* labels) {
    labels[0] = no_head;
    for (int dep = 1; dep <= sentence.words; ++dep)
        labels[dep] = best_label(sentence, static_cast<int>(heads[dep]), dep);
}

}  // namespace spantree
