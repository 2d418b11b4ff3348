// One sentence's scores with all that its trees have in common taken off: numbers of moderate size, whatever the scores.
//
// Every tree has one edge into each word, so a constant per word, shift[d], may be taken off its column; with one root
// also a constant common to all edges that leave ROOT. Taken off is the highest score: then centred[h, d] is at most 0
// (labelled: log of the number of labels). Differences are formed in two parts, so that beside a mask of -1e30 the others
// keep their digits.
//
// What is left may have gaps: ordinary scores, then nothing, then soft masks such as -1e9. Let no magnitude below a gap
// exceed B. A tree below the gap scores at least -n B, one with an edge of magnitude x at most -x, and there are at most
// (n + 1)^n trees. So where
//
//     x  >  n B + n log(n + 1) + n log(labels) + 800
//
// trees with one edge more from beyond the gap weigh less than exp(-800) of those with one less, too little for a double.
// This stays so if the gap is closed to just that width. All trees that matter have the same number of edges from beyond
// it, and so lose the same amount, which goes to `total` with the shifts:
//
//     log Z = log Z(centred) + total
//
//     words     column of d = 2, [head]             centred             gap closed (n = 2)
//     0 1 2     (0, 1: soft mask)  3, -1e30         0, -1e30            0, -802.2
//
// O(n^2 labels), and a best tree where there are gaps. Every score is read once: bytes that change later, or
// meanwhile, make other numbers but no other kind of numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "../number/exact_sum.hpp"
#include "sentence.hpp"

namespace spantree {

class CentredScores {
public:
    /// Labels are summed out. best_tree(sentence, heads), asked only where gaps are closed, writes heads[0..words] of a
    /// best tree of the centred scores and returns whether there is a tree.
    template <class T, class BestTree>
    void read(const Sentence<T>& sentence, Root root, BestTree best_tree) {
        words_ = sentence.words;
        labels_ = std::max(sentence.labels, 1);
        const std::size_t size = static_cast<std::size_t>(words_ + 1) * (words_ + 1);
        high_.assign(size, minus_infinity<double>);
        log_labels_.assign(sentence.labels ? size : 0, 0.0);
        bad_ = false;
        levels_.assign(1, {});
        highest_used_ = 0;
        level_.clear();
        for (int head = 0; head <= words_; ++head)
            for (int dep = 1; dep <= words_; ++dep)
                if (head != dep) take_in(sentence, head, dep);
        taken_off_.clear();
        centre(root);
        if (find_gaps()) close_gaps();
        for (std::size_t edge = 0; edge < size; ++edge) high_[edge] += low_[edge];
        low_ = high_;
        if (levels_.size() > 1) settle_levels(best_tree);
        total_ = sum_of(taken_off_);
    }

    int words() const { return words_; }

    /// Whether a score was NaN or +inf; it then counts as forbidden here.
    bool bad() const { return bad_; }

    /// -inf where forbidden, in column 0 and on the diagonal; and for an edge that lies beyond a gap which no tree that
    /// matters reaches across.
    double operator()(int head, int dep) const { return high_[index(head, dep)]; }
    Sentence<double> sentence() const { return {high_.data(), words_, words_ + 1, 1, 0, 0}; }

    /// log Z less log Z of the centred scores. An infinity if it is beyond the range of doubles.
    double total() const { return total_; }

    /// What an edge adds to score(tree) - total(), of a tree with as many edges from beyond each gap as those that matter.
    double value(int head, int dep) const { return low_[index(head, dep)]; }

    /// score(tree) - total(), without cancellation: the tree's log-probability is this less log Z of the centred scores.
    template <class Integer>
    double relative_score(const Integer* heads) const {
        TwoPart<double> sum;
        std::vector<int> count(levels_.size(), 0);
        for (int dep = 1; dep <= words_; ++dep) {
            const std::size_t edge = index(static_cast<int>(heads[dep]), dep);
            if (low_[edge] == minus_infinity<double>) return minus_infinity<double>;
            sum += low_[edge];
            if (!level_.empty()) ++count[level_[edge]];
        }
        double score = sum.value();
        for (std::size_t level = 1; level <= highest_used_; ++level)
            if (count[level] != levels_[level].used)
                score -= static_cast<double>(count[level] - levels_[level].used) * levels_[level].closed.value();
        return score;
    }

private:
    /// Edges from beyond a gap.
    struct Level {
        double least = 0.0;      // magnitude
        TwoPart<double> closed;  // taken off the magnitudes of these edges, by this gap and those before
        int used = 0;            // how many of them every tree that matters has
    };

    std::size_t index(int head, int dep) const { return static_cast<std::size_t>(head) * (words_ + 1) + dep; }

    template <class T>
    void take_in(const Sentence<T>& sentence, int head, int dep) {
        const auto usable = [&](double score) {
            const bool is_bad = !(score < std::numeric_limits<double>::infinity());
            bad_ |= is_bad;
            return is_bad ? minus_infinity<double> : score;
        };
        double& largest = high_[index(head, dep)];
        if (!sentence.labels) {
            largest = usable(sentence(head, dep));
            return;
        }
        by_label_.resize(static_cast<std::size_t>(labels_));
        for (int label = 0; label < labels_; ++label) {
            by_label_[label] = usable(sentence(head, dep, label));
            largest = std::max(largest, by_label_[label]);
        }
        if (largest == minus_infinity<double>) return;
        double total = 0.0;
        for (const double score : by_label_) total += std::exp(score - largest);
        log_labels_[index(head, dep)] = std::log(total);
    }

