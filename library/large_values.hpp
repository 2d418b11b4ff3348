// Gradients of expectations of values that are large on edges which hardly any tree has.
//
// Matrix products, and derivatives carried through an elimination or a chart, are right to rounding errors of the largest value.
// Where that stands on an edge of next to no probability, such as a soft mask of -1e30 among the scores of another
// distribution, these errors may exceed all else.
//
// First what trees have in common is taken off (likeliest_edges.hpp), which changes no gradient. Of what is large then,
// column by column, let u(h) >= 0 be the values of edges h -> d, and U(tree) the one that the tree has. Then
//
//     gradient of E[U]  =  E[U] (M' - M),      M the marginals, M' those of trees that weigh p(tree) U(tree):
//
// the trees of the same sentence with w(h, d) u(h) in the place of w(h, d). One more solve for the word, and nothing large is
// subtracted. (Negative values likewise.)
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "questions.hpp"

namespace spantree::library {

/// Whether a number is finite and its magnitude above `limit`. (Without branches, so that loops of it are fast.)
inline bool finite_above(double limit, double x) {
    const double size = std::fabs(x);
    return (size > limit) & (size <= std::numeric_limits<double>::max());
}

class LargeValues {
public:
    /// `solved` is what the batch's expectations of `values` are asked of; `options` are those that it was solved with.
    LargeValues(const Solved& solved, const Batch& batch, const Options& options, std::span<const EdgeValues> values);

    /// Whether there are any. If not, the rest below is empty.
    bool any() const { return !taken_out_.empty(); }

    /// What is left of the values; 0 for each edge that had a large one. All values of a sentence lie alike, if they did.
    std::span<const EdgeValues> rest() const { return rest_; }

    /// Adds what they contribute to the expectations of the rest and to their gradients.
    void add_to(double* totals, std::span<const EdgeTargets> gradients) const;

private:
    struct Candidate {
        std::size_t values, sentence;
    };
    struct TakenOut {
        std::size_t values, sentence;
        std::vector<double> rest;  // [head, dep, label], as all below
        double total = 0.0;
        std::vector<double> gradient;
    };
    static std::vector<Candidate> candidates(std::span<const EdgeValues> values);
    void take_out(const Candidate& candidate, const Sentence<double>& values, const Sentence<double>& marginals,
                  const Sentence<double>& scores, const Options& options);

    std::size_t sentences_;
    int labels_;
    std::vector<TakenOut> taken_out_;
    std::vector<std::vector<double>> copies_;  // of other values of the same sentences
    std::vector<EdgeValues> rest_;
};

}  // namespace spantree::library
