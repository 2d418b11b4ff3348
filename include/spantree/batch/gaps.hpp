// Scores in numbers of moderate size where soft masks cannot be avoided, for trees that have no certificate: projective ones.
//
// Scores may have gaps: ordinary scores, then nothing, then soft masks such as -1e9. Let x be the least magnitude beyond a
// gap, K the number of edges from beyond it in the best tree, and s that tree's score. A tree with more of them scores at
// most -(K + 1) x, and there are at most (n + 1)^n trees. So where
//
//     (K + 1) x  >  |s| + B,      B = n log(n + 1) + n log(labels) + 800
//
// all trees with more than K of them weigh less than exp(-800) of the best one, too little for a double. If K = 0, edges
// from beyond the gap are as good as forbidden. Else, if no tree has fewer than K, all trees that matter have just K: what
// the inequality leaves to spare is taken off the magnitude of every edge from beyond, off every tree K times.
//
// Some trees that matter may have one edge with twice the mask where others have two of them. Where numbers stay large for
// such reasons, masks are taken for what they are, units: magnitudes are k x + (a rest), x the least magnitude beyond the
// outermost gap, then the rests are looked at in the same way. If the rests of a tree can never add up to x, less what has
// no weight, then trees that matter agree in the sum of k, and a smaller unit, just large enough for that, will do:
//
//     three words, one root      magnitudes 0, x, 2 x + 0.3, ...     becomes 0, 850, 1700.3, ...
//
// Units and rests are found in exact arithmetic. What is of neither kind stays as large as it is. O(n^2), and two best
// trees for each gap.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "../number/exact_sum.hpp"
#include "../number/rounded_sum.hpp"
#include "../number/wide.hpp"
#include "sentence.hpp"

namespace spantree {

/// One edge's score as a sum, for exact arithmetic: -inf and zeros if it is forbidden.
using ScoreTerms = std::array<double, 5>;

class Gaps {
public:
    /// Scores by edge, [head, dep]. best_tree(sentence, heads) writes heads[0..words] of a best tree and returns whether there
    /// is a tree; `best` are those of these scores.
    template <class BestTree>
    Gaps(int words, double least_gap, const std::vector<ScoreTerms>& scores, BestTree best_tree,
         const std::vector<Heads>& best)
        : words_(words), least_gap_(least_gap), high_(scores.size(), minus_infinity<double>), low_(scores.size(), 0.0) {
        for (std::size_t edge = 0; edge < scores.size(); ++edge)
            if (scores[edge][0] > minus_infinity<double>) put(edge, two_parts_of(scores[edge]));
        levels_.assign(1, {});
        if (!find_gaps()) return;
        const bool cut_off = largest_magnitude() > 1e307;  // by `put`, perhaps
        close_gaps(best_tree);
        if (cut_off) return;
        if (lost_digits_)
            use_units(scores, {}, best_tree);
        else if (largest_magnitude() > drowning)
            use_units(those_that_matter(best), taken_off_, best_tree);
    }

    /// What the edges add to a tree's score now; -inf where forbidden. Edges that no tree that matters has may be large.
    double operator()(std::size_t edge) const { return high_[edge] + low_[edge]; }

    /// Of two edges.
    double difference(std::size_t a, std::size_t b) const {
        return (TwoPart<double>{high_[a], low_[a]} - TwoPart<double>{high_[b], low_[b]}).value();
    }

    /// These numbers add up to what trees that matter score less now.
    const std::vector<double>& taken_off() const { return taken_off_; }

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
    static constexpr double drowning = 1e5;  // beside numbers like this, a sum of scores has 1e-11 left
    /// A unit is made about B = 1e3 large, the next one larger than a tree can have of it: 1000 of the former in an edge are
    /// 1e6, of the latter 1e6 n B, 4e10 with forty words, where doubles are 8e-6 apart. More would leave no digits of scores.
    static constexpr int most_times = 1000, most_units = 2;

    std::size_t index(int head, int dep) const { return static_cast<std::size_t>(head) * (words_ + 1) + dep; }

