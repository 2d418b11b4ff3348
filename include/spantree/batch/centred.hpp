// One sentence's scores in numbers of moderate size that give its trees the same probabilities, whatever the scores.
//
// Every tree has one edge into each word, so a constant per word, shift[d], may be taken off its column; with one root
// also a constant common to all edges that leave ROOT. Taken off is the highest score, in exact arithmetic: beside a mask
// of -1e30 the others keep their digits. Nearly always that is all.
//
// If large numbers are left, such as soft masks, let s be the score of a best tree. There are at most (n + 1)^n trees, so
// those that score below -(|s| + B), with
//
//     B  =  n log(n + 1) + n log(labels) + 800,
//
// weigh less than exp(-800) of the best one altogether, too little for a double; and no tree scores more than any of its
// edges. So what is below -(|s| + B) may be raised to that.
//
// If s is large itself, masks cannot be avoided. A tree is behind the best one by a sum of terms r(h, d) and y(S), none of
// them negative (certificate.hpp). No tree that matters has a term beyond B: such terms may be taken for B.
//
//     centred(h, d)  =  (the same of the best tree's edge into d)  -  min(r(h, d), B)  -  sum of min(y(S), B) over S entered
//
//     two words, several roots       scores           centred
//     0 -> 1, 0 -> 2                 -1e30, -1e30        0,  -2 - B        0 -> 1, 1 -> 2 is the best tree: 0
//     2 -> 1, 1 -> 2                  3,     5           B,   0            0 -> 2, 2 -> 1: -2          two roots: -2 - B
//
// For projective trees the best of them, behind the best of all by D, sets the measure: B + D. Where D is large itself,
// narrowing.hpp finds the numbers.
//
// O(n^2 labels), and the search for a best tree. Every score is read once, with labels twice: bytes that change later, or
// meanwhile, make other numbers but no other kind of numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "../number/exact_sum.hpp"
#include "../number/rounded_sum.hpp"
#include "../simd/dispatch.hpp"
#include "certificate.hpp"
#include "column_shifts.hpp"
#include "label_sums.hpp"
#include "narrowing.hpp"
#include "parallel.hpp"
#include "sentence.hpp"

namespace spantree {

class CentredScores {
public:
    /// Labels are summed out. best_tree(sentence, heads), asked only if numbers are large, writes heads[0..words] of the best of
    /// all trees, or with `projective` of these, and returns whether there is one.
    template <class T, class BestTree>
    void read(const Sentence<T>& sentence, Root root, bool projective, StopSignal& stop, BestTree best_tree) {
        words_ = sentence.words;
        root_ = root;
        labels_ = std::max(sentence.labels, 1);
        take_in(sentence);
        certificate_.reset();
        best_.clear();
        limit_ = std::numeric_limits<double>::infinity();
        take_off_shifts();
        extent_ = extent_of(centred_.data(), words_);
        if (extent_.highest > moderate || extent_.lowest < -moderate) make_moderate(projective, stop, best_tree);
        far_ = 1.0;
        if (limited() && best_.empty() &&
            !digits_are_lost([&](int head, int dep) { return value(head, dep, as_far_as_sensible); }))
            far_ = as_far_as_sensible;
        total_ = rounded_sum(static_cast<int>(taken_off_.size()), [&](int i) { return taken_off_[i]; });
    }

    int words() const { return words_; }

    /// Whether a score was; its edge then counts as forbidden here.
    bool bad() const { return bad_; }

    /// -inf where forbidden, in column 0 and on the diagonal.
    double operator()(int head, int dep) const { return centred_[index(head, dep)]; }
    Sentence<double> sentence() const { return {centred_.data(), words_, words_ + 1, 1, 0, 0}; }

    /// The same, -inf also where all trees that have the edge together weigh less than exp(-800) of the best one.
    double if_it_matters(int head, int dep) const {
        const std::size_t edge = index(head, dep);
        const bool matters = certificate_ ? certificate_->short_of_best(head, dep) < limit_ : centred_[edge] > -limit_;
        return matters ? centred_[edge] : minus_infinity<double>;
    }

    /// Whether nothing was done but to take off constants of words and of ROOT.
    bool only_shifted() const { return limit_ == std::numeric_limits<double>::infinity(); }

    /// Of the centred scores, while only_shifted.
    const Extent& extent() const { return extent_; }

