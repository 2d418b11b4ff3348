// The covariance of every edge with a sum over the tree's edges, all edges at once: the derivative of the marginals in
// the direction r, and, the Jacobian being symmetric, also the gradient of sum(r * marginals). O(n^3) time, O(n^2)
// memory.
//
//   Cov(edge e, sum of r over the tree) = marginal(e) * (E[sum of r | e in the tree] - E[sum of r])
//
// Each item x of the charts gets a tangent t(x) = d log x: the expected sum of r over the edges x is made of. A sum of
// products is differentiated as
//   t(sum of a * b) = sum of share(a * b) * (t(a) + t(b)),      the shares being nonnegative and adding up to 1:
// an average, never a quotient of small differences. And E[sum of r | e] = t(arc) + t(bar arc).
//
// A constant per word taken off r changes no covariance. Taking off r of the word's likeliest head leaves, when one
// tree has nearly all the mass, tangents near 0 whose differences are exact to their own last bits.
#pragma once

#include <cstddef>
#include <vector>

#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../simd/dispatch.hpp"
#include "edge_values.hpp"
#include "inside_outside.hpp"

namespace spantree::projective {

namespace details {

/// The average of the terms' tangents.
template <class Ring>
[[gnu::always_inline]] inline typename Ring::Reals mean_tangent(const Terms<double>& terms,
                                                                const Terms<double>& tangents,
                                                                const typename Ring::Block& sum, std::ptrdiff_t plane) {
    const typename Ring::Shares share(terms, plane, sum);
    return share.unit() * details::sum<Ring::lanes>(terms.count, [&](int u) __attribute__((always_inline)) {
               return share(u) * (spantree::load<Ring::lanes>(tangents.a + u * tangents.step_a) +
                                  spantree::load<Ring::lanes>(tangents.b + u * tangents.step_b));
           });
}

template <class Ring>
struct InsideTangents {
    static void run(const Chart<Ring>& inside, const EdgeValues& r, Chart<Linear<>>& tangent, int width) {
        const std::ptrdiff_t plane = inside.plane();
        for (int i = 0; i + width < inside.nodes(); i += Ring::lanes) {
            const int j = i + width;
            const auto mean = [&](const auto& terms, const auto& tangents, const Table<Ring>& sum) {
                return mean_tangent<Ring>(terms, tangents, Ring::load(sum.at(i, j), plane), plane);
            };
            const auto load = [&](const Table<Linear<>>& table) { return spantree::load<Ring::lanes>(table.at(i, j)); };
            const auto link = mean(inside.link_terms(i, j), tangent.link_terms(i, j), inside.link);
            spantree::store(tangent.arc_right.at(i, j), link + load(r.right));
            spantree::store(tangent.arc_left.at(i, j), link + load(r.left));
            spantree::store(tangent.right.at(i, j),
                            mean(inside.right_terms(i, j), tangent.right_terms(i, j), inside.right));
            spantree::store(tangent.left.at(i, j),
                            mean(inside.left_terms(i, j), tangent.left_terms(i, j), inside.left));
        }
    }
};

template <class Ring>
struct OutsideTangents {
    static void run(const InsideOutside<Ring>& sums, const EdgeValues& r, const Chart<Linear<>>& in,
                    OutsideChart<Linear<>>& tangent, int width) {
        const std::ptrdiff_t plane = sums.plane();
        const Chart<Ring>& inside = sums.inside();
        const OutsideChart<Ring>& outside = sums.outside();
        for (int i = 0; i + width < inside.nodes(); i += Ring::lanes) {
            const int j = i + width;
            const auto value = [&](const Table<Ring>& table) { return Ring::load(table.at(i, j), plane); };
            const auto load = [&](const Table<Linear<>>& table) { return spantree::load<Ring::lanes>(table.at(i, j)); };
            const auto mean = [&](auto terms_of, const Table<Ring>& sum) {
                return mean_tangent<Ring>(terms_of(outside, inside), terms_of(tangent, in), value(sum), plane);
            };
            const auto right =
                mean([&](auto& out, auto& in) { return out.right_terms_from_links(in, i, j); }, outside.right) +
                mean([&](auto& out, auto& in) { return out.right_terms_from_rights(in, i, j); }, outside.right);
            const auto left =
                mean([&](auto& out, auto& in) { return out.left_terms_from_links(in, i, j); }, outside.left) +
                mean([&](auto& out, auto& in) { return out.left_terms_from_lefts(in, i, j); }, outside.left);
            spantree::store(tangent.right.at(i, j), load(tangent.right) + right);
            spantree::store(tangent.left.at(i, j), load(tangent.left) + left);
            const auto arc_right =
                mean([&](auto& out, auto& in) { return out.arc_right_terms(in, i, j); }, outside.arc_right);
            const auto arc_left =
                mean([&](auto& out, auto& in) { return out.arc_left_terms(in, i, j); }, outside.arc_left);
            spantree::store(tangent.arc_right.at(i, j), arc_right);
            spantree::store(tangent.arc_left.at(i, j), arc_left);
            const auto share = [&](const Table<Ring>& arc, const Table<Ring>& weight) {
                return Ring::ratio(Ring::times(value(arc), value(weight)), value(outside.link));
            };
            spantree::store(tangent.link.at(i, j),
                            share(outside.arc_right, sums.weights().right) * (arc_right + load(r.right)) +
                                share(outside.arc_left, sums.weights().left) * (arc_left + load(r.left)));
        }
    }
};

}  // namespace details

/// Scratch memory; reused from sentence to sentence on one thread.
class EdgeCovariances {
public:
    /// `sums` after run_outside, `marginals` from it. On entry `values` holds r (its entries for forbidden edges do not
    /// matter); on return, the covariances.
    template <class Ring>
    void operator()(const InsideOutside<Ring>& sums, EdgeValues& marginals, EdgeValues& values, StopSignal& stop) {
        if (sums.words() == 0) return;
        centre(sums.words(), marginals, values);
        inside_.resize(sums.words(), sums.root());
        for (int width = 1; width <= sums.last(); ++width) {
            check_between_widths(stop, width);
            dispatch<details::InsideTangents<Ring>>(sums.inside(), values, inside_, width);
        }
        outside_.resize(sums.words(), sums.root());
        outside_.right.clear();
        outside_.left.clear();
        const double mean = sums.root() == Root::multi ? *inside_.right.at(0, sums.last()) : seed(sums, values);
        for (int width = sums.last(); width > 0; --width) {
            check_between_widths(stop, width);
            dispatch<details::OutsideTangents<Ring>>(sums, values, inside_, outside_, width);
        }
        finish(sums, marginals, values, mean);
    }

private:
    void centre(int words, EdgeValues& marginals, EdgeValues& r) {
        likeliest_.assign(static_cast<std::size_t>(words) + 1, {0.0, 0.0});
        marginals.for_each([&](double marginal, int head, int dep) {
            Likeliest& top = likeliest_[static_cast<std::size_t>(dep)];
            if (marginal > top.marginal) top = {marginal, r(head, dep)};
        });
        r.for_each([&](double& value, int head, int dep) {
            value = marginals(head, dep) > 0 ? value - likeliest_[static_cast<std::size_t>(dep)].value : 0.0;
        });
    }

