// From scores to weights of the walk, scaled so that they fit in doubles.
//
// Every column d of scores is divided by its largest entry: w[h, d] = exp(score[h, d] - shift[d]). With one root
// allowed, ROOT's row stands apart: shift[d] is the largest among word heads, and the root weights have one more shift
// in common, the same for all d, since they enter every tree exactly once. What was divided out comes back as log Z's
// offset. A score of NaN or +inf makes a weight of NaN, and that makes the last root weight of the elimination NaN.
// Cost O(n^2).
#pragma once

#include <algorithm>

#include "../number/exp.hpp"
#include "edges.hpp"
#include "elimination.hpp"
#include "solve.hpp"

namespace spantree {

/// What is divided out of a group's weights.
template <class Format>
struct Shifts {
    double* of_column;                                 // one element each
    double* of_root;                                   // one element
    alignas(64) double total[Format::sentences] = {};  // of all columns and ROOT
};

namespace details {

/// A sum with the rounding errors of its additions carried along (Knuth).
template <class Element>
struct TwoPartSum {
    Element sum = {}, error = {};
    [[gnu::always_inline]] void add(Element x) {
        const Element total = sum + x, added = total - sum;
        error += (sum - (total - added)) + (x - added);
        sum = total;
    }
    [[gnu::always_inline]] Element value() const { return sum + error; }
};

/// The shift that belongs to a highest score: 0 where there is none.
template <class Element>
[[gnu::always_inline]] inline Element shift_of(Element highest) {
    return if_equal(highest, Element{} + minus_infinity<double>, Element{}, highest);
}

}  // namespace details

/// What is left of a root edge's score: score - shift - common. The first difference may be large, and close to `common`;
/// what is rounded off it is put back.
template <class Element>
[[gnu::always_inline]] inline Element relative_root_score(Element score, Element shift, Element common) {
    const Element difference = score - shift, taken = difference - score;
    const Element rounded_off = (score - (difference - taken)) - (shift + taken);
    return (difference - common) + if_equal(difference, Element{} + minus_infinity<double>, Element{}, rounded_off);
}

/// Weights of the walk, and the shifts; if all_pairs, the weights also by head: that of h -> d + 1 in column d of row
/// h, 0 on the diagonal.
template <int width>
[[gnu::always_inline]] inline void weigh(TogetherIn<width>, const EdgeSource<Together>& scores, bool several_roots,
                                         bool all_pairs, Shifts<Together>& shifts, Walk<Together> walk, Rows by_head) {
    using Layout = TogetherIn<width>;
    using Pack = PackOf<width>;
    const int words = scores.padded, padded = padded_words(words);
    // The scores go where the weights will be: row d holds those of the edges into word d.
    const auto read = [&](int h, int column, int first, int last) __attribute__((always_inline)) {
        Pack x[pack_size];
        read_lanes(scores, h, column, x);
        double* const to = h == 0 ? walk.root_at(column) : walk.at(column, h - 1);
#pragma GCC unroll 8
        for (int c = 0; c < pack_size; ++c)
            if (c >= first && c < last) Layout::store(to + c * walk.stride, x[c]);
    };
    const int whole = words / pack_size * pack_size;
    for (int h = 0; h <= words; ++h) {
        for (int column = 0; column < whole; column += pack_size) read(h, column, 0, pack_size);
        const int column = scores.chunk(whole);
        if (whole < words) read(h, column, whole - column, words - column);
    }

    const auto exponentiate = [&](int d, double* row, const Pack& shift) __attribute__((always_inline)) {
        const auto block = [&]<int count>(int l) __attribute__((always_inline)) {
            Pack x[count];
            for (int i = 0; i < count; ++i) x[i] = Layout::load(row + (l + i) * pack_size) - shift;
            scaled_exp<count>(x);
            for (int i = 0; i < count; ++i) {
                Layout::store(row + (l + i) * pack_size, x[i]);
                if (all_pairs) Layout::store(by_head.data + (l + i + 1) * by_head.stride + d * pack_size, x[i]);
            }
        };
        int l = 0;
        for (; l + 4 <= words; l += 4) block.template operator()<4>(l);
        for (; l + 2 <= words; l += 2) block.template operator()<2>(l);
        for (; l < words; ++l) block.template operator()<1>(l);
    };
    const Pack nothing = Pack::broadcast(minus_infinity<double>);
    Pack root = nothing;
    details::TwoPartSum<Pack> total;
    for (int d = 0; d < words; ++d) {
        double* const row = walk.row(d);
        Pack highest[4] = {nothing, nothing, nothing, nothing};
        const auto look = [&](int begin, int end) __attribute__((always_inline)) {
            int l = begin;
            for (; l + 4 <= end; l += 4)
#pragma GCC unroll 4
                for (int i = 0; i < 4; ++i) highest[i] = larger(Layout::load(row + (l + i) * pack_size), highest[i]);
            for (; l < end; ++l) highest[0] = larger(Layout::load(row + l * pack_size), highest[0]);
        };
        look(0, d);
        look(d + 1, words);
        Pack of_word = larger(larger(highest[0], highest[1]), larger(highest[2], highest[3]));
        const Pack from_root = Layout::load(walk.root_at(d));
        if (several_roots) of_word = larger(from_root, of_word);
        const Pack shift = details::shift_of(of_word);
        Layout::store(shifts.of_column + d * pack_size, shift);
        total.add(shift);
        root = larger(from_root - shift, root);
        exponentiate(d, row, shift);
        if (all_pairs) Layout::store(by_head.data + (d + 1) * by_head.stride + d * pack_size, Pack{});
        for (int l = words; l < padded; ++l) Layout::store(walk.at(d, l), Pack{});
    }
    const Pack common = several_roots ? Pack{} : details::shift_of(root);
    Layout::store(shifts.of_root, common);
    total.add(common);
    Layout::store(shifts.total, total.value());
    for (int d = 0; d < words; ++d) {
        Pack x =
            relative_root_score(Layout::load(walk.root_at(d)), Layout::load(shifts.of_column + d * pack_size), common);
        scaled_exp<1>(&x);
        Layout::store(walk.root_at(d), x * root_unit(several_roots));
        if (all_pairs) Layout::store(by_head.data + d * pack_size, x);
    }
    for (int d = words; d < padded; ++d) {
        for (int l = 0; l < padded; ++l) Layout::store(walk.at(d, l), Pack{});
        Layout::store(walk.root_at(d), Pack{});
    }
}

template <int width>
[[gnu::always_inline]] inline void weigh(AloneIn<width>, const EdgeSource<Alone>& scores, bool several_roots, bool,
                                         Shifts<Alone>& shifts, Walk<Alone> walk, Rows by_head) {
    using Layout = AloneIn<width>;
    using Pack = PackOf<width>;
    const auto score = [&](int h, int column)
                           __attribute__((always_inline)) { return Layout::load(scores.address(0, h, column)); };
    const int words = scores.padded, padded = padded_words(words);
    Pack root = Pack::broadcast(minus_infinity<double>);
    details::TwoPartSum<double> total;
    for (int p = 0; p < words; p += pack_size) {
        const Pack from_root = score(0, p);
        Pack of_word = Pack::broadcast(minus_infinity<double>);
        for (int h = 1; h <= words; ++h) of_word = larger(score(h, p), of_word);
        if (several_roots) of_word = larger(from_root, of_word);
        const Pack shift = details::shift_of(of_word);
        Layout::store(shifts.of_column + p, shift);
        for (int c = 0; c < pack_size && p + c < words; ++c) total.add(shift[c]);
        root = larger(from_root - shift, root);
    }
    const double common = several_roots ? 0.0 : details::shift_of(Layout::largest(root));
    *shifts.of_root = common;
    total.add(common);
    shifts.total[0] = total.value();
    for (int h = 0; h <= words; ++h)
        for (int p = 0; p < words; p += pack_size) {
            const Pack shift = Layout::load(shifts.of_column + p);
            Pack x = h == 0 ? relative_root_score(score(h, p), shift, Pack::broadcast(common)) : score(h, p) - shift;
            scaled_exp<1>(&x);
            Layout::store(by_head.data + h * by_head.stride + p, x);
        }
    for (int i = 0; i < padded; ++i) *walk.root_at(i) = i < words ? by_head.data[i] * root_unit(several_roots) : 0.0;
    for (int i = 0; i < padded; i += pack_size)
        for (int l = 0; l < padded; l += pack_size) {
            Pack x[pack_size];
            for (int r = 0; r < pack_size; ++r)
                x[r] = l + r < words ? Layout::load(by_head.data + (l + r + 1) * by_head.stride + i) : Pack{};
            transpose(x);
            for (int r = 0; r < pack_size && i + r < padded; ++r) Layout::store(walk.at(i + r, l), x[r]);
        }
}

}  // namespace spantree
