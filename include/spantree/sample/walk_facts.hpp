// One sentence, ready to be drawn from: its weights, log Z, and how many steps walks take, in doubles if they have the
// range.
//
// Nearly always one fast solve (walk/group.hpp) says all of it. Of its V[h, j] = w(h, j) / c(j) and E only products
// within a column mean something, as column j of E has the unit E[ROOT, j]. With the quantities of escape.hpp,
//
//     P(root word = r)                         V[ROOT, r] E[ROOT, r]
//     d(j) / c(j)                              v(j) E[ROOT, j]                             v(j) = sum over h of V[h, j]
//     (d(j) / c(j)) (E(r, j) + E(j, r))        v(j) (E[r, j] + E[j, r] E[ROOT, j] / E[ROOT, r])
//
// Column j of V is proportional to the weights of the edges into j: heads can be drawn by it. What the fast solve hands
// back, for its range or for forbidden edges that cut the sentence in two, is solved as escape.hpp says.
#pragma once

#include <tuple>
#include <vector>

#include "../batch/parallel.hpp"
#include "../walk/special.hpp"
#include "escape.hpp"

namespace spantree::sampling {

/// What a step from a word is drawn by: numbers in proportion to the weights of the edges into it, rows of heads. With one
/// root, those of ROOT's row are not in proportion to the others.
struct StepWeights {
    const double* data;
    std::ptrdiff_t stride;
    double operator()(int head, int word) const { return data[head * stride + word]; }
};

class WalkSetup {
public:
    /// Whether there is a tree. `scores`, of at least one word, must stay where they are; `root_bonus` is added to those
    /// of edges that leave ROOT.
    bool operator()(const CentredScores& scores, Root root, Reach reach, StopSignal& stop, double root_bonus = 0.0) {
        scores_ = &scores;
        root_ = root;
        reach_ = reach;
        root_bonus_ = root_bonus;
        std::get<0>(kept_).is_read = std::get<1>(kept_).is_read = false;
        left_doubles_ = false;
        if ((is_fast_ = solve_fast())) return true;
        if (in_doubles()) {
            const bool feasible = solve_(weights<double>(), stop, facts_);
            left_doubles_ = !solve_.in_range();
            if (!left_doubles_) return feasible;
        }
        return solve_extended_(weights<Extended>(), stop, facts_);
    }

    int words() const { return scores_->words(); }
    Root root() const { return root_; }
    const CentredScores& scores() const { return *scores_; }
    const WalkFacts& facts() const { return facts_; }

    /// Whether eliminations may be tried with weights<double>(); with weights<Extended>() they may always.
    bool in_doubles() { return !left_doubles_ && weights<double>().in_range(); }

    template <class Real>
    const WalkWeights<Real>& weights() {
        auto& kept = std::get<Kept<Real>>(kept_);
        if (!kept.is_read) kept.weights.read(*scores_, root_, reach_, root_bonus_);
        kept.is_read = true;
        return kept.weights;
    }

    StepWeights steps() {
        if (is_fast_) return {edges_.weights.data, edges_.weights.stride};
        return {weights<double>().row(0), words()};
    }

private:
    /// Returns whether doubles were enough.
    bool solve_fast() {
        if (table_.words != words()) table_ = EdgeTable(words());
        for (int head = 0; head <= words(); ++head)
            for (int dep = 1; dep <= words(); ++dep)
                table_(head, dep) = drawing_score(*scores_, head, dep, reach_) + (head == 0 ? root_bonus_ : 0.0);
        const Outcome outcome = alone_.solve(table_, root_ == Root::multi, memory_, edges_);
        // What cuts a sentence in two may be edges that only trees have that do not matter.
        if (!outcome.in_range || (outcome.in_two_parts && reach_ == Reach::all)) return false;
        facts_.log_partition = outcome.log_partition;
        find_steps();
        return true;
    }

    void find_steps() {
        const int count = words();
        const auto weight = [&](int head) { return edges_.weights.data + head * edges_.weights.stride; };
        const auto escape = [&](int head) { return edges_.escape.data + head * edges_.escape.stride; };
        visits_.assign(static_cast<std::size_t>(round_up(count)), 0.0);
        for (int head = root_ == Root::single ? 1 : 0; head <= count; ++head)
            for (int word = 0; word < count; ++word) visits_[word] += weight(head)[word];
        facts_.expected_steps = 0.0;
        if (root_ == Root::multi) {
            for (int word = 0; word < count; ++word) facts_.expected_steps += visits_[word] * escape(0)[word];
            return;
        }
        facts_.root_marginals.resize(static_cast<std::size_t>(count));
        facts_.steps_by_root.assign(static_cast<std::size_t>(count), 0.0);
        for (int word = 0; word < count; ++word) {
            facts_.root_marginals[word] = weight(0)[word] * escape(0)[word];
            const double visits = visits_[word] * escape(0)[word];
            for (int root = 0; root < count; ++root) facts_.steps_by_root[root] += visits * escape(word + 1)[root];
        }
        for (int root = 0; root < count; ++root) {
            double part[pack_size] = {};  // columns of padding are 0
            for (int word = 0; word < count; word += pack_size)
                for (int i = 0; i < pack_size; ++i) part[i] += visits_[word + i] * escape(root + 1)[word + i];
            if (escape(0)[root] == 0.0) continue;  // never the root
            facts_.steps_by_root[root] /= escape(0)[root];
            for (const double steps : part) facts_.steps_by_root[root] += steps;
        }
        facts_.average_steps();
    }

    template <class Real>
    struct Kept {
        WalkWeights<Real> weights;
        bool is_read = false;
    };

    const CentredScores* scores_ = nullptr;
    Root root_ = Root::single;
    Reach reach_ = Reach::likely;
    double root_bonus_ = 0.0;
    bool is_fast_ = false, left_doubles_ = false;
    WalkFacts facts_;
    EdgeTable table_;  // the scores that edges are drawn by
    AloneSolver alone_;
    AlignedBuffer<double> memory_;
    EdgeMatrices<Alone> edges_;  // V and E, in memory_
    std::vector<double> visits_;
    std::tuple<Kept<double>, Kept<Extended>> kept_;
    EscapeSolve<double> solve_;
    EscapeSolve<Extended> solve_extended_;
};

}  // namespace spantree::sampling
