// What samplers read of a solved sentence: numbers to draw heads by, the root word's distribution, and how many steps
// Wilson's algorithm takes.
//
//     E(i, j) = P(the walk from i reaches ROOT before j)
//     c(j)    = sum over i of w(i, j) E(i, j)
//     d(j)    = the total weight of the edges into j
//
// Several roots:  on average, from word j,
//
//                     d(j) / c(j)                           steps.
//
// One root:       P(root word = r) = w(0, r) / c(r), and given r, from word j != r,
//
//                     (d(j) / c(j)) (E(r, j) + E(j, r))     steps,
//
//                 edges from ROOT left out of d: they are infinitesimal.
//
// Of the solve's V[h, j] = w(h, j) / c(j) and E only products within a column mean something, as column j of E has the
// unit E[ROOT, j] (walk/group.hpp):
//
//     P(root word = r)                         V[ROOT, r] E[ROOT, r]
//     d(j) / c(j)                              v(j) E[ROOT, j]                             v(j) = sum over h of V[h, j]
//     (d(j) / c(j)) (E(r, j) + E(j, r))        v(j) (E[r, j] + E[j, r] E[ROOT, j] / E[ROOT, r])
//
// Column j of V is proportional to the weights of the edges into j: heads can be drawn by it. A special sentence
// (walk/special.hpp) has V and E of its parts; where U plays ROOT's part, several roots are allowed. O(n^2).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "../walk/solved_walk.hpp"
#include "walk_weights.hpp"

namespace spantree::sampling {

/// A number for every edge, rows of heads, columns of words from 0.
struct EdgeRows {
    const double* data = nullptr;
    std::ptrdiff_t stride = 0;
    const double* row(int head) const { return data + head * stride; }
    double operator()(int head, int word) const { return data[head * stride + word]; }
};

struct WalkFacts {
    std::vector<double> root_marginals;  // single root: by word, from 0
    std::vector<double> steps_by_root;   // single root: expected steps given the root word
    double expected_steps = 0.0;         // infinite if V and E are not known in doubles

    /// Of V and E in whole packs, 0 in columns of padding.
    void find(const EdgeRows& v, const EdgeRows& e, int count, Root root) {
        visits_.assign(static_cast<std::size_t>(round_up(count)), 0.0);
        for (int head = root == Root::single ? 1 : 0; head <= count; ++head)
            for (int word = 0; word < count; ++word) visits_[word] += v(head, word);
        expected_steps = 0.0;
        if (root == Root::multi) {
            for (int word = 0; word < count; ++word) expected_steps += visits_[word] * e(0, word);
            return;
        }
        root_marginals.resize(static_cast<std::size_t>(count));
        steps_by_root.assign(static_cast<std::size_t>(count), 0.0);
        for (int word = 0; word < count; ++word) {
            root_marginals[word] = v(0, word) * e(0, word);
            const double visits = visits_[word] * e(0, word);
            for (int r = 0; r < count; ++r) steps_by_root[r] += visits * e(word + 1, r);
        }
        for (int r = 0; r < count; ++r) {
            double part[pack_size] = {};
            for (int word = 0; word < count; word += pack_size)
                for (int i = 0; i < pack_size; ++i) part[i] += visits_[word + i] * e(r + 1, word + i);
            if (e(0, r) == 0.0) continue;  // never the root
            steps_by_root[r] /= e(0, r);
            for (const double steps : part) steps_by_root[r] += steps;
        }
        average_steps();
    }

    void find(const SpecialSolution& special, int count, Root root) {
        const double below = special.rest() ? of_part(*special.rest(), Root::multi).expected_steps : 0.0;
        expected_steps = below;
        if (root == Root::multi) return;
        const std::vector<int>& core = special.structure().core;
        const WalkFacts facts = of_part(*special.core(), root);
        root_marginals.resize(static_cast<std::size_t>(count));
        for (int word = 0; word < count; ++word) root_marginals[word] = special.marginals()(0, word + 1);
        steps_by_root.assign(static_cast<std::size_t>(count), 0.0);
        for (std::size_t i = 0; i < core.size(); ++i) steps_by_root[core[i] - 1] = facts.steps_by_root[i] + below;
        average_steps();
    }

private:
    static WalkFacts of_part(const PartSolution& part, Root root) {
        const int count = part.marginals().words;
        WalkFacts facts;
        if (const auto* const edges = part.edges()) {
            facts.find({edges->weights.data, edges->weights.stride}, {edges->escape.data, edges->escape.stride}, count,
                       root);
        } else {
            facts.expected_steps = std::numeric_limits<double>::infinity();
            facts.steps_by_root.assign(static_cast<std::size_t>(count), facts.expected_steps);
        }
        return facts;
    }

