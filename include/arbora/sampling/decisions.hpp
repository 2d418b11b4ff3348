// A tree as a sequence of decisions: word 1's head, (its label,) word 2's head, ... with the distribution of each given those before.
#pragma once

#include <vector>

#include "../sentence.hpp"
#include "conditionals.hpp"
#include "label_draws.hpp"

namespace arbora::sampling {

template <class Real>
struct Shares {
    const Real* data = nullptr;
    int count = 0;
    Real total{};
};

/// Labels of type T in the scores (unused without labels); conditional probabilities in Real.
template <class Real, class T>
class Decisions {
public:
    /// `labelled` may be null. Both must stay where they are.
    void start(const WalkWeights<Real>& weights, const Sentence<T>* labelled) {
        words_ = weights.words();
        labelled_ = labelled;
        conditionals_.start(weights);
        if (labelled) labels_.resize(labelled->labels);
        left_range_ = false;
    }

    int count() const { return labelled_ ? 2 * words_ : words_; }

    /// How decision `index` is distributed given path[0..index). Valid until the next call.
    Shares<Real> operator()(int index, const int* path) {
        const int step = labelled_ ? 2 : 1;
        const int word = index / step;
        if (index % step == 1) return label_shares(path[index - 1], word + 1);
        for (int before = 0; before < word; ++before) conditionals_.decide(before, path[before * step]);
        Shares<Real> shares{nullptr, words_ + 1, Real{}};
        shares.data = conditionals_(word, shares.total);
        return shares;
    }

    /// Whether doubles have turned out not to have the range.
    bool left_range() const { return left_range_ || conditionals_.left_range(); }

    void path_of(const Heads* heads, const Heads* labels, int* path) const {
        for (int word = 1; word <= words_; ++word) {
            *path++ = static_cast<int>(heads[word]);
            if (labelled_) *path++ = static_cast<int>(labels[word]);
        }
    }

    void tree_of(const int* path, Heads* heads, Heads* labels) const {
        heads[0] = no_head;
        if (labelled_) labels[0] = no_head;
        for (int word = 1; word <= words_; ++word) {
            heads[word] = *path++;
            if (labelled_) labels[word] = *path++;
        }
    }

private:
    Shares<Real> label_shares(int head, int dep) {
        const double total = log_sum_labels(*labelled_, head, dep);
        Shares<Real> shares{labels_.data(), labelled_->labels, Real{}};
        for (int label = 0; label < labelled_->labels; ++label) {
            const double score = (*labelled_)(head, dep, label);
            labels_[label] = exp_of<Real>(score - total);
            left_range_ |= std::is_same_v<Real, double> && score - total < -690.0 && score > minus_infinity<double>;
            shares.total += labels_[label];
        }
        return shares;
    }

    int words_ = 0;
    const Sentence<T>* labelled_ = nullptr;
    Conditionals<Real> conditionals_;
    std::vector<Real> labels_;
    bool left_range_ = false;
};

}  // namespace arbora::sampling
