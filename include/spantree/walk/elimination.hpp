// Eliminating words from the walk, without a subtraction (Grassmann, Taksar, Heyman 1985).
//
// a[i, l] is the weight of the walk's step from word i to word l, its head; root[i] that of the step to ROOT.
// Some words are dropped, the others kept. Eliminating word k, one dropped word after the other:
//
//     pivot     =  sum of a[k, l] over the live words l     (+ root[k] where several roots are allowed)
//     f[k, :]   =  a[k, :] / pivot                          row k becomes the distribution of the next live word
//     f_root[k] =  root[k] / pivot
//     a[i, :]  +=  a[i, k] f[k, :]                          for every dropped i that is live; and so root[i]
//
// Then where the walk from a dropped word first meets a kept one, from the last that was eliminated to the first, and with
// that what the walk on the kept words gains:
//
//     F[k, :]   =  f[k, :]  + sum of f[k, l] F[l, :] over the words l dropped after k         and so F_root[k]
//     a[i, :]  +=  sum of a[i, k] F[k, :] over all dropped k, for every kept i                and so root[i]
//
// Of three words, the last one dropped: f[2] = (a[2, 0], a[2, 1]) / (a[2, 0] + a[2, 1]) = F[2], and a[0, 1] += a[0, 2] F[2, 1].
// Two of them, 2 before 1: a[1, 0] += a[1, 2] f[2, 0], f[1, 0] = 1, F[2, 0] = f[2, 0] + f[2, 1] F[1, 0], which is 1.
//
// With one root allowed, root weights are infinitesimal: they stay out of the pivots and are carried along. Only sums,
// products and quotients of nonnegative numbers: every entry keeps a small relative error, however ill-conditioned the
// walk. What stands on the diagonal is never read. Rows are brought up to date late, with all earlier pivots at once.
// Cost of dropping half of m words: 0.29 m^3 multiply-adds, most of them in one product of matrices.
//
// Units. Weights between words are stored times 2^960 (number/exp.hpp): there is room below, and none is needed above,
// since a row's sum never grows. With one root, what a word collects for ROOT does grow, as 1 / pivot: root weights are
// stored times 2^300, f_root times 1, and a[i, k] is brought to 2^300 on the way from one to the other.
//
// A word that forbidden edges leave without a live head has ROOT alone to go to, however small the weight: then
//
//     pivot  =  root[k],     f_root[k]  =  1 / infinitesimal,     stored as 2^660
//
// and from there on root weights are no longer infinitesimal, stored about 2^960, and belong to the pivots. This is how
// the trees of a sentence come in two parts (structure.hpp): a word that can be nobody's head, a word that must be the root.
#pragma once

#include <algorithm>

#include "../batch/parallel.hpp"
#include "../number/exp.hpp"
#include "../number/extended.hpp"
#include "../number/log.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/layout.hpp"
#include "update.hpp"

namespace spantree {

/// Pivots below this (relative to the largest weight of a row) leave too little room above the smallest double (group.hpp).
inline constexpr double smallest_pivot = 1e-140;

/// More than any pivot, and than any sum of weights in range: no weight is above 2^960 < 1e290, nor has a row 1e10 of them.
inline constexpr double above_all = 1e300;

/// What a root weight of 1 is stored as, relative to a weight between words.
constexpr double root_unit(bool several_roots) { return several_roots ? 1.0 : 0x1p-660; }

/// Weights of the walk between words; word 0 of this matrix is some word of the sentence.
template <class Format>
struct Walk {
    double* words;  // row of word 0, column of word 0
    double* root;   // row of word 0, ROOT's column
    std::ptrdiff_t stride;

    double* row(int i) const { return words + i * stride; }
    double* at(int i, int l) const { return words + i * stride + l * Format::element_size; }
    double* root_at(int i) const { return root + i * stride; }
    Walk from(int word) const { return {at(word, word), root_at(word), stride}; }
};

/// What a solve says about its sentences, one number for each.
template <class Format>
struct PivotReport {
    static constexpr int sentences = Format::sentences;
    explicit PivotReport(bool several_roots) : several_roots(several_roots) {}

