// One solve of a batch that everything is read from, with or without crossing edges allowed: the same questions to both.
#pragma once

#include <optional>
#include <vector>

#include "spantree/batch/label_shares.hpp"
#include "spantree/batch/tree.hpp"
#include "spantree/chart/solution.hpp"
#include "spantree/walk/solution.hpp"
#include "view.hpp"

namespace spantree::library {

/// What a solve says about one sentence: log Z = total + rest.
struct SentenceReport {
    double log_partition = 0.0;
    double rest = 0.0;
    std::int32_t status = 0;
};

template <class T>
class KeptSolve {
public:
    KeptSolve(const Sentences<T>& sentences, const Options& options, StopSignal& stop)
        : sentences_(sentences),
          root_(options.root),
          projective_(options.projective),
          threads_(useful_threads(sentences, threads_of(options))),
          stop_(stop) {}

    /// log Z alone; nothing is kept.
    void log_partition() {
        if (projective_) return solve_charts(projective::Purpose::partition, false, [](auto&&...) {});
        report(Solution::log_partition(sentences_.all(), root_, threads_, stop_));
        throw_if_stopped(stop_);
    }

    /// Solves, and keeps the solve if it is to be asked more; marginals go to `targets` if there are any.
    template <class Out>
    void solve(bool keep, const std::vector<EdgeTarget<Out>>& targets) {
        if (projective_) {
            solve_charts(projective::Purpose::marginals, keep, [&](const auto& solved, auto& scratch, std::size_t i) {
                if (targets.empty()) return;
                if (solved.bad())
                    clear_edges(targets[i], sentences_[i].labels);
                else
                    solved.write_marginals(sentences_[i], scratch, targets[i]);
            });
        } else {
            walk_.solve(sentences_.all(), root_, threads_, stop_, keep, targets);
            report(walk_.states);
        }
        throw_if_stopped(stop_);
    }

    const std::vector<SentenceReport>& reports() const { return reports_; }
    bool has_tree(std::size_t i) const { return reports_[i].status == 0; }

    /// After solve(true). totals[i] = E[sum of values]; of minus the scores: the entropy.
    template <class Out>
    void expectation(const ValueSource& values, double* totals, const std::vector<EdgeTarget<Out>>& targets) const {
        if (!projective_) {
            walk_.expectation(sentences_.all(), values, threads_, stop_, totals, targets);
        } else {
            ask_charts([&](const projective::SolvedSentence& solved, auto& scratch, std::size_t i) {
                const Sentence<T>& sentence = sentences_[i];
                const EdgeTarget<Out>* const to = targets.empty() ? nullptr : &targets[i];
                if (solved.bad()) {
                    totals[i] = std::numeric_limits<double>::quiet_NaN();
                    if (to) clear_edges(*to, sentence.labels);
                } else if (values.minus_scores) {
                    totals[i] = solved.entropy(sentence, scratch);
                    if (to)
                        solved.template hessian<1>(
                            sentence, scratch, [&](int) { return solved.surprise(scratch); }, to, stop_);
                } else {
                    totals[i] = solved.expectation(sentence, scratch, values_of(values.given[i]));
                    if (to)
                        solved.template hessian<1>(
                            sentence, scratch, [&](int) { return values_of(values.given[i]); }, to, stop_);
                }
            });
        }
        throw_if_stopped(stop_);
    }

    /// After solve(true). What each edge adds to a tree's log-weight when all that trees have in common is taken off:
    /// visit(i, value), value(head, dep, label), for every sentence that has a tree. A tree's log-probability is the sum of
    /// it over its edges, less `rest`.
    template <class Visit>
    void relative_scores(Visit visit) const {
        if (!projective_) {
            walk_.relative_scores(sentences_.all(), threads_, stop_, [&](std::size_t i, auto value) {
                const Sentence<T>& sentence = sentences_[i];
                visit(i, [&](int head, int dep, int label) {
                    const T score = sentence.labels ? sentence(head, dep, label) : sentence(head, dep);
                    return score == minus_infinity<T> ? minus_infinity<double> : value(head, dep, label);
                });
            });
        } else {
            ask_charts([&](const projective::SolvedSentence& solved, auto&, std::size_t i) {
                const Sentence<T>& sentence = sentences_[i];
                if (!solved.feasible() || solved.bad() || sentence.words == 0) return;
                visit(i, [&](int head, int dep, int label) {
                    const double edge = solved.scores().value(head, dep);
                    if (!sentence.labels || edge == minus_infinity<double>) return edge;
                    const double score = sentence(head, dep, label);
                    return score == minus_infinity<double> ? score
                                                           : edge + LabelTotal(sentence, head, dep).log_share(score);
                });
            });
        }
        throw_if_stopped(stop_);
    }

private:
    void report(const std::vector<SentenceState>& states) {
        reports_.clear();
        for (const SentenceState& state : states)
            reports_.push_back(state.bad ? bad_report()
                                         : SentenceReport{state.log_partition, state.rest, state.unattachable});
    }

    static SentenceReport bad_report() {
        constexpr double nan = std::numeric_limits<double>::quiet_NaN();
        return {nan, nan, Status::bad_score};
    }

    template <class Ask>
    void solve_charts(projective::Purpose purpose, bool keep, Ask ask) {
        reports_.assign(sentences_.size(), {});
        charts_ = projective::solve_batch(
            sentences_.all(), root_, purpose, keep, threads_, stop_,
            [&](const projective::SolvedSentence& solved, projective::QuestionScratch& scratch, std::size_t i) {
                const projective::LogPartition z = solved.log_partition();
                reports_[i] = solved.bad() ? bad_report() : SentenceReport{z.value(), z.rest, solved.unattachable()};
                ask(solved, scratch, i);
            });
        throw_if_stopped(stop_);
    }

    template <class Ask>
    void ask_charts(Ask ask) const {
        projective::ask_batch(charts_, threads_, stop_, ask);
    }

    const Sentences<T>& sentences_;
    Root root_;
    bool projective_;
    int threads_;
    StopSignal& stop_;
    Solution walk_;
    std::vector<projective::KeptSentence> charts_;
    std::vector<SentenceReport> reports_;
};

template <class T>
void write_status(const KeptSolve<T>& solve, Status status) {
    for (std::size_t i = 0; status.per_sentence && i < solve.reports().size(); ++i)
        status.per_sentence[i] = solve.reports()[i].status;
}

}  // namespace spantree::library
