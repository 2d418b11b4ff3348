// Scores in numbers of moderate size where soft masks cannot be avoided, for trees that have no certificate: projective ones.
//
// Let v(h, d) be by how much the edge h -> d scores more than the best tree's edge into d: the best tree adds up to 0, every other
// to at most 0. Trees that add up to less than -B do not matter. Wanted are moderate numbers that add up to the same for all
// trees that matter, and to less than -B for the others.
//
// A tree is a derivation from items of Eisner's chart (chart/chart.hpp). With V(item) the best that an item's derivations
// add up to, a step t <- a, b (and an edge) costs V(t) - V(a) - V(b) - v >= 0, and a tree adds up to minus the costs of its
// steps. A step falls short by what the best tree that has it falls short. Let numbers be either at most `low`, or large. Trees
// that fall short by 3 n low at most, and that is those all of whose steps do, make up for large numbers by other large
// ones. A step among those says which: what it has more of each kind of large numbers than the best step for its item. Sums of
// such rows are all that these trees differ by. Numbers are taken apart into sizes that do not change by any of these rows
// (exchange.hpp), and the rest. No tree nearby notices if sizes are made smaller. Others, which fall short by G at least, do
// so by B still if sizes are divided by
//
//     (G - R) / (P + B),      R, P: the most that a tree's rests add up to, without regard to signs, and with it.
//
//     three words, one root      v  0, -x, 2 x + 0.3, ...    becomes 0, -850, 1700.3, ...
//
// From the outermost gap between numbers inwards, until no number gets smaller. All in exact arithmetic. O(n^3) for each step of
// that; a handful are needed where masks have a few sizes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "../number/wide.hpp"
#include "exchange.hpp"
#include "parallel.hpp"
#include "sentence.hpp"

namespace spantree {

template <int Limbs>
class Narrowing {
public:
    using Exact = Wide<Limbs>;

    /// Numbers are whole multiples of 2^unit. relative[head * (words + 1) + dep]: v, if the edge is possible.
    Narrowing(int words, Root root, int unit, std::vector<Exact> relative, std::vector<bool> possible)
        : words_(words),
          first_(root == Root::single ? 1 : 0),
          nodes_(words + 1 - first_),
          unit_(unit),
          v_(std::move(relative)),
          possible_(std::move(possible)) {}

    /// Moderate numbers for B = enough, -inf where an edge is forbidden. If asked again, `enough` must be less.
    std::vector<double> narrow(double enough, StopSignal& stop) {
        enough_ = std::ldexp(enough, -down);
        drop_far_edges(stop);
        while (narrow_once(stop)) continue;
        return numbers();
    }

private:
    enum Kind : int { right, left, link, whole };
    struct Item {
        Kind kind;
        int i, j;
    };
    /// One way to make an item of two; `edge` is what it adds, or none.
    struct Step {
        Item a, b;
        int edge;
    };
    static constexpr int none = -1;
    static constexpr int down = 64;  // sizes are compared in units of 2^64: sums of doubles are then in range
    static constexpr std::size_t most_counts = std::size_t{1}
                                               << 27;  // 512 MB; hardly two sums of so many numbers are equal
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    // The chart

    int edge(int head, int dep) const { return (head + first_) * (words_ + 1) + dep + first_; }
    std::size_t id(const Item& x) const {
        return static_cast<std::size_t>(x.kind == whole ? 3 * nodes_ * nodes_ : (x.kind * nodes_ + x.i) * nodes_ + x.j);
    }
    std::size_t items() const { return static_cast<std::size_t>(3 * nodes_ * nodes_) + 1; }
    Item goal() const { return first_ == 1 ? Item{whole, 0, nodes_ - 1} : Item{right, 0, nodes_ - 1}; }
    static int steps(const Item& x) { return x.kind == whole ? x.j + 1 : x.j - x.i; }

    Step step(const Item& x, int choice) const {
        const int split = x.i + choice;
        switch (x.kind) {
            case right: return {{link, x.i, split + 1}, {right, split + 1, x.j}, edge(x.i, split + 1)};
            case left: return {{left, x.i, split}, {link, split, x.j}, edge(x.j, split)};
            case link: return {{right, x.i, split}, {left, split + 1, x.j}, none};
            case whole: break;
        }
        return {{left, 0, split}, {right, split, x.j}, edge(-1, split)};  // ROOT is the node before the first
    }