    bool several_roots;
    alignas(64) double words[sentences] = {};  // of the sentence; what comes after them is padding
    alignas(64) double smallest[sentences];    // pivot
    alignas(64) double smallest_in_product[sentences];
    alignas(64) double only_root_left[sentences];  // 1 if that happened to a word, 0 if not
    alignas(64) double only_root_left_in_product[sentences];
    alignas(64) double smallest_escape[sentences];  // c[j] / max_i E[i, j], set by who divides by c
    alignas(64) double last_root[sentences];        // root weight of the sentence's first word, all others eliminated
    alignas(64) double log_product[sentences];      // of it and all pivots, if they are in range
};

/// What the pivots of one solve have in common, and what became of them so far.
template <class Layout>
struct Pivots {
    using Element = typename Layout::Element;
    bool several_roots;
    double to_root;    // from the unit of words to that of root weights
    double from_root;  // and back
    Element words;
    Element smallest = Layout::constant(above_all), smallest_in_product = smallest;
    Element only_root_left = {}, only_root_left_in_product = {};
    ExtendedProduct<Element> product = {};
    Element last_root = {};

    [[gnu::always_inline]] explicit Pivots(const PivotReport<typename Layout::Format>& report)
        : several_roots(report.several_roots),
          to_root(root_unit(several_roots)),
          from_root(1.0 / to_root),
          words(Layout::get(report.words)) {}

    [[gnu::always_inline]] void write(PivotReport<typename Layout::Format>& report) const {
        Layout::set(report.smallest, smallest);
        Layout::set(report.smallest_in_product, smallest_in_product);
        Layout::set(report.only_root_left, only_root_left);
        Layout::set(report.only_root_left_in_product, only_root_left_in_product);
        Layout::set(report.smallest_escape, Layout::constant(above_all));
        Layout::set(report.last_root, last_root);
        const Element mantissa = product.mantissa * (last_root * (weight_unit_inverse * from_root));
        Layout::set(report.log_product,
                    Layout::largest(natural_log(Layout::spread(mantissa), Layout::spread(product.exponent))));
    }

    /// The pivot of absolute word `k`, in a branch that keeps words from `keep` on: if those are all padding, nobody
    /// will look.
    [[gnu::always_inline]] Element accept(Element live, Element root, int k, int keep, bool in_product) {
        const Element word = Layout::constant(k), first_kept = Layout::constant(keep);
        const Element nothing = {}, uncounted = Layout::constant(above_all);
        Element pivot = if_less(word, words, live, Layout::constant(weight_unit));
        Element counted = pivot;
        if (several_roots) {
            counted = pivot += root;
        } else {
            counted = if_equal(pivot, nothing, root * from_root, pivot);
            const Element stuck = if_equal(pivot, nothing, Layout::constant(1.0), nothing);
            only_root_left = larger(if_less(first_kept, words, stuck, nothing), only_root_left);
            pivot += if_less(nothing, only_root_left, root, nothing);
        }
        counted = if_less(first_kept, words, counted, uncounted);
        smallest = if_less(counted, smallest, counted, smallest);
        if (in_product) {
            product *= pivot * weight_unit_inverse;
            // Its chain comes first.
            smallest_in_product = smallest;
            only_root_left_in_product = only_root_left;
        }
        return pivot;
    }
};

struct Range {
    int begin, end;
    int size() const { return end - begin; }
};

/// Calls part(some of the range) for all of it: at once, or, if there is somebody to ask, piece by piece, whether to go on.
/// `stop` throws `Stopped`.
template <class Part>
[[gnu::always_inline]] inline void in_pieces(Range range, StopSignal* stop, Part part) {
    constexpr int rows = 256;  // of thousands of words, each takes a tenth of a millisecond
    if (!stop) return part(range);
    for (int begin = range.begin; begin < range.end; begin += rows) {
        stop->check();
        part(Range{begin, std::min(begin + rows, range.end)});
    }
}

/// Words of `drop`, in the order they are eliminated: those next to `keep` last.
struct DropOrder {
    int first, step;
    DropOrder(Range keep, Range drop)
        : first(drop.begin >= keep.end ? drop.end - 1 : drop.begin), step(drop.begin >= keep.end ? -1 : 1) {}
};

template <class Layout, int tile>
class Elimination {
public:
    using Element = typename Layout::Element;
    using Pack = typename Layout::Pack;
    using Walk = spantree::Walk<typename Layout::Format>;

