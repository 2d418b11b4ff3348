// The labels of one edge, looked at one by one: for questions that are asked once in a while. The sums are those of
// label_sums.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "../number/exact_sum.hpp"
#include "aligned_buffer.hpp"
#include "bad_scores.hpp"
#include "label_sums.hpp"
#include "sentence.hpp"

namespace spantree {

namespace details {

/// Writes s[y] and behind them w[y], round_up(labels) of each, and returns t and the sum of w.
struct ReadLabels {
    template <class Registers>
    struct Kernel {
        template <class T>
        static std::pair<double, double> run(const T* scores, int labels, double* memory) {
            std::copy_n(scores, labels, memory);
            LabelBlock<Registers> edge(labels, memory + round_up(labels));
            edge.read(scores, 0, 1);
            return {edge.largest[0], edge.total[0]};
        }
    };
};

}  // namespace details

/// The labels of one edge: their shares of its weight.
class SharesOfLabels {
public:
    /// Without labels, one share of 1.
    template <class T>
    void look_at(const Sentence<T>& sentence, int head, int dep) {
        count_ = std::max(sentence.labels, 1);
        const std::ptrdiff_t padded = round_up(count_);
        score_ = memory_.reserve(2 * static_cast<std::size_t>(padded));
        weight_ = score_ + padded;
        score_[0] = 0.0;
        weight_[0] = total_ = 1.0;
        largest_ = 0.0;
        if (sentence.labels)
            std::tie(largest_, total_) =
                dispatch_on_registers<details::ReadLabels>(sentence.edge(head, dep), count_, score_);
        unit_ = total_ > 0.0 ? 1.0 / total_ : 0.0;
        log_total_ = std::log(total_);
    }

    /// Of an edge with this marginal: labels that, as far as doubles can tell, no tree has on this edge have a share of 0.
    template <class T>
    void look_at(const Sentence<T>& sentence, int head, int dep, double marginal) {
        look_at(sentence, head, dep);
        for (int label = 0; label < sentence.labels; ++label)
            if (!(marginal * (*this)[label] > 0.0)) weight_[label] = 0.0;
    }

    int count() const { return count_; }
    double operator[](int label) const { return weight_[label] * unit_; }

    /// The logarithm of a share, also where the share is too small for a double; -inf for a label that is forbidden.
    double log_share(int label) const {
        return forbidden(label) ? score_[label] : (score_[label] - largest_) - log_total_;
    }

    /// The logarithm of the weight of all labels.
    TwoPart<double> log_weight() const { return {largest_, log_total_}; }

    /// exp(score - the best label's score).
    const double& weight(int label) const { return weight_[label]; }
    bool forbidden(int label) const { return score_[label] == minus_infinity<double>; }
    /// Whether some label is possible, and no score bad.
    bool possible() const { return total_ > 0.0; }
    /// Whether some score is: the total is then NaN.
    bool bad() const { return is_bad(total_); }

    /// The mean of value(label); labels without weight do not matter, whatever their value.
    template <class Value>
    double mean(Value value) const {
        if (count() == 1) return value(0);
        double sum = 0.0;
        for (int label = 0; label < count(); ++label)
            if ((*this)[label] > 0.0) sum += (*this)[label] * value(label);
        return sum;
    }

    /// Their entropy.
    double entropy() const {
        return count() == 1 ? 0.0 : mean([&](int label) { return -std::log((*this)[label]); });
    }

    std::size_t bytes() const { return memory_.bytes(); }

private:
    AlignedBuffer<double> memory_;
    double *score_ = nullptr, *weight_ = nullptr;  // in it
    double largest_ = 0.0, total_ = 1.0, unit_ = 1.0, log_total_ = 0.0;
    int count_ = 1;
};

}  // namespace spantree
