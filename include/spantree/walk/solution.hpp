// The solved state of a batch: V and E of every sentence, from which all expectations and gradients follow without a
// further solve.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "../batch/check.hpp"
#include "../batch/parallel.hpp"
#include "../batch/plan.hpp"
#include "../batch/scratch_pool.hpp"
#include "../decode/best_tree.hpp"
#include "../simd/dispatch.hpp"
#include "gradient.hpp"
#include "group.hpp"
#include "special.hpp"

namespace spantree {

/// What a solve says about one sentence.
struct SentenceState {
    double log_partition = 0.0;
    double scaled_log_partition = 0.0;  // of the scores minus their shifts
    int unattachable = 0;               // a word that cannot be attached; 0: there is a tree
    bool bad = false;                   // some score is NaN or +inf
    std::unique_ptr<SpecialSolution> special;
};

template <class Format>
struct GroupState {
    AlignedBuffer<double> memory, shift_memory;
    EdgeMatrices<Format> edges;
    std::size_t sentence[Format::sentences] = {};
    int count = 0;

    double* shifts() const { return shift_memory.data(); }
    double* root_shift() const { return shift_memory.data() + shift_size(edges.padded); }

    void reserve(int words) {
        edges = EdgeMatrices<Format>(words, memory.reserve(2 * EdgeMatrices<Format>::size(words)));
        shift_memory.reserve(shift_size(words) + pack_size);
    }

    std::size_t bytes() const { return memory.bytes() + shift_memory.bytes(); }

    static std::size_t shift_size(int words) {
        return static_cast<std::size_t>(round_up(words) + pack_size) * Format::element_size;
    }
};

namespace details {

template <class T>
struct StageScores {
    static StagedEdges run(const Sentence<T>& sentence, int padded, double* to) {
        return stage_scores(sentence, padded, to);
    }
};

template <class Value>
struct StageValues {
    static StagedEdges run(const Sentence<double>& values, int padded, double* to, Value value) {
        return stage_edges(values, padded, 0.0, to, value);
    }
};

}  // namespace details

/// Scratch of one thread that solves groups.
template <class T, class Format>
class GroupSolver {
public:
    /// Solves the sentences of `plan` into `group`; writes their states.
    void solve(const std::vector<Sentence<T>>& sentences, const Group& plan, Root root, bool all_pairs,
               GroupState<Format>& group, std::vector<SentenceState>& states) {
        const int n = plan.words;
        group.reserve(n);
        group.count = static_cast<int>(plan.sentences.size());
        std::copy(plan.sentences.begin(), plan.sentences.end(), group.sentence);
        solve_.reserve(n);
        const EdgeSource<Format> source = read(sentences, plan);
        PivotReport<Format> report{root == Root::multi};
        for (int s = 0; s < group.count; ++s) report.words[s] = sentences[group.sentence[s]].words;
        Shifts<Format> shifts{group.shifts(), group.root_shift()};
        solve_group(solve_, walk_.reserve(n), source, all_pairs, shifts, group.edges, report);
        for (int s = 0; s < group.count; ++s) {
            SentenceState& state = states[group.sentence[s]];
            const Outcome found = outcome(shifts, report, s);
            if (!found.in_range) solve_special(sentences[group.sentence[s]], root, state);
            if (!found.log_in_range) continue;
            state.log_partition = found.log_partition;  // the same whether the rest was asked for or not
            state.scaled_log_partition = found.scaled_log_partition;
        }
    }

    std::size_t bytes() const { return solve_.bytes() + walk_.bytes() + staged_.bytes(); }

private:
    /// Where the kernel finds the scores: in place if they are dense doubles of one length, else in a copy.
    EdgeSource<Format> read(const std::vector<Sentence<T>>& sentences, const Group& plan) {
        const int n = plan.words;
        EdgeSource<Format> source;
        source.padded = n;
        const std::size_t size = static_cast<std::size_t>(n + 1) * round_up(n);
        double* const staged = staged_.reserve(size * Format::sentences);
        const Sentence<T> nobody;
        for (std::size_t s = 0; s < Format::sentences; ++s) {
            const Sentence<T>& sentence = s < plan.sentences.size() ? sentences[plan.sentences[s]] : nobody;
            if constexpr (std::is_same_v<T, double>) {
                if (Format::sentences > 1 && sentence.words == n && n >= pack_size && sentence.dep_stride == 1 &&
                    !sentence.labels) {
                    source.sentence[s] = {sentence.edge(0, 1), sentence.head_stride};
                    continue;
                }
            }
            source.sentence[s] = dispatch<details::StageScores<T>>(sentence, n, staged + s * size);
        }
        return source;
    }

