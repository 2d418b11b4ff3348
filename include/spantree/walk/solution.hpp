// The solved state of a batch, from which all expectations and gradients follow without a further solve.
//
// Solved once, then never changed: any number of threads may ask it anything at the same time.
#pragma once

#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "../batch/edges_out.hpp"
#include "../batch/labels.hpp"
#include "../batch/parallel.hpp"
#include "gradient.hpp"
#include "group_solver.hpp"
#include "solved_walk.hpp"

namespace spantree {

inline ScratchPool<AlignedBuffer<double>> staging_pool;

/// The labels of a group's sentences.
struct LabelsOfGroup {
    SummedLabels of[pack_size];
    LabelScratch scratch;

    std::size_t bytes() const {
        std::size_t total = scratch.bytes();
        for (const SummedLabels& labels : of) total += labels.bytes();
        return total;
    }
};
inline ScratchPool<LabelsOfGroup> label_pool;

/// What expectations are taken of: given values, or minus the scores (the entropy, up to log Z).
struct ValueSource {
    bool minus_scores = false;
    std::vector<Sentence<double>> given;

    const Sentence<double>* of(std::size_t sentence) const { return minus_scores ? nullptr : &given[sentence]; }
};

namespace details {

struct StageValues {
    static StagedEdges run(const Sentence<double>& values, int padded, double* to) {
        return stage_edges(values, padded, 0.0, to);
    }
};

/// What each edge of an unlabelled sentence takes off a tree's log-weight, relative to the shifts: shift - score.
template <class T>
struct StageSurprise {
    static StagedEdges run(const Sentence<T>& sentence, int padded, const double* shift, double root_shift,
                           double* to) {
        const StagedEdges staged = stage_edges(sentence, padded, 0.0, to);
        for (int h = 0; h <= sentence.words; ++h) {
            double* const row = to + h * staged.stride;
            if (h == 0) {
                for (int d = 0; d < sentence.words; ++d) row[d] = -relative_root_score(row[d], shift[d], root_shift);
            } else {
                for (int d = 0; d < sentence.words; ++d) row[d] = shift[d] - row[d];
                row[h - 1] = 0.0;
            }
        }
        return staged;
    }
};

/// One matrix of round_up(padded) columns per sentence of a group, in borrowed memory.
template <class Format>
struct Staging {
    ScratchPool<AlignedBuffer<double>>::Loan loan;
    Rows of[Format::sentences];
    std::ptrdiff_t stride;
    explicit Staging(int padded) : loan(staging_pool.borrow()), stride(round_up(padded)) {
        const std::size_t size = static_cast<std::size_t>(padded + 1) * stride;
        double* const data = (*loan).reserve(size * Format::sentences);
        for (int s = 0; s < Format::sentences; ++s) of[s] = {data + s * size, stride};
    }
    double* row(int s, int h) const { return of[s].data + h * stride; }
    double& at(int s, int h, int d) const { return row(s, h)[d - 1]; }
};

}  // namespace details

class Solution {
public:
    Root root = Root::single;
    std::vector<SentenceState> states;

    Solution() = default;
    Solution(const Solution&) = delete;
    Solution& operator=(const Solution&) = delete;

    /// log Z alone.
    template <class T>
    static std::vector<SentenceState> log_partition(const std::vector<Sentence<T>>& sentences, Root root, int threads,
                                                    StopSignal& stop) {
        std::vector<SentenceState> states(sentences.size());
        run(Wanted::log_partition, sentences, root, threads, stop, states, [](auto&, auto&) {}, nullptr);
        return states;
    }

    /// V and E, kept if `keep`; marginals go to targets[i] if there are any.
    template <class T, class Out>
    void solve(const std::vector<Sentence<T>>& sentences, Root of_root, int threads, StopSignal& stop, bool keep,
               const std::vector<EdgeTarget<Out>>& targets, const LossGradient& loss = {}) {
        root = of_root;
        states = std::vector<SentenceState>(sentences.size());
        run(
            keep ? Wanted::matrices : Wanted::marginals, sentences, root, threads, stop, states,
            [&](const auto& solver, const auto& group) {
                if (!targets.empty())
                    write_marginals(sentences, group, targets, loss, [&](int s) { return solver.label_weights(s); });
            },
            keep ? this : nullptr, !targets.empty());
        clear_empty(sentences, targets);
    }

