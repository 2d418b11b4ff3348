// Labels of edges: p(label | edge) is proportional to exp(score). An edge's table is made when the edge is first seen.
#pragma once

#include <vector>

#include "../batch/labels.hpp"
#include "../batch/sentence.hpp"
#include "random.hpp"

namespace spantree::sampling {

/// The unlabelled sentence whose edges weigh what their labels do together, in `storage`. O(n^2 labels).
template <class T>
Sentence<double> sum_labels(const Sentence<T>& sentence, std::vector<double>& storage) {
    const int nodes = sentence.words + 1;
    storage.assign(static_cast<std::size_t>(nodes) * nodes, minus_infinity<double>);
    for (int head = 0; head < nodes; ++head)
        for (int dep = 1; dep < nodes; ++dep)
            if (head != dep)
                storage[static_cast<std::size_t>(head) * nodes + dep] = LabelTotal(sentence, head, dep).log();
    return {storage.data(), sentence.words, nodes, 1, 0, 0};
}

/// p(label | edge) of the edges of one sentence.
template <class T>
class LabelDraws {
public:
    void start(const Sentence<T>& sentence) {
        sentence_ = sentence;
        row_.assign(static_cast<std::size_t>(sentence.words + 1) * (sentence.words + 1), none);
        probabilities_.clear();
    }

    /// Writes labels[0..words] of a tree.
    void operator()(const Heads* heads, RandomStream random, Heads* labels) {
        labels[0] = no_head;
        for (int dep = 1; dep <= sentence_.words; ++dep) {
            const double* const p = probabilities(static_cast<int>(heads[dep]), dep);
            double left = random.uniform();
            int possible = 0;
            for (int label = 0; label < sentence_.labels; ++label) {
                if (p[label] > 0.0) possible = label;
                if ((left -= p[label]) < 0.0) break;
            }
            labels[dep] = possible;
        }
    }

private:
    static constexpr std::ptrdiff_t none = -1;

    /// Of all labels; valid until the next call.
    const double* probabilities(int head, int dep) {
        std::ptrdiff_t& row = row_[static_cast<std::size_t>(head) * (sentence_.words + 1) + dep];
        if (row == none) {
            row = static_cast<std::ptrdiff_t>(probabilities_.size());
            const LabelTotal total(sentence_, head, dep);
            for (int label = 0; label < sentence_.labels; ++label)
                probabilities_.push_back(total.share(sentence_(head, dep, label)));
        }
        return probabilities_.data() + row;
    }

    Sentence<T> sentence_{};
    std::vector<std::ptrdiff_t> row_;
    std::vector<double> probabilities_;
};

}  // namespace spantree::sampling
