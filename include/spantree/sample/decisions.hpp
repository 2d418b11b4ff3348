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
    /// `table` must stay where it is.
    void start(LabelTable<T>& table) {
        table_ = &table;
        shares_.resize(table.labels());
        left_range_ = false;
    }

    Shares<Real> operator()(int head, int dep) {
        const double* const log_shares = table_->log_shares(head, dep);
        Shares<Real> shares{shares_.data(), table_->labels(), Real{}};
        for (int label = 0; label < shares.count; ++label) {
            const double log_share = log_shares[label];
            shares_[label] = exp_of<Real>(log_share);
            left_range_ |= std::is_same_v<Real, double> && log_share < least_log && log_share > minus_infinity<double>;
            shares.total += shares_[label];
        }
        return shares;
    }

    bool left_range() const { return left_range_; }

private:
    static constexpr double least_log = -708.0;  // its exponential is a normal double

    LabelTable<T>* table_ = nullptr;
    std::vector<Real> shares_;
    bool left_range_ = false;
};

/// Labels of type T in the scores (unused without labels); conditional probabilities in Real.
template <class Real, class T>
class Decisions {
public:
    /// `labels` is null without labels. All must stay where they are.
    void start(const WalkWeights<Real>& weights, LabelTable<T>* labels) {
        words_ = weights.words();
        labelled_ = labels != nullptr;
        conditionals_.start(weights);
        if (labels) labels_.start(*labels);
    }

    void listen_to(StopSignal& stop) { conditionals_.listen_to(stop); }

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