    /// log Z less log Z of the centred scores. An infinity if it is beyond the range of doubles.
    double total() const { return total_; }

    /// Whether numbers were so large that not all that follows is right for every tree.
    bool limited() const { return !only_shifted(); }

    /// The centred scores if B were `reach` times as large, [head, dep]: of trees' probabilities^(1 / reach). They go with the
    /// same total.
    std::vector<double> values(double reach, StopSignal& stop) const {
        if (only_shifted() || reach == 1.0) return centred_;
        return best_.empty() ? values_within(reach) : narrowed({reach}, stop).front();
    }

    /// The centred score to draw every tree by: those that do not matter come after the others, and in their order unless
    /// numbers would be so large that log Z lost digits.
    double of_every_tree(int head, int dep) const {
        if (!best_.empty()) return of_every_tree_[index(head, dep)];
        return value(head, dep, far_);
    }
    std::vector<double> of_every_tree() const { return best_.empty() ? values_within(far_) : of_every_tree_; }

    /// score(tree) - total(), for any tree, rounded once: the tree's log-probability is this less log Z of the centred
    /// scores.
    template <class Integer>
    double relative_score(const Integer* heads) const {
        const int taken_off = static_cast<int>(taken_off_.size());
        const int with_labels = log_labels_.empty() ? words_ : 2 * words_;
        return rounded_sum(taken_off + with_labels, [&](int i) {
            if (i < taken_off) return -taken_off_[i];
            const int dep = (i - taken_off) % words_ + 1;
            const std::size_t edge = index(static_cast<int>(heads[dep]), dep);
            return i < taken_off + words_ ? score_[edge] : log_labels_[edge];
        });
    }

private:
    static constexpr int finest = -64;       // exponent of a difference between scores that matters to nobody
    static constexpr double moderate = 1e4;  // beside numbers like this, the sum of a few hundred scores has 1e-11 left

    std::size_t index(int head, int dep) const { return static_cast<std::size_t>(head) * (words_ + 1) + dep; }

    /// Masks down to -1e14 keep their order, and exponents are far from overflow.
    static constexpr double as_far_as_sensible = 0x1p40;

    /// Of numbers that are large and positive a tree has others that make up for them, and digits are lost; where there are none,
    /// nothing is. Beside a million, a log-probability still has 1e-9 left.
    template <class Value>
    bool digits_are_lost(Value value) const {
        constexpr double too_large = 1e6;
        for (int head = 0; head <= words_; ++head)
            for (int dep = 1; dep <= words_; ++dep)
                if (head != dep && value(head, dep) > too_large) return true;
        return false;
    }

    /// If B were `reach` times as large; not after `narrow`.
    double value(int head, int dep, double reach) const {
        const std::size_t edge = index(head, dep);
        const double limit = reach * limit_;
        if (score_[edge] == minus_infinity<double> || only_shifted()) return centred_[edge];
        return certificate_ ? certificate_->value(head, dep, limit) : std::max(shifted(head, dep), -limit);
    }

    std::vector<double> values_within(double reach) const {
        std::vector<double> result(centred_.size(), minus_infinity<double>);
        for (int head = 0; head <= words_; ++head)
            for (int dep = 1; dep <= words_; ++dep) result[index(head, dep)] = value(head, dep, reach);
        return result;
    }

    /// Sets score_ and log_labels_, and taken_off_ to the highest score of each word.
    template <class T>
    void take_in(const Sentence<T>& sentence) {
        const std::size_t size = static_cast<std::size_t>(words_ + 1) * (words_ + 1);
        score_.resize(size);
        centred_.resize(size);
        log_labels_.assign(sentence.labels ? size : 0, 0.0);
        taken_off_.assign(static_cast<std::size_t>(words_), minus_infinity<double>);
        const auto read = [&](const auto& scores) {
            return dispatch_on_registers<details::ReadScores>(scores, root_ == Root::single ? 1 : 0, score_.data(),
                                                              taken_off_.data());
        };
        if (words_ == 0) {
            score_[0] = minus_infinity<double>;
            bad_ = false;
        } else if (!sentence.labels && sentence.dep_stride == 1) {
            bad_ = read(sentence);
        } else {
            LabelScratch scratch;
            for (int head = 0; head <= words_; ++head) sum_labels(sentence, head, scratch);
            dispatch_on_registers<LogTotals>(log_labels_.data(), static_cast<int>(log_labels_.size()));
            bad_ = read(Sentence<double>{score_.data(), words_, words_ + 1, 1, 0, 0});
            for (std::size_t edge = 0; bad_ && edge < log_labels_.size(); ++edge)
                if (score_[edge] == minus_infinity<double>) log_labels_[edge] = 0.0;
        }
    }