    void average_steps() {
        expected_steps = 0.0;
        for (std::size_t word = 0; word < root_marginals.size(); ++word)
            if (root_marginals[word] > 0.0) expected_steps += root_marginals[word] * steps_by_root[word];
    }

    std::vector<double> visits_;
};

/// Weights, once they are asked for.
template <class Real>
struct KeptWeights {
    WalkWeights<Real> weights;
    bool is_read = false;
};

/// One sentence, ready to be drawn from.
class WalkSetup {
public:
    /// Of a sentence that has words and a tree. What `solved` looks at must stay where it is.
    void start(const SolvedWalk& solved, int words, Root root) {
        words_ = words;
        root_ = root;
        special_ = solved.state().special.get();
        std::get<0>(kept_).is_read = std::get<1>(kept_).is_read = false;
        if (special_) {
            facts_.find(*special_, words, root);
            weigh_steps();
        } else {
            lay_out(solved);
            facts_.find(steps_, escape_, words, root);
        }
    }

    int words() const { return words_; }
    Root root() const { return root_; }
    const WalkFacts& facts() const { return facts_; }

    /// Whether eliminations may be tried with weights<double>(); with weights<Extended>() they may always.
    bool in_doubles() { return weights<double>().in_range(); }

    template <class Real>
    const WalkWeights<Real>& weights() {
        auto& kept = std::get<KeptWeights<Real>>(kept_);
        if (kept.is_read) return kept.weights;
        if (special_)
            kept.weights.read_scores(words_, root_,
                                     [&](int h, int d) { return special_->scores().if_it_matters(h, d); });
        else
            kept.weights.read_weights(words_, root_, [&](int h, int d) { return steps_(h, d - 1); });
        kept.is_read = true;
        return kept.weights;
    }

    /// What a step from a word is drawn by: numbers in proportion to the weights of the edges into it. With one root, those
    /// of ROOT's row are not in proportion to the others.
    const EdgeRows& steps() const { return steps_; }

private:
    /// V and E as they lie, if that is one word after the other, else in a copy.
    void lay_out(const SolvedWalk& solved) {
        const EdgesAt &v = solved.weights(), &e = solved.escape();
        if (v.to_next_word == 1) {
            steps_ = {v.data, v.to_next_head};
            escape_ = {e.data, e.to_next_head};
            return;
        }
        const std::ptrdiff_t stride = round_up(words_);
        const std::size_t size = static_cast<std::size_t>(words_ + 1) * stride;
        memory_.assign(2 * size, 0.0);
        for (int head = 0; head <= words_; ++head)
            for (int word = 0; word < words_; ++word) {
                memory_[head * stride + word] = v(head, word + 1);
                memory_[size + head * stride + word] = e(head, word + 1);
            }
        steps_ = {memory_.data(), stride};
        escape_ = {memory_.data() + size, stride};
    }

    /// Of a special sentence: weights relative to the largest of their column.
    void weigh_steps() {
        memory_.assign(static_cast<std::size_t>(words_ + 1) * words_, 0.0);
        steps_ = {memory_.data(), words_};
        for (int word = 1; word <= words_; ++word) {
            const auto score = [&](int head) { return special_->scores().if_it_matters(head, word); };
            const int first = root_ == Root::single ? 1 : 0;
            double largest = minus_infinity<double>;
            for (int head = first; head <= words_; ++head) largest = std::max(largest, score(head));
            for (int head = first; head <= words_ && largest > minus_infinity<double>; ++head)
                memory_[static_cast<std::size_t>(head) * words_ + word - 1] = std::exp(score(head) - largest);
        }
    }

    int words_ = 0;
    Root root_ = Root::single;
    const SpecialSolution* special_ = nullptr;
    WalkFacts facts_;
    EdgeRows steps_, escape_;
    std::vector<double> memory_;
    std::tuple<KeptWeights<double>, KeptWeights<Extended>> kept_;
};

}  // namespace spantree::sampling
