// One solve from scores to escape probabilities, for eight sentences side by side (Together) or for one (Alone).
//
// With c[j] = sum_h w[h, j] E[h, j] (E[ROOT, j] = 1), the marginal of edge h -> j is V[h, j] E[h, j], V[h, j] = w[h, j]
// / c[j]; Z = last_root * product of the pivots. A sentence whose numbers come too near to the end of the range of
// doubles, or that has no tree at all, is found by `in_range` afterwards; what lies in its lane then means nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "../batch/sentence.hpp"
#include "../simd/dispatch.hpp"
#include "solve.hpp"
#include "weigh.hpp"

namespace spantree {

// What is lost at the lower end of the range of doubles, eta = 2^-1022, and how much of it a marginal of 1e-250 bears.
// Let rho be the least c[j] / max_i E[i, j], and p the least pivot in units of weights.
//   - f and F below eta are lost, and so up to eta max_i E[i, j] of what adds up to c[j]: rho must stay above 1e-60.
//   - Weights below eta / 2^960 are lost; relative to a pivot that is eta / (2^960 p), far less, for p above 1e-140.
//   - With one root, of a[i, k] only what is above eta / 2^300 is carried to ROOT, and arrives up to 1 / p times:
//     eta / (2^300 p) of max_i E[i, j], so rho p must stay above 1e-125.

/// The least rho.
inline constexpr double smallest_escape = 1e-60;
/// With one root, the least rho p.
inline constexpr double smallest_escape_and_pivot = 1e-125;

/// A score of ROOT's that is further from the others leaves too few of their digits: beside 2^14, a score is right to
/// 2^-39, and so a weight to 2e-12 of itself.
inline constexpr double largest_root_shift = 0x1p14;

// Where a word was left with ROOT alone (elimination.hpp), the words' E in the columns of the words that none of those
// eliminated can reach is beyond all E of other columns, 2^660 times a probability, and ROOT's own E and V there are
// infinitesimal: 0. Told apart by size, as long as pivots are above 2^-120 (else: not in range). Edges whose weights were
// stored as 0 may still be in trees; those weigh less than (n + 1)^n exp(-1370) beside log Z, and must be below the
// smallest double, exp(-745). For log Z itself, ROOT's weights are 2^-660 in place of infinitesimal: what trees with two
// roots weigh must be beyond doubt.

/// The least pivot beside words that were left with ROOT alone.
inline constexpr double smallest_pivot_beside_root = 0x1p-120;
/// In the columns that these make large: E is above the one somewhere, and nowhere between 0 and the other.
inline constexpr double large_escape = 0x1p560, small_escape = 0x1p330;

/// V and E of a group: rows are heads (row 0 is ROOT), columns are words. Who wants nothing but marginals, once, is spared
/// writing them: as long as there are `scales`, V is weights * 2^-960 * the first row of scales, E escape * the second.
template <class Format>
struct EdgeMatrices {
    int padded = 0;
    Rows weights{};
    Rows escape{};
    Rows scales{};

    static std::ptrdiff_t stride(int padded) { return odd_packs(Format::packs(round_up(padded))); }
    static std::size_t size(int padded) { return static_cast<std::size_t>(padded_words(padded) + 1) * stride(padded); }
    /// With scales.
    static std::size_t memory_size(int padded) { return 2 * size(padded) + 2 * stride(padded); }

    EdgeMatrices() = default;
    EdgeMatrices(int words, double* memory)
        : padded(words), weights{memory, stride(words)}, escape{memory + size(words), stride(words)} {}

