// One sentence's scores with all that its trees have in common taken off: numbers of moderate size, whatever the scores.
//
// Every tree has one edge into each word, so a constant per word, shift[d], may be taken off its column; with one root
// also a constant common to all edges that leave ROOT. Taken off is the highest score: then centred[h, d] is at most 0
// (labelled: log of the number of labels). Differences are formed in two parts, so that beside a mask of -1e30 the others
// keep their digits.
//
// What is left may have gaps: ordinary scores, then nothing, then soft masks such as -1e9. Let x be the least magnitude
// beyond a gap, K the number of edges from beyond it in the best tree, and s that tree's score. A tree with more of them
// scores at most -(K + 1) x, and there are at most (n + 1)^n trees. So where
//
//     (K + 1) x  >  |s| + n log(n + 1) + n log(labels) + 800
//
// all trees with more than K of them weigh less than exp(-800) of the best one, too little for a double. If K = 0, edges
// from beyond the gap are as good as forbidden. Else, if no tree has fewer than K, all trees that matter have just K: what
// the inequality leaves to spare is taken off the magnitude of every edge from beyond, off every tree K times, and goes to
// `total` with the shifts:
//
//     log Z = log Z(centred) + total
//
//     two words, several roots       scores           centred          gap closed
//     0 -> 1, 0 -> 2  (masked)       -1e30, -1e30     -1e30, -1e30     -802.2, -802.2       K = 1
//     2 -> 1, 1 -> 2                  3,     5          0,     0           0,     0
//
// Some trees that matter may have one edge with twice the mask where others have two of them. Where numbers stay large for
// such reasons, masks are taken for what they are, units: magnitudes are k x + (a rest), x the least magnitude beyond the
// outermost gap, then the rests are looked at in the same way. If the rests of a tree can never add up to x, less what has
// no weight, then trees that matter agree in the sum of k, and a smaller unit, just large enough for that, will do:
//
//     three words, projective, one root      magnitudes 0, x, 2 x + 0.3, ...     becomes 0, 850, 1700.3, ...
//
// Units and rests are found in exact arithmetic.
//
// O(n^2 labels), and two best trees for each gap. Every score is read once, with labels twice: bytes that change later,
// or meanwhile, make other numbers but no other kind of numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "../number/exact_sum.hpp"
#include "../number/rounded_sum.hpp"
#include "../number/wide.hpp"
#include "../simd/dispatch.hpp"
#include "label_sums.hpp"
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
        LabelScratch scratch;
        for (int head = 0; head <= words_; ++head) take_in(sentence, head, scratch);
        find_moderate(root, best_tree);
        for (std::size_t edge = 0; edge < size; ++edge) low_[edge] = high_[edge] += low_[edge];
        for (std::size_t edge = 0; edge < level_.size(); ++edge)
            if (level_[edge] >= given_up_) high_[edge] = minus_infinity<double>;
        total_ = sum_of(taken_off_);
    }

    int words() const { return words_; }

    /// Whether a score was NaN or +inf; its edge then counts as forbidden here.
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
        std::vector<std::size_t> count(levels_.size(), 0);
        for (int dep = 1; dep <= words_; ++dep) {
            const std::size_t edge = index(static_cast<int>(heads[dep]), dep);
            if (low_[edge] == minus_infinity<double>) return minus_infinity<double>;
            sum += low_[edge];
            if (!level_.empty()) ++count[level_[edge]];
        }
        double score = sum.value();
        for (std::size_t level = levels_.size() - 1, beyond = 0; level > 0; --level) {
            beyond += count[level];
            const double more = static_cast<double>(beyond) - static_cast<double>(levels_[level].used);
            if (more != 0.0) score -= more * levels_[level].closed.value();
        }
        for (const Unit& unit : units_) {
            const auto more = static_cast<double>(unit.count(heads, words_) - unit.used);
            if (more != 0.0) score -= more * unit.closed.value();
        }
        return score;
    }