    /// V and E, kept if `keep`; the entropy, as `expectation` finds it, of each group while all of it is near.
    template <class T, class Out>
    void solve_for_entropy(const std::vector<Sentence<T>>& sentences, Root of_root, int threads, StopSignal& stop,
                           bool keep, double* totals, const std::vector<EdgeTarget<Out>>& targets) {
        root = of_root;
        states = std::vector<SentenceState>(sentences.size());
        const ValueSource minus_scores{true, {}};
        run(
            Wanted::matrices, sentences, root, threads, stop, states,
            [&](const auto&, const auto& group) {
                expectation_of(sentences, group, minus_scores, totals, targets, stop);
            },
            keep ? this : nullptr);
        finish_empty(sentences, totals, targets);
    }

    template <class T, class Out>
    void marginals(const std::vector<Sentence<T>>& sentences, int threads, StopSignal& stop,
                   const std::vector<EdgeTarget<Out>>& targets) const {
        const auto no_weights = [](int) -> const SummedLabels* { return nullptr; };
        each_group(threads, stop,
                   [&](auto& group) { write_marginals(sentences, group, targets, LossGradient{}, no_weights); });
        clear_empty(sentences, targets);
    }

    /// totals[i] = E[sum of values over the tree's edges]; for minus_scores, the entropy. Gradients go to targets[i] if
    /// there are any: 0 where there is no tree.
    template <class T, class Out>
    void expectation(const std::vector<Sentence<T>>& sentences, const ValueSource& values, int threads,
                     StopSignal& stop, double* totals, const std::vector<EdgeTarget<Out>>& targets) const {
        each_group(threads, stop,
                   [&](auto& group) { expectation_of(sentences, group, values, totals, targets, stop); });
        finish_empty(sentences, totals, targets);
    }

    /// visit(i, relative scores) for every sentence that has words and a tree: relative_scores.hpp. A tree's log-probability
    /// is its relative score less rest.
    template <class T, class Visit>
    void relative_scores(const std::vector<Sentence<T>>& sentences, double reach, int threads, StopSignal& stop,
                         Visit visit) const {
        each_group(threads, stop,
                   [&](const auto& group) { relative_scores_of_group(sentences, group, reach, stop, visit); });
    }

    /// Solves for nothing else: visit(i, relative scores) as above, once states[i] is there, and marginals to targets[i] if
    /// there are any. Nothing is kept but the states.
    template <class T, class Out, class Visit>
    void relative_scores_at_once(const std::vector<Sentence<T>>& sentences, double reach, Root of_root, int threads,
                                 StopSignal& stop, const std::vector<EdgeTarget<Out>>& targets,
                                 const LossGradient& loss, Visit visit) {
        root = of_root;
        states = std::vector<SentenceState>(sentences.size());
        const bool with_marginals = !targets.empty();
        run(
            with_marginals ? Wanted::marginals : Wanted::log_partition, sentences, root, threads, stop, states,
            [&](const auto& solver, const auto& group) {
                if (with_marginals)
                    write_marginals(sentences, group, targets, loss, [&](int s) { return solver.label_weights(s); });
                relative_scores_of_group(sentences, group, reach, stop, visit);
            },
            nullptr, with_marginals);
        clear_empty(sentences, targets);
    }

    /// Whether all that was solved was kept.
    bool is_kept() const { return !together_.empty(); }

    /// Every sentence of what was kept.
    std::vector<SolvedWalk> sentences() const {
        std::vector<SolvedWalk> result(states.size());
        const auto add = [&](const auto& group) {
            for (int s = 0; s < group.count; ++s)
                result[group.sentence[s]] = SolvedWalk(group, states[group.sentence[s]], s);
        };
        for (const auto& group : together_)
            if (group) add(**group);
        for (const auto& group : alone_)
            if (group) add(**group);
        return result;
    }

private:
    template <class Format>
    using Groups = std::vector<std::optional<KeptGroup<GroupState<Format>>>>;
    Groups<Together> together_;
    Groups<Alone> alone_;

