// Scores in numbers of moderate size where soft masks cannot be avoided, for trees that have no certificate: projective ones.
//
// Let v(h, d) be by how much the edge h -> d scores more than the best tree's edge into d: the best tree adds up to 0, every other
// to at most 0. Trees that add up to less than -B do not matter. Wanted are moderate numbers that add up to the same for all
// trees that matter, and to less than -B for the others.
//
// Let numbers be either at most `low`, or large. Trees that fall short by 3 n low at most make up for large numbers by other
// large ones, and all steps of their derivations fall short by no more (shortfalls.hpp). Such a step says what is made up for by
// what: what it has more of each kind of large numbers than the best step for its item. Sums of such rows are all that
// these trees differ by. Numbers are taken apart into sizes that do not change by any of these rows (exchange.hpp), and the
// rest. No tree nearby notices if sizes are made smaller. Others, which fall short by G at least, do so by B still if sizes
// are divided by
//
//     (G - R) / (P + B),      R, P: the most that a tree's rests add up to, without regard to signs, and with it.
//
//     three words, one root      v  0, -x, 2 x + 0.3, ...    becomes 0, -850, 1700.3, ...
//
// From the outermost gap between numbers inwards, until no number gets smaller. All in exact arithmetic, of the edges that
// doubles cannot tell to be too far behind. O(n^3) for each step of that; a handful are needed where masks have a few sizes.
//
// One divisor for all sizes between two gaps leaves their ratios. Where many sizes without a gap between them, each a few times
// the last, are exchanged within one sentence, numbers stay as much larger than B as the largest is larger than the smallest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../number/wide.hpp"
#include "exchange.hpp"
#include "parallel.hpp"
#include "sentence.hpp"
#include "shortfalls.hpp"

namespace spantree {

template <int Limbs>
class Narrowing {
public:
    using Exact = Wide<Limbs>;

    /// Numbers are whole multiples of 2^unit. relative[head * (words + 1) + dep]: v, if the edge is possible.
    Narrowing(int words, Root root, int unit, std::vector<Exact> relative, std::vector<bool> possible)
        : words_(words),
          root_(root),
          unit_(unit),
          v_(std::move(relative)),
          possible_(std::move(possible)),
          dropped_(v_.size(), false),
          exactly_(words, root) {}
    Narrowing(const Narrowing&) = delete;  // `exactly_` looks at other members
    Narrowing& operator=(const Narrowing&) = delete;

    /// Moderate numbers for B = enough, -inf where an edge is forbidden. If asked again, `enough` must be less.
    std::vector<double> narrow(double enough, StopSignal& stop) {
        enough_ = std::ldexp(enough, -down);
        drop_far_edges_roughly(stop);
        if (largest() > enough_) {
            drop_far_edges(stop);
            while (narrow_once(stop)) continue;
        }
        return numbers();
    }

private:
    using Chart = Shortfalls<Exact>;
    using Item = typename Chart::Item;
    using Step = typename Chart::Step;
    static constexpr int none = Chart::none;
    static constexpr int down = 64;  // sizes are compared in units of 2^64: sums of doubles are then in range
    /// So that rows take 128 MB at most, and what is known of them 64.
    static constexpr std::size_t most_kinds = 4096, most_known = std::size_t{1} << 20;
    /// A gap: numbers beyond it are larger than all that trees have of those below, taken twice on either side.
    double beyond_gap(double magnitude) const { return 4.0 * words_ * magnitude; }
    /// Trees that have the same of each kind: their small numbers differ by 2 n low, what is above those of its kind by n low.
    double nearby(double low) const { return 3.0 * words_ * low; }
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    double size(const Exact& x) const { return x.value(unit_ - down); }
    double magnitude(std::size_t edge) const { return std::fabs(size(v_[edge])); }

    double largest() const {
        double most = 0.0;
        for (std::size_t e = 0; e < v_.size(); ++e)
            if (possible_[e]) most = std::max(most, magnitude(e));
        return most;
    }

    /// Edges that no tree within B has.
    void drop_far_edges(StopSignal& stop) {
        solve(stop);
        drop_beyond(enough_, behind(exactly_, stop, [&](const Exact& x) { return size(x); }));
    }

    /// Those of them that doubles can tell.
    void drop_far_edges_roughly(StopSignal& stop) {
        if (at_least_behind_.empty()) {
            Shortfalls<double> shortfalls(words_, root_);
            std::vector<double> rounded(v_.size());
            for (std::size_t e = 0; e < v_.size(); ++e) rounded[e] = size(v_[e]);
            shortfalls.find(rounded, possible_, stop);
            at_least_behind_ = behind(shortfalls, stop, [](double x) { return x; });
            const double rounding = 0x1p-50 * words_ * words_ * largest();
            for (double& x : at_least_behind_) x -= rounding;
        }
        drop_beyond(enough_, at_least_behind_);
    }