    /// Calls visit(item), narrow items first or last; an item comes after all, or before all, that it is made of.
    template <class Visit>
    void each_item(bool narrow_first, StopSignal& stop, Visit visit) const {
        const auto all = [&](Kind kind, int w) {
            for (int i = 0; i + w < nodes_; ++i) visit(Item{kind, i, i + w});
        };
        const auto width = [&](int w) {
            stop.check();
            if (narrow_first) all(link, w);
            all(right, w);
            all(left, w);
            if (!narrow_first) all(link, w);
        };
        if (!narrow_first && first_ == 1) visit(goal());
        for (int w = 1; w < nodes_; ++w) width(narrow_first ? w : nodes_ - w);
        if (narrow_first && first_ == 1) visit(goal());
    }

    bool present(const Item& x) const { return x.i == x.j && x.kind != whole ? true : best_[id(x)] != none; }
    bool possible(const Step& s) const {
        return present(s.a) && present(s.b) && (s.edge == none || possible_[static_cast<std::size_t>(s.edge)]);
    }
    Exact sum(const Step& s) const {
        const Exact both = inside_[id(s.a)] + inside_[id(s.b)];
        return s.edge == none ? both : both + v_[static_cast<std::size_t>(s.edge)];
    }

    /// Sets inside_, V, and best_.
    void find_best(StopSignal& stop) {
        inside_.assign(items(), Exact{});
        best_.assign(items(), none);
        each_item(true, stop, [&](const Item& item) {
            Exact& most = inside_[id(item)];
            int& best = best_[id(item)];
            for (int choice = 0; choice < steps(item); ++choice) {
                const Step s = step(item, choice);
                if (!possible(s)) continue;
                const Exact x = sum(s);
                if (best != none && !(most < x)) continue;
                most = x;
                best = choice;
            }
        });
    }

    /// Calls visit(item, choice, step, by how much the step falls short), for all steps that a tree has. After find_best.
    template <class Visit>
    void each_shortfall(StopSignal& stop, Visit visit) const {
        std::vector<Exact> outside(items());  // the best that what surrounds an item adds up to
        std::vector<bool> reached(items(), false);
        const auto offer = [&](const Item& item, const Exact& x) {
            const std::size_t at = id(item);
            if (!reached[at] || outside[at] < x) outside[at] = x;
            reached[at] = true;
        };
        offer(goal(), Exact{});
        const Exact most = inside_[id(goal())];
        each_item(false, stop, [&](const Item& item) {
            if (!reached[id(item)] || !present(item)) return;
            const Exact around = outside[id(item)];
            for (int choice = 0; choice < steps(item); ++choice) {
                const Step s = step(item, choice);
                if (!possible(s)) continue;
                const Exact all = around + sum(s);
                visit(item, choice, s, size(most - all));
                offer(s.a, all - inside_[id(s.a)]);
                offer(s.b, all - inside_[id(s.b)]);
            }
        });
    }

    // Numbers

    double size(const Exact& x) const { return x.value(unit_ - down); }
    double magnitude(std::size_t edge) const { return std::fabs(size(v_[edge])); }

    /// Edges that no tree within B has.
    void drop_far_edges(StopSignal& stop) {
        std::vector<bool> near(v_.size(), false);
        find_best(stop);
        each_shortfall(stop, [&](const Item&, int, const Step& s, double shortfall) {
            if (s.edge != none && shortfall <= enough_) near[static_cast<std::size_t>(s.edge)] = true;
        });
        dropped_.resize(v_.size(), false);
        for (std::size_t e = 0; e < v_.size(); ++e) {
            dropped_[e] = dropped_[e] || (possible_[e] && !near[e]);
            possible_[e] = near[e];
        }
    }

