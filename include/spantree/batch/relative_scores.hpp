// What edges, and whole trees, add to log Z when all that trees have in common is taken off.
//
// log p(tree) = of_tree(tree) - log Z of the relative scores. The sum over a tree's edges is the same, if the tree is
// likely enough for the numbers asked for; a whole tree is always right.
#pragma once

#include "../number/exact_sum.hpp"
#include "centred.hpp"
#include "edges_out.hpp"
#include "label_shares.hpp"

namespace spantree {

/// Of a sentence: edges(to) writes those of all edges, -inf where there is none, tree(heads, labels) says that of a tree.
template <class Edges, class Tree>
struct RelativeScores {
    Edges edges;
    Tree tree;
    void write(const EdgeTarget<double>& to) { edges(to); }
    template <class Integer>
    double of_tree(const Integer* heads, const Integer* labels) {
        return tree(heads, labels);
    }
};
template <class Edges, class Tree>
RelativeScores(Edges, Tree) -> RelativeScores<Edges, Tree>;

/// What a possible edge's label adds to the edge's relative score: the logarithm of its share, 0 without labels. The labels of
/// an edge are read once, if they are asked for one after the other.
template <class T>
class LogShares {
public:
    explicit LogShares(const Sentence<T>& sentence) : sentence_(sentence) {}

    bool labelled() const { return sentence_.labels > 0; }

    double operator()(int h, int d, int label) {
        if (!labelled()) return 0.0;
        if (h != head_ || d != dep_) shares_.look_at(sentence_, head_ = h, dep_ = d);
        return shares_.log_share(label);
    }

private:
    Sentence<T> sentence_;
    SharesOfLabels shares_;
    int head_ = 0, dep_ = 0;  // that `shares_` looks at
};

/// A tree's relative score by centred scores; without labels, these are not looked at.
template <class T, class Integer>
double relative_score_of(const CentredScores& centred, LogShares<T>& log_shares, const Integer* heads,
                         const Integer* labels) {
    TwoPart<double> sum{centred.relative_score(heads), 0.0};
    for (int d = 1; log_shares.labelled() && sum.high > minus_infinity<double> && d <= centred.words(); ++d)
        sum += log_shares(static_cast<int>(heads[d]), d, static_cast<int>(labels[d]));
    return sum.value();
}

/// visit(h, d, label) for all edges; label 0 where there are none.
template <class T, class Visit>
void each_edge(const Sentence<T>& sentence, Visit visit) {
    for (int h = 0; h <= sentence.words; ++h)
        for (int d = 1; d <= sentence.words; ++d)
            for (int label = 0; label < std::max(sentence.labels, 1) && h != d; ++label) visit(h, d, label);
}

/// -inf where a sentence has no edge: column 0, the diagonal, the padding.
template <class T>
void write_no_edges(const Sentence<T>& sentence, const EdgeTarget<double>& to) {
    if (sentence.words + 1 < to.width) return fill_edges(to, sentence.labels, minus_infinity<double>);
    for (int h = 0; h <= sentence.words; ++h)
        for (const int d : {0, h}) std::fill_n(to.edge(h, d), std::max(sentence.labels, 1), minus_infinity<double>);
}

/// Edges' and trees' of a sentence by centred scores; right for trees that matter if log-probabilities were divided by `reach`.
template <class T>
auto relative_scores_of(const CentredScores& centred, const Sentence<T>& sentence, double reach, StopSignal& stop) {
    return RelativeScores{
        [&centred, &sentence, reach, &stop](const EdgeTarget<double>& to) {
            const auto values = centred.values(reach, stop);
            const auto nodes = static_cast<std::size_t>(sentence.words) + 1;
            LogShares log_shares(sentence);
            write_no_edges(sentence, to);
            each_edge(sentence, [&](int h, int d, int label) {
                const double edge = values[static_cast<std::size_t>(h) * nodes + static_cast<std::size_t>(d)];
                to.edge(h, d)[label] = edge == minus_infinity<double> ? edge : edge + log_shares(h, d, label);
            });
        },
        [&centred, log_shares = LogShares(sentence)](const auto* heads, const auto* labels) mutable {
            return relative_score_of(centred, log_shares, heads, labels);
        }};
}

}  // namespace spantree
