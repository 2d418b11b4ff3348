// The outside chart and its slopes (slopes.hpp) in one walk over the terms.
#pragma once

#include <algorithm>
#include <cstddef>

#include "slope_terms.hpp"

namespace spantree::projective {

namespace details {

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

}  // namespace details

}  // namespace spantree::projective
