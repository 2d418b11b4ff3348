// Derivatives of the logarithms of all marginals along one direction or several; mixed second ones: mixed_slopes.hpp.
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
// of the size of r. With m the marginals, the second derivatives of log Z, contracted with g, follow:
//
//   hessian(g)   =  m * slope_g(m)                                     the covariance of each edge with the sum of g over the tree
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
#include "outside_with_slopes.hpp"
#include "slope_terms.hpp"

namespace spantree::projective {

namespace details {

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

}  // namespace spantree::projective
