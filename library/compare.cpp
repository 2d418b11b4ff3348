// Two distributions over the trees of the same sentences: cross-entropy and Kullback-Leibler divergence.
//
// With s the relative scores of a distribution and z the logarithm of their sum over trees (`Solved`),
//
//     cross-entropy  =  z_q - E_p[s_q]                       gradient by p:  hessian_p(-s_q)          by q:  M_q - M_p
//     divergence     =  z_q - z_p + E_p[s_p - s_q]           gradient by p:  hessian_p(s_p - s_q)     by q:  the same
#include <cmath>
#include <limits>
#include <vector>

#include "own_edges.hpp"
#include "questions.hpp"
#include "view.hpp"

namespace spantree {

using namespace library;

namespace {

void check_comparable(const ScoresView& p, const ScoresView& q, const Batch& of_p, const Batch& of_q) {
    if (p.batch != q.batch || p.nodes != q.nodes || p.labels != q.labels)
        throw InvalidInput("the two distributions are over the trees of different sentences");
    for (std::size_t i = 0; i < of_p.size(); ++i)
        if (of_p.words(i) != of_q.words(i)) throw InvalidInput("the two distributions have other lengths");
}

/// With `divergence`, less the entropy of p.
void compare(const ScoresView& p, const ScoresView& q, const Options& options, bool divergence, void* value,
             const EdgesOut& gradient_p, const EdgesOut& gradient_q, Status status_p, Status status_q) {
    const Batch of_p(p), of_q(q);
    check_comparable(p, q, of_p, of_q);
    const bool by_q = gradient_q.data != nullptr;
    OwnEdges values(of_p), scores_p(of_p, divergence), marginals_p(of_p), marginals_q(of_q, by_q);
    const Solved solved_p(of_p, options, Solved::For::questions, marginals_p.targets());
    const Solved solved_q(of_q, options, Solved::For::questions, marginals_q.targets());

    const WhichTrees of_trees_of_p{1.0, marginals_p.values()};
    solved_q.relative_scores(options, values.targets(), of_trees_of_p);
    if (divergence) solved_p.relative_scores(options, scores_p.targets(), of_trees_of_p);
    for (std::size_t at = 0; at < values.numbers().size(); ++at) {
        double& number = values.numbers()[at];
        number = -number;
        if (!divergence) continue;
        const double score = scores_p.numbers()[at];
        number = score == minus_infinity<double> ? 0.0 : score + number;  // p has no mass there
    }

    std::vector<double> totals(of_p.size());
    const EdgeTargets to_p = targets(gradient_p, p);
    solved_p.expectations(options, {&values.values(), 1}, totals.data(), {&to_p, wanted(to_p) ? std::size_t{1} : 0});
    for (std::size_t i = 0; i < totals.size(); ++i) {
        const SentenceReport &report_p = solved_p.reports()[i], &report_q = solved_q.reports()[i];
        if (report_p.status != 0)
            totals[i] = std::numeric_limits<double>::quiet_NaN();
        else if (report_q.status != 0)
            totals[i] = report_q.status < 0 ? std::numeric_limits<double>::quiet_NaN()
                                            : std::numeric_limits<double>::infinity();
        else
            totals[i] += divergence ? report_q.rest - report_p.rest : report_q.rest;
        if (divergence && totals[i] < 0.0) totals[i] = 0.0;  // a rounding error
    }
    write_numbers(totals, p.dtype, value);
    std::visit(
        [&](const auto& to) {
            for (std::size_t i = 0; i < to.size(); ++i)
                if (!std::isfinite(totals[i])) clear_edges(to[i], p.labels);
        },
        to_p);
    std::visit(
        [&]<class Out>(const std::vector<EdgeTarget<Out>>& to) {
            for (std::size_t i = 0; i < to.size(); ++i) {
                clear_edges(to[i], q.labels);
                if (!std::isfinite(totals[i])) continue;
                for (int head = 0; head <= of_q.words(i); ++head)
                    for (int dep = 1; dep <= of_q.words(i); ++dep)
                        for (int label = 0; label < std::max(q.labels, 1); ++label)
                            to[i].edge(head, dep)[label] = static_cast<Out>(marginals_q.edge(i, head, dep)[label] -
                                                                            marginals_p.edge(i, head, dep)[label]);
            }
        },
        targets(gradient_q, q));
    write_statuses(solved_p.statuses(), status_p);
    write_statuses(solved_q.statuses(), status_q);
}

}  // namespace

void cross_entropy(const ScoresView& p, const ScoresView& q, const Options& options, void* value, EdgesOut gradient_p,
                   EdgesOut gradient_q, Status status_p, Status status_q) {
    compare(p, q, options, false, value, gradient_p, gradient_q, status_p, status_q);
}

void kl(const ScoresView& p, const ScoresView& q, const Options& options, void* value, EdgesOut gradient_p,
        EdgesOut gradient_q, Status status_p, Status status_q) {
    compare(p, q, options, true, value, gradient_p, gradient_q, status_p, status_q);
}

}  // namespace spantree
