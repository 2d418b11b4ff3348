// One sentence of a solved batch, wherever its V and E lie: what random trees and log-probabilities are read from.
//
// A tree's log-probability is its relative score (batch/relative_scores.hpp) less `rest`.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "../batch/relative_scores.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/vector.hpp"
#include "kept_group.hpp"

namespace spantree {

/// A number for every edge, head 0..words, word 1..words.
struct EdgesAt {
    const double* data = nullptr;
    std::ptrdiff_t to_next_head = 0, to_next_word = 0;
    double operator()(int head, int word) const { return data[head * to_next_head + (word - 1) * to_next_word]; }
};

/// What was taken off the scores of the edges into each word.
struct ShiftsOfWords {
    const double* of_labels = nullptr;  // by word, [0] unused; null: nothing
    const double* of_columns = nullptr;
    std::ptrdiff_t to_next_column = 0;
    double of_root = 0.0;  // off those from ROOT, besides
};

namespace details {

/// A labelled tree's relative score, four words at a time: what SolvedWalk::sum_over_tree says of relative_edge, unless a
/// number on the way is not finite; then this is not, either.
struct SumOverLabelledTree {
    template <class T, class Integer>
    static double run(const Sentence<T>& sentence, const ShiftsOfWords& shifts, const Integer* heads,
                      const Integer* labels) {
        constexpr int count = 4;
        using Four = Vector<double, count>;
        TwoPart<Four> sums{};
        for (int first = 1; first <= sentence.words; first += count) {
            // of(d) for four words; 0 for those behind the last, which changes no sum.
            const auto each = [&](auto of) __attribute__((always_inline)) {
                return [&]<int... lane>(std::integer_sequence<int, lane...>) __attribute__((always_inline)) {
                    return Four{(first + lane <= sentence.words ? of(first + lane) : 0.0)...};
                }(std::make_integer_sequence<int, count>{});
            };
            const Four scores = each([&](int d) __attribute__((always_inline)) {
                return static_cast<double>(sentence(static_cast<int>(heads[d]), d, static_cast<int>(labels[d])));
            });
            TwoPart<Four> value{scores, Four{}};
            if (shifts.of_labels)
                value = exact_difference(
                    scores, each([&](int d) __attribute__((always_inline)) { return shifts.of_labels[d]; }));
            value = value - each([&](int d) __attribute__((always_inline)) {
                        return shifts.of_columns[(d - 1) * shifts.to_next_column];
                    });
            value = value -
                    each([&](int d) __attribute__((always_inline)) { return heads[d] == 0 ? shifts.of_root : 0.0; });
            sums += value.value();
        }
        const auto sum = [&](int lane) { return TwoPart<double>{sums.high[lane], sums.low[lane]}; };
        return ((sum(0) + sum(1)) + (sum(2) + sum(3))).value();
    }
};

/// Relative scores of all edges: what SolvedWalk::relative_edge says, unless a number on the way is not finite; then what is
/// written is not, either. Whether all are finite.
struct WriteRelativeScores {
    template <class T>
    static bool run(const Sentence<T>& sentence, const ShiftsOfWords& shifts, const EdgeTarget<double>& to) {
        std::int64_t not_finite = 0;
        for (int h = 0; h <= sentence.words; ++h) {
            const double of_root = h == 0 ? shifts.of_root : 0.0;
            if (sentence.labels) {
                for (int d = 1; d <= sentence.words; ++d) {
                    if (h == d) continue;
                    const double of_labels = shifts.of_labels ? shifts.of_labels[d] : 0.0,
                                 of_column = shifts.of_columns[d - 1];
                    not_finite += write(sentence.labels, sentence.edge(h, d), sentence.label_stride, to.edge(h, d), 1,
                                        [&](double score, int) __attribute__((always_inline)) {
                                            return relative(score, of_labels, of_column, of_root);
                                        });
                }
                continue;
            }
            const double* const shift = shifts.of_columns;
            const auto row = [&](auto of) __attribute__((always_inline)) {
                return write(sentence.words, sentence.edge(h, 1), sentence.dep_stride, to.edge(h, 1), to.dep_stride,
                             of);
            };
            if (h == 0) {
                not_finite += row([shift, of_root](double score, int i) __attribute__((always_inline)) {
                    return relative(score, 0.0, shift[i], of_root);
                });
                continue;
            }
            not_finite += row([shift](double score, int i) __attribute__((always_inline)) { return score - shift[i]; });
            double& no_edge = *to.edge(h, h);
            not_finite -= is_finite(no_edge) ? 0 : 1;
            no_edge = minus_infinity<double>;
        }
        return not_finite == 0;
    }

private:
    [[gnu::always_inline]] static bool is_finite(double x) {
        return std::fabs(x) <= std::numeric_limits<double>::max();
    }

    /// to[i] = of(from[i], i); how many are not finite.
    template <class T, class Of>
    [[gnu::always_inline]] static std::int64_t write(int count, const T* from, std::ptrdiff_t from_stride,
                                                     double* __restrict to, std::ptrdiff_t to_stride, Of of) {
        const auto loop = [&](std::ptrdiff_t each, std::ptrdiff_t each_to) __attribute__((always_inline)) {
            std::int64_t not_finite = 0;
            for (int i = 0; i < count; ++i) {
                const double value = of(static_cast<double>(from[i * each]), i);
                to[i * each_to] = value;
                not_finite += is_finite(value) ? 0 : 1;
            }
            return not_finite;
        };
        return from_stride == 1 && to_stride == 1 ? loop(1, 1) : loop(from_stride, to_stride);
    }