    Rows room_for_scales() const { return {weights.data + 2 * size(padded), stride(padded)}; }
};

namespace details {

/// E[ROOT] in the columns of a pack: 1, or 0 where the words' E is large; then too, ROOT's weight becomes 0. A number that
/// is neither large nor small in such a column becomes NaN.
template <class Layout>
[[gnu::always_inline]] inline typename Layout::Pack escape_of_root(const EdgeMatrices<typename Layout::Format>& edges,
                                                                   int p,
                                                                   const typename Layout::Element& only_root_left) {
    using Pack = typename Layout::Pack;
    double* const w = edges.weights.data + p * pack_size;
    double* const e = edges.escape.data + p * pack_size;
    const Pack one = Pack::broadcast(1.0), small = Pack::broadcast(small_escape), large = Pack::broadcast(large_escape);
    const Pack unclear = Pack::broadcast(std::numeric_limits<double>::quiet_NaN());
    Pack largest = {};
    for (int h = 1; h <= edges.padded; ++h) largest = larger(Layout::load(e + h * edges.escape.stride), largest);
    largest = if_less(Pack{}, Layout::spread(only_root_left), largest, Pack{});
    for (int h = 1; h <= edges.padded; ++h) {
        const Pack escape = Layout::load(e + h * edges.escape.stride);
        const Pack in_large = if_less(escape, small, if_less(Pack{}, escape, unclear, escape), escape);
        Layout::store(e + h * edges.escape.stride,
                      if_less(largest, small, escape, if_less(largest, large, unclear, in_large)));
    }
    const Pack result = if_less(largest, small, one, Pack{});
    Layout::store(w, if_less(largest, small, Layout::load(w), Pack{}));
    return result;
}

/// The least c[j] / max_i E[i, j], and `count` packs of columns of V and E: E[ROOT] is set; weights are divided by c, and
/// columns of padding made 0, unless `scales` are wanted.
template <class Layout, int count>
[[gnu::always_inline]] inline void normalise_columns(const EdgeMatrices<typename Layout::Format>& edges, int first,
                                                     const typename Layout::Element& words,
                                                     const typename Layout::Element& only_root_left, bool any_left,
                                                     Rows scales, typename Layout::Pack& smallest) {
    using Pack = typename Layout::Pack;
    const Pack too_large = Pack::broadcast(above_all), one = Pack::broadcast(1.0);
    const auto weight = [&](int h, int i) { return edges.weights.data + h * edges.weights.stride + i * pack_size; };
    const auto escape = [&](int h, int i) { return edges.escape.data + h * edges.escape.stride + i * pack_size; };
    Pack c[count], largest[count], inverse[count], unit[count];
    for (int i = 0; i < count; ++i) {
        const Pack of_root = any_left ? escape_of_root<Layout>(edges, first + i, only_root_left) : one;
        Layout::store(escape(0, first + i), Layout::if_real(words, first + i, of_root, Pack{}));
        c[i] = Layout::load(weight(0, first + i)) * weight_unit_inverse;
        largest[i] = one;
    }
    for (int h = 1; h <= edges.padded; ++h)
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
            const Pack x = Layout::load(escape(h, first + i));
            largest[i] = larger(x, largest[i]);
            c[i] += (Layout::load(weight(h, first + i)) * weight_unit_inverse) * x;
        }
    for (int i = 0; i < count; ++i) {
        const int p = first + i;
        largest[i] = Layout::if_real(words, p, largest[i], one);
        // Too large, or not a number: as bad as too small.
        const Pack in_range =
            if_less(largest[i], too_large, if_less(c[i], too_large, c[i] / largest[i], Pack{}), Pack{});
        const Pack ratio = Layout::if_real(words, p, in_range, smallest);
        smallest = if_less(ratio, smallest, ratio, smallest);
        // From here on E is relative to its largest entry in the column, up to a power of two, and so is c: their
        // quotients stay the same, and neither they nor V leave the range of doubles.
        unit[i] = power_below(largest[i]);
        inverse[i] = Layout::if_real(words, p, 1.0 / (c[i] * unit[i]), Pack{});
        if (scales.data) {
            Layout::store(scales.data + p * pack_size, inverse[i]);
            Layout::store(scales.data + scales.stride + p * pack_size, unit[i]);
        }
    }
    if (scales.data) return;
    for (int h = 0; h <= edges.padded; ++h)
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
            double* const w = weight(h, first + i);
            double* const e = escape(h, first + i);
            Layout::store(w, (Layout::load(w) * weight_unit_inverse) * inverse[i]);
            Layout::store(e, Layout::if_real(words, first + i, Layout::load(e), Pack{}) * unit[i]);
        }
}

template <class Layout>
[[gnu::always_inline]] inline typename Layout::Element normalise(const EdgeMatrices<typename Layout::Format>& edges,
                                                                 const typename Layout::Element& words,
                                                                 const typename Layout::Element& only_root_left,
                                                                 bool any_left, Rows scales) {
    using Pack = typename Layout::Pack;
    Pack smallest = Pack::broadcast(above_all);
    const int packs = Layout::packs(edges.padded);
    int p = 0;
    for (; p + 4 <= packs; p += 4)
        normalise_columns<Layout, 4>(edges, p, words, only_root_left, any_left, scales, smallest);
    for (; p < packs; ++p) normalise_columns<Layout, 1>(edges, p, words, only_root_left, any_left, scales, smallest);
    return Layout::constant(0.0) - Layout::largest(Pack{} - smallest);
}

}  // namespace details

// The steps of a solve. Each is a kernel of its own: compilers do not do well by one that does everything.

