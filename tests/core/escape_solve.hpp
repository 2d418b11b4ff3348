// A second way to log Z, the root word's distribution, and how many steps walks take: the samplers' own eliminations, in
// numbers of any range, whatever edges are forbidden. For the formulas see sample/walk_facts.hpp; where c(j) is not
// infinitesimal, another root is certain, and it is d(j) / c(j) steps. Z is the weight of any tree over its probability.
#pragma once

#include <algorithm>
#include <vector>

#include "spantree/batch/sentence.hpp"
#include "spantree/sample/conditionals.hpp"

namespace spantree::sampling {

struct ExactFacts {
    double log_partition = 0.0;          // of the weights
    std::vector<double> root_marginals;  // single root: by word, from 0
    std::vector<double> steps_by_root;   // single root: expected steps given the root word
    double expected_steps = 0.0;
};

/// Scratch memory.
class EscapeSolve {
    using Real = Extended;

public:
    /// `heads`: of some tree.
    ExactFacts operator()(const WalkWeights<Real>& weights, const Heads* heads) {
        ExactFacts facts;
        const int words = weights.words();
        tree_.start(weights);
        stride_ = words + 1;
        escape_.assign(static_cast<std::size_t>(words) * stride_, Real{});
        total_.assign(words, Real{});
        order_.assign(words, 0);
        for (int i = 1; i < tree_.count(); ++i) narrow_(tree_[tree_[i].parent].walk, tree_[i].walk, words, nullptr);
        std::vector<Real> shares(stride_);
        for (int word = 0; word < words; ++word) {
            const auto& leaf = tree_[tree_.leaf(word)].walk;
            order_[word] = head_shares(weights, leaf, word, shares.data(), total_[word]);
            std::copy_n(leaf.to_root(order_[word]), words, escape_.data() + word * stride_);
        }
        weights.root() == Root::single ? find_by_root(weights, facts) : find_for_several_roots(weights, facts);
        conditionals_.start(weights);
        Extended partition{1.0};
        for (int word = 0; word < words; ++word) {
            const auto head = static_cast<int>(heads[word + 1]);
            Extended total;
            const Extended share = conditionals_(word, total)[head] / total;
            partition *= weights(head, word) / share;
            conditionals_.decide(word, head);
        }
        facts.log_partition = partition.log();
        return facts;
    }

private:
    Real escape(int from, int avoided) const { return escape_[avoided * stride_ + from]; }

    static Real weight_out(const WalkWeights<Real>& weights, int word, int first_head) {
        Real total{};
        for (int head = first_head; head <= weights.words(); ++head) total += weights(head, word);
        return total;
    }

    void find_for_several_roots(const WalkWeights<Real>& weights, ExactFacts& facts) const {
        facts.expected_steps = 0.0;
        for (int word = 0; word < weights.words(); ++word)
            facts.expected_steps += value_of(weight_out(weights, word, 0) / total_[word]);
    }

    void find_by_root(const WalkWeights<Real>& weights, ExactFacts& facts) const {
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
        facts.expected_steps = 0.0;
        for (int word = 0; word < words; ++word)
            if (facts.root_marginals[word] > 0.0)
                facts.expected_steps += facts.root_marginals[word] * facts.steps_by_root[word];
    }

    IntervalTree<Real> tree_;
    Narrowing<Real> narrow_;
    Conditionals<Real> conditionals_;
    std::ptrdiff_t stride_ = 0;
    std::vector<Real> escape_;
    std::vector<Real> total_;
    std::vector<int> order_;
};

}  // namespace spantree::sampling
