// One sentence of a solved batch, wherever its V and E lie: what random trees and log-probabilities are read from.
//
// A tree's log-probability is its relative score (batch/relative_scores.hpp) less `rest`.
#pragma once

#include "../batch/relative_scores.hpp"
#include "kept_group.hpp"

namespace spantree {

/// A number for every edge, head 0..words, word 1..words.
struct EdgesAt {
    const double* data = nullptr;
    std::ptrdiff_t to_next_head = 0, to_next_word = 0;
    double operator()(int head, int word) const { return data[head * to_next_head + (word - 1) * to_next_word]; }
};

/// A view; the solve it looks at must stay.
class SolvedWalk {
public:
    /// Of a sentence without words.
    SolvedWalk() = default;
    /// Of the group's s-th sentence.
    template <class Format>
    SolvedWalk(const GroupState<Format>& group, const SentenceState& state, int s)
        : state_(&state),
          weights_{group.edges.weights.data + s, group.edges.weights.stride, Format::element_size},
          escape_{group.edges.escape.data + s, group.edges.escape.stride, Format::element_size},
          column_shift_(group.shifts() + s),
          root_shift_(group.root_shift()[s]) {}

    const SentenceState& state() const { return *state_; }
    bool has_tree() const { return static_cast<bool>(state_->feasible); }

    /// V and E: unless state().special.
    const EdgesAt& weights() const { return weights_; }
    const EdgesAt& escape() const { return escape_; }

    /// Of a tree. `log_shares` are those of the sentence's labels.
    template <class T, class Integer>
    double relative_score(const Sentence<T>& sentence, LogShares<T>& log_shares, const Integer* heads,
                          const Integer* labels) const {
        if (state_->special) return relative_score_of(state_->special->scores(), log_shares, heads, labels);
        return sum_over_tree(sentence.words, heads, [&](int h, int d) {
            return relative_edge(sentence, h, d, sentence.labels ? static_cast<int>(labels[d]) : 0);
        });
    }

    /// The same if edge(h, d) is what relative_edge gives, and not state().special. Four sums, none of which waits for another.
    template <class Integer, class Edge>
    static double sum_over_tree(int words, const Integer* heads, Edge edge) {
        constexpr int count = 4;
        TwoPart<double> sums[count];
        int d = 1;
        for (; d + count <= words + 1; d += count)
            for (int i = 0; i < count; ++i) sums[i] += edge(static_cast<int>(heads[d + i]), d + i);
        for (int i = 0; d + i <= words; ++i) sums[i] += edge(static_cast<int>(heads[d + i]), d + i);
        return ((sums[0] + sums[1]) + (sums[2] + sums[3])).value();
    }

    /// visit(relative scores) of sentence i, which has words and a tree.
    template <class T, class Visit>
    void with_relative_scores(const Sentence<T>& sentence, const WhichTrees& trees, std::size_t i, Visit visit) const {
        if (state_->special) return visit(relative_scores_of(state_->special->scores(), sentence, trees, i));
        visit(RelativeScores{[&](int h, int d, int label) { return relative_edge(sentence, h, d, label); },
                             [&, log_shares = LogShares(sentence)](const auto* heads, const auto* labels) mutable {
                                 return relative_score(sentence, log_shares, heads, labels);
                             }});
    }

    /// Of an edge. In two parts: a score and what is taken off it may be large and close.
    template <class T>
    double relative_edge(const Sentence<T>& sentence, int h, int d, int label) const {
        const double score = sentence.labels ? sentence(h, d, label) : sentence(h, d);
        if (score == minus_infinity<double>) return score;
        const double shift = column_shift_[(d - 1) * weights_.to_next_word];
        TwoPart<double> value = state_->label_shift.empty() ? exact_difference(score, shift)
                                                            : exact_difference(score, state_->label_shift[d]) - shift;
        if (h == 0) value = value - root_shift_;
        return value.value();
    }

private:
    const SentenceState* state_ = nullptr;
    EdgesAt weights_, escape_;
    const double* column_shift_ = nullptr;  // as far apart as words are in V
    double root_shift_ = 0.0;
};

}  // namespace spantree
