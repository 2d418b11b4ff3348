// A labelled sentence's edges, labels summed out, as the walk's kernels read them.
//
// Beside a score of -1e30 the log of the labels' total would drown, so each column's highest score comes off first:
// edge[h, d] = (t[h, d] - shift[d]) + log of the labels' total, t being the best label's score. O(n^2 labels).
#pragma once

#include <algorithm>
#include <vector>

#include "../batch/label_sums.hpp"
#include "../number/exact_sum.hpp"
#include "edges.hpp"

namespace spantree {

/// What is left of all labels of a sentence when they are summed out, so that nobody need exponentiate again.
class SummedLabels {
public:
    void reserve(int words, int labels, bool with_weights) { reserve_rows(words + 1, words, labels, with_weights); }

    /// For one head, weights and all: row(0).
    void reserve_row(int words, int labels) { reserve_rows(1, words, labels, true); }

    /// Everything but logarithms, and weights unless they are wanted; the means are of `values`, if any.
    template <class T>
    void read(const Sentence<T>& sentence, const Sentence<double>* values, bool with_weights, LabelScratch& scratch) {
        reserve(sentence.words, sentence.labels, with_weights);
        for (int h = 0; h <= sentence.words; ++h)
            dispatch_on_registers<SumLabels>(sentence, h, values, scratch.reserve(sentence.labels), row(h));
    }

    LabelRow row(int head) const {
        const std::ptrdiff_t edges = std::ptrdiff_t{heads_} * words_, first = std::ptrdiff_t{head} * words_;
        double* const numbers = numbers_.data() + first;
        return {numbers, nullptr, numbers + edges, weighed_ ? weights_.data() + first * padded_ : nullptr,
                numbers + 2 * edges};
    }
    std::size_t bytes() const { return weights_.bytes() + numbers_.bytes(); }

private:
    void reserve_rows(int heads, int words, int labels, bool with_weights) {
        heads_ = heads;
        words_ = words;
        padded_ = round_up(labels);
        weighed_ = with_weights;
        const std::size_t edges = static_cast<std::size_t>(heads) * words;
        numbers_.reserve(3 * edges);
        if (with_weights) weights_.reserve(edges * padded_);
    }

    int heads_ = 0, words_ = 0, padded_ = 0;
    bool weighed_ = false;
    AlignedBuffer<double> weights_, numbers_;
};

/// Scratch of one thread.
class LabelledEdges {
public:
    /// Writes the edges to `to`, as `stage_edges` does, -inf where there is none, and shift[1..words]. Leaves the labels'
    /// weights, and their totals, in `weights` if given.
    template <class T>
    StagedEdges read(const Sentence<T>& sentence, int padded, Root root, double* to, std::vector<double>& shift,
                     SummedLabels* weights = nullptr) {
        if (weights) weights->reserve(sentence.words, sentence.labels, true);
        const int words = sentence.words;
        const std::ptrdiff_t stride = round_up(padded);
        double* const log_total = log_total_.reserve(static_cast<std::size_t>(words + 1) * stride);
        std::fill_n(to, static_cast<std::size_t>(padded + 1) * stride, minus_infinity<double>);
        for (int h = 0; h <= words; ++h) {
            LabelRow row = weights ? weights->row(h) : LabelRow{};
            row.largest = to + h * stride;
            row.log_total = log_total + h * stride;
            row.mean = nullptr;
            dispatch_on_registers<SumLabels>(sentence, h, nullptr, labels_.reserve(sentence.labels), row);
        }
        shift.assign(static_cast<std::size_t>(words) + 1, minus_infinity<double>);
        shift[0] = 0.0;
        for (int h = root == Root::single ? 1 : 0; h <= words; ++h)
            for (int d = 1; d <= words; ++d) shift[d] = std::max(shift[d], to[h * stride + d - 1]);
        for (int d = 1; d <= words; ++d) {
            if (shift[d] == minus_infinity<double>) shift[d] = to[d - 1];  // only ROOT can be its head
            if (!(std::fabs(shift[d]) < std::numeric_limits<double>::infinity())) shift[d] = 0.0;
        }
        for (int h = 0; h <= words; ++h)
            for (int d = 1; d <= words; ++d) {
                double& edge = to[h * stride + d - 1];
                edge = (edge - shift[d]) + log_total[h * stride + d - 1];
            }
        return {to, stride};
    }

    std::size_t bytes() const { return log_total_.bytes() + labels_.bytes(); }

private:
    AlignedBuffer<double> log_total_;
    LabelScratch labels_;
};

}  // namespace spantree
