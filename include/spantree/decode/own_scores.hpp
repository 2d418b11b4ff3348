// A sentence's scores as doubles in memory of our own: for the searches that are slow anyway, and read scores again and
// again. There is then one kind of them, and what others do to the scores meanwhile does not matter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../batch/labels.hpp"
#include "../batch/sentence.hpp"
#include "../number/wide.hpp"

namespace spantree {

class OwnScores {
public:
    template <class T>
    explicit OwnScores(const Sentence<T>& sentence) {
        const int nodes = sentence.words + 1, cell = std::max(sentence.labels, 1);
        cells_.assign(static_cast<std::size_t>(nodes) * nodes * cell, minus_infinity<double>);
        sentence_ = {cells_.data(), sentence.words,  std::ptrdiff_t{nodes} * cell,
                     cell,          sentence.labels, sentence.labels > 0 ? 1 : 0};
        for (int head = 0; head < nodes; ++head)
            for (int dep = 1; dep < nodes; ++dep)
                for (int label = 0; label < cell && head != dep; ++label) {
                    const double score = sentence(head, dep, label);
                    bits_.include(BitRange::of(score));
                    cells_[static_cast<std::size_t>(sentence_.edge(head, dep) - cells_.data() + label)] = score;
                }
        plain_ = sentence.labels > 0 ? best_labels(sentence_, arcs_) : sentence_;
    }
    OwnScores(const OwnScores&) = delete;
    OwnScores& operator=(const OwnScores&) = delete;

    const Sentence<double>& sentence() const { return sentence_; }
    /// Of each edge's best label.
    const Sentence<double>& plain() const { return plain_; }
    /// The bits that the scores take up.
    const BitRange& bits() const { return bits_; }

private:
    std::vector<double> cells_, arcs_;
    Sentence<double> sentence_, plain_;
    BitRange bits_;
};

}  // namespace spantree