    /// Eliminates `drop`, leaving the walk on `keep`, which lies directly before or after it. Rows of dropped words
    /// become F in the columns of kept words. `offset` is the word of the sentence that word 0 of `walk` is. All of it is
    /// read from `source`, which may be `walk` itself. `stop`, if any, is asked now and then.
    [[gnu::always_inline]] static void run(Walk source, Walk walk, Range keep, Range drop, int offset, bool in_product,
                                           Pivots<Layout>& pivots, StopSignal* stop) {
        const Elimination elimination{source, walk, keep, DropOrder(keep, drop), drop.size(), pivots.to_root};
        const Range all{std::min(keep.begin, drop.begin), std::max(keep.end, drop.end)};
        for (int block = 0, size; block < drop.size(); block += size) {
            if (stop) stop->check();
            size = elimination.block_at(block);
            call_apart<Layout::width, BringUpToDate>(elimination, block, size, all);
            call_apart<Layout::width, PivotRows>(elimination, block, size, offset, in_product, pivots);
        }
        in_pieces({0, drop.size()}, stop, [&](Range pivots_back) __attribute__((always_inline)) {
            call_apart<Layout::width, FindFirstKept>(elimination, pivots_back);
        });
        in_pieces(keep, stop, [&](Range rows) __attribute__((always_inline)) {
            call_apart<Layout::width, AddToKept>(elimination, drop, rows);
        });
    }

private:
    /// Pivots that settle among each other: those of a pack of columns, or of as many columns as are kept in registers.
    static constexpr int block_size = Layout::element_size == 1 ? pack_size : 4;
    static constexpr int e = Layout::element_size;

    // The steps of it.
    struct BringUpToDate {
        static void run(const Elimination& elimination, int block, int size, Range all) {
            elimination.bring_up_to_date(block, size, all);
        }
    };
    struct PivotRows {
        static void run(const Elimination& elimination, int block, int size, int offset, bool in_product,
                        Pivots<Layout>& pivots) {
            for (int t = 0; t < size; ++t) elimination.pivot_row(block, t, offset, in_product, pivots);
        }
    };
    struct FindFirstKept {
        static void run(const Elimination& elimination, Range pivots_back) { elimination.find_first_kept(pivots_back); }
    };
    struct AddToKept {
        static void run(const Elimination& elimination, Range drop, Range rows) { elimination.add_to_kept(drop, rows); }
    };

    Walk source, walk;
    Range keep;
    DropOrder order;
    int dropped;
    double to_root;

    Elimination(Walk s, Walk w, Range k, DropOrder o, int d, double r)
        : source(s), walk(w), keep(k), order(o), dropped(d), to_root(r) {}

    int pivot(int t) const { return order.first + t * order.step; }

    /// Number of pivots in the block that starts at the t-th. Blocks end where packs end: no pack is shared by two of
    /// them.
    int block_at(int t) const {
        const int to_boundary = order.step < 0 ? pivot(t) % block_size + 1 : block_size;
        return std::min(to_boundary, dropped - t);
    }

    /// Words live once the t-th pivot is eliminated.
    Range live_after(int t) const {
        return order.step < 0 ? Range{keep.begin, pivot(t)} : Range{pivot(t) + 1, keep.end};
    }

    [[gnu::always_inline]] void copy(int block, int size, Range columns) const {
        for (int t = block; t < block + size; ++t) {
            const double* const from = source.row(pivot(t));
            double* const to = walk.row(pivot(t));
            Layout::set(walk.root_at(pivot(t)), Layout::get(source.root_at(pivot(t))));
            for (int p = Layout::first_pack(columns.begin); p < Layout::packs(columns.end); ++p)
                Layout::store(to + p * pack_size, Layout::load(from + p * pack_size));
        }
    }

    /// Carries the pivots before `block` through the rows of the block: in every block of their columns first what earlier
    /// blocks add, then what the block's own pivots add to each other; then the live columns; then ROOT's.
    [[gnu::always_inline]] void bring_up_to_date(int block, int size, Range all) const {
        if (source.words != walk.words) copy(block, size, all);
        if (block == 0) return;
        const std::ptrdiff_t to_next = order.step * walk.stride;
        for (int row = 0; row < size; row += tile_rows) {
            const int height = std::min(tile_rows, size - row), first = pivot(block + row);
            const Rows out{walk.row(first), to_next};
            const Strided coefficient{walk.at(first, order.first), to_next, order.step * e};
            for (int earlier = 0, count; earlier <= block; earlier += count) {
                const bool to_live = earlier == block;
                count = to_live ? 1 : block_at(earlier);
                const int low = order.step < 0 ? pivot(earlier + count - 1) : pivot(earlier);
                const Range columns = to_live ? live_after(block - 1) : Range{low, low + count};
                update<Layout, tile>(out, height, Layout::first_pack(columns.begin), Layout::packs(columns.end),
                                     coefficient, {walk.row(order.first), to_next}, earlier);
                if (!to_live) settle(out, height, earlier, count);
            }
            add_to_roots({walk.root_at(first), to_next}, {walk.root_at(first), to_next}, height, coefficient,
                         {walk.root_at(order.first), to_next}, block, to_root);
        }
    }

