// p(head of word j | heads of words before j), word by word: Colbourn's order of decisions, without a subtraction or an
// inverse.
//
// The share of head h is w(h, j) P(from h, ROOT is reached before j) in the walk where words before j go to their
// heads. Words after j are eliminated, words before it too, by halves (interval_tree.hpp), so that all n decisions
// together cost O(n^3). What an interval's walk looks like depends on the heads of the words before the interval only:
// it is kept until one of those changes.
#pragma once

#include <vector>

#include "../batch/parallel.hpp"
#include "interval_tree.hpp"

namespace spantree::sampling {

template <class Real>
class Conditionals {
public:
    void start(const WalkWeights<Real>& weights) {
        weights_ = &weights;
        tree_.start(weights);
        valid_.assign(tree_.count(), 0);
        valid_[0] = 1;
        heads_.assign(weights.words(), no_head_yet);
        shares_.resize(static_cast<std::size_t>(weights.words()) + 1);
        in_range_ = true;
    }

    /// Whom to ask now and then whether to go on.
    void listen_to(StopSignal& stop) { stop_ = &stop; }

    /// Word `word` (from 0) gets head `head`; words before it must have theirs.
    void decide(int word, int head) {
        if (heads_[word] == head) return;
        heads_[word] = head;
        // Nodes are sorted by their first word.
        int first = tree_.leaf(word) + 1;
        std::fill(valid_.begin() + first, valid_.end(), 0);
    }

    /// Shares of heads 0..words for `word`, given the heads decided for the words before; `total` is their sum. Valid
    /// until the next call.
    const Real* operator()(int word, Real& total) {
        const int leaf = tree_.leaf(word);
        make_valid(leaf);
        head_shares(*weights_, tree_[leaf].walk, word, shares_.data(), total);
        return shares_.data();
    }

    /// Whether some share since `start` may have lost digits because doubles do not reach far enough.
    bool left_range() const { return !in_range_; }

private:
    static constexpr int no_head_yet = -1;

    void make_valid(int node) {
        if (valid_[node]) return;
        if (stop_) stop_->check();
        const int parent = tree_[node].parent;
        make_valid(parent);
        const auto &from = tree_[parent].walk, &to = tree_[node].walk;
        in_range_ &= narrow_(from, to, weights_->words(), to.begin == from.begin ? nullptr : heads_.data());
        valid_[node] = 1;
    }

    const WalkWeights<Real>* weights_ = nullptr;
    IntervalTree<Real> tree_;
    Narrowing<Real> narrow_;
    std::vector<char> valid_;
    std::vector<int> heads_;
    std::vector<Real> shares_;
    bool in_range_ = true;
    StopSignal* stop_ = nullptr;
};

}  // namespace spantree::sampling
