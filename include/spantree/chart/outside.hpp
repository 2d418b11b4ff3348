// What surrounds each item of the chart: bar(x) is the derivative of the total Z with respect to x.
//
// From chart.hpp's sums, read backwards, each a gathering over wider items:
//
//   bar right(i, j)      =  sum over j' > j   of  bar link(i, j') * left(j+1, j')
//                         + sum over i' < i   of  bar right(i', j) * arc_right(i', i)
//   bar left(i, j)       =  sum over i' < i   of  bar link(i', j) * right(i', i-1)
//                         + sum over j' > j   of  bar left(i, j') * arc_left(j, j')
//   bar arc_right(i, j)  =  sum over j' >= j  of  bar right(i, j') * right(j, j')
//   bar arc_left(i, j)   =  sum over i' <= i  of  bar left(i', j) * left(i', i)
//   bar link(i, j)       =  bar arc_right(i, j) * w(i -> j)  +  bar arc_left(i, j) * w(j -> i)
//
// and the seeds: with several roots
//
//   bar right(0, n)      =  1
//
// and with one, for every word r,
//
//   bar left(1, r)       =  w(ROOT -> r) * right(r, n)
//   bar right(r, n)      =  left(1, r) * w(ROOT -> r)
//
// An arc's marginal probability is arc * bar arc / Z. O(n^3) time, O(n^2) memory, (+) and (*) only.
#pragma once

#include <algorithm>
#include <cstddef>

#include "chart.hpp"

namespace spantree::projective {

template <class Ring>
struct OutsideChart : Chart<Ring> {
    using Cell = typename Ring::Cell;

    // What each item is gathered from, for the block that starts at (i, j). Items that are wider to the right exist up
    // to node n; those wider to the left as far as the block's last item has nodes to its left. Zeros stand where the
    // other lanes have none. To the left the widest come first: those of other blocks, which are known long before.
    Terms<Cell> right_terms_from_links(const Chart<Ring>& inside, int i, int j) const {
        return {this->link.at(i, j + 1), this->step(), inside.left.at(j + 1, j + 1), this->step(), to_the_right(j)};
    }
    Terms<Cell> right_terms_from_rights(const Chart<Ring>& inside, int i, int j) const {
        const int count = to_the_left(i, j), widest = i - count;
        return {this->right.at(widest, j), 1 - this->step(), inside.arc_right.at(widest, i), 1 - this->step(), count};
    }
    Terms<Cell> left_terms_from_links(const Chart<Ring>& inside, int i, int j) const {
        const int count = to_the_left(i, j), widest = i - count;
        return {this->link.at(widest, j), 1 - this->step(), inside.right.at(widest, i - 1), 1 - this->step(), count};
    }
    Terms<Cell> left_terms_from_lefts(const Chart<Ring>& inside, int i, int j) const {
        return {this->left.at(i, j + 1), this->step(), inside.arc_left.at(j, j + 1), this->step(), to_the_right(j)};
    }
    Terms<Cell> arc_right_terms(const Chart<Ring>& inside, int i, int j) const {
        return {this->right.at(i, j), this->step(), inside.right.at(j, j), this->step(), to_the_right(j) + 1};
    }
    Terms<Cell> arc_left_terms(const Chart<Ring>& inside, int i, int j) const {
        const int count = to_the_left(i, j) + 1, widest = i - count + 1;
        return {this->left.at(widest, j), 1 - this->step(), inside.left.at(widest, i), 1 - this->step(), count};
    }

private:
    int to_the_right(int j) const { return this->nodes() - 1 - j; }
    int to_the_left(int i, int j) const { return std::min(i + Ring::lanes - 1, this->nodes() - 1 - (j - i)); }
};

namespace details {

template <class Ring>
struct OutsideWidths {
    template <class Registers>
    struct Kernel {
        static void run(const Chart<Ring>& inside, const Table<Ring>& weight_right, const Table<Ring>& weight_left,
                        OutsideChart<Ring>& outside, const Widths& widths) {
            using In = typename Ring::template In<Registers::width>;
            const std::ptrdiff_t plane = inside.plane();
            const auto sum = [&](const auto& terms) { return In::sum_of_products(terms, plane); };
            const auto add = [&](auto* at, const auto& x, const auto& y) {
                In::store(at, plane, In::plus(In::load(at, plane), In::plus(sum(x), sum(y))));
            };
            for (int width = widths.last; width >= widths.first; --width) {
                const auto each = [&](auto body) { for_each_block_of<In::lanes>(width, inside.nodes(), body); };
                each([&](int i, int j) {
                    add(outside.right.at(i, j), outside.right_terms_from_links(inside, i, j),
                        outside.right_terms_from_rights(inside, i, j));
                });
                each([&](int i, int j) {
                    add(outside.left.at(i, j), outside.left_terms_from_links(inside, i, j),
                        outside.left_terms_from_lefts(inside, i, j));
                });
                each([&](int i, int j) {
                    In::store(outside.arc_right.at(i, j), plane, sum(outside.arc_right_terms(inside, i, j)));
                });
                each([&](int i, int j) {
                    const auto arc_right = In::load(outside.arc_right.at(i, j), plane);
                    const auto arc_left = sum(outside.arc_left_terms(inside, i, j));
                    In::store(outside.arc_left.at(i, j), plane, arc_left);
                    In::store(outside.link.at(i, j), plane,
                              In::plus(In::times(arc_right, In::load(weight_right.at(i, j), plane)),
                                       In::times(arc_left, In::load(weight_left.at(i, j), plane))));
                });
            }
        }
    };
};

}  // namespace details

/// On entry outside.right and outside.left hold the seeds, and zero elsewhere.
template <class Ring>
void run_outside(const Chart<Ring>& inside, const Table<Ring>& weight_right, const Table<Ring>& weight_left,
                 OutsideChart<Ring>& outside, StopSignal& stop) {
    for_each_widths(inside.nodes() - 1, false, stop, [&](const Widths& widths) {
        dispatch_on_registers<details::OutsideWidths<Ring>>(inside, weight_right, weight_left, outside, widths);
    });
}

}  // namespace spantree::projective