    template <class T, class Format, class Visit>
    void relative_scores_of_group(const std::vector<Sentence<T>>& sentences, const GroupState<Format>& group,
                                  double reach, StopSignal& stop, Visit& visit) const {
        for (int s = 0; s < group.count; ++s) {
            const std::size_t i = group.sentence[s];
            const SolvedWalk solved(group, states[i], s);
            if (!solved.has_tree()) continue;
            solved.with_relative_scores(sentences[i], reach, stop, [&](auto&& relative) { visit(i, relative); });
        }
    }

    /// Solves every group and hands it to done(solver, group); keeps the groups and special solutions in `keep` if there is
    /// one.
    template <class T, class Done>
    static void run(Wanted wanted, const std::vector<Sentence<T>>& sentences, Root root, int threads, StopSignal& stop,
                    std::vector<SentenceState>& states, Done done, Solution* keep, bool weigh_labels = false) {
        const Plan plans(sentences);
        if (keep) {
            keep->together_.resize(plans.size());
            keep->alone_.resize(plans.size());
        }
        parallel_for(
            plans.size(), 1, threads, stop, [] { return solver_pool<T>.borrow(); },
            [&](auto& loan, std::size_t i) {
                SolverScratch<T>* const scratch = &*loan;
                const auto solve = [&](auto& solver, auto& reused, auto* kept) {
                    if (kept) kept->emplace(plans.size());
                    auto& group = kept ? ***kept : reused;
                    solver.solve(sentences, plans[i], root, wanted, group, states, weigh_labels, stop);
                    done(solver, std::as_const(group));
                    if (kept) return;
                    // At once, so that the next one's tables come to lie where these were, near and with their pages.
                    for (const std::size_t sentence : plans[i].sentences) states[sentence].special.reset();
                };
                if (plans[i].sentences.size() > 1)
                    solve(scratch->together, scratch->together_group, keep ? &keep->together_[i] : nullptr);
                else
                    solve(scratch->alone, scratch->alone_group, keep ? &keep->alone_[i] : nullptr);
            });
    }

    template <class Body>
    void each_group(int threads, StopSignal& stop, Body body) const {
        parallel_for(
            together_.size(), 1, threads, stop, [] { return 0; },
            [&](int, std::size_t i) {
                if (together_[i]) body(std::as_const(**together_[i]));
                if (alone_[i]) body(std::as_const(**alone_[i]));
            });
    }

    template <class T, class Out>
    static void clear_empty(const std::vector<Sentence<T>>& sentences, const std::vector<EdgeTarget<Out>>& targets) {
        for (std::size_t i = 0; i < targets.size(); ++i)
            if (sentences[i].words == 0) clear_edges(targets[i], sentences[i].labels);
    }

    template <class T, class Out>
    static void finish_empty(const std::vector<Sentence<T>>& sentences, double* totals,
                             const std::vector<EdgeTarget<Out>>& targets) {
        for (std::size_t i = 0; i < sentences.size(); ++i)
            if (sentences[i].words == 0) totals[i] = 0.0;
        clear_empty(sentences, targets);
    }

    /// label_weights(s): of the group's s-th sentence, or null.
    template <class T, class Format, class Out, class Weights>
    void write_marginals(const std::vector<Sentence<T>>& sentences, const GroupState<Format>& group,
                         const std::vector<EdgeTarget<Out>>& targets, const LossGradient& loss,
                         Weights label_weights) const {
        details::Staging<Format> staged(group.edges.padded);
        bool in_place[Format::sentences] = {};
        for (int s = 0; s < group.count; ++s) {
            const std::size_t i = group.sentence[s];
            in_place[s] = Format::sentences > 1 && loss.weight == 1.0 && loss.others.empty() && !states[i].special &&
                          write_in_place(sentences[i], targets[i], group.edges.padded, staged.of[s]);
        }
        dispatch_on_registers<ScatterMarginals<Format>>(group.edges, staged.of);
        for (int s = 0; s < group.count; ++s) {
            const std::size_t i = group.sentence[s];
            const SentenceState& state = states[i];
            if (!state.feasible) {
                clear_edges(targets[i], sentences[i].labels);
                continue;
            }
            if (in_place[s]) {
                clear_column_of_root(sentences[i], targets[i]);
                continue;
            }
            if (state.special) unstage(state.special->marginals(), staged, s);
            if (loss.weight != 1.0)
                for (std::ptrdiff_t at = 0; at < (sentences[i].words + 1) * staged.stride; ++at)
                    staged.of[s].data[at] *= loss.weight;
            loss.sum_others(i, sentences[i].words, [&](int h, int d) { return staged.at(s, h, d); });
            if (!sentences[i].labels)
                write_staged(sentences[i], targets[i], staged, s);
            else
                share_out(sentences[i], targets[i], staged, s, label_weights(s));
        }
    }