    /// By edge: what the best tree that has it falls short by.
    template <class Number, class Size>
    std::vector<double> behind(const Shortfalls<Number>& shortfalls, StopSignal& stop, Size size_of) const {
        std::vector<double> least(v_.size(), infinity);
        shortfalls.each_step(stop, [&](const auto&, int, const auto& s, const Number& shortfall) {
            if (s.edge == none) return;
            double& of_edge = least[static_cast<std::size_t>(s.edge)];
            of_edge = std::min(of_edge, size_of(shortfall));
        });
        return least;
    }

    void drop_beyond(double far, const std::vector<double>& behind) {
        for (std::size_t e = 0; e < v_.size(); ++e)
            if (possible_[e] && !(behind[e] <= far)) {
                dropped_[e] = true;
                possible_[e] = solved_ = false;
            }
    }

    void solve(StopSignal& stop) {
        if (!solved_) exactly_.find(v_, possible_, stop);
        solved_ = true;
    }

    /// The magnitudes below the gaps between those of edges, the outermost gap first; last that of B.
    std::vector<double> below_gaps() const {
        std::vector<double> sizes{enough_};
        for (std::size_t e = 0; e < v_.size(); ++e)
            if (possible_[e] && magnitude(e) > enough_) sizes.push_back(magnitude(e));
        std::sort(sizes.begin(), sizes.end());
        std::vector<double> result;
        for (std::size_t at = sizes.size(); at-- > 1;)
            if (sizes[at] > beyond_gap(sizes[at - 1])) result.push_back(sizes[at - 1]);
        if (sizes.size() > 1 && (result.empty() || result.back() > enough_)) result.push_back(enough_);
        return result;
    }

    /// Whether some number got smaller.
    bool narrow_once(StopSignal& stop) {
        for (const double low : below_gaps())
            if (narrow_above(low, stop)) return true;
        return false;
    }

    /// Makes numbers above `low` smaller, if they can be.
    bool narrow_above(double low, StopSignal& stop) {
        const std::vector<Exact> given = find_kinds(low);
        if (given.size() > most_kinds) return false;
        Exchanges exchanges(given.size());
        const double nearest = find_exchanges(nearby(low), exchanges, stop);
        if (!exchanges.useful()) return false;
        const Exchanges::Sizes<Exact> sizes(exchanges, given);
        const std::vector<Exact> now = sizes.divided(0);
        const Rests rests = rests_beside(now);
        const double by = (nearest - rests.total) / (rests.positive + enough_);
        if (!(by >= 2.0)) return false;  // not even a halving
        // If there are no others, sizes say nothing.
        const int halvings = by < infinity ? std::ilogb(by) : 64 * Limbs;
        const std::vector<Exact> smaller = sizes.divided(halvings);
        std::vector<Exact> narrower = v_;
        double before = 0.0, after = 0.0;
        for (std::size_t e = 0; e < v_.size(); ++e)
            if (kind_[e] != none) {
                const auto kind = static_cast<std::size_t>(kind_[e]);
                narrower[e] = v_[e] - now[kind] + smaller[kind];
                before += magnitude(e);
                after += std::fabs(size(narrower[e]));
            }
        if (!(after < 0.9 * before)) return false;  // for so little it would go on for long
        v_ = std::move(narrower);
        solved_ = false;
        at_least_behind_.clear();
        return true;
    }

    /// R and P, what trees' rests beside these sizes add up to at most, a little more because of rounding.
    struct Rests {
        double total = 0.0, positive = 0.0;
    };
    Rests rests_beside(const std::vector<Exact>& sizes) const {
        Rests result;
        for (int dep = 1; dep <= words_; ++dep) {
            double most = 0.0, highest = 0.0;
            each_possible_edge_into(dep, [&](std::size_t e) {
                const double rest = size(kind_[e] == none ? v_[e] : v_[e] - sizes[static_cast<std::size_t>(kind_[e])]);
                most = std::max(most, std::fabs(rest));
                highest = std::max(highest, rest);
            });
            result.total += 1.001 * most;
            result.positive += 1.001 * highest;
        }
        return result;
    }

    template <class Use>
    void each_possible_edge_into(int dep, Use use) const {
        const std::size_t step = static_cast<std::size_t>(words_) + 1;
        for (std::size_t e = static_cast<std::size_t>(dep); e < v_.size(); e += step)
            if (possible_[e]) use(e);
    }