template <class Format>
struct Weigh {
    template <class Registers>
    struct Kernel {
        static void run(const EdgeSource<Format>& scores, bool several_roots, bool all_pairs, Shifts<Format>& shifts,
                        Walk<Format> walk, Rows weights) {
            // Written out, so that there is code of its own for each.
            const LayoutOn<Format, Registers> layout;
            if (all_pairs)
                weigh(layout, scores, several_roots, true, shifts, walk, weights);
            else
                weigh(layout, scores, several_roots, false, shifts, walk, weights);
        }
    };
};

template <class Format>
struct SolveWalk {
    template <class Registers>
    struct Kernel {
        static void run(Solve<Format>& solve, Walk<Format> walk, int words, bool all_pairs, Rows escape,
                        PivotReport<Format>& report) {
            using Layout = LayoutOn<Format, Registers>;
            Pivots<Layout> pivots(report);
            if (all_pairs)
                solve.template run<Layout, Registers::tile>(walk, words, escape, pivots);
            else
                solve.template eliminate_all<Layout, Registers::tile>(walk, words, pivots);
            pivots.write(report);
        }
    };
};

template <class Format>
struct Normalise {
    template <class Registers>
    struct Kernel {
        static void run(const EdgeMatrices<Format>& edges, PivotReport<Format>& report, Rows scales) {
            using Layout = LayoutOn<Format, Registers>;
            const bool any_left = std::any_of(std::begin(report.only_root_left), std::end(report.only_root_left),
                                              [](double left) { return left > 0.0; });
            Layout::set(report.smallest_escape,
                        details::normalise<Layout>(edges, Layout::get(report.words), Layout::get(report.only_root_left),
                                                   any_left, scales));
        }
    };
};

/// What a solve is for, beside log Z: nothing; marginals, to be read at once; or V and E.
enum class Wanted { log_partition, marginals, matrices };

/// Fills `edges` as far as wanted, the shifts, and the report.
template <class Format>
void solve_group(Solve<Format>& solve, Walk<Format> walk, const EdgeSource<Format>& scores, Wanted wanted,
                 Shifts<Format>& shifts, EdgeMatrices<Format>& edges, PivotReport<Format>& report) {
    const bool all_pairs = wanted != Wanted::log_partition;
    dispatch_on_registers<Weigh<Format>>(scores, report.several_roots, all_pairs, shifts, walk, edges.weights);
    const Rows escape_of_words{edges.escape.data + edges.escape.stride, edges.escape.stride};
    dispatch_on_registers<SolveWalk<Format>>(solve, walk, scores.padded, all_pairs, escape_of_words, report);
    if (!all_pairs) return;
    if (wanted == Wanted::marginals) edges.scales = edges.room_for_scales();
    dispatch_on_registers<Normalise<Format>>(edges, report, edges.scales);
}

/// What a solve says about one sentence.
struct Outcome {
    double scaled_log_partition = 0.0;  // of the scores minus their shifts
    double log_partition = 0.0;
    bool log_in_range = false;  // its scores are scores, it has a tree, and doubles were good enough for log Z
    bool in_range = false;      // and for all else
    bool in_two_parts = false;  // some words cannot be above all others: their E[ROOT] may be 0
};

/// Sentence s of a group.
template <class Format>
Outcome outcome(const Shifts<Format>& shifts, const PivotReport<Format>& report, int s) {
    constexpr double ln2 = 0x1.62e42fefa39efp-1;
    Outcome result;
    const double unit = weight_unit * root_unit(report.several_roots);
    const double last_root = report.last_root[s];
    result.in_two_parts = report.only_root_left[s] > 0.0;
    const auto least_pivot = [](double only_root_left) {
        return (only_root_left > 0.0 ? smallest_pivot_beside_root : smallest_pivot) * weight_unit;
    };
    if (!(report.smallest_in_product[s] >= least_pivot(report.only_root_left_in_product[s]) &&
          last_root >= smallest_pivot * unit && last_root < above_all &&
          std::fabs(shifts.of_root[s]) <= largest_root_shift && std::isfinite(shifts.total[s])))
        return result;
    result.scaled_log_partition = report.log_product[s];
    result.log_partition = result.scaled_log_partition + shifts.total[s];
    const auto log_trees = [&] { return report.words[s] * std::log(report.words[s] + 1.0); };
    result.log_in_range =
        report.only_root_left_in_product[s] == 0.0 || log_trees() - 660.0 * ln2 + 100.0 <= result.scaled_log_partition;
    result.in_range =
        result.log_in_range && report.smallest[s] >= least_pivot(report.only_root_left[s]) &&
        report.smallest_escape[s] >= smallest_escape &&
        (report.several_roots ||
         report.smallest_escape[s] * (report.smallest[s] * weight_unit_inverse) >= smallest_escape_and_pivot) &&
        (!result.in_two_parts || log_trees() + smallest_log_weight + 745.0 <= result.scaled_log_partition);
    return result;
}

}  // namespace spantree
