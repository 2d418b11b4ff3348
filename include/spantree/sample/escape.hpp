// What the samplers need to know about a sentence before they start: log Z, the root word's distribution, and how long
// walks take.
//
// E(i, j) = P(the walk from i reaches ROOT before j), and c(j) = sum over i of w(i, j) E(i, j), all words but j
// eliminated. Then
//     several roots: Wilson's algorithm takes d(j) / c(j) steps from word j on average, d(j) the total weight of edges
//     into j; one root:      P(root word = r) = w(0, r) / c(r), and given r, (d(j) / c(j)) (E(r, j) + E(j, r)) steps
//     from word j != r, edges from ROOT
//                    left out of d (they are infinitesimal; where c(j) is not, another root is certain, and it is d(j)
//                    / c(j)).
// O(n^3).
#pragma once

#include <cmath>
#include <vector>

#include "interval_tree.hpp"

namespace spantree::sampling {

template <class Real>
class EscapeSolve {
public:
    /// Whether there is a tree.
    bool operator()(const WalkWeights<Real>& weights) {
        const int words = weights.words();
        tree_.start(weights);
        stride_ = words + 1;
        escape_.assign(static_cast<std::size_t>(words) * stride_, Real{});
        total_.assign(words, Real{});
        order_.assign(words, 0);
        pivots_ = {};
        for (int i = 1; i < tree_.count(); ++i) {
            const auto& to = tree_[i].walk;
            eliminate_(tree_[tree_[i].parent].walk, to, words, nullptr, to.begin == 0 ? &pivots_ : nullptr);
        }
        std::vector<Real> shares(stride_);
        for (int word = 0; word < words; ++word) {
            const auto& leaf = tree_[tree_.leaf(word)].walk;
            order_[word] = head_shares(weights, leaf, word, shares.data(), total_[word]);
            if (order_[word] == 2) return false;
            std::copy_n(leaf.to_root(order_[word]), words, escape_.data() + word * stride_);
        }
        pivots_.product *= Extended(total_[0]);
        pivots_.order += order_[0];
        return pivots_.order == (weights.root() == Root::single ? 1 : 0);
    }

    double log_partition(const WalkWeights<Real>& weights) const {
        return log_of(pivots_.product) + weights.log_scale();
    }

    /// Single root.
    void root_marginals(const WalkWeights<Real>& weights, double* marginals) const {
        for (int word = 0; word < weights.words(); ++word)
            marginals[word] = order_[word] == 1 ? value_of(weights(0, word) / total_[word]) : 0.0;
    }

    /// Several roots: expected number of steps of a walk's tree.
    double expected_steps(const WalkWeights<Real>& weights) const {
        double steps = 0.0;
        for (int word = 0; word < weights.words(); ++word)
            steps += value_of(weight_out(weights, word, 0) / total_[word]);
        return steps;
    }

    /// Single root: the same given each root word.
    void expected_steps_by_root(const WalkWeights<Real>& weights, double* steps) const {
        const int words = weights.words();
        std::fill(steps, steps + words, 0.0);
        for (int word = 0; word < words; ++word) {
            const Real visits = weight_out(weights, word, 1) / total_[word];
            for (int root = 0; root < words; ++root)
                if (root != word && order_[root] == 1)
                    steps[root] += value_of(
                        order_[word] == 1 ? visits * (escape(root, word) + escape(word, root)) : visits);
        }
    }

private:
    Real escape(int from, int avoided) const { return escape_[avoided * stride_ + from]; }

    static Real weight_out(const WalkWeights<Real>& weights, int word, int first_head) {
        Real total{};
        for (int head = first_head; head <= weights.words(); ++head) total += weights(head, word);
        return total;
    }

    IntervalTree<Real> tree_;
    Elimination<Real> eliminate_;
    std::ptrdiff_t stride_ = 0;
    std::vector<Real> escape_;
    std::vector<Real> total_;
    std::vector<int> order_;
    PivotProduct pivots_;
};

}  // namespace spantree::sampling