    /// From f to F, of some pivots counted from the last.
    [[gnu::always_inline]] void find_first_kept(Range pivots_back) const {
        const std::ptrdiff_t to_next = -order.step * walk.stride;
        const int first_pack = Layout::first_pack(keep.begin), last_pack = Layout::packs(keep.end);
        const int last = pivot(dropped - 1);
        for (int done = pivots_back.begin; done < pivots_back.end; done += tile_rows) {
            const int count = std::min(tile_rows, pivots_back.end - done), k = pivot(dropped - 1 - done);
            const Range known = order.step < 0 ? Range{last, k} : Range{k + 1, last + 1};
            const Rows out{walk.row(k), to_next}, root{walk.root_at(k), to_next};
            const Rows x{walk.row(known.begin), walk.stride}, x_root{walk.root_at(known.begin), walk.stride};
            const Strided coefficient{walk.at(k, known.begin), to_next, e};
            const Strided among{walk.at(k, k), to_next, -order.step * e};
            add_to_roots({root.data, root.stride}, root, count, coefficient, x_root, known.size(), 1.0);
            if (count == tile_rows)
                update_chained<Layout, tile>(out, first_pack, last_pack, coefficient, x, known.size(), among);
            else
                update<Layout, tile>(out, count, first_pack, last_pack, coefficient, x, known.size());
            for (int t = 1; t < count; ++t) {
                const Strided row{among.data + t * among.row, 0, among.term};
                const Rows to{out.data + t * to_next, 0}, own_root{root.data + t * to_next, 0};
                if (count < tile_rows) update<Layout, tile, 1>(to, 1, first_pack, last_pack, row, out, t);
                add_to_roots({own_root.data, 0}, own_root, 1, row, root, t, 1.0);
            }
        }
    }

    /// To some rows of the kept words.
    [[gnu::always_inline]] void add_to_kept(Range drop, Range rows) const {
        for (int row = rows.begin; row < rows.end; row += tile_rows) {
            const int height = std::min(tile_rows, rows.end - row);
            const Strided coefficient{source.at(row, drop.begin), source.stride, e};
            update_from<Layout, tile>(StartRows{source.row(row), source.stride}, {walk.row(row), walk.stride}, height,
                                      Layout::first_pack(keep.begin), Layout::packs(keep.end), coefficient,
                                      {walk.row(drop.begin), walk.stride}, drop.size());
            add_to_roots({source.root_at(row), source.stride}, {walk.root_at(row), walk.stride}, height, coefficient,
                         {walk.root_at(drop.begin), walk.stride}, drop.size(), to_root);
        }
    }

    /// root[r] = start[r] + sum_s (coefficient[r, s] * unit) * x[s], of `rows` rows.
    [[gnu::always_inline]] static void add_to_roots(StartRows start, Rows root, int rows, Strided coefficient, Rows x,
                                                    int terms, double unit) {
        const auto some = [&]<int height>(int first) __attribute__((always_inline)) {
            Element sum[height];
#pragma GCC unroll 8
            for (int r = 0; r < height; ++r) sum[r] = Layout::get(start.data + (first + r) * start.stride);
            for (int s = 0; s < terms; ++s) {
                const Element term = Layout::get(x.data + s * x.stride);
#pragma GCC unroll 8
                for (int r = 0; r < height; ++r) {
                    const double* const c = coefficient.data + (first + r) * coefficient.row + s * coefficient.term;
                    sum[r] += (Layout::get(c) * unit) * term;
                }
            }
#pragma GCC unroll 8
            for (int r = 0; r < height; ++r) Layout::set(root.data + (first + r) * root.stride, sum[r]);
        };
        if (rows == tile_rows)
            some.template operator()<tile_rows>(0);
        else
            for (int r = 0; r < rows; ++r) some.template operator()<1>(r);
    }