    static void solve_special(const Sentence<T>& sentence, Root root, SentenceState& state) {
        state.bad = first_bad_score(sentence).has_value();
        if (state.bad) return;
        state.special = SpecialSolution::of(edge_table(sentence), root);
        if (!state.special) {
            const EdgeTable scores = edge_table(sentence);
            std::vector<Heads> heads(sentence.words + 1);
            state.unattachable = BestTree<double>()(scores.sentence(), root, heads.data()).unattachable;
            state.log_partition = state.scaled_log_partition = minus_infinity<double>;
            return;
        }
        state.log_partition = state.scaled_log_partition = state.special->log_partition();
    }

    Solve<Format> solve_;
    WalkBuffer<Format> walk_;
    AlignedBuffer<double> staged_;
};

inline ScratchPool<AlignedBuffer<double>> staging_pool;

/// What a thread needs to solve groups without keeping them.
template <class T>
struct SolverScratch {
    GroupSolver<T, Lanes> lanes;
    GroupSolver<T, Alone> alone;
    GroupState<Lanes> lanes_group;
    GroupState<Alone> alone_group;

    std::size_t bytes() const { return lanes.bytes() + alone.bytes() + lanes_group.bytes() + alone_group.bytes(); }
};

template <class T>
inline ScratchPool<SolverScratch<T>> solver_pool;

/// A group that stays with its solution. In small batches its memory is on loan, for the next batch to use afterwards.
template <class Group>
class KeptGroup {
public:
    explicit KeptGroup(std::size_t groups) {
        groups <= most_groups_lent ? void(loan_.emplace(pool.borrow())) : void(own_ = std::make_unique<Group>());
    }
    Group& operator*() const { return loan_ ? **loan_ : *own_; }

private:
    static constexpr std::size_t most_groups_lent = 64;
    static inline ScratchPool<Group> pool;
    std::optional<typename ScratchPool<Group>::Loan> loan_;
    std::unique_ptr<Group> own_;
};

/// Where a sentence's edge results go.
struct EdgeTarget {
    double* data;
    std::ptrdiff_t head_stride, dep_stride;  // in cells of max(labels, 1) doubles
    int width;                               // nodes per row, padding included
};

/// Writes edge(h, d), h != d; labelled: edge(h, d, label). 0 elsewhere.
template <class T, class Edge>
void write_edges(const Sentence<T>& sentence, const EdgeTarget& target, Edge edge) {
    const int labels = std::max(sentence.labels, 1);
    if (sentence.words + 1 < target.width || labels > 1)
        std::fill_n(target.data, static_cast<std::size_t>(target.width) * target.width * labels, 0.0);
    for (int h = 0; h <= sentence.words; ++h) {
        double* const row = target.data + h * target.head_stride * labels;
        row[0] = 0.0;
        for (int d = 1; d <= sentence.words; ++d)
            for (int label = 0; label < labels; ++label)
                row[d * target.dep_stride * labels + label] = h == d ? 0.0 : edge(h, d, label);
    }
}

/// What expectations are taken of: given values, or minus the scores (the entropy, up to log Z).
struct ValueSource {
    bool minus_scores = false;
    std::vector<Sentence<double>> given;
};

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
        run(false, sentences, root, threads, stop, states, [](auto&) {}, nullptr);
        return states;
    }

    /// V and E, kept if `keep`; marginals go to targets[i] if there are any.
    template <class T>
    void solve(const std::vector<Sentence<T>>& sentences, Root of_root, int threads, StopSignal& stop, bool keep,
               const std::vector<EdgeTarget>& targets) {
        root = of_root;
        states = std::vector<SentenceState>(sentences.size());
        run(
            true, sentences, root, threads, stop, states,
            [&](auto& group) {
                if (!targets.empty()) write_marginals(sentences, group, targets);
            },
            keep ? this : nullptr);
        for (std::size_t i = 0; i < sentences.size() && !targets.empty(); ++i)
            if (sentences[i].words == 0) write_edges(sentences[i], targets[i], [](int, int, int) { return 0.0; });
    }

    template <class T>
    void marginals(const std::vector<Sentence<T>>& sentences, int threads, StopSignal& stop,
                   const std::vector<EdgeTarget>& targets) {
        each_group(threads, stop, [&](auto& group) { write_marginals(sentences, group, targets); });
        for (std::size_t i = 0; i < sentences.size(); ++i)
            if (sentences[i].words == 0) write_edges(sentences[i], targets[i], [](int, int, int) { return 0.0; });
    }

    /// totals[i] = E[sum of values over the tree's edges]; for minus_scores, the entropy. Gradients go to targets[i] if
    /// there are any.
    template <class T>
    void expectation(const std::vector<Sentence<T>>& sentences, const ValueSource& values, int threads,
                     StopSignal& stop, double* totals, const std::vector<EdgeTarget>& targets) {
        each_group(threads, stop, [&](auto& group) { expectation_of(sentences, group, values, totals, targets); });
        for (std::size_t i = 0; i < sentences.size(); ++i)
            if (sentences[i].words == 0) {
                totals[i] = 0.0;
                if (!targets.empty()) write_edges(sentences[i], targets[i], [](int, int, int) { return 0.0; });
            }
    }

