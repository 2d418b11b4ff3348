// One sentence, ready to be drawn from: its weights, log Z, and how many steps walks take, in doubles if they have the
// range.
#pragma once

#include <vector>

#include "../decode/best_tree.hpp"
#include "escape.hpp"

namespace spantree::sampling {

struct WalkFacts {
    double log_partition = 0.0;
    std::vector<double> root_marginals;  // single root: by word, from 0
    std::vector<double> steps_by_root;   // single root: expected steps given the root word
    double expected_steps = 0.0;
};

class WalkSetup {
public:
    /// `sentence` has no labels and at least one word; `root_bonus` is added to the scores of edges that leave ROOT.
    template <class T>
    Feasibility operator()(const Sentence<T>& sentence, Root root, double root_bonus = 0.0) {
        root_ = root;
        words_ = sentence.words;
        in_doubles_ = false;
        if (plain_.read(sentence, root, root_bonus); plain_.in_range()) {
            const RangeWatch range;
            const bool feasible = find(plain_, solve_);
            in_doubles_ = !range.left_range();
            if (in_doubles_) return feasible ? Feasibility{} : unattachable(sentence);
        }
        extended_.read(sentence, root, root_bonus);
        return find(extended_, solve_extended_) ? Feasibility{} : unattachable(sentence);
    }

    int words() const { return words_; }
    Root root() const { return root_; }
    const WalkFacts& facts() const { return facts_; }

    /// Whether `weights<double>()` may be used; else `weights<Extended>()` may.
    bool in_doubles() const { return in_doubles_; }

    template <class Real>
    const WalkWeights<Real>& weights() const {
        if constexpr (std::is_same_v<Real, double>)
            return plain_;
        else
            return extended_;
    }

    /// Where doubles turn out not to do for some decision.
    template <class T>
    const WalkWeights<Extended>& extend(const Sentence<T>& sentence) {
        if (in_doubles_) extended_.read(sentence, root_);
        return extended_;
    }

private:
    template <class Real>
    bool find(const WalkWeights<Real>& weights, EscapeSolve<Real>& solve) {
        facts_ = {};
        if (!solve(weights)) return false;
        facts_.log_partition = solve.log_partition(weights);
        if (root_ == Root::multi) {
            facts_.expected_steps = solve.expected_steps(weights);
        } else {
            facts_.root_marginals.resize(words_);
            facts_.steps_by_root.resize(words_);
            solve.root_marginals(weights, facts_.root_marginals.data());
            solve.expected_steps_by_root(weights, facts_.steps_by_root.data());
            for (int word = 0; word < words_; ++word)
                if (facts_.root_marginals[word] > 0.0)
                    facts_.expected_steps += facts_.root_marginals[word] * facts_.steps_by_root[word];
        }
        return true;
    }

    template <class T>
    Feasibility unattachable(const Sentence<T>& sentence) const {
        std::vector<Heads> heads(static_cast<std::size_t>(words_) + 1);
        return BestTree<T>()(sentence, root_, heads.data());
    }

    int words_ = 0;
    Root root_ = Root::single;
    bool in_doubles_ = false;
    WalkFacts facts_;
    WalkWeights<double> plain_;
    WalkWeights<Extended> extended_;
    EscapeSolve<double> solve_;
    EscapeSolve<Extended> solve_extended_;
};

}  // namespace spantree::sampling
