// What edges, and whole trees, add to log Z when all that trees have in common is taken off.
//
// log p(tree) = of_tree(tree) - log Z of the relative scores. The sum over a tree's edges is the same, if the tree is
// likely enough for the numbers asked for; a whole tree is always right.
#pragma once

#include <optional>

#include "../number/exact_sum.hpp"
#include "centred.hpp"
#include "labels.hpp"

namespace spantree {

/// Which trees the sum over edges shall be right for, where scores are so large that not all can be.
struct WhichTrees {
    double reach = 1.0;                         // those that matter where log-probabilities are divided by it
    std::optional<Sentence<double>> marginals;  // if given: those of a distribution with these marginals instead
};

/// edge(h, d, label) and tree(heads, labels) say it of a sentence.
template <class Edge, class Tree>
struct RelativeScores {
    Edge edge;
    Tree tree;
    double operator()(int h, int d, int label) const { return edge(h, d, label); }
    template <class Integer>
    double of_tree(const Integer* heads, const Integer* labels) const {
        return tree(heads, labels);
    }
};
template <class Edge, class Tree>
RelativeScores(Edge, Tree) -> RelativeScores<Edge, Tree>;

/// What an edge's label adds to the edge's relative score.
template <class T>
double log_share_of(const Sentence<T>& sentence, int h, int d, int label) {
    if (!sentence.labels) return 0.0;
    const double score = sentence(h, d, label);
    return score == minus_infinity<double> ? score : LabelTotal(sentence, h, d).log_share(score);
}

/// A tree's relative score by centred scores.
template <class T, class Integer>
double relative_score_of(const CentredScores& centred, const Sentence<T>& sentence, const Integer* heads,
                         const Integer* labels) {
    TwoPart<double> sum{centred.relative_score(heads), 0.0};
    for (int d = 1; sentence.labels && d <= sentence.words; ++d)
        sum += log_share_of(sentence, static_cast<int>(heads[d]), d, static_cast<int>(labels[d]));
    return sum.value();
}

/// Edges' and trees' by centred scores.
template <class T>
auto relative_scores_of(const CentredScores& centred, const Sentence<T>& sentence, const WhichTrees& trees) {
    return RelativeScores{[values = centred.values(trees.reach, trees.marginals ? &*trees.marginals : nullptr),
                           &sentence](int h, int d, int label) {
                              const double edge = values[static_cast<std::size_t>(h) * (sentence.words + 1) + d];
                              return edge == minus_infinity<double> ? edge : edge + log_share_of(sentence, h, d, label);
                          },
                          [&centred, &sentence](const auto* heads, const auto* labels) {
                              return relative_score_of(centred, sentence, heads, labels);
                          }};
}

}  // namespace spantree
