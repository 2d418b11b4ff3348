// Sums over trees, as public entries: log Z, marginals, expectations and their derivatives.
#include <algorithm>
#include <limits>
#include <variant>
#include <vector>

#include "own_edges.hpp"
#include "questions.hpp"
#include "view.hpp"

namespace spantree {

using namespace library;

namespace {

void write_log_partition(const Solved& solved, DType dtype, void* to) {
    if (!to) return;
    std::vector<double> log_z;
    log_z.reserve(solved.reports().size());
    for (const SentenceReport& report : solved.reports()) log_z.push_back(report.log_partition);
    write_numbers(log_z, dtype, to);
}

void check_directions(int directions) {
    if (directions < 0) throw InvalidInput("a negative number of directions");
}

}  // namespace

void log_partition(const ScoresView& scores, const Options& options, void* log_z, Status status) {
    const Batch batch(scores);
    const Solved solved(batch, options, Solved::For::log_partition);
    write_log_partition(solved, scores.dtype, log_z);
    write_statuses(solved.statuses(), status);
}

void marginals(const ScoresView& scores, const Options& options, void* log_z, EdgesOut marginals, Status status) {
    const Batch batch(scores);
    const Solved solved(batch, options, Solved::For::marginals, targets(marginals, scores));
    write_log_partition(solved, scores.dtype, log_z);
    write_statuses(solved.statuses(), status);
}

void hessian(const ScoresView& scores, const Options& options, int directions, EdgesView g, EdgesOut out,
             Status status) {
    expectation(scores, options, directions, g, nullptr, out, status);
}

void third(const ScoresView& scores, const Options& options, int directions, EdgesView u, EdgesView g, EdgesOut out,
           Status status) {
    check_directions(directions);
    const Batch batch(scores);
    const ValuesOfView along_u(u, batch, directions), along_g(g, batch, directions);
    const std::vector<EdgeTargets> to = targets_of_all(out, scores, directions);
    write_statuses(library::third(batch, options, along_u.all(), along_g.all(), to), status);
}

void relative_scores(const ScoresView& scores, const Options& options, EdgesOut relative, Status status) {
    const Batch batch(scores);
    OwnEdges own(batch);
    const Statuses statuses = Solved(batch, options, own.targets()).statuses();
    std::visit(
        [&]<class Out>(const std::vector<EdgeTarget<Out>>& to) {
            constexpr double nan = std::numeric_limits<double>::quiet_NaN();
            for (std::size_t i = 0; i < to.size(); ++i) {
                const bool bad = statuses[i] == Status::bad_score;
                fill_edges(to[i], scores.labels, static_cast<Out>(bad ? nan : minus_infinity<double>));
                for (int h = 0; statuses[i] == 0 && h <= batch.words(i); ++h)
                    for (int d = 1; d <= batch.words(i); ++d)
                        if (h != d) std::copy_n(own.edge(i, h, d), std::max(scores.labels, 1), to[i].edge(h, d));
            }
        },
        targets(relative, scores));
    write_statuses(statuses, status);
}

void entropy(const ScoresView& scores, const Options& options, void* entropy, EdgesOut gradient, Status status) {
    const Batch batch(scores);
    std::vector<double> totals(batch.size());
    const Solved solved(batch, options, totals.data(), targets(gradient, scores), false);
    write_numbers(totals, scores.dtype, entropy);
    write_statuses(solved.statuses(), status);
}

void expectation(const ScoresView& scores, const Options& options, int directions, EdgesView values, void* expectations,
                 EdgesOut gradients, Status status) {
    check_directions(directions);
    const Batch batch(scores);
    const ValuesOfView given(values, batch, directions);
    const Solved solved(batch, options, Solved::For::questions);
    std::vector<double> totals(static_cast<std::size_t>(directions) * batch.size());
    solved.expectations(options, given.all(), totals.data(), targets_of_all(gradients, scores, directions));
    write_numbers(totals, scores.dtype, expectations);
    write_statuses(solved.statuses(), status);
}

}  // namespace spantree