private:
    /// Edges from beyond a gap, and from beyond those that follow.
    struct Level {
        double least = 0.0;      // magnitude
        TwoPart<double> closed;  // taken off the magnitudes of these edges
        std::size_t used = 0;    // how many of them every tree that matters has
    };
    static constexpr std::size_t none_given_up = std::numeric_limits<std::size_t>::max();

    using Exact = Wide<limbs_of_any_sum>;
    /// A magnitude that others hold several times.
    struct Unit {
        Exact size;
        std::vector<int> times;  // by edge
        TwoPart<double> closed;  // by how much it was made smaller
        int used = 0;            // how many of it every tree that matters has

        template <class Integer>
        int count(const Integer* heads, int words) const {
            int sum = 0;
            for (int dep = 1; dep <= words; ++dep)
                sum += times[static_cast<std::size_t>(heads[dep]) * (words + 1) + dep];
            return sum;
        }
    };
    static constexpr double drowning = 1e5;                  // beside numbers like this, a sum of scores has 1e-11 left
    static constexpr int most_times = 1000, most_units = 2;  // each is several times the next: digits

    std::size_t index(int head, int dep) const { return static_cast<std::size_t>(head) * (words_ + 1) + dep; }

    template <class T>
    void take_in(const Sentence<T>& sentence, int head, LabelScratch& scratch) {
        double* const row = high_.data() + index(head, 0);
        if (sentence.labels)
            dispatch_on_registers<SumLabels>(sentence, head, nullptr, scratch.reserve(labels_),
                                             LabelRow{row + 1, log_labels_.data() + index(head, 1)});
        else
            for (int dep = 1; dep <= words_; ++dep) row[dep] = sentence(head, dep);
        row[head] = minus_infinity<double>;
        for (int dep = 1; dep <= words_; ++dep)
            if (!(row[dep] < std::numeric_limits<double>::infinity())) {
                bad_ = true;
                row[dep] = minus_infinity<double>;
                if (sentence.labels) log_labels_[index(head, dep)] = 0.0;
            }
    }

    /// Sets high_ + low_.
    template <class BestTree>
    void find_moderate(Root root, BestTree best_tree) {
        taken_off_.clear();
        levels_.assign(1, {});
        level_.clear();
        given_up_ = none_given_up;
        units_.clear();
        centre(root);
        if (!find_gaps()) return;
        const std::vector<double> high = high_, low = low_, taken_off = taken_off_;
        const bool cut_off = largest_magnitude() > 1e307;  // by `put`, perhaps
        close_gaps(best_tree);
        if (!cut_off && (largest_magnitude() > drowning || lost_digits_)) use_units(high, low, taken_off, best_tree);
    }

    /// From scores to centred ones, in two parts.
    void centre(Root root) {
        low_.assign(high_.size(), 0.0);
        shift_.assign(static_cast<std::size_t>(words_) + 1, minus_infinity<double>);
        for (int head = root == Root::single ? 1 : 0; head <= words_; ++head)
            for (int dep = 1; dep <= words_; ++dep) shift_[dep] = std::max(shift_[dep], high_[index(head, dep)]);
        TwoPart<double> root_shift{minus_infinity<double>, 0.0};
        root_edges_.assign(static_cast<std::size_t>(words_) + 1, {});
        root_shift_ = {};
        lost_digits_ = false;
        for (int dep = 1; dep <= words_; ++dep) {
            if (shift_[dep] == minus_infinity<double>) shift_[dep] = high_[index(0, dep)];
            if (shift_[dep] == minus_infinity<double>) shift_[dep] = 0.0;  // nothing can be its head
            taken_off_.push_back(shift_[dep]);
            for (int head = 0; head <= words_; ++head) {
                const std::size_t edge = index(head, dep);
                if (high_[edge] > minus_infinity<double>) put(edge, exact_difference(high_[edge], shift_[dep]));
            }
            const std::size_t edge = index(0, dep);
            root_edges_[dep] = {high_[edge], low_[edge]};
            if (high_[edge] > root_shift.high || (high_[edge] == root_shift.high && low_[edge] > root_shift.low))
                root_shift = {high_[edge], low_[edge]};
        }
        if (root == Root::single && root_shift.high > minus_infinity<double>) {
            root_shift_ = root_shift;
            taken_off_.push_back(root_shift.high);
            taken_off_.push_back(root_shift.low);
            for (int dep = 1; dep <= words_; ++dep) {
                const std::size_t edge = index(0, dep);
                if (high_[edge] > minus_infinity<double>)
                    put(edge, two_parts_of({high_[edge], low_[edge], -root_shift.high, -root_shift.low}));
            }
        }
        for (std::size_t edge = 0; edge < log_labels_.size(); ++edge) low_[edge] += log_labels_[edge];
    }

    /// Of a sum whose terms may have several sizes.
    TwoPart<double> two_parts_of(const std::array<double, 4>& terms) {
        double part[3] = {};
        for (int known = 0; known < 3; ++known) {
            part[known] = rounded_sum(4 + known, [&](int i) { return i < 4 ? terms[i] : -part[i - 4]; });
            if (!std::isfinite(part[0])) break;
        }
        lost_digits_ |= part[2] != 0.0;
        return {part[0], part[1]};
    }

    /// Differences of the largest doubles would be infinite, and so forbidden.
    void put(std::size_t edge, const TwoPart<double>& x) {
        constexpr double largest = std::numeric_limits<double>::max();
        const bool fits = std::fabs(x.high) <= largest;
        high_[edge] = fits ? x.high : std::copysign(largest, x.high);
        low_[edge] = fits ? x.low : 0.0;
    }

    double least_gap() const { return words_ * (std::log(words_ + 1.0) + std::log(labels_)) + 800.0; }

    /// Sets levels_ where there may be gaps worth closing: with B the largest magnitude so far, at the next one if that is
    /// above n B + least_gap(). Returns whether there are any. A pass over all magnitudes for every step.
    bool find_gaps() {
        double skipped = 0.0;  // the widths of gaps do not count towards B
        for (double below = 0.0;;) {
            const double reach = words_ * below + least_gap();
            double within = below, beyond = std::numeric_limits<double>::infinity();
            for (const double x : high_) {
                if (x == minus_infinity<double>) continue;
                const double magnitude = std::fabs(x) - skipped;
                if (magnitude <= reach)
                    within = std::max(within, magnitude);
                else
                    beyond = std::min(beyond, std::fabs(x));
            }
            if (beyond == std::numeric_limits<double>::infinity()) return levels_.size() > 1;
            if (within > below) {
                below = within;
            } else {
                levels_.push_back({beyond, {}, 0});
                skipped = beyond - reach;
                below = reach;
            }
        }
    }

    /// From the outermost gap inwards, until none gets narrower: what an inner gap gives up narrows the outer ones.
    template <class BestTree>
    void close_gaps(BestTree best_tree) {
        level_.assign(high_.size(), 0);
        for (std::size_t edge = 0; edge < high_.size(); ++edge)
            while (high_[edge] > minus_infinity<double> && level_[edge] + 1u < levels_.size() &&
                   std::fabs(high_[edge]) >= levels_[level_[edge] + 1].least)
                ++level_[edge];
        for (std::size_t sweep = 0, narrower = 1; narrower > 0 && sweep < levels_.size(); ++sweep) {
            narrower = 0;
            for (std::size_t at = levels_.size() - 1; at > 0; --at)
                if (at < given_up_) narrower += close_gap(at, best_tree);
        }
        for (const Level& level : levels_)
            for (std::size_t i = 0; i < level.used; ++i) {
                taken_off_.push_back(-level.closed.high);
                taken_off_.push_back(-level.closed.low);
            }
    }

    /// Whether the gap got narrower.
    template <class BestTree>
    bool close_gap(std::size_t at, BestTree best_tree) {
        std::vector<Heads> heads(static_cast<std::size_t>(words_) + 1);
        std::vector<double> scores(high_.size());
        // Edges that are given up are left out; with `counting`, every edge from beyond the gap counts -1.
        const auto find_best = [&](bool counting) {
            for (std::size_t edge = 0; edge < high_.size(); ++edge) {
                const bool possible = high_[edge] > minus_infinity<double> && level_[edge] < given_up_;
                const double score = counting ? (level_[edge] >= at ? -1.0 : 0.0) : high_[edge] + low_[edge];
                scores[edge] = possible ? score : minus_infinity<double>;
            }
            return best_tree(Sentence<double>{scores.data(), words_, words_ + 1, 1, 0, 0}, heads.data());
        };
        const auto used = [&] {
            std::size_t count = 0;
            for (int dep = 1; dep <= words_; ++dep) count += level_[index(static_cast<int>(heads[dep]), dep)] >= at;
            return count;
        };
        if (!find_best(false)) return false;
        Level& level = levels_[at];
        const std::size_t count = used();
        TwoPart<double> spare{-least_gap(), 0.0};  // (K + 1) x - |s| - least_gap
        for (int dep = 1; dep <= words_; ++dep) {
            const std::size_t edge = index(static_cast<int>(heads[dep]), dep);
            spare = spare + TwoPart<double>{high_[edge], low_[edge]};
        }
        const TwoPart<double> least = least_beyond(at);
        for (std::size_t i = 0; i <= count; ++i) spare = spare + least;
        if (!(spare.high > 1.0)) return false;
        if (count == 0) {
            given_up_ = at;
            return true;
        }
        find_best(true);
        if (used() < count) return false;
        const TwoPart<double> closing = (spare - least).value() < 0.0 ? spare : least;
        for (std::size_t edge = 0; edge < high_.size(); ++edge)
            if (level_[edge] >= at) put(edge, TwoPart<double>{high_[edge], low_[edge]} + closing);
        level.closed = level.closed + closing;
        level.used = count;
        return true;
    }

    double largest_magnitude() const {
        double largest = 0.0;
        for (std::size_t edge = 0; edge < high_.size(); ++edge)
            if (high_[edge] > minus_infinity<double> && (level_.empty() || level_[edge] < given_up_))
                largest = std::max(largest, std::fabs(high_[edge]));
        return largest;
    }

    /// Makes the centred scores `high` + `low` smaller by their units. Changes nothing if there are none.
    template <class BestTree>
    void use_units(const std::vector<double>& high, const std::vector<double>& low,
                   const std::vector<double>& taken_off, BestTree best_tree) {
        constexpr int lowest = BitRange::lowest;
        std::vector<Exact> rest(high.size());  // of the magnitude; then of what the units found so far leave of it
        const auto exact = [](const TwoPart<double>& x) {
            return Exact::of(x.high, lowest) + Exact::of(x.low, lowest);
        };
        for (std::size_t edge = 0; edge < high.size(); ++edge) {
            if (high[edge] == minus_infinity<double>) continue;
            const bool from_root = edge <= static_cast<std::size_t>(words_);
            if (from_root)
                rest[edge] = exact(root_shift_) - exact(root_edges_[edge]);
            else
                rest[edge] = -exact({high[edge], low[edge]});
            if (from_root && !log_labels_.empty()) rest[edge] = rest[edge] - Exact::of(log_labels_[edge], lowest);
        }
        std::vector<double> value(high.size());
        // How much the values of two trees can differ by, at most.
        const auto spread = [&] {
            double sum = 0.0;
            for (int dep = 1; dep <= words_; ++dep) {
                double least = std::numeric_limits<double>::infinity(), most = -least;
                for (std::size_t edge = dep; edge < high.size(); edge += static_cast<std::size_t>(words_) + 1)
                    if (high[edge] > minus_infinity<double>) {
                        least = std::min(least, value[edge]);
                        most = std::max(most, value[edge]);
                    }
                if (most > least) sum += most - least;
            }
            return sum;
        };
        std::vector<Unit> units;
        for (;;) {
            for (std::size_t edge = 0; edge < high.size(); ++edge) value[edge] = rest[edge].value(lowest);
            const std::size_t first_beyond = beyond_outermost_gap(high, value);
            if (first_beyond == high.size()) break;
            if (units.size() == most_units) return;
            Unit unit{rest[first_beyond], std::vector<int>(high.size(), 0), {}, 0};
            if (value[first_beyond] < 0.0) unit.size = -unit.size;
            const double size = std::fabs(value[first_beyond]);
            for (std::size_t edge = 0; edge < high.size(); ++edge) {
                const double times = std::round(value[edge] / size);
                if (!(std::fabs(times) <= most_times)) return;
                unit.times[edge] = static_cast<int>(times);
                for (int i = 0; i < unit.times[edge]; ++i) rest[edge] = rest[edge] - unit.size;
                for (int i = 0; i > unit.times[edge]; --i) rest[edge] = rest[edge] + unit.size;
                value[edge] = rest[edge].value(lowest);
            }
            if (!(spread() + least_gap() < size)) return;
            units.push_back(std::move(unit));
        }
        for (std::size_t u = units.size(); u-- > 0;) {
            const double size = spread() + least_gap();
            const Exact closed = units[u].size - Exact::of(size, lowest);
            units[u].closed.high = closed.value(lowest);
            units[u].closed.low = (closed - Exact::of(units[u].closed.high, lowest)).value(lowest);
            for (std::size_t edge = 0; edge < high.size(); ++edge) value[edge] += units[u].times[edge] * size;
        }
        for (std::size_t edge = 0; edge < high.size(); ++edge) {
            if (high[edge] > minus_infinity<double>) high_[edge] = -value[edge];
            low_[edge] = 0.0;
        }
        std::vector<Heads> heads(static_cast<std::size_t>(words_) + 1);
        if (!best_tree(sentence(), heads.data())) return;
        units_ = std::move(units);
        levels_.assign(1, {});
        level_.clear();
        given_up_ = none_given_up;
        taken_off_ = taken_off;
        for (Unit& unit : units_) {
            unit.used = unit.count(heads.data(), words_);
            const double sign = unit.used > 0 ? -1.0 : 1.0;
            for (int i = 0; i < std::abs(unit.used); ++i)
                taken_off_.insert(taken_off_.end(), {sign * unit.closed.high, sign * unit.closed.low});
        }
    }

    /// An edge with the least magnitude beyond the outermost gap; high.size() if there is no gap.
    std::size_t beyond_outermost_gap(const std::vector<double>& high, const std::vector<double>& value) const {
        std::vector<std::size_t> order;
        for (std::size_t edge = 0; edge < high.size(); ++edge)
            if (high[edge] > minus_infinity<double>) order.push_back(edge);
        std::sort(order.begin(), order.end(),
                  [&](std::size_t a, std::size_t b) { return std::fabs(value[a]) < std::fabs(value[b]); });
        std::size_t found = high.size();
        double below = 0.0;
        for (const std::size_t edge : order) {
            const double magnitude = std::fabs(value[edge]);
            if (magnitude > 2.0 * words_ * below + least_gap()) found = edge;
            below = magnitude;
        }
        return found;
    }

    /// The least magnitude of an edge from beyond a gap that is not given up.
    TwoPart<double> least_beyond(std::size_t at) const {
        TwoPart<double> least{std::numeric_limits<double>::max(), 0.0};
        for (std::size_t edge = 0; edge < high_.size(); ++edge)
            if (level_[edge] >= at && level_[edge] < given_up_) {
                const TwoPart<double> x{-high_[edge], -low_[edge]};
                if (x.high < least.high || (x.high == least.high && x.low < least.low)) least = x;
            }
        return least;
    }

    int words_ = 0, labels_ = 1;
    bool bad_ = false;
    double total_ = 0.0;
    std::vector<double> high_, low_;  // scores, then centred ones in two parts; in the end `high_` is all
    std::vector<double> log_labels_;  // by edge: log of the labels' total weight, relative to the best label
    std::vector<double> shift_, taken_off_;
    std::size_t given_up_ = none_given_up;     // edges of this level and those beyond are as good as forbidden
    std::vector<Level> levels_;                // [0]: before the first gap
    std::vector<std::uint16_t> level_;         // by edge, if there are gaps
    std::vector<TwoPart<double>> root_edges_;  // by word: before what is common to them was taken off
    bool lost_digits_ = false;                 // whether two parts were too few
    TwoPart<double> root_shift_;               // what was taken off, with one root
    std::vector<Unit> units_;
};

}  // namespace spantree
