// Labelled edges: the best label of an edge, and the sentence in which every edge has its best label's score.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "../simd/dispatch.hpp"
#include "../simd/vector.hpp"
#include "bad_scores.hpp"
#include "sentence.hpp"

namespace spantree {

namespace details {

/// out[i] = max of the `labels` scores from in + i * stride, for i in [0, count). NaN does not count; if it is watched for,
/// returns whether there was any.
template <bool watched>
struct LargestOfLabels {
    template <class Registers>
    struct Kernel {
        template <class T>
        static bool run(const T* in, std::ptrdiff_t stride, int count, int labels, T* out) {
            return with_lanes<Registers::template lanes<T>>(labels, [&]<int Lanes>() __attribute__((always_inline)) {
                Vector<T, Lanes> seen{};  // not 0 where there was NaN
                for (int i = 0; i < count; ++i, in += stride) {
                    auto best = Vector<T, Lanes>{} + minus_infinity<T>;
                    const auto look = [&](const T* at) __attribute__((always_inline)) {
                        const auto x = load<Lanes>(at);
                        best = x > best ? x : best;
                        if constexpr (watched) seen = x == x ? seen : Vector<T, Lanes>{} + T(1);
                    };
                    const T* const last = in + labels - Lanes;  // may overlap the one before
                    for (const T* at = in; at < last; at += Lanes) look(at);
                    look(last);
                    out[i] = largest_lane<T, Lanes>(best);
                }
                bool any = false;
                for (int lane = 0; watched && lane < Lanes; ++lane) any |= seen[lane] != 0;
                return any;
            });
        }
    };
};
using MaxOverLabels = LargestOfLabels<false>;

}  // namespace details

/// Labels of one edge lie next to each other (label_stride 1).
template <class T>
int best_label(const Sentence<T>& sentence, int head, int dep) {
    const T* scores = sentence.edge(head, dep);
    return static_cast<int>(std::max_element(scores, scores + sentence.labels) - scores);
}

/// The unlabelled sentence whose edges score what their best labels do, in `storage`; if a score is bad, so is one of
/// these. O(n^2 labels).
template <class T>
Sentence<T> best_labels(const Sentence<T>& sentence, std::vector<T>& storage) {
    const int nodes = sentence.words + 1;
    storage.resize(static_cast<std::size_t>(nodes) * nodes);
    const auto row = [&](int head) { return storage.data() + static_cast<std::ptrdiff_t>(head) * nodes; };
    bool seen = false;  // NaN, be it on the diagonal
    for (int head = 0; head < nodes; ++head)
        seen |= dispatch_on_registers<details::LargestOfLabels<true>>(sentence.edge(head, 1), sentence.dep_stride,
                                                                      sentence.words, sentence.labels, row(head) + 1);
    if (seen)
        if (const auto edge = first_bad_score(sentence))
            row(edge->head)[edge->dep] = std::numeric_limits<T>::quiet_NaN();
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