    /// Of a sum whose terms may have several sizes.
    TwoPart<double> two_parts_of(const ScoreTerms& terms) {
        constexpr int count = std::tuple_size_v<ScoreTerms>;
        double part[3] = {};
        for (int known = 0; known < 3; ++known) {
            part[known] = rounded_sum(count + known, [&](int i) { return i < count ? terms[i] : -part[i - count]; });
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

    /// Sets levels_ where there may be gaps worth closing: with B the largest magnitude so far, at the next one if that is
    /// above n B + least_gap_. Returns whether there are any. A pass over all magnitudes for every step.
    bool find_gaps() {
        double skipped = 0.0;  // the widths of gaps do not count towards B
        for (double below = 0.0;;) {
            const double reach = words_ * below + least_gap_;
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
        TwoPart<double> spare{-least_gap_, 0.0};  // (K + 1) x - |s| - least_gap
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

    /// Scores as they are now, -inf where an edge alone is more than B behind the best tree.
    std::vector<ScoreTerms> those_that_matter(const std::vector<Heads>& best) const {
        TwoPart<double> least{-least_gap_, 0.0};
        for (int dep = 1; dep <= words_; ++dep) {
            const std::size_t edge = index(static_cast<int>(best[dep]), dep);
            least = least + TwoPart<double>{high_[edge], low_[edge]};
        }
        std::vector<ScoreTerms> scores(high_.size(), ScoreTerms{minus_infinity<double>});
        for (std::size_t edge = 0; edge < high_.size(); ++edge)
            if (high_[edge] + low_[edge] >= least.value()) scores[edge] = {high_[edge], low_[edge]};
        return scores;
    }

    /// Makes scores smaller by their units. Changes nothing if there are none. `taken_off` belongs to these scores.
    template <class BestTree>
    void use_units(const std::vector<ScoreTerms>& scores, std::vector<double> taken_off, BestTree best_tree) {
        constexpr int lowest = BitRange::lowest;
        std::vector<double> high(scores.size());  // the first term: -inf if there is nothing
        for (std::size_t edge = 0; edge < high.size(); ++edge) high[edge] = scores[edge][0];
        std::vector<Exact> rest(high.size());  // of the magnitude; then of what the units found so far leave of it
        for (std::size_t edge = 0; edge < high.size(); ++edge)
            for (const double term : scores[edge])
                if (high[edge] > minus_infinity<double>) rest[edge] = rest[edge] - Exact::of(term, lowest);
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
        const auto look_at_rests = [&] {
            for (std::size_t edge = 0; edge < high.size(); ++edge) value[edge] = rest[edge].value(lowest);
        };
        // The next unit, and what it leaves: whether there is one.
        const auto find_unit = [&] {
            const std::size_t first_beyond = beyond_outermost_gap(high, value);
            if (first_beyond == high.size()) return false;
            Unit unit{rest[first_beyond], std::vector<int>(high.size(), 0), {}, 0};
            if (value[first_beyond] < 0.0) unit.size = -unit.size;
            const double size = std::fabs(value[first_beyond]);
            std::vector<Exact> left = rest;
            for (std::size_t edge = 0; edge < high.size(); ++edge) {
                const double times = std::round(value[edge] / size);
                if (!(std::fabs(times) <= most_times)) return false;
                unit.times[edge] = static_cast<int>(times);
                for (int i = 0; i < unit.times[edge]; ++i) left[edge] = left[edge] - unit.size;
                for (int i = 0; i > unit.times[edge]; --i) left[edge] = left[edge] + unit.size;
                value[edge] = left[edge].value(lowest);
            }
            if (!(spread() + least_gap_ < size)) return false;
            rest = std::move(left);
            units.push_back(std::move(unit));
            return true;
        };
        look_at_rests();
        while (units.size() < most_units && find_unit()) continue;
        look_at_rests();
        if (units.empty()) return;
        for (std::size_t u = units.size(); u-- > 0;) {
            const double size = spread() + least_gap_;
            const Exact closed = units[u].size - Exact::of(size, lowest);
            units[u].closed.high = closed.value(lowest);
            units[u].closed.low = (closed - Exact::of(units[u].closed.high, lowest)).value(lowest);
            for (std::size_t edge = 0; edge < high.size(); ++edge) value[edge] += units[u].times[edge] * size;
        }
        for (std::size_t edge = 0; edge < high.size(); ++edge)
            if (high[edge] > minus_infinity<double>) {
                high_[edge] = -value[edge];
                low_[edge] = 0.0;
            }
        std::vector<Heads> heads(static_cast<std::size_t>(words_) + 1);
        if (!best_tree(Sentence<double>{high_.data(), words_, words_ + 1, 1, 0, 0}, heads.data())) return;
        taken_off_ = std::move(taken_off);
        for (Unit& unit : units) {
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
            if (magnitude > 2.0 * words_ * below + least_gap_) found = edge;
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

    int words_;
    double least_gap_;                // B
    std::vector<double> high_, low_;  // scores in two parts
    bool lost_digits_ = false;        // whether two parts were too few
    std::vector<double> taken_off_;
    std::size_t given_up_ = none_given_up;  // edges of this level and those beyond are as good as forbidden
    std::vector<Level> levels_;             // [0]: before the first gap
    std::vector<std::uint16_t> level_;      // by edge, if there are gaps
};

}  // namespace spantree
