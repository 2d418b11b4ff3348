// Solves the sentences of a plan's groups: from scores to V and E, and to special solutions where those do not do.
#pragma once

#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "../batch/labels.hpp"
#include "../batch/plan.hpp"
#include "../decode/best_tree.hpp"
#include "kept_group.hpp"
#include "labelled_edges.hpp"

namespace spantree {

namespace details {

template <class T>
struct StageScores {
    static StagedEdges run(const Sentence<T>& sentence, int padded, double* to) {
        return stage_scores(sentence, padded, to);
    }
};

}  // namespace details

/// Scratch of one thread that solves groups.
template <class T, class Format>
class GroupSolver {
public:
    /// Solves the sentences of `plan` into `group`; writes their states. `weigh_labels`: whether to leave the weights of
    /// labels behind, for who writes marginals next.
    void solve(const std::vector<Sentence<T>>& sentences, const Group& plan, Root root, Wanted wanted,
               GroupState<Format>& group, std::vector<SentenceState>& states, bool weigh_labels, StopSignal& stop) {
        const int n = plan.words;
        group.reserve(n);
        group.count = static_cast<int>(plan.sentences.size());
        std::copy(plan.sentences.begin(), plan.sentences.end(), group.sentence);
        solve_.reserve(n, &stop);
        labels_weighed_ = weigh_labels;
        const EdgeSource<Format> source = read(sentences, plan, root, states);
        PivotReport<Format> report(root == Root::multi);
        for (int s = 0; s < group.count; ++s) report.words[s] = sentences[group.sentence[s]].words;
        Shifts<Format> shifts{group.shifts(), group.root_shift()};
        solve_group(solve_, walk_.reserve(n), source, wanted, shifts, group.edges, report);
        for (int s = 0; s < group.count; ++s) {
            SentenceState& state = states[group.sentence[s]];
            const Outcome found = outcome(shifts, report, s);
            if (!(wanted == Wanted::log_partition ? found.log_in_range : found.in_range))
                solve_special(sentences[group.sentence[s]], root, moderate_shifts(shifts, s), state, stop);
            if (!found.log_in_range) continue;
            const double total =
                state.label_shift.empty() ? shifts.total[s] : sum_of(state.label_shift) + shifts.total[s];
            state.log_partition = found.scaled_log_partition + total;
            if (state.special) continue;
            state.rest = found.scaled_log_partition;
            state.total = total;
        }
    }

    /// Of the group's s-th sentence, if they were left behind.
    const SummedLabels* label_weights(int s) const { return labels_weighed_ ? &label_weights_[s] : nullptr; }

    std::size_t bytes() const {
        std::size_t total = solve_.bytes() + walk_.bytes() + staged_.bytes() + labels_.bytes();
        for (const SummedLabels& weights : label_weights_) total += weights.bytes();
        return total;
    }

private:
    /// Where the kernel finds the scores: in place if they are dense doubles of one length, else in a copy.
    EdgeSource<Format> read(const std::vector<Sentence<T>>& sentences, const Group& plan, Root root,
                            std::vector<SentenceState>& states) {
        const int n = plan.words;
        EdgeSource<Format> source;
        source.padded = n;
        const std::size_t size = static_cast<std::size_t>(n + 1) * round_up(n);
        double* const staged = staged_.reserve(size * Format::sentences);
        const Sentence<T> nobody;
        for (std::size_t s = 0; s < Format::sentences; ++s) {
            const Sentence<T>& sentence = s < plan.sentences.size() ? sentences[plan.sentences[s]] : nobody;
            if (sentence.labels) {
                source.sentence[s] =
                    labels_.read(sentence, n, root, staged + s * size, states[plan.sentences[s]].label_shift,
                                 labels_weighed_ ? &label_weights_[s] : nullptr);
                continue;
            }
            if constexpr (std::is_same_v<T, double>) {
                if (Format::sentences > 1 && sentence.words == n && n >= pack_size && sentence.dep_stride == 1) {
                    source.sentence[s] = {sentence.edge(0, 1), sentence.head_stride};
                    continue;
                }
            }
            source.sentence[s] = dispatch<details::StageScores<T>>(sentence, n, staged + s * size);
        }
        return source;
    }

    /// If they are not, other shifts may help.
    static bool moderate_shifts(const Shifts<Format>& shifts, int s) {
        return std::fabs(shifts.of_root[s]) <= largest_root_shift && std::isfinite(shifts.total[s]);
    }

    static void solve_special(const Sentence<T>& sentence, Root root, bool out_of_range, SentenceState& state,
                              StopSignal& stop) {
        CentredScores centred;
        centre(sentence, root, stop, centred);
        state.feasible.bad_score = centred.bad();
        if (state.feasible.bad_score) return;
        state.special = SpecialSolution::of(std::move(centred), root, stop, out_of_range);
        if (state.special) {
            state.limited = state.special->scores().limited();
            state.total = state.special->scores().total();
            state.rest = state.special->log_partition();
            state.log_partition = state.total + state.rest;
            return;
        }
        // Searched for as in decoding, so that every question names the same word.
        std::vector<Heads> heads(static_cast<std::size_t>(sentence.words) + 1);
        std::vector<T> arcs;
        const Sentence<T> plain = sentence.labels ? best_labels(sentence, arcs) : sentence;
        state.feasible = BestTree<T>()(plain, root, heads.data(), stop);
        if (state.feasible) state.feasible = {1};  // scores change while they are read
        state.total = 0.0;
        state.rest = state.log_partition = minus_infinity<double>;
    }

    Solve<Format> solve_;
    WalkBuffer<Format> walk_;
    AlignedBuffer<double> staged_;
    LabelledEdges labels_;
    bool labels_weighed_ = false;
    SummedLabels label_weights_[Format::sentences];
};

/// What a thread needs to solve groups without keeping them.
template <class T>
struct SolverScratch {
    GroupSolver<T, Together> together;
    GroupSolver<T, Alone> alone;
    GroupState<Together> together_group;
    GroupState<Alone> alone_group;

    std::size_t bytes() const {
        return together.bytes() + alone.bytes() + together_group.bytes() + alone_group.bytes();
    }
};

template <class T>
inline ScratchPool<SolverScratch<T>> solver_pool;

}  // namespace spantree