    /// Sets kind_: of edges above `low`, by size. Returns a number of each kind; others are at most `low` from it.
    std::vector<Exact> find_kinds(double low) {
        std::vector<std::size_t> large;
        kind_.assign(v_.size(), none);
        for (std::size_t e = 0; e < v_.size(); ++e)
            if (possible_[e] && magnitude(e) > low) large.push_back(e);
        std::sort(large.begin(), large.end(), [&](std::size_t a, std::size_t b) { return v_[a] < v_[b]; });
        std::vector<Exact> kinds;
        for (const std::size_t e : large) {
            if (kinds.empty() || size(v_[e] - kinds.back()) > low) kinds.push_back(v_[e]);
            kind_[e] = static_cast<int>(kinds.size()) - 1;
        }
        return kinds;
    }

    /// Steps that fall short by no more than `near` make rows of `exchanges`, until these say that nothing can be made smaller.
    /// Returns the least that others fall short by.
    double find_exchanges(double near, Exchanges& exchanges, StopSignal& stop) {
        solve(stop);
        // Of each kind a random number: the sum over what an item's best derivation has tells whether a row is new.
        std::vector<std::uint64_t> marks(exactly_.items(), 0);
        const auto mark = [&](const Step& s) {
            const int kind = s.edge == none ? none : kind_[static_cast<std::size_t>(s.edge)];
            return marks[exactly_.id(s.a)] + marks[exactly_.id(s.b)] + (kind == none ? 0 : random_number(kind));
        };
        exactly_.each_best_step(stop, [&](const Item& item, const Step& s) { marks[exactly_.id(item)] = mark(s); });
        std::unordered_set<std::uint64_t> known{0};
        double nearest = infinity;
        exactly_.each_step(stop, [&](const Item& item, int, const Step& s, const Exact& shortfall) {
            if (const double by = size(shortfall); by > near) {
                nearest = std::min(nearest, by);
            } else if (exchanges.useful() && known.insert(mark(s) - marks[exactly_.id(item)]).second) {
                exchanges.add(row(item, s, exchanges.kinds()));
                stop.check();
                if (known.size() > most_known) known = {0};
            }
        });
        return nearest;
    }

    /// What a step has more of each kind than the best one for its item.
    std::vector<std::int64_t> row(const Item& item, const Step& s, std::size_t kinds) const {
        std::vector<std::int64_t> result(kinds, 0);
        const auto count = [&](int edge, int times) {
            if (edge != none && kind_[static_cast<std::size_t>(edge)] != none)
                result[static_cast<std::size_t>(kind_[static_cast<std::size_t>(edge)])] += times;
        };
        count(s.edge, 1);
        for (const Item& part : {s.a, s.b}) exactly_.each_edge_of_best(part, [&](int edge) { count(edge, 1); });
        exactly_.each_edge_of_best(item, [&](int edge) { count(edge, -1); });
        return result;
    }

    /// The same for the same kind, as if drawn by chance (the finaliser of Steele, Lea & Flood's SplitMix, 2014).
    static std::uint64_t random_number(int kind) {
        std::uint64_t x = (static_cast<std::uint64_t>(kind) + 1) * 0x9E3779B97F4A7C15u;
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
        x = (x ^ x >> 27) * 0x94D049BB133111EBu;
        return x ^ x >> 31;
    }

    /// Edges that were dropped get a number so low that no tree with one of them matters.
    std::vector<double> numbers() const {
        constexpr double largest = 1e280;  // further out, exponentials have no exponents
        std::vector<double> result(v_.size(), minus_infinity<double>);
        double lowest = -std::ldexp(enough_, down);
        for (int dep = 1; dep <= words_; ++dep) {
            double highest = 0.0;
            each_possible_edge_into(dep, [&](std::size_t e) {
                result[e] = std::clamp(v_[e].value(unit_), -largest, largest);
                highest = std::max(highest, result[e]);
            });
            lowest -= highest;
        }
        for (std::size_t e = 0; e < v_.size(); ++e)
            if (dropped_[e]) result[e] = std::max(lowest, -largest);
        return result;
    }

    int words_;
    Root root_;
    int unit_;
    double enough_ = 0.0;                  // B, like all sizes in units of 2^down
    std::vector<Exact> v_;                 // by edge
    std::vector<bool> possible_;           // edges that may be in a tree that matters
    std::vector<bool> dropped_;            // those that were possible once
    std::vector<int> kind_;                // of large numbers, by edge, or none
    std::vector<double> at_least_behind_;  // by edge, if it is known
    Shortfalls<Exact> exactly_;
    bool solved_ = false;  // whether it belongs to v_ and possible_
};

}  // namespace spantree