private:
    template <class Format>
    using Groups = std::vector<std::optional<KeptGroup<GroupState<Format>>>>;
    Groups<Lanes> lanes_;
    Groups<Alone> alone_;

    /// Solves every group and hands it to done(group); keeps the groups in `keep` if there is one.
    template <class T, class Done>
    static void run(bool all_pairs, const std::vector<Sentence<T>>& sentences, Root root, int threads, StopSignal& stop,
                    std::vector<SentenceState>& states, Done done, Solution* keep) {
        const Plan plans(sentences);
        if (keep) {
            keep->lanes_.resize(plans.size());
            keep->alone_.resize(plans.size());
        }
        parallel_for(
            plans.size(), 1, threads, stop, [] { return solver_pool<T>.borrow(); },
            [&](auto& loan, std::size_t i) {
                SolverScratch<T>* const scratch = &*loan;
                const auto solve = [&](auto& solver, auto& reused, auto* kept) {
                    if (kept) kept->emplace(plans.size());
                    auto& group = kept ? ***kept : reused;
                    solver.solve(sentences, plans[i], root, all_pairs, group, states);
                    done(group);
                };
                if (plans[i].sentences.size() > 1)
                    solve(scratch->lanes, scratch->lanes_group, keep ? &keep->lanes_[i] : nullptr);
                else
                    solve(scratch->alone, scratch->alone_group, keep ? &keep->alone_[i] : nullptr);
            });
    }

    template <class Body>
    void each_group(int threads, StopSignal& stop, Body body) {
        parallel_for(
            lanes_.size(), 1, threads, stop, [] { return 0; },
            [&](int, std::size_t i) {
                if (lanes_[i]) body(**lanes_[i]);
                if (alone_[i]) body(**alone_[i]);
            });
    }

    /// One matrix of round_up(padded) columns per sentence of a group.
    template <class Format>
    struct Staging {
        ScratchPool<AlignedBuffer<double>>::Loan loan;
        double* of[Format::sentences];
        std::ptrdiff_t stride;
        explicit Staging(int padded) : loan(staging_pool.borrow()), stride(round_up(padded)) {
            const std::size_t size = static_cast<std::size_t>(padded + 1) * stride;
            double* const data = (*loan).reserve(size * Format::sentences);
            for (int s = 0; s < Format::sentences; ++s) of[s] = data + s * size;
        }
        double at(int s, int h, int d) const { return of[s][h * stride + d - 1]; }
    };

    template <class T, class Format>
    void write_marginals(const std::vector<Sentence<T>>& sentences, const GroupState<Format>& group,
                         const std::vector<EdgeTarget>& targets) const {
        const Staging<Format> staged(group.edges.padded);
        dispatch_on_registers<ScatterMarginals<Format>>(group.edges, staged.of);
        for (int s = 0; s < group.count; ++s) {
            const std::size_t i = group.sentence[s];
            const SentenceState& state = states[i];
            if (state.unattachable)
                write_edges(sentences[i], targets[i], [](int, int, int) { return 0.0; });
            else if (!state.special && !sentences[i].labels)
                write_staged(sentences[i], targets[i], staged, s);
            else if (state.special)
                write_shared(sentences[i], targets[i], [&](int h, int d) { return state.special->marginals()(h, d); });
            else
                write_shared(sentences[i], targets[i], [&](int h, int d) { return staged.at(s, h, d); });
        }
    }

    /// The edges of sentence s in a staging, as they lie there.
    template <class T, class Format>
    static void write_staged(const Sentence<T>& sentence, const EdgeTarget& target, const Staging<Format>& staged,
                             int s) {
        if (target.dep_stride != 1 || sentence.words + 1 < target.width)
            return write_edges(sentence, target, [&](int h, int d, int) { return staged.at(s, h, d); });
        for (int h = 0; h <= sentence.words; ++h) {
            double* const row = target.data + h * target.head_stride;
            row[0] = 0.0;
            std::copy_n(staged.of[s] + h * staged.stride, sentence.words, row + 1);
        }
    }

    /// edge(h, d), split among labels by their shares.
    template <class T, class Edge>
    static void write_shared(const Sentence<T>& sentence, const EdgeTarget& target, Edge edge) {
        if (!sentence.labels) return write_edges(sentence, target, [&](int h, int d, int) { return edge(h, d); });
        write_edges(sentence, target, [&](int h, int d, int label) {
            return edge(h, d) * LabelTotal(sentence, h, d).share(sentence(h, d, label));
        });
    }

    template <class T, class Format>
    void expectation_of(const std::vector<Sentence<T>>& sentences, const GroupState<Format>& group,
                        const ValueSource& values, double* totals, const std::vector<EdgeTarget>& targets) {
        const int n = group.edges.padded;
        Staging<Format> staged(n);
        EdgeSource<Format> source;
        source.padded = n;
        for (int s = 0; s < Format::sentences; ++s) {
            const Sentence<T> sentence = s < group.count ? sentences[group.sentence[s]] : Sentence<T>{};
            source.sentence[s] = stage_value(sentence, values, group, s, staged.of[s], n);
        }
        const std::ptrdiff_t stride = EdgeMatrices<Format>::stride(n);
        const auto loan = staging_pool.borrow();
        const Rows rows{
            (*loan).reserve(EdgeMatrices<Format>::size(n) + (targets.empty() ? 0 : Gradient<Format>::work_size(n))),
            stride};
        dispatch_on_registers<Gather<Format>>(source, rows);
        alignas(64) double total[Format::sentences] = {}, error[Format::sentences] = {};
        dispatch_on_registers<Expectation<Format>>(group.edges, rows, total);
        if (!targets.empty()) {
            dispatch_on_registers<Gradient<Format>>(group.edges, root == Root::multi, rows,
                                                    rows.data + EdgeMatrices<Format>::size(n), error);
            dispatch_on_registers<ScatterRows<Format>>(rows, n, staged.of);
        }
        for (int s = 0; s < group.count; ++s) {
            const std::size_t i = group.sentence[s];
            const bool accurate = error[s] <= tolerable_error;
            if (accurate && !states[i].unattachable && !states[i].special && !sentences[i].labels) {
                totals[i] = total_of(states[i], values, total[s]);
                if (!targets.empty()) write_staged(sentences[i], targets[i], staged, s);
                continue;
            }
            finish(
                sentences[i], states[i], values, i, total[s], accurate,
                [&](int h, int d) { return staged.at(s, h, d); },
                [&](int h, int d) {
                    return group.edges.weights
                               .data[h * group.edges.weights.stride + (d - 1) * Format::element_size + s] *
                           group.edges.escape.data[h * group.edges.escape.stride + (d - 1) * Format::element_size + s];
                },
                totals, targets);
        }
    }

    static double total_of(const SentenceState& state, const ValueSource& values, double total) {
        return total + (values.minus_scores ? state.scaled_log_partition : 0.0);
    }

    /// The value of an edge: labelled, the mean over its labels.
    template <class T>
    static double value_of(const Sentence<T>& sentence, const ValueSource& values, std::size_t i, int h, int d) {
        if (!sentence.labels) return values.minus_scores ? -static_cast<double>(sentence(h, d)) : values.given[i](h, d);
        const LabelTotal total(sentence, h, d);
        double mean = 0.0;
        for (int label = 0; label < sentence.labels; ++label) {
            const double share = total.share(sentence(h, d, label));
            if (share > 0.0) mean += share * label_value(sentence, values, i, h, d, label);
        }
        return mean;
    }

    template <class T>
    static double label_value(const Sentence<T>& sentence, const ValueSource& values, std::size_t i, int h, int d,
                              int label) {
        return values.minus_scores ? -static_cast<double>(sentence(h, d, label)) : values.given[i](h, d, label);
    }

    template <class T, class Format>
    StagedEdges stage_value(const Sentence<T>& sentence, const ValueSource& values, const GroupState<Format>& group,
                            int s, double* to, int n) const {
        const std::size_t i = group.sentence[s];
        if (!values.minus_scores) {
            const Sentence<double> given = sentence.words ? values.given[i] : Sentence<double>{};
            const auto mean = [&](int h, int d) { return value_of(sentence, values, i, h, d); };
            return dispatch<details::StageValues<decltype(mean)>>(given, n, to, mean);
        }
        // Minus the scaled log-weights: differences of column constants change neither the gradient nor, with the
        // scaled log Z, the entropy.
        for (int h = 0; h <= n; ++h)
            for (int d = 1; d <= round_up(n); ++d) {
                const bool real = h <= sentence.words && d <= sentence.words && h != d;
                const double shift =
                    real ? group.shifts()[(d - 1) * Format::element_size + s] + (h == 0 ? group.root_shift()[s] : 0.0)
                         : 0.0;
                to[h * round_up(n) + d - 1] = real ? value_of(sentence, values, i, h, d) + shift : 0.0;
            }
        return {to, round_up(n)};
    }

    template <class T, class Edge, class Marginal>
    void finish(const Sentence<T>& sentence, SentenceState& state, const ValueSource& values, std::size_t i,
                double total, bool accurate, Edge gradient, Marginal marginal, double* totals,
                const std::vector<EdgeTarget>& targets) const {
        if (state.unattachable) {
            totals[i] = std::numeric_limits<double>::quiet_NaN();
            if (!targets.empty())
                write_edges(sentence, targets[i],
                            [](int, int, int) { return std::numeric_limits<double>::quiet_NaN(); });
            return;
        }
        if (!state.special) {
            totals[i] = total_of(state, values, total);
            if (targets.empty()) return;
            if (accurate) return write_gradient(sentence, values, i, gradient, marginal, targets[i]);
            state.special = SpecialSolution::of(edge_table(sentence), root);
        }
        EdgeTable given(sentence.words);
        double sum = 0.0;
        const EdgeTable& m = state.special->marginals();
        for (int d = 1; d <= sentence.words; ++d)
            for (int h = 0; h <= sentence.words; ++h)
                if (m(h, d) > 0.0) sum += m(h, d) * (given(h, d) = value_of(sentence, values, i, h, d));
        totals[i] = sum + (values.minus_scores ? state.log_partition : 0.0);
        if (targets.empty()) return;
        for (int d = 1; d <= sentence.words; ++d)
            for (int h = 0; h <= sentence.words; ++h)
                if (h != d && std::isfinite(value_of(sentence, values, i, h, d)))
                    given(h, d) = value_of(sentence, values, i, h, d);
        const EdgeTable table = state.special->gradient(given);
        write_gradient(
            sentence, values, i, [&](int h, int d) { return table(h, d); }, [&](int h, int d) { return m(h, d); },
            targets[i]);
    }

    /// Labelled: an edge's labels are parallel edges; each has its share of the edge's gradient, plus what it gains on
    /// the others.
    template <class T, class Edge, class Marginal>
    static void write_gradient(const Sentence<T>& sentence, const ValueSource& values, std::size_t i, Edge gradient,
                               Marginal marginal, const EdgeTarget& target) {
        if (!sentence.labels) return write_edges(sentence, target, [&](int h, int d, int) { return gradient(h, d); });
        write_edges(sentence, target, [&](int h, int d, int label) {
            const double share = LabelTotal(sentence, h, d).share(sentence(h, d, label));
            if (share == 0.0) return 0.0;
            const double ahead = label_value(sentence, values, i, h, d, label) - value_of(sentence, values, i, h, d);
            return share * (ahead * marginal(h, d) + gradient(h, d));
        });
    }
};

}  // namespace spantree