    /// Single root: the tangents of the outside seeds, weighted by their shares. Returns E[sum of r].
    template <class Ring>
    double seed(const InsideOutside<Ring>& sums, const EdgeValues& r) {
        using Scalar = typename Ring::Scalar;
        const int last = sums.last();
        double mean = 0.0;
        for (int node = 0; node <= last; ++node) {
            const double from_root = r.from_root[static_cast<std::size_t>(node)];
            const double left = *inside_.left.at(0, node), right = *inside_.right.at(node, last);
            const auto share = [&](const auto& part, const Table<Ring>& table, int i, int j) {
                return Scalar::ratio(part, sums.get(table, i, j))[0];
            };
            if (node > 0)
                *outside_.left.at(0, node) =
                    share(sums.seed_left(node), sums.outside().left, 0, node) * (right + from_root);
            if (node < last)
                *outside_.right.at(node, last) =
                    share(sums.seed_right(node), sums.outside().right, node, last) * (left + from_root);
            mean += sums.root_marginal(node) * (left + from_root + right);
        }
        return mean;
    }

    template <class Ring>
    void finish(const InsideOutside<Ring>& sums, EdgeValues& marginals, EdgeValues& values, double mean) {
        const int first = inside_.first(), last = sums.last();
        values.for_each([&](double& value, int head, int dep) {
            const int h = head - first, d = dep - first;
            const double given_edge = h < 0   ? *inside_.left.at(0, d) + value + *inside_.right.at(d, last)
                                      : h < d ? *inside_.arc_right.at(h, d) + *outside_.arc_right.at(h, d)
                                              : *inside_.arc_left.at(d, h) + *outside_.arc_left.at(d, h);
            value = marginals(head, dep) * (given_edge - mean);
        });
    }

    struct Likeliest {
        double marginal, value;
    };
    std::vector<Likeliest> likeliest_;  // by word
    Chart<Linear<>> inside_;
    OutsideChart<Linear<>> outside_;
};

}  // namespace spantree::projective