    /// From scores to centred ones, in two parts.
    void centre(Root root) {
        low_.assign(high_.size(), 0.0);
        shift_.assign(static_cast<std::size_t>(words_) + 1, minus_infinity<double>);
        for (int head = root == Root::single ? 1 : 0; head <= words_; ++head)
            for (int dep = 1; dep <= words_; ++dep) shift_[dep] = std::max(shift_[dep], high_[index(head, dep)]);
        TwoPart<double> root_shift{minus_infinity<double>, 0.0};
        for (int dep = 1; dep <= words_; ++dep) {
            if (shift_[dep] == minus_infinity<double>) shift_[dep] = high_[index(0, dep)];
            if (shift_[dep] == minus_infinity<double>) shift_[dep] = 0.0;  // nothing can be its head
            taken_off_.push_back(shift_[dep]);
            for (int head = 0; head <= words_; ++head) {
                const std::size_t edge = index(head, dep);
                if (high_[edge] > minus_infinity<double>) put(edge, exact_difference(high_[edge], shift_[dep]));
            }
            const std::size_t edge = index(0, dep);
            if (high_[edge] > root_shift.high || (high_[edge] == root_shift.high && low_[edge] > root_shift.low))
                root_shift = {high_[edge], low_[edge]};
        }
        if (root == Root::single && root_shift.high > minus_infinity<double>) {
            taken_off_.push_back(root_shift.high);
            taken_off_.push_back(root_shift.low);
            for (int dep = 1; dep <= words_; ++dep) {
                const std::size_t edge = index(0, dep);
                if (high_[edge] > minus_infinity<double>)
                    put(edge, TwoPart<double>{high_[edge], low_[edge]} - root_shift);
            }
        }
        for (std::size_t edge = 0; edge < log_labels_.size(); ++edge) low_[edge] += log_labels_[edge];
    }

    /// Differences of the largest doubles would be infinite, and so forbidden.
    void put(std::size_t edge, const TwoPart<double>& x) {
        constexpr double largest = std::numeric_limits<double>::max();
        const bool fits = std::fabs(x.high) <= largest;
        high_[edge] = fits ? x.high : std::copysign(largest, x.high);
        low_[edge] = fits ? x.low : 0.0;
    }

    /// Sets levels_; whether there is a gap. A pass over all magnitudes for every step from one B to the next.
    bool find_gaps() {
        const double least_gap = words_ * (std::log(words_ + 1.0) + std::log(labels_)) + 800.0;
        const auto left = [&](double x) {
            return x == minus_infinity<double> ? 0.0
                                               : (TwoPart<double>{std::fabs(x), 0.0} - levels_.back().closed).value();
        };
        for (double below = 0.0;;) {
            const double reach = words_ * below + least_gap;
            double within = below, beyond = std::numeric_limits<double>::infinity();
            for (const double x : high_) {
                const double magnitude = left(x);
                if (magnitude <= reach)
                    within = std::max(within, magnitude);
                else if (std::fabs(x) < beyond)
                    beyond = std::fabs(x);
            }
            const bool nothing_beyond = beyond == std::numeric_limits<double>::infinity();
            if (nothing_beyond) return levels_.size() > 1;
            if (within > below) {
                below = within;
            } else {
                levels_.push_back({beyond, exact_difference(beyond, reach), 0});
                below = reach;
            }
        }
    }

    void close_gaps() {
        level_.assign(high_.size(), 0);
        for (std::size_t edge = 0; edge < high_.size(); ++edge) {
            if (high_[edge] == minus_infinity<double>) continue;
            std::uint16_t level = 0;
            while (level + 1u < levels_.size() && std::fabs(high_[edge]) >= levels_[level + 1].least) ++level;
            level_[edge] = level;
            if (level > 0) put(edge, TwoPart<double>{high_[edge], low_[edge]} + levels_[level].closed);
        }
    }

    /// Counts the edges from beyond gaps in the best tree, and what it has lost. What lies beyond them all is given up.
    template <class BestTree>
    void settle_levels(BestTree best_tree) {
        std::vector<Heads> heads(static_cast<std::size_t>(words_) + 1);
        highest_used_ = 0;
        if (!best_tree(sentence(), heads.data())) return;
        for (int dep = 1; dep <= words_; ++dep) {
            const std::uint16_t at = level_[index(static_cast<int>(heads[dep]), dep)];
            highest_used_ = std::max<std::size_t>(highest_used_, at);
            ++levels_[at].used;
            taken_off_.push_back(-levels_[at].closed.high);
            taken_off_.push_back(-levels_[at].closed.low);
        }
        for (std::size_t edge = 0; edge < high_.size(); ++edge)
            if (level_[edge] > highest_used_) {
                low_[edge] = (TwoPart<double>{high_[edge], 0.0} - levels_[level_[edge]].closed).value();
                high_[edge] = minus_infinity<double>;
            }
    }

    int words_ = 0, labels_ = 1;
    bool bad_ = false;
    double total_ = 0.0;
    std::vector<double> high_, low_;  // scores, then centred ones in two parts; in the end `high_` is all
    std::vector<double> log_labels_;  // by edge: log of the labels' total weight, relative to the best label
    std::vector<double> by_label_, shift_, taken_off_;
    std::size_t highest_used_ = 0;      // level
    std::vector<Level> levels_;         // [0]: before the first gap
    std::vector<std::uint16_t> level_;  // by edge, if there are gaps
};

}  // namespace spantree
