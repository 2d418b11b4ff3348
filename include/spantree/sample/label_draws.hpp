// Labels of edges: p(label | edge) is proportional to exp(score). An edge's labels are read, once, when it is first seen.
//
// A label is drawn with one number u from [0, 1): it is how many cumulative probabilities do not exceed u. Almost always their
// first sixteen bits tell, and these of all edges of a sentence stay in the fast part of a machine's memory; where they are
// those of u, too, the whole numbers do, which are made again. Cumulative sums are those of eight labels each, added to those
// of the eights before: they never fall, and none waits for all before it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "../batch/label_shares.hpp"
#include "../batch/sentence.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/vector.hpp"
#include "random.hpp"

namespace spantree::sampling {

namespace details {

/// For each edge of a sentence as many numbers as there are labels, made when the edge is first asked for.
template <class Number>
class NumbersOfEdges {
public:
    void start(int words, int labels) {
        nodes_ = static_cast<std::size_t>(words) + 1;
        labels_ = static_cast<std::size_t>(labels);
        row_.assign(nodes_ * nodes_, none);
        numbers_.clear();
    }

    /// Where the edge's numbers begin among all(), made by fill(numbers) if there are none yet.
    template <class Fill>
    std::ptrdiff_t place(int head, int dep, Fill fill) {
        std::ptrdiff_t& at = row_[static_cast<std::size_t>(head) * nodes_ + static_cast<std::size_t>(dep)];
        if (at == none) {
            if (numbers_.empty()) numbers_.reserve(nodes_ * labels_);  // as many edges as a tree has
            at = static_cast<std::ptrdiff_t>(numbers_.size());
            numbers_.resize(numbers_.size() + labels_);
            fill(numbers_.data() + at);
        }
        return at;
    }

    /// Valid until another edge is asked for.
    const Number* all() const { return numbers_.data(); }

    std::size_t bytes() const { return row_.capacity() * sizeof row_[0] + numbers_.capacity() * sizeof numbers_[0]; }

private:
    static constexpr std::ptrdiff_t none = -1;

    std::size_t nodes_ = 0, labels_ = 0;
    std::vector<std::ptrdiff_t> row_;
    std::vector<Number> numbers_;
};

using FirstBits = std::int16_t;  // less 2^15: all machines can compare many of these at once

/// Of a number from [0, 1]; all ones for 1.
[[gnu::always_inline]] inline FirstBits first_bits_of(double x) {
    return static_cast<FirstBits>(static_cast<int>(std::min(x * 0x1p16, 65535.0)) - 0x8000);
}

/// Cumulative probabilities of labels, 1 from the last possible one on, and their first bits, those of 1 in the padding.
struct Accumulate {
    static void run(const double* __restrict weight, int last_possible, int labels, double* __restrict to, int padded,
                    FirstBits* __restrict first_bits) {
        double total = 0.0;
        const auto add = [&](int first, int count) __attribute__((always_inline)) {
            double of_eight = 0.0;
            for (int i = first; i < first + count; ++i) {
                of_eight += weight[i];
                to[i] = total + of_eight;
            }
            total += of_eight;
        };
        int first = 0;
        for (; first + pack_size <= last_possible; first += pack_size) add(first, pack_size);
        add(first, last_possible + 1 - first);
        const double unit = 1.0 / total;
        for (int i = 0; i < last_possible; ++i) to[i] *= unit;
        for (int i = last_possible; i < labels; ++i) to[i] = 1.0;
        for (int i = 0; first_bits && i < labels; ++i) first_bits[i] = first_bits_of(to[i]);
        for (int i = labels; first_bits && i < padded; ++i) first_bits[i] = first_bits_of(1.0);
    }
};

/// What a label is drawn with.
struct LabelDraw {
    std::ptrdiff_t place;  // of the edge's numbers
    double uniform;
    FirstBits bits;  // of `uniform`
};

/// How many of an edge's first bits are below those drawn, for all words of a tree: without a branch that depends on what is
/// drawn, and words need not wait for each other.
struct CountBelow {
    static constexpr int at_once = 16;

    /// Returns whether some label's first bits are those drawn. `padded` is at most what FirstBits can count.
    static bool run(const FirstBits* all, const LabelDraw* draws, int words, int padded, Heads* labels) {
        bool any_equal = false;
        for (int i = 0; i < words; ++i) {
            const FirstBits* const of_labels = all + draws[i].place;
            const Vector<FirstBits, at_once> drawn = Vector<FirstBits, at_once>{} + draws[i].bits;
            Vector<FirstBits, at_once> below{};
            for (int first = 0; first < padded; first += at_once) below -= load<at_once>(of_labels + first) < drawn;
            const auto fours = reinterpret_cast<Vector<std::uint64_t, at_once / 4>>(below);
            const std::uint64_t four = (fours[0] + fours[1]) + (fours[2] + fours[3]);
            const auto label = static_cast<Heads>(four * 0x0001000100010001u >> 48);  // the sum of its four parts
            labels[i] = label;
            any_equal |= of_labels[label] == draws[i].bits;
        }
        return any_equal;
    }
};

}  // namespace details

/// log p(label | edge) of the edges of one sentence, and labels drawn.
template <class T>
class LabelTable {
public:
    void start(const Sentence<T>& sentence) {
        sentence_ = sentence;
        log_weights_.assign(static_cast<std::size_t>(sentence.words + 1) * (sentence.words + 1), unknown);
        log_shares_.start(sentence.words, sentence.labels);
        first_bits_.start(sentence.words, padded_labels());
        cumulative_.resize(static_cast<std::size_t>(sentence.labels));
        draws_.resize(static_cast<std::size_t>(sentence.words));
        bad_ = false;
    }

