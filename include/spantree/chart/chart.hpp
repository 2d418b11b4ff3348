// The chart of projective trees (Eisner 1996) over any semiring, diagonal by diagonal. O(n^3) time, O(n^2) memory.
//
// Items over nodes i <= j, combined with (*) and gathered with (+):
//   right(i, j)      i and all it governs to its right, down to j         right(i, i) = 1
//   left(i, j)       j and all it governs to its left, down to i          left(j, j) = 1
//   link(i, j)       = (+) over i <= k < j   of  right(i, k) * left(k+1, j)
//   arc_right(i, j)  = link(i, j) * w(i -> j)         arc_left(i, j) = link(i, j) * w(j -> i)
//   right(i, j)      = (+) over i < d <= j   of  arc_right(i, d) * right(d, j)
//   left(i, j)       = (+) over i <= d < j   of  left(i, d) * arc_left(d, j)
// Every projective tree has exactly one derivation. With several root edges allowed, ROOT is the chart's node 0, and
//   total  =  right(0, n).
// With one, the chart holds words only, and
//   total  =  (+) over r  of  left(1, r) * w(ROOT -> r) * right(r, n).
//
// Layout. A table keeps the items of width w = j - i in row w, by i. Then all sums of one width run over the same
// number of terms, and the terms of neighbouring items are neighbours in memory: a block of items is computed at once,
// without a reduction across lanes. Entries right of a row's last item are zero (of the semiring); rows are so wide
// that stepping left of a row's first item, or a block's overhang to the right, meets such zeros and nothing else.
//
// A semiring `Ring` has
//   Cell, parts     a number is `parts` cells, each in a plane of its own
//   lanes, Block    how many numbers make a block
//   zero, one       cells by part
//   load, store, plus, times, and sum_of_products: (+) over u < terms of a[u * step_a] * b[u * step_b], for a block
//   In<width>       the same in blocks that fit registers of `width` doubles
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/pack.hpp"

namespace spantree::projective {

/// One triangular table of numbers.
template <class Ring>
class Table {
public:
    using Cell = typename Ring::Cell;

    /// Keeps the numbers if the size stays: they will be overwritten. Otherwise all become zero.
    void resize(int nodes) {
        if (nodes == nodes_) return;
        nodes_ = nodes;
        step_ = round_up(nodes + overhang);
        plane_ = overhang + step_ * nodes + overhang;
        lines_.resize(static_cast<std::size_t>(Ring::parts * plane_ / overhang));
        clear();
    }

    int nodes() const { return nodes_; }
    /// From an item to the one wider by one with the same left end. With the same right end it is one less.
    std::ptrdiff_t step() const { return step_; }
    /// From one part of a number to the next.
    std::ptrdiff_t plane() const { return plane_; }
    std::size_t bytes() const { return lines_.capacity() * sizeof(Line); }

    Cell* row(int width) { return lines_.data()->cells + overhang + width * step_; }
    const Cell* row(int width) const { return lines_.data()->cells + overhang + width * step_; }
    Cell* at(int i, int j) { return row(j - i) + i; }
    const Cell* at(int i, int j) const { return row(j - i) + i; }

    void set_ones() {
        for (int part = 0; part < Ring::parts; ++part) std::fill_n(row(0) + part * plane_, nodes_, Ring::one(part));
    }

    /// Calls body(first, count) for the items of every width, part after part: where they lie.
    template <class Body>
    void for_each_row(Body body) const {
        for (int part = 0; part < Ring::parts; ++part)
            for (int width = 0; width < nodes_; ++width) body(row(width) + part * plane_, nodes_ - width);
    }

    /// Has all of it brought near. Numbers that were last touched long ago come much sooner when asked for all at once than
    /// sum by sum.
    void fetch() const {
        for_each_row([](const Cell* first, int count) {
            for (int i = 0; i < count; i += overhang) __builtin_prefetch(first + i);
        });
    }

    void clear() {
        for (int part = 0; part < Ring::parts; ++part)
            std::fill_n(lines_.data()->cells + part * plane_, plane_, Ring::zero(part));
    }

    /// How far blocks reach beyond a row's last item.
    static constexpr int overhang = 8;
    static_assert(Ring::lanes <= overhang);

private:
    struct alignas(64) Line {
        Cell cells[overhang];
    };

    int nodes_ = -1;
    std::ptrdiff_t step_ = 0;
    std::ptrdiff_t plane_ = 0;
    std::vector<Line> lines_;
};

/// Two lists of factors, one pair a term: where they start and how far apart they lie.
template <class Cell>
struct Terms {
    const Cell* a;
    std::ptrdiff_t step_a;
    const Cell* b;
    std::ptrdiff_t step_b;
    int count;

    Terms from(int first) const { return {a + first * step_a, step_a, b + first * step_b, step_b, count - first}; }
};

/// The sentence's node that is the chart's node 0.
constexpr int first_node(Root root) { return root == Root::single ? 1 : 0; }

template <class Ring>
class Chart {
public:
    using Cell = typename Ring::Cell;

    Table<Ring> right, left, link, arc_right, arc_left;

    void fetch() const {
        for (const auto* table : {&right, &left, &link, &arc_right, &arc_left}) table->fetch();
    }

