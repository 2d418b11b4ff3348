// Labels of edges: p(label | edge) is proportional to exp(score). An edge's labels are read, once, when it is first seen.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "../batch/sentence.hpp"
#include "random.hpp"

namespace spantree::sampling {

/// log p(label | edge) of the edges of one sentence, and their cumulative probabilities.
template <class T>
class LabelTable {
public:
    void start(const Sentence<T>& sentence) {
        sentence_ = sentence;
        row_.assign(static_cast<std::size_t>(sentence.words + 1) * (sentence.words + 1), none);
        numbers_.clear();
        bad_ = false;
    }

    std::size_t bytes() const { return row_.capacity() * sizeof row_[0] + numbers_.capacity() * sizeof numbers_[0]; }

    int labels() const { return sentence_.labels; }

    /// Whether a score that was read is NaN or +inf; it counts as forbidden.
    bool bad() const { return bad_; }

    /// Of all labels of an edge; valid until another edge is asked for.
    const double* log_shares(int head, int dep) { return row(head, dep); }

    /// A label drawn with `uniform`, a number from [0, 1): how many cumulative probabilities do not exceed it.
    int draw(int head, int dep, double uniform) {
        const double* const cumulative = row(head, dep) + sentence_.labels;
        int label = 0;
        for (int i = 0; i < sentence_.labels - 1; ++i) label += cumulative[i] <= uniform;
        return label;
    }

private:
    static constexpr std::ptrdiff_t none = -1;

    /// Log-shares, then cumulative probabilities: those from the last possible label on are above any number drawn.
    const double* row(int head, int dep) {
        std::ptrdiff_t& at = row_[static_cast<std::size_t>(head) * (sentence_.words + 1) + dep];
        if (at == none) {
            at = static_cast<std::ptrdiff_t>(numbers_.size());
            numbers_.resize(numbers_.size() + 2 * static_cast<std::size_t>(sentence_.labels));
            fill(head, dep, numbers_.data() + at, numbers_.data() + at + sentence_.labels);
        }
        return numbers_.data() + at;
    }

    void fill(int head, int dep, double* log_shares, double* cumulative) {
        const int labels = sentence_.labels;
        double largest = minus_infinity<double>;
        for (int label = 0; label < labels; ++label) {
            const double score = sentence_(head, dep, label);
            const bool is_bad = !(score < std::numeric_limits<double>::infinity());
            bad_ |= is_bad;
            log_shares[label] = is_bad ? minus_infinity<double> : score;
            largest = std::max(largest, log_shares[label]);
        }
        double total = 0.0;
        int last_possible = 0;
        for (int label = 0; label < labels; ++label) {
            if (log_shares[label] == minus_infinity<double>) {
                cumulative[label] = total;
                continue;
            }
            total += std::exp(log_shares[label] -= largest);
            cumulative[label] = total;
            last_possible = label;
        }
        const double log_total = std::log(total);
        for (int label = 0; label < labels; ++label) {
            log_shares[label] -= log_total;
            cumulative[label] = label < last_possible ? cumulative[label] / total : 1.0;
        }
    }

    Sentence<T> sentence_{};
    std::vector<std::ptrdiff_t> row_;  // by edge, where its numbers begin
    std::vector<double> numbers_;
    bool bad_ = false;
};

/// Writes labels[0..words] of a tree.
template <class T>
void draw_labels(LabelTable<T>& table, int words, const Heads* heads, RandomStream random, Heads* labels) {
    labels[0] = no_head;
    for (int dep = 1; dep <= words; ++dep)
        labels[dep] = table.draw(static_cast<int>(heads[dep]), dep, random.uniform());
}

}  // namespace spantree::sampling
