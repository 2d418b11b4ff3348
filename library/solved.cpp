// The kept solve of a batch, and the questions that are answered by one.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "large_values.hpp"
#include "run.hpp"
#include "solved_state.hpp"
#include "spantree/batch/label_shares.hpp"
#include "spantree/batch/tree.hpp"
#include "spantree/number/exact_sum.hpp"

namespace spantree::library {

namespace {

using projective::QuestionScratch;
using projective::SolvedSentence;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

SentenceReport report_of(const Feasibility& found, double log_partition, double rest, bool limited) {
    return found.bad_score ? SentenceReport{nan, nan, status_of(found), limited}
                           : SentenceReport{log_partition, rest, status_of(found), limited};
}

SentenceReport report_of(const SentenceState& state) {
    return report_of(state.feasible, state.log_partition, state.rest, state.limited);
}

SentenceReport report_of(const SolvedSentence& solved) {
    const projective::LogPartition z = solved.log_partition();
    return report_of(solved.found(), z.value(), z.rest, solved.scores().limited());
}

/// -inf for all edges of sentences that have no tree, or no word.
void write_no_trees(const Batch& batch, const std::vector<SentenceReport>& reports,
                    const std::vector<EdgeTarget<double>>& to) {
    for (std::size_t i = 0; i < to.size(); ++i)
        if (reports[i].status != 0 || batch.words(i) == 0) fill_edges(to[i], batch.labels(), minus_infinity<double>);
}

void report(const std::vector<SentenceState>& states, std::vector<SentenceReport>& reports) {
    for (std::size_t i = 0; i < states.size(); ++i) reports[i] = report_of(states[i]);
}

template <class T>
void write_marginals(const SolvedSentence& solved, const Sentence<T>& sentence, QuestionScratch& scratch, std::size_t i,
                     const EdgeTargets& to, const LossGradient& loss = {}) {
    std::visit(
        [&](const auto& targets) {
            if (targets.empty()) return;
            solved.write_marginals(sentence, scratch, targets[i], loss.weight);
            if (solved.feasible())
                loss.sum_others(i, sentence.words, [&](int h, int d) { return loss.weight * solved.marginal(h, d); });
        },
        to);
}

/// Less a rounding error below 0. NaN stays NaN.
double not_negative(double entropy) { return entropy < 0.0 ? 0.0 : entropy; }

template <class T>
void write_entropy(const SolvedSentence& solved, const Sentence<T>& sentence, QuestionScratch& scratch, std::size_t i,
                   double* totals, const EdgeTargets& gradient, StopSignal& stop) {
    totals[i] = not_negative(solved.entropy(sentence, scratch));
    std::visit(
        [&](const auto& targets) {
            if (targets.empty()) return;
            solved.write_entropy_gradient(sentence, scratch, targets[i], stop);
        },
        gradient);
}

/// The same of a sentence that is not solved yet, and is then.
template <class T>
void solve_with_entropy(SolvedSentence& solved, const Sentence<T>& sentence, Root root, QuestionScratch& scratch,
                        std::size_t i, double* totals, const EdgeTargets& gradient, StopSignal& stop) {
    std::visit(
        [&](const auto& targets) {
            if (targets.empty()) {
                solved.solve(sentence, root, projective::Purpose::marginals, stop);
                return write_entropy(solved, sentence, scratch, i, totals, gradient, stop);
            }
            totals[i] = not_negative(solved.solve_with_entropy(sentence, root, scratch, targets[i], stop));
        },
        gradient);
}

/// Where several values of one sentence, or their gradients, lie.
projective::EightOfEdges<const double> eight_of(std::span<const EdgeValues> values, std::size_t i) {
    const double* first[8];
    for (std::size_t k = 0; k < values.size(); ++k) first[k] = values[k][i].scores;
    const Sentence<double>& any = values[0][i];
    return {{first, values.size()}, any.head_stride, any.dep_stride, any.words + 1};
}

template <class Out>
projective::EightOfEdges<Out> eight_of(std::span<const EdgeTargets> targets, std::size_t i) {
    Out* first[8];
    EdgeTarget<Out> any;
    for (std::size_t k = 0; k < targets.size(); ++k)
        first[k] = (any = std::get<std::vector<EdgeTarget<Out>>>(targets[k])[i]).data;
    return {{first, targets.size()}, any.head_stride, any.dep_stride, any.width};
}

/// Expectations of several values of one sentence's charts, totals[k * row], and their gradients, eight at a time.
template <class T, class Out>
void write_expectations(const SolvedSentence& solved, const Sentence<T>& sentence, QuestionScratch& scratch,
                        std::size_t i, std::span<const EdgeValues> values, std::span<const EdgeTargets> targets,
                        double* totals, std::size_t row, StopSignal& stop) {
    constexpr std::size_t eight = 8, worth_eight = 3;  // eight take as long as three, one by one
    const auto several = [&]<int count>(std::size_t first, int used) {
        EdgeTarget<Out> to[count];
        for (int k = 0; k < used; ++k) to[k] = std::get<std::vector<EdgeTarget<Out>>>(targets[first + k])[i];
        const auto value = [&](int k) { return values_of(values[first + k][i]); };
        for (int k = 0; k < used; ++k) totals[(first + k) * row] = solved.expectation(sentence, scratch, value(k));
        solved.template hessian<count>(sentence, scratch, value, to, used, stop);
    };
    for (std::size_t at = 0; at < values.size();) {
        const std::size_t left = std::min(values.size() - at, eight), used = left < worth_eight ? 1 : left;
        if (used == 1) {
            several.template operator()<1>(at, 1);
        } else if (sentence.labels) {
            several.template operator()<eight>(at, static_cast<int>(used));
        } else {
            double of_eight[eight];
            solved.expectations_of_eight(scratch, eight_of(values.subspan(at, used), i),
                                         eight_of<Out>(targets.subspan(at, used), i), of_eight, stop);
            for (std::size_t k = 0; k < used; ++k) totals[(at + k) * row] = of_eight[k];
        }
        at += used;
    }
}

}  // namespace

Solved::Solved(const Batch& batch, const Options& options, For purpose, const EdgeTargets& marginals,
               const LossGradient& loss)
    : batch_(&batch), root_(options.root), projective_(options.projective), state_(std::make_unique<State>()) {
    StopSignal stop = stop_signal_of(options);
    const int threads = threads_to_solve(batch, options);
    reports_.resize(batch.size());
    batch.visit([&](const auto& sentences) {
        if (projective_) {
            const bool all = purpose == For::marginals || purpose == For::questions,
                       keep = purpose == For::draws || purpose == For::questions;
            state_->charts = projective::solve_batch(
                sentences.size(), keep, threads, stop,
                [&](SolvedSentence& solved, QuestionScratch& scratch, std::size_t i) {
                    solved.solve(sentences[i], root_,
                                 all ? projective::Purpose::marginals : projective::Purpose::partition, stop);
                    reports_[i] = report_of(solved);
                    if (all) write_marginals(solved, sentences[i], scratch, i, marginals, loss);
                });
        } else if (purpose == For::log_partition || purpose == For::draws) {
            report(Solution::log_partition(sentences, root_, threads, stop), reports_);
        } else {
            std::visit(
                [&](const auto& targets) {
                    state_->walk.solve(sentences, root_, threads, stop, purpose == For::questions, targets, loss);
                },
                marginals);
            report(state_->walk.states, reports_);
        }
    });
    throw_if_stopped(stop);
}

Solved::Solved(const Batch& batch, const Options& options, double* entropies, const EdgeTargets& gradient, bool keep)
    : batch_(&batch), root_(options.root), projective_(options.projective), state_(std::make_unique<State>()) {
    StopSignal stop = stop_signal_of(options);
    const int threads = threads_to_solve(batch, options);
    reports_.resize(batch.size());
    batch.visit([&](const auto& sentences) {
        if (projective_) {
            state_->charts = projective::solve_batch(
                sentences.size(), keep, threads, stop,
                [&](SolvedSentence& solved, QuestionScratch& scratch, std::size_t i) {
                    solve_with_entropy(solved, sentences[i], root_, scratch, i, entropies, gradient, stop);
                    reports_[i] = report_of(solved);
                });
            return;
        }
        std::visit(
            [&](const auto& targets) {
                state_->walk.solve_for_entropy(sentences, root_, threads, stop, keep, entropies, targets);
            },
            gradient);
        std::transform(entropies, entropies + sentences.size(), entropies, not_negative);
        report(state_->walk.states, reports_);
    });
    throw_if_stopped(stop);
}

Solved::Solved(const Solved& begun, const Options& options, const EdgeTargets& marginals)
    : batch_(begun.batch_),
      root_(begun.root_),
      projective_(true),
      state_(std::make_unique<State>()),
      reports_(begun.reports_) {
    StopSignal stop = stop_signal_of(options);
    batch_->visit([&](const auto& sentences) {
        state_->charts =
            projective::complete_batch(begun.state_->charts, threads_to_solve(*batch_, options), stop,
                                       [&](const SolvedSentence& solved, QuestionScratch& scratch, std::size_t i) {
                                           write_marginals(solved, sentences[i], scratch, i, marginals);
                                       });
    });
    throw_if_stopped(stop);
}

Solved::~Solved() = default;

Statuses Solved::statuses() const {
    Statuses result;
    for (const SentenceReport& report : reports_) result.push_back(report.status);
    return result;
}

/// Calls ask(solved, sentence, scratch, i, stop) for every sentence.
template <class Ask>
void Solved::ask_charts(const Options& options, Ask ask) const {
    StopSignal stop = stop_signal_of(options);
    batch_->visit([&](const auto& sentences) {
        projective::ask_batch(state_->charts, threads_to_solve(*batch_, options), stop,
                              [&](const SolvedSentence& solved, QuestionScratch& scratch, std::size_t i) {
                                  ask(solved, sentences[i], scratch, i, stop);
                              });
    });
    throw_if_stopped(stop);
}

void Solved::marginals(const Options& options, const EdgeTargets& to) const {
    if (projective_)
        return ask_charts(options, [&](const auto& solved, const auto& sentence, auto& scratch, std::size_t i,
                                       StopSignal&) { write_marginals(solved, sentence, scratch, i, to); });
    std::visit(
        [&](const auto& targets) {
            StopSignal stop = stop_signal_of(options);
            batch_->visit([&](const auto& sentences) {
                state_->walk.marginals(sentences, threads_to_solve(*batch_, options), stop, targets);
            });
            throw_if_stopped(stop);
        },
        to);
}

void Solved::entropy(const Options& options, double* totals, const EdgeTargets& gradient) const {
    if (projective_)
        return ask_charts(
            options, [&](const auto& solved, const auto& sentence, auto& scratch, std::size_t i, StopSignal& stop) {
                write_entropy(solved, sentence, scratch, i, totals, gradient, stop);
            });
    std::visit(
        [&](const auto& targets) {
            StopSignal stop = stop_signal_of(options);
            batch_->visit([&](const auto& sentences) {
                state_->walk.expectation(sentences, {true, {}}, threads_to_solve(*batch_, options), stop, totals,
                                         targets);
            });
            throw_if_stopped(stop);
        },
        gradient);
    std::transform(totals, totals + batch_->size(), totals, not_negative);
}

void Solved::expectations(const Options& options, std::span<const EdgeValues> values, double* totals,
                          std::span<const EdgeTargets> gradients) const {
    if (gradients.empty()) return moderate_expectations(options, values, totals, gradients);
    Options same_trees = options;
    same_trees.root = root_;
    same_trees.projective = projective_;
    const LargeValues large(*this, *batch_, same_trees, values);
    moderate_expectations(options, large.any() ? large.rest() : values, totals, gradients);
    large.add_to(totals, gradients);
}

void Solved::moderate_expectations(const Options& options, std::span<const EdgeValues> values, double* totals,
                                   std::span<const EdgeTargets> gradients) const {
    const std::size_t count = batch_->size();
    if (projective_)
        return ask_charts(options, [&]<class T>(const SolvedSentence& solved, const Sentence<T>& sentence,
                                                QuestionScratch& scratch, std::size_t i, StopSignal& stop) {
            if (gradients.empty()) {
                for (std::size_t k = 0; k < values.size(); ++k)
                    totals[k * count + i] = solved.expectation(sentence, scratch, values_of(values[k][i]));
                return;
            }
            std::visit(
                [&]<class Out>(const std::vector<EdgeTarget<Out>>&) {
                    write_expectations<T, Out>(solved, sentence, scratch, i, values, gradients, totals + i, count,
                                               stop);
                },
                gradients[0]);
        });
    StopSignal stop = stop_signal_of(options);
    const EdgeTargets nowhere;
    for (std::size_t k = 0; k < values.size(); ++k)
        std::visit(
            [&](const auto& targets) {
                batch_->visit([&](const auto& sentences) {
                    state_->walk.expectation(sentences, {false, values[k]}, threads_to_solve(*batch_, options), stop,
                                             totals + k * count, targets);
                });
                throw_if_stopped(stop);
            },
            gradients.empty() ? nowhere : gradients[k]);
}

void Solved::relative_scores(const Options& options, const std::vector<EdgeTarget<double>>& to, double reach) const {
    write_no_trees(*batch_, reports_, to);
    if (projective_)
        return ask_charts(options,
                          [&](const auto& solved, const auto& sentence, auto&, std::size_t i, StopSignal& stop) {
                              if (!solved.feasible()) return;
                              relative_scores_of(solved.scores(), sentence, reach, stop).write(to[i]);
                          });
    StopSignal stop = stop_signal_of(options);
    batch_->visit([&](const auto& sentences) {
        state_->walk.relative_scores(sentences, reach, threads_to_solve(*batch_, options), stop,
                                     [&](std::size_t i, auto&& relative) { relative.write(to[i]); });
    });
    throw_if_stopped(stop);
}

/// relative(heads, labels): of a tree that is one, its relative score.
template <class T, class Relative>
void Solved::write_log_probs(std::size_t i, const Sentence<T>& sentence, double rest, std::int64_t trees,
                             const TreesIn& rows, StopSignal& stop, Relative relative, double* log_probs) const {
    GivenTree tree;
    for (std::int64_t t = 0; t < trees; ++t) {
        if (t % 1024 == 0) stop.check();
        tree.read(rows, i, t, sentence.words, sentence.labels > 0);
        if (tree.is_tree_of(sentence, root_, projective_))
            log_probs[static_cast<std::size_t>(t) * batch_->size() + i] =
                std::min(relative(tree.heads.data(), tree.labels.data()) - rest, 0.0);  // less a rounding error
    }
}

Solved::Solved(const Batch& batch, const Options& options, std::int64_t trees, const TreesIn& rows, double* log_probs,
               const EdgeTargets& marginals, const LossGradient& loss)
    : batch_(&batch), root_(options.root), projective_(options.projective), state_(std::make_unique<State>()) {
    if (projective_) {
        const bool with_marginals = std::visit([](const auto& targets) { return !targets.empty(); }, marginals);
        Solved solved(batch, options, with_marginals ? For::questions : For::draws, marginals, loss);
        solved.log_probs(options, trees, rows, log_probs);
        state_ = std::move(solved.state_);
        reports_ = std::move(solved.reports_);
        return;
    }
    StopSignal stop = stop_signal_of(options);
    Solution& walk = state_->walk;
    batch.visit([&](const auto& sentences) {
        std::fill_n(log_probs, static_cast<std::size_t>(trees) * batch.size(), minus_infinity<double>);
        const auto write = [&](std::size_t i, auto&& scores) {
            write_log_probs(
                i, sentences[i], walk.states[i].rest, trees, rows, stop,
                [&](const Heads* heads, const Heads* labels) { return scores.of_tree(heads, labels); }, log_probs);
        };
        std::visit(
            [&](const auto& targets) {
                walk.relative_scores_at_once(sentences, 1.0, root_, threads_to_solve(batch, options), stop, targets,
                                             loss, write);
            },
            marginals);
        for (std::size_t i = 0; i < batch.size(); ++i) {
            reports_.push_back(report_of(walk.states[i]));
            if (batch.words(i) == 0)
                for (std::int64_t t = 0; t < trees; ++t)
                    log_probs[static_cast<std::size_t>(t) * batch.size() + i] = 0.0;
        }
    });
    throw_if_stopped(stop);
}

Solved::Solved(const Batch& batch, const Options& options, const std::vector<EdgeTarget<double>>& relative_scores)
    : batch_(&batch), root_(options.root), projective_(options.projective), state_(std::make_unique<State>()) {
    StopSignal stop = stop_signal_of(options);
    const int threads = threads_to_solve(batch, options);
    reports_.resize(batch.size());
    batch.visit([&](const auto& sentences) {
        if (projective_) {
            projective::solve_batch(
                sentences.size(), false, threads, stop, [&](SolvedSentence& solved, QuestionScratch&, std::size_t i) {
                    solved.solve(sentences[i], root_, projective::Purpose::partition, stop);
                    reports_[i] = report_of(solved);
                    if (solved.feasible())
                        relative_scores_of(solved.scores(), sentences[i], 1.0, stop).write(relative_scores[i]);
                });
            return;
        }
        Solution& walk = state_->walk;
        walk.relative_scores_at_once(sentences, 1.0, root_, threads, stop, std::vector<EdgeTarget<double>>{},
                                     LossGradient{},
                                     [&](std::size_t i, auto&& relative) { relative.write(relative_scores[i]); });
        report(walk.states, reports_);
    });
    throw_if_stopped(stop);
    write_no_trees(batch, reports_, relative_scores);
}

void Solved::log_probs(const Options& options, std::int64_t trees, const TreesIn& rows, double* log_probs) const {
    const std::size_t count = batch_->size();
    for (std::size_t i = 0; i < count; ++i)
        for (std::int64_t t = 0; t < trees; ++t)
            log_probs[static_cast<std::size_t>(t) * count + i] =
                has_tree(i) && batch_->words(i) == 0 ? 0.0 : minus_infinity<double>;
    const auto write = [&](std::size_t i, const auto& sentence, StopSignal& stop, auto relative) {
        write_log_probs(i, sentence, reports_[i].rest, trees, rows, stop, relative, log_probs);
    };
    if (projective_)
        return ask_charts(options,
                          [&](const auto& solved, const auto& sentence, auto&, std::size_t i, StopSignal& stop) {
                              if (!solved.feasible() || sentence.words == 0) return;
                              LogShares log_shares(sentence);
                              write(i, sentence, stop, [&](const Heads* heads, const Heads* labels) {
                                  return relative_score_of(solved.scores(), log_shares, heads, labels);
                              });
                          });
    StopSignal stop = stop_signal_of(options);
    batch_->visit([&](const auto& sentences) {
        state_->walk.relative_scores(
            sentences, 1.0, threads_to_solve(*batch_, options), stop, [&](std::size_t i, auto&& scores) {
                write(i, sentences[i], stop,
                      [&](const Heads* heads, const Heads* labels) { return scores.of_tree(heads, labels); });
            });
    });
    throw_if_stopped(stop);
}

void Solved::exact_log_probs(const Options& options, std::int64_t trees, const TreesIn& rows, double* log_probs,
                             bool* allowed) const {
    const std::size_t count = batch_->size(), size = static_cast<std::size_t>(trees) * count;
    Options asked = options;
    asked.root = root_;
    asked.projective = projective_;
    std::vector<double> scores(size);
    const auto own_allowed = std::make_unique<bool[]>(size);
    bool* const is_tree = allowed ? allowed : own_allowed.get();
    this->log_probs(asked, trees, rows, log_probs);
    score(*batch_, asked, trees, rows, nullptr, scores.data(), is_tree);
    // Up to 1e4, the error of a sum of scores is at most some 1e-11 (batch/centred.hpp).
    const auto far = [&](std::size_t at) { return is_tree[at] && !(std::abs(log_probs[at]) < 1e4); };
    bool any_far = false;
    for (std::size_t at = 0; at < size; ++at) {
        if (!is_tree[at]) log_probs[at] = minus_infinity<double>;
        any_far |= far(at);
    }
    if (!any_far) return;
    int nodes = 1;
    for (std::size_t i = 0; i < count; ++i) nodes = std::max(nodes, batch_->words(i) + 1);
    std::vector<Heads> heads(count * static_cast<std::size_t>(nodes)), labels(batch_->labels() ? heads.size() : 0);
    std::vector<double> of_best(count);
    const TreesIn best{{heads.data(), IntType::i64, nodes}, {labels.data(), IntType::i64, nodes}, nodes};
    argmax(*batch_, asked, {{heads.data(), IntType::i64, nodes}, {labels.data(), IntType::i64, nodes}, nodes}, nullptr);
    this->log_probs(asked, 1, best, of_best.data());
    score(*batch_, asked, trees, rows, &best, scores.data(), is_tree);
    for (std::size_t at = 0; at < size; ++at)
        if (far(at)) log_probs[at] = scores[at] + std::min(of_best[at % count], 0.0);
}

}  // namespace spantree::library
