// A tree as a sequence of decisions: word 1's head, (its label,) word 2's head, ... with the distribution of each given
// those before.
#pragma once

#include <vector>

#include "../batch/sentence.hpp"
#include "conditionals.hpp"
#include "label_draws.hpp"

namespace spantree::sampling {

template <class Real>
struct Shares {
    const Real* data = nullptr;
    int count = 0;
    Real total{};
};

/// The distribution of an edge's label.
template <class Real, class T>
class LabelShares {
public:
    void start(const Sentence<T>& sentence) {
        sentence_ = sentence;
        shares_.resize(sentence.labels);
        left_range_ = false;
    }

    Shares<Real> operator()(int head, int dep) {
        const LabelTotal total(sentence_, head, dep);
        Shares<Real> shares{shares_.data(), sentence_.labels, Real{}};
        for (int label = 0; label < sentence_.labels; ++label) {
            const double score = sentence_(head, dep, label);
            const double log_share = total.log_share(score);
            shares_[label] = exp_of<Real>(log_share);
            left_range_ |= std::is_same_v<Real, double> && log_share < -690.0 && score > minus_infinity<double>;
            shares.total += shares_[label];
        }
        return shares;
    }

    bool left_range() const { return left_range_; }

private:
    Sentence<T> sentence_{};
    std::vector<Real> shares_;
    bool left_range_ = false;
};

/// Labels of type T in the scores (unused without labels); conditional probabilities in Real.
template <class Real, class T>
class Decisions {
public:
    /// `labelled` is null without labels. `weights` must stay where it is.
    void start(const WalkWeights<Real>& weights, const Sentence<T>* labelled) {
        words_ = weights.words();
        labelled_ = labelled != nullptr;
        conditionals_.start(weights);
        if (labelled) labels_.start(*labelled);
    }

    int count() const { return labelled_ ? 2 * words_ : words_; }

    /// How decision `index` is distributed given path[0..index). Valid until the next call.
    Shares<Real> operator()(int index, const int* path) {
        const int step = labelled_ ? 2 : 1;
        const int word = index / step;
        if (index % step == 1) return labels_(path[index - 1], word + 1);
        for (int before = 0; before < word; ++before) conditionals_.decide(before, path[before * step]);
        Shares<Real> shares{nullptr, words_ + 1, Real{}};
        shares.data = conditionals_(word, shares.total);
        return shares;
    }

    /// Whether doubles have turned out not to have the range.
    bool left_range() const { return conditionals_.left_range() || (labelled_ && labels_.left_range()); }

    void tree_of(const int* path, Heads* heads, Heads* labels) const {
        heads[0] = no_head;
        if (labelled_) labels[0] = no_head;
        for (int word = 1; word <= words_; ++word) {
            heads[word] = *path++;
            if (labelled_) labels[word] = *path++;
        }
    }

private:
    int words_ = 0;
    bool labelled_ = false;
    Conditionals<Real> conditionals_;
    LabelShares<Real, T> labels_;
};

}  // namespace spantree::sampling