    /// Within a block: the coefficient of a pivot takes what the block's earlier pivots add to it.
    [[gnu::always_inline]] void settle(Rows rows, int height, int block, int size) const {
        int r = 0;
        if (size == block_size)
            for (; r + tile <= height; r += tile)
                settle_rows<tile>({rows.data + r * rows.stride, rows.stride}, block, block_size);
        for (; r < height; ++r) settle_rows<1>({rows.data + r * rows.stride, 0}, block, size);
    }

    template <int height>
    [[gnu::always_inline]] void settle_rows(Rows rows, int block, int size) const {
        const std::ptrdiff_t to_next = order.step * e;
        double* const first = rows.data + pivot(block) * e;
        const double* const f = walk.at(pivot(block), pivot(block));
        const std::ptrdiff_t f_row = order.step * walk.stride;
        for (int part = 0; part < Layout::element_parts; ++part) {
            typename Layout::ElementPart c[height][block_size];
            for (int r = 0; r < height; ++r) c[r][0] = Layout::get_part(first + r * rows.stride, part);
#pragma GCC unroll 8
            for (int t = 1; t < block_size; ++t) {
                if (t >= size) break;
#pragma GCC unroll 8
                for (int r = 0; r < height; ++r)
                    c[r][t] = Layout::get_part(first + r * rows.stride + t * to_next, part);
#pragma GCC unroll 8
                for (int s = 0; s < t; ++s) {
                    const auto x = Layout::get_part(f + s * f_row + t * to_next, part);
#pragma GCC unroll 8
                    for (int r = 0; r < height; ++r) c[r][t] += c[r][s] * x;
                }
#pragma GCC unroll 8
                for (int r = 0; r < height; ++r) Layout::set_part(first + r * rows.stride + t * to_next, part, c[r][t]);
            }
        }
    }

    /// row += sum_s c[s] f[s], s < terms; returns the sum of its live columns.
    template <int terms>
    [[gnu::always_inline]] static Element bring_up_to_date_and_sum(double* row, Range live, const Element* c, Rows f) {
        Pack coefficient[terms + 1];
        for (int s = 0; s < terms; ++s) coefficient[s] = Layout::spread(c[s]);
        return Layout::sum_columns(live.begin, live.end, [&](int p) __attribute__((always_inline)) {
            Pack x = Layout::load(row + p * pack_size);
#pragma GCC unroll 8
            for (int s = 0; s < terms; ++s) x += coefficient[s] * Layout::load(f.data + s * f.stride + p * pack_size);
            if constexpr (terms > 0) Layout::store(row + p * pack_size, x);
            return x;
        });
    }

    /// body<terms>(), terms <= most.
    template <int most, class Body>
    [[gnu::always_inline]] static Element with_terms(int terms, Body body) {
        if constexpr (most > 0)
            if (terms < most) return with_terms<most - 1>(terms, body);
        return body.template operator()<most>();
    }

    [[gnu::always_inline]] void pivot_row(int block, int t, int offset, bool in_product, Pivots<Layout>& pivots) const {
        const int k = pivot(block + t);
        const Range live = live_after(block + t);
        double* const row = walk.row(k);
        const int first_pack = Layout::first_pack(live.begin), last_pack = Layout::packs(live.end);
        alignas(64) Element c[block_size];  // the row's own copies lie in a pack that is about to change
        if (t > 0) {
            settle({row, 0}, 1, block, t);
            for (int s = 0; s < t; ++s) c[s] = Layout::get(row + pivot(block + s) * e);
            add_to_roots({walk.root_at(k), 0}, {walk.root_at(k), 0}, 1, {reinterpret_cast<const double*>(c), 0, e},
                         {walk.root_at(pivot(block)), order.step * walk.stride}, t, to_root);
        }
        const Element root = Layout::get(walk.root_at(k));
        const Rows f{walk.row(pivot(block)), order.step * walk.stride};
        const Element sum = with_terms<block_size - 1>(t, [&]<int terms>() __attribute__((always_inline)) {
            return bring_up_to_date_and_sum<terms>(row, live, c, f);
        });
        const Element inverse = 1.0 / pivots.accept(sum, root, offset + k, offset + keep.begin, in_product);
        Layout::set(walk.root_at(k), root * (inverse * pivots.from_root));
        const Pack scale = Layout::spread(inverse);
        for (int p = first_pack; p < last_pack; ++p)
            Layout::store(row + p * pack_size, Layout::load(row + p * pack_size) * scale);
    }
};

}  // namespace spantree
