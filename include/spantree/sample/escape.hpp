// What the samplers need to know about a sentence before they start, from eliminations that work at any range and
// whatever edges are forbidden: log Z, the root word's distribution, and how long walks take.
//
//     E(i, j) = P(the walk from i reaches ROOT before j)
//     c(j)    = sum over i of w(i, j) E(i, j)
//     d(j)    = the total weight of the edges into j
//
// Several roots:  Wilson's algorithm takes, on average, from word j
//
//                     d(j) / c(j)                           steps.
//
// One root:       P(root word = r) = w(0, r) / c(r), and given r, from word j != r,
//
//                     (d(j) / c(j)) (E(r, j) + E(j, r))     steps,
//
//                 edges from ROOT left out of d: they are infinitesimal. Where c(j) is not, another root is certain, and
//                 it is d(j) / c(j) steps.
//
// O(n^3).
#pragma once

#include <algorithm>
#include <vector>

#include "../batch/parallel.hpp"

#include "interval_tree.hpp"

namespace spantree::sampling {

struct WalkFacts {
    double log_partition = 0.0;          // of the centred scores
    std::vector<double> root_marginals;  // single root: by word, from 0
    std::vector<double> steps_by_root;   // single root: expected steps given the root word
    double expected_steps = 0.0;

    /// From those by root.
    void average_steps() {
        expected_steps = 0.0;
        for (std::size_t word = 0; word < root_marginals.size(); ++word)
            if (root_marginals[word] > 0.0) expected_steps += root_marginals[word] * steps_by_root[word];
    }
};

template <class Real>
class EscapeSolve {
public:
    /// Whether there is a tree; `facts` has something to say if there is.
    bool operator()(const WalkWeights<Real>& weights, StopSignal& stop, WalkFacts& facts) {
        const int words = weights.words();
        tree_.start(weights);
        stride_ = words + 1;
        escape_.assign(static_cast<std::size_t>(words) * stride_, Real{});
        total_.assign(words, Real{});
        order_.assign(words, 0);
        PivotProduct pivots;
        in_range_ = true;
        for (int i = 1; i < tree_.count(); ++i) {
            stop.check();
            const auto& to = tree_[i].walk;
            in_range_ &= narrow_(tree_[tree_[i].parent].walk, to, words, nullptr, to.begin == 0 ? &pivots : nullptr);
        }
        std::vector<Real> shares(stride_);
        for (int word = 0; word < words; ++word) {
            const auto& leaf = tree_[tree_.leaf(word)].walk;
            order_[word] = head_shares(weights, leaf, word, shares.data(), total_[word]);
            if (order_[word] == 2) return false;
            std::copy_n(leaf.to_root(order_[word]), words, escape_.data() + word * stride_);
        }
        if (pivots.order + order_[0] != (weights.root() == Root::single ? 1 : 0)) return false;
        facts.log_partition = log_of(pivots.product * Extended(total_[0]));
        weights.root() == Root::single ? find_by_root(weights, facts) : find_for_several_roots(weights, facts);
        return true;
    }

    bool in_range() const { return in_range_; }

private:
    Real escape(int from, int avoided) const { return escape_[avoided * stride_ + from]; }

    static Real weight_out(const WalkWeights<Real>& weights, int word, int first_head) {
        Real total{};
        for (int head = first_head; head <= weights.words(); ++head) total += weights(head, word);
        return total;
    }

    void find_for_several_roots(const WalkWeights<Real>& weights, WalkFacts& facts) const {
        facts.expected_steps = 0.0;
        for (int word = 0; word < weights.words(); ++word)
            facts.expected_steps += value_of(weight_out(weights, word, 0) / total_[word]);
    }

    void find_by_root(const WalkWeights<Real>& weights, WalkFacts& facts) const {
        const int words = weights.words();
        facts.root_marginals.assign(words, 0.0);
        facts.steps_by_root.assign(words, 0.0);
        for (int word = 0; word < words; ++word) {
            if (order_[word] == 1) facts.root_marginals[word] = value_of(weights(0, word) / total_[word]);
            const Real visits = weight_out(weights, word, 1) / total_[word];
            for (int root = 0; root < words; ++root)
                if (root != word && order_[root] == 1)
                    facts.steps_by_root[root] +=
                        value_of(order_[word] == 1 ? visits * (escape(root, word) + escape(word, root)) : visits);
        }
        facts.average_steps();
    }

    IntervalTree<Real> tree_;
    Narrowing<Real> narrow_;
    std::ptrdiff_t stride_ = 0;
    std::vector<Real> escape_;
    std::vector<Real> total_;
    std::vector<int> order_;
    bool in_range_ = true;
};

}  // namespace spantree::sampling
