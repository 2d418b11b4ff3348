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
        const std::ptrdiff_t stride = this->stride(), all = heads_ * stride;
        double* const numbers = numbers_.data() + head * stride;
        const std::ptrdiff_t before = std::ptrdiff_t{head} * words_ * round_up(labels_);
        return {numbers, numbers + all, weighed_ ? weights_.data() + before : nullptr, numbers + 2 * all};
    }
    /// From one head's numbers to the next one's.
    std::ptrdiff_t stride() const { return round_up(words_); }
    std::size_t bytes() const { return weights_.bytes() + numbers_.bytes(); }

private:
    void reserve_rows(int heads, int words, int labels, bool with_weights) {
        heads_ = heads;
        words_ = words;
        labels_ = labels;
        weighed_ = with_weights;
        numbers_.reserve(3 * static_cast<std::size_t>(heads) * stride());
        if (with_weights) weights_.reserve(static_cast<std::size_t>(heads) * words * round_up(labels));
    }

    int heads_ = 0, words_ = 0, labels_ = 0;
    bool weighed_ = false;
    AlignedBuffer<double> weights_, numbers_;
};

/// What is left of a sentence's labels, t and totals, becomes edges, in the place of t; and shift[1..words]. Edges without a
/// label stay at -inf.
struct CentreLabelled {
    template <class Registers>
    struct Kernel {
        static void run(double* edges, std::ptrdiff_t stride, const double* totals, std::ptrdiff_t totals_stride,
                        int words, Root root, double* shift) {
            using Pack = PackOf<Registers::width>;
            const Pack nothing = Pack::broadcast(minus_infinity<double>);
            for (int column = 0; column < words; column += pack_size, edges += pack_size, totals += pack_size) {
                Pack highest = nothing;
                for (int h = root == Root::single ? 1 : 0; h <= words; ++h)
                    highest = larger(Pack::load(edges + h * stride), highest);
                highest = if_equal(highest, nothing, Pack::load(edges), highest);  // only ROOT can be its head
                highest = if_less(nothing, highest, highest, Pack{});              // nothing can, or its score is NaN
                store_labels(highest, shift + 1 + column, words - column);
                for (int h = 0; h <= words; ++h) {
                    const Pack t = Pack::load(edges + h * stride), total = Pack::load(totals + h * totals_stride);
                    if_equal(t, nothing, t, (t - highest) + natural_log(total)).store(edges + h * stride);
                }
            }
        }
    };
};

/// Scratch of one thread.
class LabelledEdges {
public:
    /// Writes the edges to `to`, as `stage_edges` does, -inf where there is none, and shift[1..words]. Leaves the labels'
    /// weights, and their totals, in `weights` if given.
    template <class T>
    StagedEdges read(const Sentence<T>& sentence, int padded, Root root, double* to, std::vector<double>& shift,
                     SummedLabels* weights = nullptr) {
        SummedLabels& summed = weights ? *weights : without_weights_;
        summed.reserve(sentence.words, sentence.labels, weights);
        const std::ptrdiff_t stride = round_up(padded);
        std::fill_n(to, static_cast<std::size_t>(padded + 1) * stride, minus_infinity<double>);
        for (int h = 0; h <= sentence.words; ++h) {
            const LabelRow row = summed.row(h);
            dispatch_on_registers<SumLabels>(sentence, h, nullptr, labels_.reserve(sentence.labels),
                                             LabelRow{to + h * stride, nullptr, row.weights, row.totals});
        }
        shift.assign(static_cast<std::size_t>(sentence.words) + 1, 0.0);
        dispatch_on_registers<CentreLabelled>(to, stride, summed.row(0).totals, summed.stride(), sentence.words, root,
                                              shift.data());
        return {to, stride};
    }

    std::size_t bytes() const { return without_weights_.bytes() + labels_.bytes(); }

private:
    SummedLabels without_weights_;
    LabelScratch labels_;
};

}  // namespace spantree