    /// The magnitudes below the gaps between those of edges, the outermost gap first; last that of B.
    std::vector<double> below_gaps() const {
        std::vector<double> sizes{enough_};
        for (std::size_t e = 0; e < v_.size(); ++e)
            if (possible_[e] && magnitude(e) > enough_) sizes.push_back(magnitude(e));
        std::sort(sizes.begin(), sizes.end());
        std::vector<double> result;
        for (std::size_t at = sizes.size(); at-- > 1;)
            if (sizes[at] > 4.0 * words_ * sizes[at - 1]) result.push_back(sizes[at - 1]);
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
        if (given.size() * items() > most_counts) return false;
        Exchanges exchanges(given.size());
        const double nearest = find_exchanges(3.0 * words_ * low, exchanges, stop);
        if (!exchanges.small()) return false;
        const Exchanges::Sizes<Exact> sizes(exchanges, given);
        const std::vector<Exact> now = sizes.divided(0);
        double total = 0.0, positive = 0.0;  // R, P
        for (int dep = 1; dep <= words_; ++dep) {
            double most = 0.0, highest = 0.0;
            for (std::size_t e = static_cast<std::size_t>(dep); e < v_.size();
                 e += static_cast<std::size_t>(words_) + 1)
                if (possible_[e]) {
                    const double rest =
                        size(kind_[e] == none ? v_[e] : v_[e] - now[static_cast<std::size_t>(kind_[e])]);
                    most = std::max(most, std::fabs(rest));
                    highest = std::max(highest, rest);
                }
            total += most;
            positive += highest;
        }
        const double by = (nearest - 1.001 * total) / (1.001 * positive + enough_);  // with room for rounding
        if (!(by >= 2.0)) return false;
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
        if (!(after < 0.9 * before)) return false;
        v_ = std::move(narrower);
        return true;
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

    /// Steps that fall short by no more than `near` make rows of `exchanges`. Returns the least that others fall short by.
    double find_exchanges(double near, Exchanges& exchanges, StopSignal& stop) {
        find_best(stop);
        const std::size_t kinds = exchanges.kinds();
        std::vector<std::int32_t> counts(items() * kinds, 0);  // what the best derivation of an item has of each kind
        std::vector<std::int64_t> row(kinds);
        const auto count = [&](const Step& s) {
            const std::int32_t *a = counts.data() + id(s.a) * kinds, *b = counts.data() + id(s.b) * kinds;
            for (std::size_t k = 0; k < kinds; ++k) row[k] = a[k] + b[k];
            if (s.edge != none && kind_[static_cast<std::size_t>(s.edge)] != none)
                ++row[static_cast<std::size_t>(kind_[static_cast<std::size_t>(s.edge)])];
        };
        each_item(true, stop, [&](const Item& item) {
            if (!present(item)) return;
            count(step(item, best_[id(item)]));
            std::copy(row.begin(), row.end(), counts.begin() + static_cast<std::ptrdiff_t>(id(item) * kinds));
        });
        double nearest = infinity;
        each_shortfall(stop, [&](const Item& item, int choice, const Step& s, double shortfall) {
            if (shortfall > near) {
                nearest = std::min(nearest, shortfall);
            } else if (choice != best_[id(item)]) {
                count(s);
                for (std::size_t k = 0; k < kinds; ++k) row[k] -= counts[id(item) * kinds + k];
                if (std::any_of(row.begin(), row.end(), [](std::int64_t x) { return x != 0; })) exchanges.add(row);
            }
        });
        return nearest;
    }

    /// Edges that were dropped get a number so low that no tree with one of them matters.
    std::vector<double> numbers() const {
        constexpr double largest = 1e280;  // further out, exponentials have no exponents
        std::vector<double> result(v_.size(), minus_infinity<double>);
        double lowest = -std::ldexp(enough_, down);
        for (int dep = 1; dep <= words_; ++dep) {
            double highest = 0.0;
            for (std::size_t e = static_cast<std::size_t>(dep); e < v_.size();
                 e += static_cast<std::size_t>(words_) + 1)
                if (possible_[e]) {
                    result[e] = std::clamp(v_[e].value(unit_), -largest, largest);
                    highest = std::max(highest, result[e]);
                }
            lowest -= highest;
        }
        for (std::size_t e = 0; e < v_.size(); ++e)
            if (dropped_[e]) result[e] = std::max(lowest, -largest);
        return result;
    }

    int words_, first_, nodes_, unit_;
    double enough_ = 0.0;         // B, like all sizes in units of 2^down
    std::vector<Exact> v_;        // by edge
    std::vector<bool> possible_;  // edges that may be in a tree that matters
    std::vector<bool> dropped_;   // those that were possible once
    std::vector<int> kind_;       // of large numbers, by edge, or none
    std::vector<Exact> inside_;   // V, by item
    std::vector<int> best_;       // by item: the step that V comes from, or none
};

}  // namespace spantree