    /// score - a - b - c, rounded once as far as doubles go. (exact_sum looks whether numbers are finite: no loop for vectors.)
    [[gnu::always_inline]] static double relative(double score, double a, double b, double c) {
        double sum = score, low = 0.0;
        const auto subtract = [&](double x) __attribute__((always_inline)) {
            const double difference = sum - x, taken = difference - sum;
            low += (sum - (difference - taken)) - (x + taken);
            sum = difference;
        };
        subtract(a);
        subtract(b);
        subtract(c);
        return sum + low;
    }
};

}  // namespace details

/// A view; the solve it looks at must stay.
class SolvedWalk {
public:
    /// Of a sentence without words.
    SolvedWalk() = default;
    /// Of the group's s-th sentence.
    template <class Format>
    SolvedWalk(const GroupState<Format>& group, const SentenceState& state, int s)
        : state_(&state),
          weights_{group.edges.weights.data + s, group.edges.weights.stride, Format::element_size},
          escape_{group.edges.escape.data + s, group.edges.escape.stride, Format::element_size},
          column_shift_(group.shifts() + s),
          root_shift_(group.root_shift()[s]) {}

    const SentenceState& state() const { return *state_; }
    bool has_tree() const { return static_cast<bool>(state_->feasible); }

    /// V and E: unless state().special.
    const EdgesAt& weights() const { return weights_; }
    const EdgesAt& escape() const { return escape_; }

    /// Of a tree. `log_shares` are those of the sentence's labels.
    template <class T, class Integer>
    double relative_score(const Sentence<T>& sentence, LogShares<T>& log_shares, const Integer* heads,
                          const Integer* labels) const {
        if (state_->special) return relative_score_of(state_->special->scores(), log_shares, heads, labels);
        if (sentence.labels) {
            const ShiftsOfWords shifts{state_->label_shift.empty() ? nullptr : state_->label_shift.data(),
                                       column_shift_, weights_.to_next_word, root_shift_};
            const double sum = dispatch<details::SumOverLabelledTree>(sentence, shifts, heads, labels);
            if (std::isfinite(sum)) return sum;
        }
        return sum_over_tree(sentence.words, heads, [&](int h, int d) {
            return relative_edge(sentence, h, d, sentence.labels ? static_cast<int>(labels[d]) : 0);
        });
    }

    /// The same if edge(h, d) is what relative_edge gives, and not state().special. Four sums, none of which waits for another.
    template <class Integer, class Edge>
    static double sum_over_tree(int words, const Integer* heads, Edge edge) {
        constexpr int count = 4;
        TwoPart<double> sums[count];
        int d = 1;
        for (; d + count <= words + 1; d += count)
            for (int i = 0; i < count; ++i) sums[i] += edge(static_cast<int>(heads[d + i]), d + i);
        for (int i = 0; d + i <= words; ++i) sums[i] += edge(static_cast<int>(heads[d + i]), d + i);
        return ((sums[0] + sums[1]) + (sums[2] + sums[3])).value();
    }

    /// visit(relative scores) of the sentence, which has words and a tree.
    template <class T, class Visit>
    void with_relative_scores(const Sentence<T>& sentence, double reach, StopSignal& stop, Visit visit) const {
        if (state_->special) return visit(relative_scores_of(state_->special->scores(), sentence, reach, stop));
        visit(RelativeScores{[&](const EdgeTarget<double>& to) { write_relative_scores(sentence, to); },
                             [&, log_shares = LogShares(sentence)](const auto* heads, const auto* labels) mutable {
                                 return relative_score(sentence, log_shares, heads, labels);
                             }});
    }

    /// Of all edges.
    template <class T>
    void write_relative_scores(const Sentence<T>& sentence, const EdgeTarget<double>& to) const {
        std::vector<double> shift(static_cast<std::size_t>(sentence.words) + 1);
        for (int d = 1; d <= sentence.words; ++d) shift[d] = column_shift_[(d - 1) * weights_.to_next_word];
        const ShiftsOfWords shifts{state_->label_shift.empty() ? nullptr : state_->label_shift.data(), shift.data() + 1,
                                   1, root_shift_};
        write_no_edges(sentence, to);
        if (dispatch<details::WriteRelativeScores>(sentence, shifts, to)) return;
        each_edge(sentence, [&](int h, int d, int label) {
            double& edge = to.edge(h, d)[label];
            if (!std::isfinite(edge)) edge = relative_edge(sentence, h, d, label);
        });
    }

    /// Of an edge. In two parts: a score and what is taken off it may be large and close.
    template <class T>
    double relative_edge(const Sentence<T>& sentence, int h, int d, int label) const {
        const double score = sentence.labels ? sentence(h, d, label) : sentence(h, d);
        if (score == minus_infinity<double>) return score;
        const double shift = column_shift_[(d - 1) * weights_.to_next_word];
        TwoPart<double> value = state_->label_shift.empty() ? exact_difference(score, shift)
                                                            : exact_difference(score, state_->label_shift[d]) - shift;
        if (h == 0) value = value - root_shift_;
        return value.value();
    }

private:
    const SentenceState* state_ = nullptr;
    EdgesAt weights_, escape_;
    const double* column_shift_ = nullptr;  // as far apart as words are in V
    double root_shift_ = 0.0;
};

}  // namespace spantree