    template <class T>
    void sum_labels(const Sentence<T>& sentence, int head, LabelScratch& scratch) {
        double* const row = score_.data() + index(head, 0);
        if (sentence.labels)
            dispatch_on_registers<SumLabels>(sentence, head, nullptr, scratch.reserve(labels_),
                                             LabelRow{row + 1, nullptr, nullptr, log_labels_.data() + index(head, 1)});
        else
            for (int dep = 1; dep <= words_; ++dep) row[dep] = sentence(head, dep);
    }

    double log_labels(std::size_t edge) const { return log_labels_.empty() ? 0.0 : log_labels_[edge]; }

    void take_off_shifts() {
        centred_[0] = minus_infinity<double>;
        for (int dep = 1; dep <= words_; ++dep) {
            double& shift = taken_off_[static_cast<std::size_t>(dep) - 1];
            if (shift == minus_infinity<double>) shift = score_[index(0, dep)];
            if (shift == minus_infinity<double>) shift = 0.0;  // nothing can be its head
        }
        // In two parts: the root edges' own digits may be far below what they have in common.
        root_shift_[0] = root_shift_[1] = 0.0;
        if (words_ == 0) return;
        take_off_columns();
        for (double& part : root_shift_) {
            const double highest = *std::max_element(centred_.begin(), centred_.begin() + words_ + 1);
            if (root_ == Root::multi || highest == minus_infinity<double>) break;
            part = highest;
            taken_off_.push_back(part);
            if (part != 0.0) take_off_exactly(0);
        }
    }

    /// No number has had more than a shift taken off.
    void take_off_columns() {
        if (log_labels_.empty())
            return dispatch_on_registers<details::TakeOffColumns>(score_.data(), words_ + 1, words_, taken_off_.data(),
                                                                  centred_.data());
        for (int head = 0; head <= words_; ++head) take_off_exactly(head);
    }

    void take_off_exactly(int head) {
        const double from_root = head == 0 ? 1.0 : 0.0;
        const bool done = dispatch_on_registers<details::TakeOffExactly>(
            score_.data() + index(head, 0), log_labels_.empty() ? nullptr : log_labels_.data() + index(head, 0), words_,
            taken_off_.data(), from_root * root_shift_[0], from_root * root_shift_[1],
            centred_.data() + index(head, 0));
        for (int dep = 1; !done && dep <= words_; ++dep) centred_[index(head, dep)] = shifted(head, dep);
    }

    double shifted(int head, int dep) const {
        const std::size_t edge = index(head, dep);
        if (score_[edge] == minus_infinity<double>) return score_[edge];
        if (head > 0 && log_labels_.empty())
            return finite(score_[edge] - taken_off_[static_cast<std::size_t>(dep) - 1]);
        const bool from_root = head == 0;
        const double terms[] = {score_[edge], log_labels(edge), -taken_off_[static_cast<std::size_t>(dep) - 1],
                                from_root ? -root_shift_[0] : 0.0, from_root ? -root_shift_[1] : 0.0};
        return finite(rounded_sum(static_cast<int>(std::size(terms)), [&](int i) { return terms[i]; }));
    }

    /// Differences of the largest doubles would be infinite, and so forbidden.
    static double finite(double x) {
        constexpr double largest = std::numeric_limits<double>::max();
        return std::clamp(x, -largest, largest);
    }

    /// There are numbers beyond `moderate`.
    template <class BestTree>
    void make_moderate(bool projective, StopSignal& stop, BestTree best_tree) {
        std::vector<double> scores = score_;
        for (std::size_t edge = 0; edge < log_labels_.size(); ++edge) scores[edge] += log_labels_[edge];
        std::vector<Heads> best(static_cast<std::size_t>(words_) + 1);
        if (!best_tree(Sentence<double>{scores.data(), words_, words_ + 1, 1, 0, 0}, best.data())) return;
        const double enough = words_ * (std::log(words_ + 1.0) + std::log(labels_)) + 800.0;
        double behind = -relative_score(best.data());
        if (behind > moderate) {
            const std::vector<double> shifts = taken_off_;
            find_certificate(stop);
            behind = projective ? -relative_score(best.data()) : 0.0;
            if (behind > moderate) {
                certificate_.reset();
                taken_off_ = shifts;
                limit_ = enough;
                best_ = std::move(best);
                return narrow(stop);
            }
        }
        limit_ = enough + behind;
        centred_ = values_within(1.0);
    }