    std::size_t bytes() const {
        return log_weights_.capacity() * sizeof log_weights_[0] + log_shares_.bytes() + first_bits_.bytes() +
               cumulative_.capacity() * sizeof cumulative_[0] + draws_.capacity() * sizeof draws_[0] + labels_.bytes();
    }

    int labels() const { return sentence_.labels; }

    /// Whether a score that was read is NaN or +inf.
    bool bad() const { return bad_; }

    /// Of all labels of an edge; valid until another edge is asked for.
    const double* log_shares(int head, int dep) {
        const std::ptrdiff_t place = log_shares_.place(head, dep, [&](double* shares) {
            const bool possible = look_at(head, dep);
            for (int label = 0; label < labels(); ++label)
                shares[label] = possible ? labels_.log_share(label) : label == 0 ? 0.0 : minus_infinity<double>;
        });
        return log_shares_.all() + place;
    }

    /// Of one of them, which is possible.
    double log_share(int head, int dep, int label) {
        const TwoPart<double>& edge = log_weight(head, dep);
        if (edge.high == unknown.high) look_at(head, dep);
        const double share = (static_cast<double>(sentence_(head, dep, label)) - edge.high) - edge.low;
        if (share <= 0.0) return share;
        bad_ = true;  // or the score has changed since the edge was first seen
        return 0.0;
    }

    /// Writes labels[0..words] of a tree.
    void draw(const Heads* heads, RandomStream random, Heads* labels) {
        const int words = sentence_.words;
        for (int dep = 1; dep <= words; ++dep) {
            const double uniform = random.uniform();
            const int head = static_cast<int>(heads[dep]);
            draws_[static_cast<std::size_t>(dep) - 1] = {
                first_bits_.place(head, dep, [&](FirstBits* to) { accumulate(head, dep, to); }), uniform,
                details::first_bits_of(uniform)};
        }
        labels[0] = no_head;
        const bool can_count = padded_labels() <= std::numeric_limits<FirstBits>::max();
        if (can_count &&
            !dispatch<details::CountBelow>(first_bits_.all(), draws_.data(), words, padded_labels(), labels + 1))
            return;
        for (int dep = 1; dep <= words; ++dep) {
            const details::LabelDraw& drawn = draws_[static_cast<std::size_t>(dep) - 1];
            if (can_count && first_bits_.all()[drawn.place + labels[dep]] != drawn.bits) continue;
            accumulate(static_cast<int>(heads[dep]), dep);
            labels[dep] =
                std::count_if(cumulative_.begin(), cumulative_.end() - 1, [&](double x) { return x <= drawn.uniform; });
        }
    }

private:
    static constexpr TwoPart<double> unknown{std::numeric_limits<double>::infinity(), 0.0};
    using FirstBits = details::FirstBits;

    /// So that vectors need no remainder.
    int padded_labels() const {
        constexpr int at_once = details::CountBelow::at_once;
        return (labels() + at_once - 1) / at_once * at_once;
    }

    TwoPart<double>& log_weight(int head, int dep) {
        return log_weights_[static_cast<std::size_t>(head) * static_cast<std::size_t>(sentence_.words + 1) +
                            static_cast<std::size_t>(dep)];
    }

    /// Whether the edge has a label. If not, it is not drawn, unless scores change meanwhile: then it has the first one.
    bool look_at(int head, int dep) {
        labels_.look_at(sentence_, head, dep);
        bad_ |= labels_.bad();
        log_weight(head, dep) = labels_.log_weight();
        return labels_.possible();
    }

    /// Writes the cumulative probabilities of an edge's labels, and their first bits if wanted; those from the last possible
    /// label on are above any number drawn.
    void accumulate(int head, int dep, FirstBits* first_bits = nullptr) {
        int last_possible = look_at(head, dep) ? labels() - 1 : 0;
        while (last_possible > 0 && labels_.forbidden(last_possible)) --last_possible;
        dispatch<details::Accumulate>(&labels_.weight(0), last_possible, labels(), cumulative_.data(), padded_labels(),
                                      first_bits);
    }

    Sentence<T> sentence_{};
    std::vector<TwoPart<double>> log_weights_;  // by edge, of all its labels; or `unknown`
    details::NumbersOfEdges<double> log_shares_;
    details::NumbersOfEdges<FirstBits> first_bits_;  // of cumulative probabilities
    std::vector<double> cumulative_;                 // of the edge that was looked at last
    std::vector<details::LabelDraw> draws_;          // of one tree, by word
    SharesOfLabels labels_;
    bool bad_ = false;
};

}  // namespace spantree::sampling
