// Mixed second derivatives of the logarithms of all marginals, along two directions u and g at once.
//
// They are averages, as slopes are (slopes.hpp): of log x,
//
//   mixed of a product a b                 =  mixed(a) + mixed(b)
//   mixed of a sum of products x = a b     =  sum of share(x) * (mixed(x) + (slope_u(x) - slope_u(sum)) (slope_g(x) - slope_g(sum)))
//   mixed of an edge's weight              =  given (that of a sum over labels; 0 without labels)
//
// With m the marginals, the third derivatives of log Z, contracted with u and g, follow:
//
//   third(u, g)  =  m * (mixed(m) + slope_u(m) * slope_g(m))
//
// O(n^3) time, O(n^2) memory.
#pragma once

#include <cstddef>

#include "../batch/parallel.hpp"
#include "../simd/dispatch.hpp"
#include "slopes.hpp"

namespace spantree::projective {

namespace details {

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

}  // namespace details

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
