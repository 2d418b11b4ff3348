// Derivatives of the logarithms of all marginals along one direction or several, and mixed second ones along two.
//
// Let the scores of the edges move by r, and call d log x the slope of x. Every item of the charts is a sum of products,
// and with share(a b) = a b / sum, nonnegative numbers that add up to 1,
//
//   slope of a product a b                 =  slope(a) + slope(b)
//   slope of a sum of products a b         =  sum of share(a b) * (slope(a) + slope(b))
//   slope of an edge's weight              =  r
//   slope of an edge's marginal            =  slope(arc) + slope(bar arc) - slope(Z)
//
// Averages, never quotients of small differences: whatever the scale of the scores, slopes are exact to rounding errors
// of the size of r. Of two directions u and g at once, the mixed second derivative of log x is an average too:
//
//   mixed of a product a b                 =  mixed(a) + mixed(b)
//   mixed of a sum of products x = a b     =  sum of share(x) * (mixed(x) + (slope_u(x) - slope_u(sum)) (slope_g(x) - slope_g(sum)))
//   mixed of an edge's weight              =  given (that of a sum over labels; 0 without labels)
//
// With m the marginals, the second and third derivatives of log Z, contracted with g, and with u and g, follow:
//
//   hessian(g)   =  m * slope_g(m)                                     the covariance of each edge with the sum of g over the tree
//   third(u, g)  =  m * (mixed(m) + slope_u(m) * slope_g(m))
//
// A constant per word taken off r changes none of these. Taking off r of the word's likeliest head leaves, when one tree
// has nearly all the mass, slopes near 0 whose differences are exact to their own last bits.
//
// O(n^3) time, about twice that of inside and outside; O(n^2) memory, ten tables a direction.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "../batch/aligned_buffer.hpp"
#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
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

