// One sentence, ready to be drawn from: its weights, log Z, and how many steps walks take, in doubles if they have the
// range.
#pragma once

#include "../batch/parallel.hpp"
#include "escape.hpp"

namespace spantree::sampling {

class WalkSetup {
public:
    /// Whether there is a tree. `scores`, of at least one word, must stay where they are; `root_bonus` is added to those
    /// of edges that leave ROOT.
    bool operator()(const CentredScores& scores, Root root, Reach reach, StopSignal& stop, double root_bonus = 0.0) {
        scores_ = &scores;
        root_ = root;
        reach_ = reach;
        plain_.read(scores, root, reach, root_bonus);
        in_doubles_ = false;
        if (plain_.in_range()) {
            const bool feasible = solve_(plain_, stop, facts_);
            in_doubles_ = solve_.in_range();
            if (in_doubles_) return feasible;
        }
        extended_.read(scores, root, reach, root_bonus);
        return solve_extended_(extended_, stop, facts_);
    }

    int words() const { return plain_.words(); }
    Root root() const { return root_; }
    const CentredScores& scores() const { return *scores_; }
    const WalkFacts& facts() const { return facts_; }

    /// Whether eliminations may be tried with weights<double>(); with weights<Extended>() they may always.
    bool in_doubles() const { return in_doubles_; }

    template <class Real>
    const WalkWeights<Real>& weights() {
        if constexpr (std::is_same_v<Real, double>) {
            return plain_;
        } else {
            if (in_doubles_) extended_.read(*scores_, root_, reach_);
            return extended_;
        }
    }

private:
    const CentredScores* scores_ = nullptr;
    Root root_ = Root::single;
    Reach reach_ = Reach::likely;
    bool in_doubles_ = false;
    WalkFacts facts_;
    WalkWeights<double> plain_;
    WalkWeights<Extended> extended_;
    EscapeSolve<double> solve_;
    EscapeSolve<Extended> solve_extended_;
};

}  // namespace spantree::sampling