    /// Whether `padded` columns of doubles can be written to the target itself, as the kernel writes them; `to` then says where.
    template <class T, class Out>
    static bool write_in_place(const Sentence<T>& sentence, const EdgeTarget<Out>& target, int padded, Rows& to) {
        if constexpr (std::is_same_v<Out, double>) {
            if (sentence.labels || sentence.words < padded || padded < pack_size || target.dep_stride != 1 ||
                target.width > padded + 1)
                return false;
            to = {target.edge(0, 1), target.head_stride};
            return true;
        }
        return false;
    }

    /// What is written in place leaves it as it was.
    template <class T, class Out>
    static void clear_column_of_root(const Sentence<T>& sentence, const EdgeTarget<Out>& target) {
        for (int h = 0; h <= sentence.words; ++h) *target.edge(h, 0) = Out{0};
    }

    /// Puts a special sentence's edges in the place of those that mean nothing.
    template <class Format>
    static void unstage(const EdgeTable& edges, const details::Staging<Format>& staged, int s) {
        for (int h = 0; h <= edges.words; ++h)
            for (int d = 1; d <= edges.words; ++d) staged.at(s, h, d) = edges(h, d);
    }

    /// The edges of sentence s in a staging, as they lie there.
    template <class T, class Format, class Out>
    static void write_staged(const Sentence<T>& sentence, const EdgeTarget<Out>& target,
                             const details::Staging<Format>& staged, int s) {
        if (target.dep_stride != 1 || sentence.words + 1 < target.width)
            return write_edges(sentence, target, [&](int h, int d) { return staged.at(s, h, d); });
        for (int h = 0; h <= sentence.words; ++h) {
            Out* const row = target.edge(h, 0);
            row[0] = Out{0};
            std::copy_n(staged.row(s, h), sentence.words, row + 1);
            if (h > 0) row[h] = Out{0};
        }
    }

    /// The same shared among labels, of which `labels` is what is known already; `marginal` is given for gradients, and
    /// then all is known: label_sums.hpp.
    template <class T, class Format, class Out>
    static void share_out(const Sentence<T>& sentence, const EdgeTarget<Out>& target,
                          const details::Staging<Format>& staged, int s, const SummedLabels* labels,
                          const details::Staging<Format>* marginal = nullptr,
                          const Sentence<double>* values = nullptr) {
        if (sentence.words + 1 < target.width) clear_edges(target, sentence.labels);
        const auto loan = label_pool.borrow();
        LabelsOfGroup& own = *loan;
        if (!labels) own.of[0].reserve_row(sentence.words, sentence.labels);
        for (int h = 0; h <= sentence.words; ++h) {
            std::fill_n(target.edge(h, 0), sentence.labels, Out{0});
            const LabelRow row = labels ? labels->row(h) : own.of[0].row(0);
            if (!labels)
                dispatch_on_registers<SumLabels>(sentence, h, nullptr, own.scratch.reserve(sentence.labels),
                                                 LabelRow{nullptr, nullptr, row.weights, row.totals});
            if (marginal)
                dispatch_on_registers<ShareGradientAmongLabels>(sentence, h, staged.row(s, h), marginal->row(s, h),
                                                                values, row, target.edge(h, 1), target.dep_stride);
            else
                dispatch_on_registers<ShareAmongLabels>(sentence.words, sentence.labels, h, staged.row(s, h), row,
                                                        target.edge(h, 1), target.dep_stride);
        }
    }

