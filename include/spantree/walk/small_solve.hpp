// Escape probabilities of up to eight words, in registers and the nearest cache: the leaves of solve.hpp.
//
// The same divide and conquer, the same order of operations, with the sizes known to the compiler.
#pragma once

#include "elimination.hpp"

namespace spantree {

namespace details {

/// Sum of a[begin..end) in the order of Layout::sum_columns, where begin is a multiple of the power of two `size`.
template <class Element, int begin, int size>
[[gnu::always_inline]] inline Element sum_in_order(const Element* a, int live_begin, int live_end) {
    if constexpr (size == 1) {
        return begin >= live_begin && begin < live_end ? a[begin] : Element{};
    } else {
        return sum_in_order<Element, begin, size / 2>(a, live_begin, live_end) +
               sum_in_order<Element, begin + size / 2, size / 2>(a, live_begin, live_end);
    }
}

}  // namespace details

/// Solves on `size` words (a power of two), the first of them word `offset` of the sentence. a[i][size] is the root
/// weight.
template <class Layout, int size>
struct SmallSolve {
    using Element = typename Layout::Element;
    static constexpr int half = size / 2;

    using Walk = Element[size][size + 1];
    using HalfWalk = Element[half][half + 1];

    /// Writes e[i][j] for i != j and 0 on the diagonal.
    [[gnu::always_inline]] static void run(const Walk& a, int offset, bool in_product, Pivots<Layout>& pivots,
                                           Element (&e)[size][size]) {
        branch<0, half>(a, offset, in_product, pivots, e);
        branch<half, 0>(a, offset, false, pivots, e);
    }

    /// Eliminates all words but the first, which is the sentence's first.
    [[gnu::always_inline]] static void eliminate_all(const Walk& a, Pivots<Layout>& pivots) {
        HalfWalk first_kept, kept;
        eliminate<0, half>(a, 0, true, pivots, first_kept, kept);
        SmallSolve<Layout, half>::eliminate_all(kept, pivots);
    }

private:
    /// Eliminates half of the words, leaving F of the dropped ones and the walk on the others.
    template <int keep, int drop>
    [[gnu::always_inline]] static void eliminate(const Walk& a, int offset, bool in_product, Pivots<Layout>& pivots,
                                                 HalfWalk& first_kept, HalfWalk& kept) {
        constexpr int step = drop > keep ? -1 : 1;
        constexpr int first = drop > keep ? size - 1 : 0;
        // f[t] is the row of the t-th pivot. Every row is brought up to date once, with all pivots before it.
        Element f[half][size + 1];
#pragma GCC unroll 8
        for (int t = 0; t < half; ++t) {
            const int k = first + t * step;
            const int begin = step < 0 ? 0 : k + 1, end = step < 0 ? k : size;
            bring_up_to_date<first, step>(a[k], f, t, begin, end, pivots.to_root);
            const Element live = details::sum_in_order<Element, 0, size>(f[t], begin, end);
            const Element inverse = 1.0 / pivots.accept(live, f[t][size], offset + k, offset + keep, in_product);
#pragma GCC unroll 8
            for (int l = begin; l < end; ++l) f[t][l] *= inverse;
            f[t][size] *= inverse * pivots.from_root;
        }
        // The column of l: half for ROOT.
        const auto column = [](int l) { return l == half ? size : keep + l; };
#pragma GCC unroll 8
        for (int t = half - 1; t >= 0; --t)
#pragma GCC unroll 9
            for (int l = 0; l <= half; ++l) {
                Element x = f[t][column(l)];
#pragma GCC unroll 8
                for (int u = half - 1; u > t; --u) x += f[t][first + u * step] * first_kept[first + u * step - drop][l];
                first_kept[first + t * step - drop][l] = x;
            }
#pragma GCC unroll 8
        for (int i = 0; i < half; ++i)
#pragma GCC unroll 9
            for (int l = 0; l <= half; ++l) {
                Element x = a[keep + i][column(l)];
#pragma GCC unroll 8
                for (int k = 0; k < half; ++k) {
                    const Element step_to = a[keep + i][drop + k];
                    x += (l == half ? step_to * pivots.to_root : step_to) * first_kept[k][l];
                }
                kept[i][l] = x;
            }
    }

    /// f[pivots] = columns [begin, end) of `row`, and ROOT's, after the first `pivots` pivots (first, first + step, ...).
    template <int first, int step>
    [[gnu::always_inline]] static void bring_up_to_date(const Element (&row)[size + 1], Element (*f)[size + 1],
                                                        int pivots, int begin, int end, double to_root) {
        Element c[size];
#pragma GCC unroll 8
        for (int t = 0; t < pivots; ++t) {
            c[t] = row[first + t * step];
#pragma GCC unroll 8
            for (int s = 0; s < t; ++s) c[t] += c[s] * f[s][first + t * step];
        }
#pragma GCC unroll 9
        for (int l = begin; l < end; ++l) {
            Element x = row[l];
#pragma GCC unroll 8
            for (int t = 0; t < pivots; ++t) x += c[t] * f[t][l];
            f[pivots][l] = x;
        }
        Element x = row[size];
#pragma GCC unroll 8
        for (int t = 0; t < pivots; ++t) x += (c[t] * to_root) * f[t][size];
        f[pivots][size] = x;
    }

    template <int keep, int drop>
    [[gnu::always_inline]] static void branch(const Walk& a, int offset, bool in_product, Pivots<Layout>& pivots,
                                              Element (&e)[size][size]) {
        HalfWalk first_kept, kept;
        eliminate<keep, drop>(a, offset, in_product, pivots, first_kept, kept);
        Element kept_e[half][half];
        SmallSolve<Layout, half>::run(kept, offset + keep, in_product, pivots, kept_e);
#pragma GCC unroll 8
        for (int i = 0; i < half; ++i)
#pragma GCC unroll 8
            for (int j = 0; j < half; ++j) {
                e[keep + i][keep + j] = kept_e[i][j];
                Element x = first_kept[i][half];
#pragma GCC unroll 8
                for (int l = 0; l < half; ++l)
                    if (l != j) x += first_kept[i][l] * kept_e[l][j];
                e[drop + i][keep + j] = x;
            }
    }
};

template <class Layout>
struct SmallSolve<Layout, 1> {
    using Element = typename Layout::Element;
    [[gnu::always_inline]] static void run(const Element (&a)[1][2], int, bool in_product, Pivots<Layout>& pivots,
                                           Element (&e)[1][1]) {
        if (in_product) pivots.last_root = a[0][1];
        e[0][0] = Element{};
    }
    [[gnu::always_inline]] static void eliminate_all(const Element (&a)[1][2], Pivots<Layout>& pivots) {
        pivots.last_root = a[0][1];
    }
};

}  // namespace spantree
