// Two distributions over the trees of the same sentences: cross-entropy and Kullback-Leibler divergence.
//
// With s the relative scores of a distribution and z the logarithm of their sum over trees (`Solved`),
//
//     cross-entropy  =  z_q - E_p[s_q]                       gradient by p:  hessian_p(-s_q)          by q:  M_q - M_p
//     divergence     =  z_q - z_p + E_p[s_p - s_q]           gradient by p:  hessian_p(s_p - s_q)     by q:  the same
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "large_values.hpp"
#include "own_edges.hpp"
#include "questions.hpp"
#include "spantree/simd/dispatch.hpp"
#include "view.hpp"

namespace spantree {

namespace library {

namespace {

constexpr const char* other_sentences = "the two distributions are over the trees of different sentences";

void check_comparable(const Batch& p, const Batch& q) {
    if (p.size() != q.size() || p.labels() != q.labels()) throw InvalidInput(other_sentences);
    for (std::size_t i = 0; i < p.size(); ++i)
        if (p.words(i) != q.words(i)) throw InvalidInput("the two distributions have other lengths");
}

void multiply(const EdgeTargets& edges, int labels, double factor) {
    std::visit(
        [&]<class Out>(const std::vector<EdgeTarget<Out>>& targets) {
            for (const EdgeTarget<Out>& target : targets)
                for (int head = 0; head < target.width; ++head)
                    for (int dep = 0; dep < target.width; ++dep)
                        for (int label = 0; label < std::max(labels, 1); ++label) {
                            Out& number = target.edge(head, dep)[label];
                            number = static_cast<Out>(number * factor);
                        }
        },
        edges);
}

/// values = scores - values, or minus values if there are no scores; 0 where a score is -inf, which p has no mass on. Whether
/// sums of them may be too large.
struct TakeDifferences {
    static bool run(std::span<double> values, std::span<const double> scores) {
        constexpr double large = 0x1p900;
        double* __restrict const value = values.data();
        const double* const score = scores.data();
        std::int64_t any_large = 0;
        if (!score)
            for (std::size_t i = 0; i < values.size(); ++i) {
                value[i] = -value[i];
                any_large |= finite_above(large, value[i]) ? 1 : 0;
            }
        else
            for (std::size_t i = 0; i < values.size(); ++i) {
                value[i] = score[i] == minus_infinity<double> ? 0.0 : score[i] - value[i];
                any_large |= finite_above(large, value[i]) ? 1 : 0;
            }
        return any_large != 0;
    }
};

/// E_p[values], and its gradient; of values near the largest double in a larger unit.
void expect(const Batch& batch, const Solved& p, const Options& options, OwnEdges& values, bool any_large,
            double* totals, const EdgeTargets& gradient) {
    constexpr double unit = 0x1p100;
    if (any_large)
        for (double& x : values.numbers()) x /= unit;
    p.expectations(options, {&values.values(), 1}, totals, {&gradient, wanted(gradient) ? std::size_t{1} : 0});
    if (!any_large) return;
    for (std::size_t i = 0; i < batch.size(); ++i) totals[i] *= unit;
    multiply(gradient, batch.labels(), unit);
}

}  // namespace

std::unique_ptr<Solved> compare(const Batch& p, const Solved& solved_p, const Batch& q, const Solved* solved_q,
                                const Options& for_q, bool divergence, double* totals, const EdgeTargets& gradient) {
    check_comparable(p, q);
    OwnEdges values(q), scores_p(p, divergence);
    std::unique_ptr<Solved> solved_here;
    const auto read_q = [&](const WhichTrees& trees) {
        if (solved_q)
            solved_q->relative_scores(for_q, values.targets(), trees);
        else
            solved_here = std::make_unique<Solved>(q, for_q, values.targets(), trees);
        return &(solved_q ? *solved_q : *solved_here).reports();
    };
    const std::vector<SentenceReport>* reports_q = read_q({});
    if (std::any_of(reports_q->begin(), reports_q->end(), [](const auto& report) { return report.limited; })) {
        OwnEdges marginals(p);
        solved_p.marginals(for_q, marginals.targets());
        reports_q = read_q({1.0, marginals.values()});
    }
    if (divergence) solved_p.relative_scores(for_q, scores_p.targets(), {});
    const bool any_large = dispatch<TakeDifferences>(values.numbers(), scores_p.numbers());
    expect(p, solved_p, for_q, values, any_large, totals, gradient);
    for (std::size_t i = 0; i < p.size(); ++i) {
        const SentenceReport &report_p = solved_p.reports()[i], &report_q = (*reports_q)[i];
        if (report_p.status != 0 || report_q.status < 0)
            totals[i] = std::numeric_limits<double>::quiet_NaN();
        else if (report_q.status != 0)
            totals[i] = std::numeric_limits<double>::infinity();
        else
            totals[i] += divergence ? report_q.rest - report_p.rest : report_q.rest;
        if (divergence && totals[i] < 0.0) totals[i] = 0.0;  // a rounding error
    }
    std::visit(
        [&](const auto& to) {
            for (std::size_t i = 0; i < to.size(); ++i)
                if (!std::isfinite(totals[i])) clear_edges(to[i], p.labels());
        },
        gradient);
    return solved_here;
}

}  // namespace library

using namespace library;

namespace {

/// Of the entries below.
void compare(const ScoresView& p, const ScoresView& q, const Options& options, bool divergence, void* value,
             const EdgesOut& gradient_p, const EdgesOut& gradient_q, Status status_p, Status status_q) {
    if (p.nodes != q.nodes) throw InvalidInput(other_sentences);
    const Batch of_p(p), of_q(q);
    check_comparable(of_p, of_q);
    const bool by_q = gradient_q.data != nullptr;
    OwnEdges marginals_p(of_p, by_q), marginals_q(of_q, by_q);
    const Solved solved_p(of_p, options, Solved::For::questions, marginals_p.targets());
    std::unique_ptr<Solved> solved_q;
    if (by_q) solved_q = std::make_unique<Solved>(of_q, options, Solved::For::questions, marginals_q.targets());

    std::vector<double> totals(of_p.size());
    auto for_this = library::compare(of_p, solved_p, of_q, solved_q.get(), options, divergence, totals.data(),
                                     targets(gradient_p, p));
    if (for_this) solved_q = std::move(for_this);
    write_numbers(totals, p.dtype, value);
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
    write_statuses(solved_q->statuses(), status_q);
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