    /// ROOT is node 0 of the chart, or no node of it.
    void resize(int words, Root root) {
        const int first = first_node(root);
        for (auto* table : {&right, &left, &link, &arc_right, &arc_left}) {
            table->resize(words + 1 - first);
            if (first != first_) table->clear();
        }
        first_ = first;
    }

    int nodes() const { return right.nodes(); }
    int first() const { return first_; }

    // What each item is gathered from; i < j.
    Terms<Cell> link_terms(int i, int j) const {
        return {right.at(i, i), step(), left.at(i + 1, j), 1 - step(), j - i};
    }
    Terms<Cell> right_terms(int i, int j) const {
        return {arc_right.at(i, i + 1), step(), right.at(i + 1, j), 1 - step(), j - i};
    }
    Terms<Cell> left_terms(int i, int j) const { return {left.at(i, i), step(), arc_left.at(i, j), 1 - step(), j - i}; }

    std::ptrdiff_t step() const { return right.step(); }
    std::ptrdiff_t plane() const { return right.plane(); }
    std::size_t bytes() const {
        return right.bytes() + left.bytes() + link.bytes() + arc_right.bytes() + arc_left.bytes();
    }

private:
    int first_ = 0;
};

/// Some widths of items, one after the other.
struct Widths {
    int first, last;
};

namespace details {

/// Calls body(i, j) for the first item of every block of a width. Each kind of sum has a walk over the blocks of its own:
/// neighbouring blocks read the same cache lines, which are still near if no other sums were between.
template <int lanes, class Body>
[[gnu::always_inline]] inline void for_each_block_of(int width, int nodes, Body body) {
    for (int i = 0; i + width < nodes; i += lanes) body(i, i + width);
}

template <class Ring>
struct InsideWidths {
    template <class Registers>
    struct Kernel {
        static void run(Chart<Ring>& chart, const Table<Ring>& weight_right, const Table<Ring>& weight_left,
                        const Widths& widths) {
            using In = typename Ring::template In<Registers::width>;
            const std::ptrdiff_t plane = chart.plane();
            for (int width = widths.first; width <= widths.last; ++width) {
                const auto each = [&](auto body) { for_each_block_of<In::lanes>(width, chart.nodes(), body); };
                each([&](int i, int j) {
                    const auto link = In::sum_of_products(chart.link_terms(i, j), plane);
                    const auto weigh = [&](Table<Ring>& arcs, const Table<Ring>& weights) {
                        In::store(arcs.at(i, j), plane, In::times(link, In::load(weights.at(i, j), plane)));
                    };
                    In::store(chart.link.at(i, j), plane, link);
                    weigh(chart.arc_right, weight_right);
                    weigh(chart.arc_left, weight_left);
                });
                each([&](int i, int j) {
                    In::store(chart.right.at(i, j), plane, In::sum_of_products(chart.right_terms(i, j), plane));
                });
                each([&](int i, int j) {
                    In::store(chart.left.at(i, j), plane, In::sum_of_products(chart.left_terms(i, j), plane));
                });
            }
        }
    };
};

}  // namespace details

/// Asks now and then; a width of a long sentence takes milliseconds, one of a short sentence less than the asking.
inline void check_between_widths(StopSignal& stop, int width) {
    if (width % 16 == 0 || width > 256) stop.check();
}

/// Calls body(widths) for all widths up to `last`, some at a time, narrow ones first or last; and asks in between.
template <class Body>
void for_each_widths(int last, bool narrow_first, StopSignal& stop, Body body) {
    const int at_once = last > 256 ? 1 : 16;
    for (int passed = 0; passed < last; passed += at_once) {
        if (passed > 0) stop.check();
        const int some = std::min(at_once, last - passed);
        body(narrow_first ? Widths{passed + 1, passed + some} : Widths{last - passed - some + 1, last - passed});
    }
}

/// Fills the chart. weight_right(i, j) is w(i -> j), weight_left(i, j) is w(j -> i); they may lie where the chart's arcs will.
template <class Ring>
void run_inside(Chart<Ring>& chart, const Table<Ring>& weight_right, const Table<Ring>& weight_left, StopSignal& stop) {
    chart.right.set_ones();
    chart.left.set_ones();
    for_each_widths(chart.nodes() - 1, true, stop, [&](const Widths& widths) {
        dispatch_on_registers<details::InsideWidths<Ring>>(chart, weight_right, weight_left, widths);
    });
}

/// Numbers of edges, a matrix [head, dep] of the sentence's nodes, to where arcs between the chart's nodes lie. Edges into ROOT
/// have a place but are no edges: what is in the matrix's column 0.
template <class Ring>
void lay_out_edges(const typename Ring::Cell* matrix, int words, int first, Table<Ring>& right, Table<Ring>& left,
                   int part = 0) {
    for (int i = 0; i < right.nodes(); ++i) {
        const auto* const row = matrix + static_cast<std::ptrdiff_t>(i + first) * (words + 1) + first;
        auto* to = right.at(i, i) + part * right.plane();
        for (int j = i + 1; j < right.nodes(); ++j) *(to += right.step()) = row[j];
        to = left.at(i, i) + part * left.plane();
        for (int j = i - 1; j >= 0; --j) *(to += left.step() - 1) = row[j];
    }
}

}  // namespace spantree::projective
