// What slopes (slopes.hpp) are made of: the parts of a sum's terms, blocks of items, and the terms that each item outside is
// gathered from.
#pragma once

#include <cstddef>

#include "../simd/dispatch.hpp"
#include "edge_values.hpp"
#include "inside_outside.hpp"

namespace spantree::projective {

namespace details {

/// A sum's terms, the sum, and how to find numbers that lie in tables like the terms' factors.
template <class Ring>
struct SumOfTerms {
    const Terms<double>& terms;
    std::ptrdiff_t plane;
    const typename Ring::Block& sum;
};

/// Adds the terms' part of the sum's slopes. Two chains of additions, so that one need not wait for the other.
template <class Ring, int count>
[[gnu::always_inline]] inline void add_slopes(const SumOfTerms<Ring>& of, const Terms<double>& slopes,
                                              std::ptrdiff_t slope_plane, typename Ring::Reals (&to)[count]) {
    using Reals = typename Ring::Reals;
    const typename Ring::Shares share(of.terms, of.plane, of.sum);
    Reals even[count] = {}, odd[count] = {};
    const auto add = [&](Reals(&into)[count], int u) __attribute__((always_inline)) {
        const Reals part = share(u);
#pragma GCC unroll 4
        for (int k = 0; k < count; ++k) into[k] += part * slope_of_product<Ring::lanes>(slopes, slope_plane, u, k);
    };
    int u = 0;
    for (; u + 1 < of.terms.count; u += 2) {
        add(even, u);
        add(odd, u + 1);
    }
    if (u < of.terms.count) add(even, u);
#pragma GCC unroll 4
    for (int k = 0; k < count; ++k) to[k] += share.unit() * (even[k] + odd[k]);
}

/// The slopes of a block of items along `count` directions.
template <class Ring, int count>
struct SlopeBlock {
    typename Ring::Reals of[count] = {};

    [[gnu::always_inline]] static SlopeBlock load_from(const double* from, std::ptrdiff_t plane) {
        SlopeBlock x;
        for (int k = 0; k < count; ++k) x.of[k] = spantree::load<Ring::lanes>(from + k * plane);
        return x;
    }
    [[gnu::always_inline]] void store_to(double* to, std::ptrdiff_t plane) const {
        for (int k = 0; k < count; ++k) spantree::store(to + k * plane, of[k]);
    }
    [[gnu::always_inline]] static SlopeBlock load(const Table<Slopes<count>>& table, int i, int j) {
        return load_from(table.at(i, j), table.plane());
    }
    [[gnu::always_inline]] void store(Table<Slopes<count>>& table, int i, int j) const {
        store_to(table.at(i, j), table.plane());
    }
    [[gnu::always_inline]] friend SlopeBlock operator+(const SlopeBlock& a, const SlopeBlock& b) {
        SlopeBlock x;
        for (int k = 0; k < count; ++k) x.of[k] = a.of[k] + b.of[k];
        return x;
    }
};

/// The two kinds of terms that bar right, and bar left, is gathered from; and those of bar arcs. Called with the charts of
/// values and with those of slopes.
struct FromLinksToRight {
    static auto of(const auto& out, const auto& in, int i, int j) { return out.right_terms_from_links(in, i, j); }
};
struct FromRightsToRight {
    static auto of(const auto& out, const auto& in, int i, int j) { return out.right_terms_from_rights(in, i, j); }
};
struct FromLinksToLeft {
    static auto of(const auto& out, const auto& in, int i, int j) { return out.left_terms_from_links(in, i, j); }
};
struct FromLeftsToLeft {
    static auto of(const auto& out, const auto& in, int i, int j) { return out.left_terms_from_lefts(in, i, j); }
};
struct ToArcRight {
    static auto of(const auto& out, const auto& in, int i, int j) { return out.arc_right_terms(in, i, j); }
};
struct ToArcLeft {
    static auto of(const auto& out, const auto& in, int i, int j) { return out.arc_left_terms(in, i, j); }
};

/// The shares of bar arc_right * w and bar arc_left * w in bar link.
template <class Ring>
struct LinkShares {
    typename Ring::Reals right, left;
    template <class Of>
    [[gnu::always_inline]] LinkShares(const InsideOutside<Of>& sums, int i, int j) {
        const auto value = [&](const Table<Of>& table) { return Ring::load(table.at(i, j), sums.plane()); };
        const auto link = value(sums.outside().link);
        right = Ring::share(Ring::times(value(sums.outside().arc_right), value(sums.weights().right)), link);
        left = Ring::share(Ring::times(value(sums.outside().arc_left), value(sums.weights().left)), link);
    }
};

/// The slope of bar link, from those of bar arcs.
template <class In, class Ring, int count>
[[gnu::always_inline]] inline void write_slope_of_link(const InsideOutside<Ring>& sums, const EdgeNumbers<count>& r,
                                                       OutsideChart<Slopes<count>>& slope, int i, int j) {
    using B = SlopeBlock<In, count>;
    const LinkShares<In> share(sums, i, j);
    const B right = B::load(slope.arc_right, i, j) + B::load(r.right, i, j),
            left = B::load(slope.arc_left, i, j) + B::load(r.left, i, j);
    B link;
    for (int k = 0; k < count; ++k) link.of[k] = share.right * right.of[k] + share.left * left.of[k];
    link.store(slope.link, i, j);
}

/// And bar link itself. `outside` is that of `sums`.
template <class In, class Ring, int count>
[[gnu::always_inline]] inline void write_link(const InsideOutside<Ring>& sums, const EdgeNumbers<count>& r,
                                              OutsideChart<Ring>& outside, OutsideChart<Slopes<count>>& slope, int i,
                                              int j, std::ptrdiff_t plane) {
    const auto weigh = [&](const Table<Ring>& arcs, const Table<Ring>& weights) {
        return In::times(In::load(arcs.at(i, j), plane), In::load(weights.at(i, j), plane));
    };
    In::store(outside.link.at(i, j), plane,
              In::plus(weigh(outside.arc_right, sums.weights().right), weigh(outside.arc_left, sums.weights().left)));
    write_slope_of_link<In>(sums, r, slope, i, j);
}

}  // namespace details

}  // namespace spantree::projective