/// Adds the terms' part of the sum's mixed derivative; `mean` holds the sum's two slopes.
template <class Ring>
[[gnu::always_inline]] inline void add_mixed(const SumOfTerms<Ring>& of, const Terms<double>& slopes,
                                             std::ptrdiff_t slope_plane, const Terms<double>& mixed,
                                             const typename Ring::Reals (&mean)[2], typename Ring::Reals& to) {
    const typename Ring::Shares share(of.terms, of.plane, of.sum);
    to += share.unit() * details::sum<Ring::lanes>(of.terms.count, [&](int u) __attribute__((always_inline)) {
              return share(u) * (slope_of_product<Ring::lanes>(mixed, 0, u) +
                                 (slope_of_product<Ring::lanes>(slopes, slope_plane, u, 0) - mean[0]) *
                                     (slope_of_product<Ring::lanes>(slopes, slope_plane, u, 1) - mean[1]));
          });
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

/// Items are taken block by block, all widths of a block together: what one width's sums read of them, the next one's read
/// again, and find near. Inside, blocks to the right come first and wider items last; outside, it is the other way around.
template <class Ring, int count>
struct InsideSlopes {
    template <class Registers>
    struct Kernel {
        static void run(const Chart<Ring>& inside, const EdgeNumbers<count>& r, Chart<Slopes<count>>& slope, int i,
                        const Widths& widths) {
            using In = typename Ring::template In<Registers::width>;
            using B = SlopeBlock<In, count>;
            for (int width = widths.first; width <= widths.last; ++width)
                for (int at = i; at < i + Ring::lanes && at + width < inside.nodes(); at += In::lanes) {
                    const int j = at + width;
                    const auto mean = [&](const auto& terms, const auto& slopes, const double* sum)
                                          __attribute__((always_inline)) {
                                              B x;
                                              add_slopes<In>({terms, inside.plane(), In::load(sum, inside.plane())},
                                                             slopes, slope.plane(), x.of);
                                              return x;
                                          };
                    const B link = mean(inside.link_terms(at, j), slope.link_terms(at, j), inside.link.at(at, j));
                    link.store(slope.link, at, j);
                    (link + B::load(r.right, at, j)).store(slope.arc_right, at, j);
                    (link + B::load(r.left, at, j)).store(slope.arc_left, at, j);
                    mean(inside.right_terms(at, j), slope.right_terms(at, j), inside.right.at(at, j))
                        .store(slope.right, at, j);
                    mean(inside.left_terms(at, j), slope.left_terms(at, j), inside.left.at(at, j))
                        .store(slope.left, at, j);
                }
        }
    };
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

/// Whether the outside's numbers are there already, or are found on the way.
enum class Outside { known, found };

template <class Ring, int count, Outside numbers>
struct OutsideSlopes {
    static constexpr bool known = numbers == Outside::known;
    using Numbers = std::conditional_t<known, const OutsideChart<Ring>, OutsideChart<Ring>>;

    template <class Registers>
    struct Kernel {
        using In = typename Ring::template In<Registers::width>;
        using B = SlopeBlock<In, count>;

        /// `outside` is that of `sums`.
        static void run(const InsideOutside<Ring>& sums, const EdgeNumbers<count>& r, const Chart<Slopes<count>>& in,
                        Numbers& outside, OutsideChart<Slopes<count>>& slope, int i, const Widths& widths) {
            const Chart<Ring>& inside = sums.inside();
            const std::ptrdiff_t plane = sums.plane();
            for (int width = widths.last; width >= widths.first; --width)
                for (int at = i; at < i + Ring::lanes && at + width < inside.nodes(); at += In::lanes) {
                    const int j = at + width;
                    const auto terms = [&]<class Kind>(Kind) __attribute__((always_inline)) {
                        return Both{Kind::of(outside, inside, at, j), Kind::of(slope, in, at, j)};
                    };
                    write_two(terms(FromLinksToRight{}), terms(FromRightsToRight{}), plane, slope.plane(),
                              outside.right.at(at, j), slope.right.at(at, j));
                    write_two(terms(FromLinksToLeft{}), terms(FromLeftsToLeft{}), plane, slope.plane(),
                              outside.left.at(at, j), slope.left.at(at, j));
                    write_one(terms(ToArcRight{}), plane, slope.plane(), outside.arc_right.at(at, j),
                              slope.arc_right.at(at, j));
                    write_one(terms(ToArcLeft{}), plane, slope.plane(), outside.arc_left.at(at, j),
                              slope.arc_left.at(at, j));
                    if constexpr (known)
                        write_slope_of_link<In>(sums, r, slope, at, j);
                    else
                        write_link<In>(sums, r, outside, slope, at, j, plane);
                }
        }

    private:
        struct Both {
            Terms<double> values, slopes;
        };
        using Cell = std::conditional_t<known, const double, double>;
        using Block = typename In::Block;

        /// An item that is gathered from two lists of terms and a seed, which lies where the item will: in `slope`, the seed's
        /// slope, where the item's will be.
        [[gnu::always_inline]] static void write_two(const Both& a, const Both& b, std::ptrdiff_t plane,
                                                     std::ptrdiff_t slope_plane, Cell* item, double* slope) {
            B x = B::load_from(slope, slope_plane);
            Block sum = In::load(item, plane);
            if constexpr (known) {
                add_slopes<In>({a.values, plane, sum}, a.slopes, slope_plane, x.of);
                add_slopes<In>({b.values, plane, sum}, b.slopes, slope_plane, x.of);
            } else {
                const Block seed = sum;
                sum = In::plus(seed,
                               In::plus(In::sum_of_products(a.values, plane), In::sum_of_products(b.values, plane)));
                In::store(item, plane, sum);
                const auto share = In::share(seed, sum);
                for (int k = 0; k < count; ++k) x.of[k] = share * x.of[k];
                add_slopes<In>({a.values, plane, sum}, a.slopes, slope_plane, x.of);
                add_slopes<In>({b.values, plane, sum}, b.slopes, slope_plane, x.of);
            }
            x.store_to(slope, slope_plane);
        }

        /// One that is gathered from a list of terms.
        [[gnu::always_inline]] static void write_one(const Both& a, std::ptrdiff_t plane, std::ptrdiff_t slope_plane,
                                                     Cell* item, double* slope) {
            B x;
            if constexpr (known) {
                add_slopes<In>({a.values, plane, In::load(item, plane)}, a.slopes, slope_plane, x.of);
            } else {
                const Block sum = In::sum_of_products(a.values, plane);
                In::store(item, plane, sum);
                add_slopes<In>({a.values, plane, sum}, a.slopes, slope_plane, x.of);
            }
            x.store_to(slope, slope_plane);
        }
    };
};

/// Found on the way in doubles, slopes need not wait for the sum that they are shares of: one walk over the terms for both.
///
/// Terms of wider items to the left are many tables' worth of numbers, more than the nearest cache holds, and nearly the same
/// for all widths of a block. Those that lie in other blocks are summed up ahead, one kind after the other, for several widths
/// at once.
template <class Ring, int count>
struct OutsideWithSlopes {
    static constexpr int lanes = Ring::lanes;
    static constexpr int kinds = 3, kept_numbers = kinds * 2 * (1 + count) * lanes;  // of each width

    template <class Registers>
    struct Kernel {
        using In = typename Ring::template In<Registers::width>;
        using B = SlopeBlock<In, count>;
        using Reals = typename In::Reals;
        using Sums = typename In::template TwoChains<count>;

        /// `outside` is that of `sums`. `ahead` has room for kept_numbers a width.
        static void run(const InsideOutside<Ring>& sums, const EdgeNumbers<count>& r, const Chart<Slopes<count>>& in,
                        OutsideChart<Ring>& outside, OutsideChart<Slopes<count>>& slope, double* ahead, int i,
                        const Widths& widths) {
            const Chart<Ring>& inside = sums.inside();
            const std::ptrdiff_t plane = sums.plane();
            const auto terms = [&]<class Kind>(Kind, int at, int width) __attribute__((always_inline)) {
                return Both{Kind::of(outside, inside, at, at + width), Kind::of(slope, in, at, at + width)};
            };
            // Of so many terms, how many belong to other blocks for sure; an even number: chains take turns as ever.
            const auto terms_ahead = [&](int terms) __attribute__((always_inline)) {
                return i > 0 ? std::max(terms - lanes, 0) & ~1 : 0;
            };
            const auto place = [&](int kind, int at, int width) __attribute__((always_inline)) {
                return ahead + ((width - widths.first) * kinds + kind) * (kept_numbers / kinds) +
                       (at - i) / In::lanes * Sums::numbers;
            };
            const auto add_ahead = [&]<class Kind>(Kind kind, int number) __attribute__((always_inline)) {
                for (int at = i; at < i + lanes; at += In::lanes)
                    for (int width = std::min(widths.last, inside.nodes() - 1 - at); width >= widths.first;) {
                        const auto some = [&]<int at_once>() __attribute__((always_inline)) {
                            Both of[at_once];
                            Sums x[at_once];
                            for (int k = 0; k < at_once; ++k) of[k] = terms(kind, at, width - k);
                            if (of[0].values.count != of[at_once - 1].values.count) return false;
                            add_first<at_once>(of, terms_ahead(of[0].values.count), slope.plane(), x);
                            for (int k = 0; k < at_once; ++k)
                                x[k].for_each(place(number, at, width - k),
                                              [](const Reals& y, double* to)
                                                  __attribute__((always_inline)) { spantree::store(to, y); });
                            width -= at_once;
                            return true;
                        };
                        if (width - widths.first + 1 < at_a_time || !some.template operator()<at_a_time>())
                            some.template operator()<1>();
                    }
            };
            if (i > 0) {
                add_ahead(FromRightsToRight{}, 0);
                add_ahead(FromLinksToLeft{}, 1);
                add_ahead(ToArcLeft{}, 2);
            }
            for (int width = widths.last; width >= widths.first; --width)
                for (int at = i; at < i + lanes && at + width < inside.nodes(); at += In::lanes) {
                    const int j = at + width;
                    const auto sum = [&](auto kind) __attribute__((always_inline)) {
                        const Both of = terms(kind, at, width);
                        Sums x;
                        x.add(of.values, of.slopes, slope.plane());
                        return x;
                    };
                    const auto sum_on = [&](auto kind, int number) __attribute__((always_inline)) {
                        const Both of = terms(kind, at, width);
                        const int done = terms_ahead(of.values.count);
                        Sums x;
                        if (done > 0)
                            x.for_each(place(number, at, width),
                                       [](Reals& y, double* from)
                                           __attribute__((always_inline)) { y = load<In::lanes>(from); });
                        x.add(of.values.from(done), of.slopes.from(done), slope.plane());
                        return x;
                    };
                    write_two(sum(FromLinksToRight{}), sum_on(FromRightsToRight{}, 0), slope.plane(),
                              outside.right.at(at, j), slope.right.at(at, j));
                    write_two(sum_on(FromLinksToLeft{}, 1), sum(FromLeftsToLeft{}), slope.plane(),
                              outside.left.at(at, j), slope.left.at(at, j));
                    write_one(sum(ToArcRight{}), slope.plane(), outside.arc_right.at(at, j), slope.arc_right.at(at, j));
                    write_one(sum_on(ToArcLeft{}, 2), slope.plane(), outside.arc_left.at(at, j),
                              slope.arc_left.at(at, j));
                    write_link<In>(sums, r, outside, slope, at, j, plane);
                }
        }

    private:
        struct Both {
            Terms<double> values, slopes;
        };
        static constexpr int at_a_time = In::lanes == 8 ? 4 : 2;  // as many as there are registers for

        /// The first terms of the sums of several widths, of which the second factors are the same.
        template <int at_once>
        [[gnu::always_inline]] static void add_first(const Both (&of)[at_once], int terms, std::ptrdiff_t slope_plane,
                                                     Sums (&to)[at_once]) {
            const auto add = [&](auto chain, int u) __attribute__((always_inline)) {
                const Reals b = load<In::lanes>(of[0].values.b + u * of[0].values.step_b);
                Reals slope_b[count];
                for (int k = 0; k < count; ++k)
                    slope_b[k] = load<In::lanes>(of[0].slopes.b + u * of[0].slopes.step_b + k * slope_plane);
#pragma GCC unroll 4
                for (int t = 0; t < at_once; ++t)
                    (to[t].*chain)
                        .add(load<In::lanes>(of[t].values.a + u * of[t].values.step_a) * b,
                             [&](int k) __attribute__((always_inline)) {
                                 return load<In::lanes>(of[t].slopes.a + u * of[t].slopes.step_a + k * slope_plane) +
                                        slope_b[k];
                             });
            };
            for (int u = 0; u < terms; u += 2) {
                add(&Sums::even, u);
                add(&Sums::odd, u + 1);
            }
        }

        /// An item that is gathered from two lists of terms and a seed, which lies where the item will: in `slope`, the seed's
        /// slope, where the item's will be.
        [[gnu::always_inline]] static void write_two(const Sums& a, const Sums& b, std::ptrdiff_t slope_plane,
                                                     double* item, double* slope) {
            B x = B::load_from(slope, slope_plane);
            const Reals seed = load<In::lanes>(item), sum = seed + (a.sum() + b.sum()), unit = In::unit(sum);
            spantree::store(item, sum);
            for (int k = 0; k < count; ++k)
                x.of[k] = ((seed * unit) * x.of[k] + unit * a.of_slope(k)) + unit * b.of_slope(k);
            x.store_to(slope, slope_plane);
        }

        /// One that is gathered from a list of terms.
        [[gnu::always_inline]] static void write_one(const Sums& a, std::ptrdiff_t slope_plane, double* item,
                                                     double* slope) {
            B x;
            const Reals sum = a.sum(), unit = In::unit(sum);
            spantree::store(item, sum);
            for (int k = 0; k < count; ++k) x.of[k] += unit * a.of_slope(k);
            x.store_to(slope, slope_plane);
        }
    };
};

template <class Ring>
struct InsideMixed {
    static void run(const Chart<Ring>& inside, const Chart<Slopes<2>>& slope, const EdgeNumbers<1>& r,
                    Chart<Slopes<1>>& mixed, int width) {
        using B = SlopeBlock<Ring, 1>;
        for (int i = 0; i + width < inside.nodes(); i += Ring::lanes) {
            const int j = i + width;
            const auto mean = [&](const auto& terms, const auto& slopes, const auto& mixes, const Table<Ring>& table,
                                  const Table<Slopes<2>>& table_slope) {
                B x;
                add_mixed<Ring>({terms, inside.plane(), Ring::load(table.at(i, j), inside.plane())}, slopes,
                                slope.plane(), mixes, SlopeBlock<Ring, 2>::load(table_slope, i, j).of, x.of[0]);
                return x;
            };
            const B link =
                mean(inside.link_terms(i, j), slope.link_terms(i, j), mixed.link_terms(i, j), inside.link, slope.link);
            (link + B::load(r.right, i, j)).store(mixed.arc_right, i, j);
            (link + B::load(r.left, i, j)).store(mixed.arc_left, i, j);
            mean(inside.right_terms(i, j), slope.right_terms(i, j), mixed.right_terms(i, j), inside.right, slope.right)
                .store(mixed.right, i, j);
            mean(inside.left_terms(i, j), slope.left_terms(i, j), mixed.left_terms(i, j), inside.left, slope.left)
                .store(mixed.left, i, j);
        }
    }
};

template <class Ring>
struct OutsideMixed {
    static void run(const InsideOutside<Ring>& sums, const Chart<Slopes<2>>& slope_in,
                    const OutsideChart<Slopes<2>>& slope, const EdgeNumbers<2>& r, const Chart<Slopes<1>>& in,
                    const EdgeNumbers<1>& r_mixed, OutsideChart<Slopes<1>>& mixed, int width) {
        using B = SlopeBlock<Ring, 1>;
        const Chart<Ring>& inside = sums.inside();
        const OutsideChart<Ring>& outside = sums.outside();
        for (int i = 0; i + width < inside.nodes(); i += Ring::lanes) {
            const int j = i + width;
            const auto add = [&]<class Kind>(Kind, const Table<Ring>& table, const Table<Slopes<2>>& table_slope,
                                             B& to) {
                add_mixed<Ring>(
                    {Kind::of(outside, inside, i, j), sums.plane(), Ring::load(table.at(i, j), sums.plane())},
                    Kind::of(slope, slope_in, i, j), slope.plane(), Kind::of(mixed, in, i, j),
                    SlopeBlock<Ring, 2>::load(table_slope, i, j).of, to.of[0]);
            };
            B right = B::load(mixed.right, i, j), left = B::load(mixed.left, i, j), arc_right, arc_left, link;
            add(FromLinksToRight{}, outside.right, slope.right, right);
            add(FromRightsToRight{}, outside.right, slope.right, right);
            right.store(mixed.right, i, j);
            add(FromLinksToLeft{}, outside.left, slope.left, left);
            add(FromLeftsToLeft{}, outside.left, slope.left, left);
            left.store(mixed.left, i, j);
            add(ToArcRight{}, outside.arc_right, slope.arc_right, arc_right);
            add(ToArcLeft{}, outside.arc_left, slope.arc_left, arc_left);
            arc_right.store(mixed.arc_right, i, j);
            arc_left.store(mixed.arc_left, i, j);
            const LinkShares<Ring> share(sums, i, j);
            const auto mean = SlopeBlock<Ring, 2>::load(slope.link, i, j);
            const auto right_slope =
                SlopeBlock<Ring, 2>::load(slope.arc_right, i, j) + SlopeBlock<Ring, 2>::load(r.right, i, j);
            const auto left_slope =
                SlopeBlock<Ring, 2>::load(slope.arc_left, i, j) + SlopeBlock<Ring, 2>::load(r.left, i, j);
            const auto around = [&](const auto& x) { return (x.of[0] - mean.of[0]) * (x.of[1] - mean.of[1]); };
            link.of[0] = share.right * ((arc_right.of[0] + B::load(r_mixed.right, i, j).of[0]) + around(right_slope)) +
                         share.left * ((arc_left.of[0] + B::load(r_mixed.left, i, j).of[0]) + around(left_slope));
            link.store(mixed.link, i, j);
        }
    }
};

/// Runs body(width) for all widths, narrow ones first or last.
template <class Body>
void for_each_width(int last, bool narrow_first, StopSignal& stop, Body body) {
    for (int step = 1; step <= last; ++step) {
        const int width = narrow_first ? step : last + 1 - step;
        check_between_widths(stop, width);
        body(width);
    }
}

inline constexpr int widths_between_checks = 64;

/// Runs body(i, widths) for all blocks, `lanes` items wide, from right to left and narrow ones first, or the other way around.
template <int lanes, class Body>
void for_each_block_and_widths(int nodes, bool inside, StopSignal& stop, Body body) {
    const int last = nodes - 2;  // that is the left end of an item
    for (int step = 0; step <= last; step += lanes) {
        const int i = inside ? last / lanes * lanes - step : step, widest = nodes - 1 - i;
        for (int passed = 0; passed < widest; passed += widths_between_checks) {
            if (nodes > widths_between_checks) stop.check();
            const int some = std::min(widths_between_checks, widest - passed);
            body(i, inside ? Widths{passed + 1, passed + some} : Widths{widest - passed - some + 1, widest - passed});
        }
    }
}

}  // namespace details

/// Single root: the share of the seed in bar left(1, node), bar right(node, n).
template <class Ring>
struct SeedShares {
    double left, right;
    SeedShares(const InsideOutside<Ring>& sums, int node)
        : left(Ring::Scalar::share(sums.seed_left(node), sums.get(sums.outside().left, 0, node))[0]),
          right(Ring::Scalar::share(sums.seed_right(node), sums.get(sums.outside().right, node, sums.last()))[0]) {}
};

/// Slopes along `count` directions. Scratch memory; reused from sentence to sentence on one thread.
template <int count>
class ChartSlopes {
public:
    /// `sums` after run_outside.
    template <class Ring>
    void run(const InsideOutside<Ring>& sums, const EdgeNumbers<count>& r, StopSignal& stop) {
        run_inside(sums, r, stop);
        for (int node = 0; sums.root() == Root::single && node <= sums.last(); ++node) {
            const SeedShares<Ring> share(sums, node);
            for (int k = 0; k < count; ++k) {
                outside.left.at(0, node)[k * outside.plane()] *= share.left;
                outside.right.at(node, sums.last())[k * outside.plane()] *= share.right;
            }
        }
        run_outside<details::Outside::known>(sums, r, sums.outside(), stop);
    }

    /// `sums` after run_inside: finds its outside too.
    template <class Ring>
    void run_with_outside(InsideOutside<Ring>& sums, const EdgeNumbers<count>& r, StopSignal& stop) {
        run_inside(sums, r, stop);
        OutsideChart<Ring>& bars = sums.seeded_outside();
        if constexpr (Ring::parts == 1) {
            using Kernel = details::OutsideWithSlopes<Ring, count>;
            double* const ahead =
                ahead_.reserve(static_cast<std::size_t>(std::min(inside.nodes(), details::widths_between_checks)) *
                               Kernel::kept_numbers);
            details::for_each_block_and_widths<Ring::lanes>(
                inside.nodes(), false, stop, [&](int i, const Widths& widths) {
                    dispatch_on_registers<Kernel>(sums, r, inside, bars, outside, ahead, i, widths);
                });
        } else {
            run_outside<details::Outside::found>(sums, r, bars, stop);
        }
    }

    /// The slope of an edge's marginal.
    double of_marginal(const EdgeNumbers<count>& r, int head, int dep, int k = 0) const {
        return arc(r, head, dep, k) - total[k];
    }

    /// The slopes of the marginals of a head's edges, by dependent; at the head itself, and at 0, nothing is written.
    void of_marginals(const EdgeNumbers<count>& r, int head, double* to) const {
        const int i = head - inside.first(), last = inside.nodes() - 1;
        to += inside.first();
        if (i < 0)
            for (int node = 0; node <= last; ++node) to[node] = rooted(r, node, 0) - total[0];
        const double *in = inside.arc_right.at(i, i), *out = outside.arc_right.at(i, i);
        const std::ptrdiff_t step = inside.step();
        for (int j = i + 1; i >= 0 && j <= last; ++j) to[j] = (*(in += step) + *(out += step)) - total[0];
        in = inside.arc_left.at(i, i);
        out = outside.arc_left.at(i, i);
        for (int j = i - 1; j >= 1 - inside.first(); --j) to[j] = (*(in += step - 1) + *(out += step - 1)) - total[0];
    }

    /// Of the sum over all trees with the root word `node`.
    double rooted(const EdgeNumbers<count>& r, int node, int k) const {
        return before(node, k) + r.root_value(node, k) + after(node, k);
    }
    double before(int node, int k) const { return inside.left.at(0, node)[k * inside.plane()]; }
    double after(int node, int k) const { return inside.right.at(node, inside.nodes() - 1)[k * inside.plane()]; }

    std::size_t bytes() const { return inside.bytes() + outside.bytes() + ahead_.bytes(); }

    Chart<Slopes<count>> inside;
    OutsideChart<Slopes<count>> outside;
    double total[count] = {};  // of Z

private:
    /// And the slopes of the outside's seeds.
    template <class Ring>
    void run_inside(const InsideOutside<Ring>& sums, const EdgeNumbers<count>& r, StopSignal& stop) {
        inside.resize(sums.words(), sums.root());
        outside.resize(sums.words(), sums.root());
        outside.right.clear();
        outside.left.clear();
        details::for_each_block_and_widths<Ring::lanes>(inside.nodes(), true, stop, [&](int i, const Widths& widths) {
            dispatch_on_registers<details::InsideSlopes<Ring, count>>(sums.inside(), r, inside, i, widths);
        });
        for (int k = 0; k < count; ++k)
            total[k] =
                sums.root() == Root::multi ? inside.right.at(0, sums.last())[k * inside.plane()] : seed(sums, r, k);
    }

    template <details::Outside numbers, class Ring, class Numbers>
    void run_outside(const InsideOutside<Ring>& sums, const EdgeNumbers<count>& r, Numbers& bars, StopSignal& stop) {
        details::for_each_block_and_widths<Ring::lanes>(inside.nodes(), false, stop, [&](int i, const Widths& widths) {
            dispatch_on_registers<details::OutsideSlopes<Ring, count, numbers>>(sums, r, inside, bars, outside, i,
                                                                                widths);
        });
    }

    /// Single root. Returns the slope of Z.
    template <class Ring>
    double seed(const InsideOutside<Ring>& sums, const EdgeNumbers<count>& r, int k) {
        const std::ptrdiff_t plane = k * outside.plane();
        double mean = 0.0;
        for (int node = 0; node <= sums.last(); ++node) {
            outside.left.at(0, node)[plane] = after(node, k) + r.root_value(node, k);
            outside.right.at(node, sums.last())[plane] = before(node, k) + r.root_value(node, k);
            mean += sums.root_marginal(node) * rooted(r, node, k);
        }
        return mean;
    }

    double arc(const EdgeNumbers<count>& r, int head, int dep, int k) const {
        const int h = head - inside.first(), d = dep - inside.first();
        const std::ptrdiff_t plane = k * inside.plane();
        if (h < 0) return rooted(r, d, k);
        return h < d ? inside.arc_right.at(h, d)[plane] + outside.arc_right.at(h, d)[plane]
                     : inside.arc_left.at(d, h)[plane] + outside.arc_left.at(d, h)[plane];
    }

    AlignedBuffer<double> ahead_;
};

/// Mixed second derivatives along the two directions of a ChartSlopes.
class MixedSlopes {
public:
    /// `slope` after run with these `sums` and `r`; `r_mixed` are those of the edges' weights.
    template <class Ring>
    void run(const InsideOutside<Ring>& sums, const ChartSlopes<2>& slope, const EdgeNumbers<2>& r,
             const EdgeNumbers<1>& r_mixed, StopSignal& stop) {
        inside_.resize(sums.words(), sums.root());
        outside_.resize(sums.words(), sums.root());
        outside_.right.clear();
        outside_.left.clear();
        details::for_each_width(sums.last(), true, stop, [&](int width) {
            dispatch<details::InsideMixed<Ring>>(sums.inside(), slope.inside, r_mixed, inside_, width);
        });
        total_ = sums.root() == Root::multi ? *inside_.right.at(0, sums.last()) : seed(sums, slope, r, r_mixed);
        details::for_each_width(sums.last(), false, stop, [&](int width) {
            dispatch<details::OutsideMixed<Ring>>(sums, slope.inside, slope.outside, r, inside_, r_mixed, outside_,
                                                  width);
        });
    }

    /// The mixed derivative of an edge's marginal.
    double of_marginal(const EdgeNumbers<1>& r_mixed, int head, int dep) const {
        const int h = head - inside_.first(), d = dep - inside_.first();
        const double arc = h < 0   ? rooted(r_mixed, d)
                           : h < d ? *inside_.arc_right.at(h, d) + *outside_.arc_right.at(h, d)
                                   : *inside_.arc_left.at(d, h) + *outside_.arc_left.at(d, h);
        return arc - total_;
    }

    std::size_t bytes() const { return inside_.bytes() + outside_.bytes(); }

private:
    double before(int node) const { return *inside_.left.at(0, node); }
    double after(int node) const { return *inside_.right.at(node, inside_.nodes() - 1); }
    double rooted(const EdgeNumbers<1>& r_mixed, int node) const {
        return before(node) + r_mixed.root_value(node) + after(node);
    }

    template <class Ring>
    double seed(const InsideOutside<Ring>& sums, const ChartSlopes<2>& slope, const EdgeNumbers<2>& r,
                const EdgeNumbers<1>& r_mixed) {
        const int last = sums.last();
        double mean = 0.0;
        for (int node = 0; node <= last; ++node) {
            const SeedShares<Ring> share(sums, node);
            const auto around = [&](auto slope_of, auto mean_of) {
                return (slope_of(0) - mean_of(0)) * (slope_of(1) - mean_of(1));
            };
            const auto at = [&](const Table<Slopes<2>>& table, int i, int j) {
                return [&table, i, j](int k) { return table.at(i, j)[k * table.plane()]; };
            };
            // Only after the slopes of bar left and bar right are complete, as they are here, can this be said.
            *outside_.left.at(0, node) =
                share.left * ((after(node) + r_mixed.root_value(node)) +
                              around([&](int k) { return slope.after(node, k) + r.root_value(node, k); },
                                     at(slope.outside.left, 0, node)));
            *outside_.right.at(node, last) =
                share.right * ((before(node) + r_mixed.root_value(node)) +
                               around([&](int k) { return slope.before(node, k) + r.root_value(node, k); },
                                      at(slope.outside.right, node, last)));
            mean += sums.root_marginal(node) *
                    (rooted(r_mixed, node) +
                     around([&](int k) { return slope.rooted(r, node, k); }, [&](int k) { return slope.total[k]; }));
        }
        return mean;
    }

    Chart<Slopes<1>> inside_;
    OutsideChart<Slopes<1>> outside_;
    double total_ = 0.0;
};

}  // namespace spantree::projective