    template <class T, class Format, class Out>
    void expectation_of(const std::vector<Sentence<T>>& sentences, const GroupState<Format>& group,
                        const ValueSource& values, double* totals, const std::vector<EdgeTarget<Out>>& targets,
                        StopSignal& stop) const {
        const int n = group.edges.padded;
        details::Staging<Format> staged(n);
        EdgeSource<Format> source;
        source.padded = n;
        const auto labels_loan = label_pool.borrow();
        LabelsOfGroup& labels = *labels_loan;
        for (int s = 0; s < Format::sentences; ++s) {
            const Sentence<T> sentence = s < group.count ? sentences[group.sentence[s]] : Sentence<T>{};
            if (sentence.labels)
                labels.of[s].read(sentence, values.of(group.sentence[s]), !targets.empty(), labels.scratch);
            source.sentence[s] = stage_values(sentence, values, group, s, staged.row(s, 0), n, labels.of[s]);
        }
        const std::ptrdiff_t stride = EdgeMatrices<Format>::stride(n);
        const auto loan = staging_pool.borrow();
        const std::size_t size = EdgeMatrices<Format>::size(n);
        const Rows rows{(*loan).reserve(size + (targets.empty() ? 0 : Gradient<Format>::work_size(n))), stride};
        dispatch_on_registers<Gather<Format>>(source, rows);
        alignas(64) double total[Format::sentences] = {}, error[Format::sentences] = {};
        dispatch_on_registers<Expectation<Format>>(group.edges, rows, total);
        bool any_accurate = false;
        if (!targets.empty()) {
            dispatch_on_registers<GradientError<Format>>(group.edges, rows.data + size, error);
            for (int s = 0; s < group.count; ++s) any_accurate |= error[s] <= tolerable_error;
        }
        std::vector<EdgeTable> inaccurate(targets.empty() ? 0 : group.count);
        for (std::size_t s = 0; s < inaccurate.size(); ++s)
            if (!(error[s] <= tolerable_error))
                inaccurate[s] = edge_table(sentences[group.sentence[s]], staged.row(s, 0), staged.stride);
        bool in_place[Format::sentences] = {};
        if (any_accurate) {
            dispatch_on_registers<Gradient<Format>>(group.edges, root == Root::multi, rows, rows.data + size, &stop);
            for (int s = 0; s < group.count; ++s) {
                const std::size_t i = group.sentence[s];
                in_place[s] = Format::sentences > 1 && error[s] <= tolerable_error && !states[i].special &&
                              write_in_place(sentences[i], targets[i], n, staged.of[s]);
            }
            dispatch_on_registers<ScatterRows<Format>>(rows, n, staged.of);
        }
        std::optional<details::Staging<Format>> marginals;
        if (!targets.empty() && sentences[group.sentence[0]].labels) {
            marginals.emplace(n);
            dispatch_on_registers<ScatterMarginals<Format>>(group.edges, marginals->of);
        }
        for (int s = 0; s < group.count; ++s) {
            const std::size_t i = group.sentence[s];
            const SentenceState& state = states[i];
            if (!state.feasible) {
                totals[i] = std::numeric_limits<double>::quiet_NaN();
                if (!targets.empty()) clear_edges(targets[i], sentences[i].labels);
                continue;
            }
            if (!state.special) totals[i] = total[s] + (values.minus_scores ? state.rest : 0.0);
            if (state.special || (!targets.empty() && !(error[s] <= tolerable_error)))
                with_special(sentences[i], state, stop, [&](const SpecialSolution& special) {
                    const EdgeTable given = state.special
                                                ? special_values(sentences[i], values, i, special, labels.of[s])
                                                : std::move(inaccurate[s]);
                    if (state.special)
                        totals[i] =
                            expectation_of(special.marginals(), given) + (values.minus_scores ? state.rest : 0.0);
                    if (!targets.empty()) unstage(special.gradient(given, stop), staged, s);
                });
            if (targets.empty()) continue;
            if (in_place[s]) {
                clear_column_of_root(sentences[i], targets[i]);
            } else if (sentences[i].labels) {
                if (state.special) unstage(state.special->marginals(), *marginals, s);
                share_out(sentences[i], targets[i], staged, s, &labels.of[s], &*marginals, values.of(i));
            } else {
                write_staged(sentences[i], targets[i], staged, s);
            }
        }
    }