    void find_certificate(StopSignal& stop) {
        const auto sum = [&](int head, int dep) {
            const std::size_t edge = index(head, dep);
            return exact_sum(score_[edge], log_labels(edge));
        };
        certificate_.emplace();
        certificate_->find(words_, root_, stop, sum);
        taken_off_.clear();
        for (int dep = 1; dep <= words_; ++dep) {
            const TwoPart<double> best = sum(certificate_->head(dep), dep);
            taken_off_.insert(taken_off_.end(), {best.high, best.low});
        }
    }

    void narrow(StopSignal& stop) {
        std::vector<std::vector<double>> far_and_near = narrowed({as_far_as_sensible, 1.0}, stop);
        centred_ = far_and_near[1];
        of_every_tree_ = std::move(far_and_near[0]);
        if (digits_are_lost([&](int head, int dep) { return of_every_tree_[index(head, dep)]; }))
            of_every_tree_ = centred_;
        taken_off_.clear();
        for (int dep = 1; dep <= words_; ++dep) {
            const std::size_t edge = index(static_cast<int>(best_[dep]), dep);
            taken_off_.insert(taken_off_.end(), {score_[edge], log_labels(edge)});
        }
    }

    /// Numbers of moderate size by narrowing.hpp, for reaches that get smaller: what was found for one helps the next.
    std::vector<std::vector<double>> narrowed(const std::vector<double>& reaches, StopSignal& stop) const {
        int top = 0;
        for (int head = 0; head <= words_; ++head)
            for (int dep = 1; dep <= words_; ++dep) top = std::max(top, BitRange::of(score_[index(head, dep)]).top);
        constexpr int few_limbs = 4, room_for_sums = 48, bits_of_any = BitRange::highest - finest + room_for_sums;
        return top - finest + room_for_sums < 64 * few_limbs ? narrowed_in<few_limbs>(reaches, stop)
                                                             : narrowed_in<bits_of_any / 64 + 1>(reaches, stop);
    }

    template <int limbs>
    std::vector<std::vector<double>> narrowed_in(const std::vector<double>& reaches, StopSignal& stop) const {
        using Exact = Wide<limbs>;
        const auto score = [&](std::size_t edge) {
            return Exact::of(score_[edge], finest) + Exact::of(log_labels(edge), finest);
        };
        std::vector<Exact> relative(score_.size());
        std::vector<bool> possible(score_.size(), false);
        for (int dep = 1; dep <= words_; ++dep) {
            const Exact of_best = score(index(static_cast<int>(best_[dep]), dep));
            for (int head = 0; head <= words_; ++head) {
                const std::size_t edge = index(head, dep);
                possible[edge] = score_[edge] > minus_infinity<double>;
                if (possible[edge]) relative[edge] = score(edge) - of_best;
            }
        }
        Narrowing<limbs> narrowing(words_, root_, finest, std::move(relative), std::move(possible));
        std::vector<std::vector<double>> result;
        for (const double reach : reaches) result.push_back(narrowing.narrow(reach * limit_, stop));
        return result;
    }

    int words_ = 0, labels_ = 1;
    Root root_ = Root::single;
    bool bad_ = false;
    double total_ = 0.0;
    double far_ = 1.0;  // reach of what every tree is drawn by
    Extent extent_;
    std::vector<double> score_;       // by edge: of the best label
    std::vector<double> log_labels_;  // by edge: log of the labels' total weight, relative to the best label
    std::vector<double> centred_;
    std::vector<double> taken_off_;  // its sum is total_; at first, a shift for every word
    double root_shift_[2] = {};      // with one root; its parts have the sizes of scores and of their differences
    std::optional<Certificate> certificate_;  // where numbers were large
    std::vector<Heads> best_;                 // where they were, and there is no certificate
    std::vector<double> of_every_tree_;       // likewise
    double limit_ = 0.0;                      // infinite if numbers were not large
};

}  // namespace spantree