    /// The sentence's special solution: the kept one, or one for this occasion.
    template <class T, class Use>
    void with_special(const Sentence<T>& sentence, const SentenceState& state, StopSignal& stop, Use use) const {
        if (state.special) return use(*state.special);
        CentredScores centred;
        centre(sentence, root, stop, centred);
        const auto special = centred.bad() ? nullptr : SpecialSolution::of(std::move(centred), root, stop);
        if (special) use(*special);  // (null only if the scores have changed meanwhile)
    }

    template <class T>
    static EdgeTable edge_table(const Sentence<T>& sentence, const double* staged, std::ptrdiff_t stride) {
        EdgeTable table(sentence.words);
        for (int h = 0; h <= sentence.words && sentence.words > 0; ++h)
            std::copy_n(staged + h * stride, sentence.words, &table(h, 1));
        return table;
    }

    /// E[sum of values]; what no tree has does not count.
    static double expectation_of(const EdgeTable& marginals, const EdgeTable& values) {
        double sum = 0.0;
        for (int d = 1; d <= marginals.words; ++d)
            for (int h = 0; h <= marginals.words; ++h)
                if (marginals(h, d) > 0.0) sum += marginals(h, d) * values(h, d);
        return sum;
    }

    /// The value of every edge (labelled: the mean over its labels), as doubles for kernels. For minus_scores, of minus the
    /// scores less all that was taken off: column constants change neither the gradient nor, with the rest of log Z, the
    /// entropy.
    template <class T, class Format>
    StagedEdges stage_values(const Sentence<T>& sentence, const ValueSource& values, const GroupState<Format>& group,
                             int s, double* to, int n, const SummedLabels& labels) const {
        const std::size_t i = group.sentence[s];
        if (sentence.words == 0) return dispatch<details::StageValues>(Sentence<double>{}, n, to);
        if (!sentence.labels && !values.minus_scores) return dispatch<details::StageValues>(values.given[i], n, to);
        const std::ptrdiff_t stride = round_up(n);
        if (!sentence.labels) {
            std::vector<double> shift(sentence.words);
            for (int d = 1; d <= sentence.words; ++d) shift[d - 1] = group.column_shift(s, d);
            return dispatch<details::StageSurprise<T>>(sentence, n, shift.data(), group.root_shift()[s], to);
        }
        for (int h = 0; h <= n; ++h) {
            const LabelRow row = h <= sentence.words ? labels.row(h) : LabelRow{};
            for (int d = 1; d <= round_up(n); ++d) {
                double& edge = to[h * stride + d - 1];
                const bool real = h <= sentence.words && d <= sentence.words && h != d;
                edge = real ? row.mean[d - 1] : 0.0;
                if (real && values.minus_scores) {  // large and close numbers first
                    const double score = row.largest[d - 1] - states[i].label_shift[d],
                                 shift = group.column_shift(s, d);
                    edge = row.mean[d - 1] -
                           (h == 0 ? relative_root_score(score, shift, group.root_shift()[s]) : score - shift);
                }
            }
        }
        return {to, stride};
    }

    template <class T>
    static EdgeTable special_values(const Sentence<T>& sentence, const ValueSource& values, std::size_t i,
                                    const SpecialSolution& special, const SummedLabels& labels) {
        EdgeTable table(sentence.words);
        for (int h = 0; h <= table.words; ++h)
            for (int d = 1; d <= table.words; ++d) {
                if (!(special.marginals()(h, d) > 0.0)) continue;
                double& value = table(h, d);
                if (values.minus_scores) value = -special.scores()(h, d);
                if (sentence.labels) {
                    const LabelRow row = labels.row(h);
                    value += row.mean[d - 1] + (values.minus_scores ? std::log(row.totals[d - 1]) : 0.0);
                } else if (!values.minus_scores) {
                    value = values.given[i](h, d);
                }
            }
        return table;
    }
};

}  // namespace spantree
