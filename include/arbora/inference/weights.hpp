// From scores to weights of the walk, scaled so that they fit in doubles.
//
// Every column d of scores is divided by its largest entry: w[h, d] = exp(score[h, d] - shift[d]). With one root
// allowed, ROOT's row stands apart: shift[d] is the largest among word heads, and the root weights have one more shift
// in common, the same for all d, since they enter every tree exactly once. What was divided out comes back as log Z's
// offset. Cost O(n^2).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "../sentence.hpp"
#include "exp.hpp"
#include "update.hpp"

namespace arbora {

/// Doubles of one sentence's edges: head h in row h, word d in column d - 1.
struct StagedEdges {
    const double* data = nullptr;
    std::ptrdiff_t stride = 0;
};

namespace details {

/// log(sum of exp) over the labels of an edge.
template <class T>
double log_sum_labels(const Sentence<T>& sentence, int head, int dep) {
    double largest = minus_infinity<double>;
    for (int label = 0; label < sentence.labels; ++label)
        largest = std::max(largest, static_cast<double>(sentence(head, dep, label)));
    if (largest == minus_infinity<double>) return largest;
    double total = 0.0;
    for (int label = 0; label < sentence.labels; ++label) total += std::exp(sentence(head, dep, label) - largest);
    return largest + std::log(total);
}

[[gnu::always_inline]] inline Pack load_as_doubles(const double* from) { return load_unaligned(from); }
[[gnu::always_inline]] inline Pack load_as_doubles(const float* from) {
    typedef float Floats [[gnu::vector_size(32)]];
    Floats x;
    std::memcpy(&x, from, sizeof x);
    return __builtin_convertvector(x, Pack);
}

}  // namespace details

/// Copies the edges of a sentence into (padded + 1) rows of round_up(padded) columns; `filler` on the diagonal and in
/// the padding. `value(head, dep)` is what labelled or oddly strided edges amount to.
template <class T, class Value>
[[gnu::always_inline]] inline StagedEdges stage_edges(const Sentence<T>& sentence, int padded, double filler,
                                                      double* to, Value value) {
    const std::ptrdiff_t stride = round_up(padded);
    const int words = sentence.words;
    const Pack fill = broadcast(filler);
    for (int h = 0; h <= padded; ++h) {
        double* row = to + h * stride;
        if (h > words) {
            for (int d = 0; d < padded; d += pack_size) store(row + d, fill);
            continue;
        }
        for (int d = words / pack_size * pack_size; d < padded; d += pack_size) store(row + d, fill);
        if (!sentence.labels && sentence.dep_stride == 1) {
            const T* from = sentence.edge(h, 1);
            int d = 0;
            for (; d + pack_size <= words; d += pack_size) store(row + d, details::load_as_doubles(from + d));
            if (d < words && words >= pack_size) {
                store_unaligned(row + words - pack_size, details::load_as_doubles(from + words - pack_size));
            } else {
                for (; d < words; ++d) row[d] = from[d];
            }
        } else {
            for (int d = 1; d <= words; ++d)
                if (h != d) row[d - 1] = value(h, d);
        }
        if (h > 0) row[h - 1] = filler;
    }
    return {to, stride};
}

template <class T>
[[gnu::always_inline]] inline StagedEdges stage_scores(const Sentence<T>& sentence, int padded, double* to) {
    return stage_edges(sentence, padded, minus_infinity<double>, to, [&](int h, int d) {
        return sentence.labels ? details::log_sum_labels(sentence, h, d) : static_cast<double>(sentence(h, d));
    });
}

/// Where a kernel reads the edges of a group.
template <class Layout>
struct EdgeSource {
    StagedEdges sentence[Layout::sentences];
    int padded = 0;

    /// Where to read eight columns from, to have `column` among them: never beyond the end of a row.
    [[gnu::always_inline]] int chunk(int column) const {
        return padded < pack_size || Layout::sentences == 1 ? column : std::min(column, padded - pack_size);
    }
    [[gnu::always_inline]] Pack at(int s, int h, int column) const {
        return load_unaligned(sentence[s].data + h * sentence[s].stride + column);
    }
};

/// What is divided out of a group's weights, and whether they were scores at all.
template <class Layout>
struct Shifts {
    using Element = typename Layout::Element;
    double* of_column;   // one element each
    double* of_root;     // one element
    Element total = {};  // of all columns and ROOT
    Element bad = {};    // not 0: some score is NaN or +inf
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

/// Into best[s], for eight columns: the highest score from another word; into bad[s]: 1 where one is NaN or +inf.
template <class Layout>
[[gnu::always_inline]] inline void best_words(const EdgeSource<Layout>& scores, int column,
                                              Pack (&best)[Layout::sentences], Pack (&bad)[Layout::sentences]) {
    const Pack nothing = broadcast(minus_infinity<double>);
    for (int s = 0; s < Layout::sentences; ++s) best[s] = nothing;
    const auto look = [&](int begin, int end, auto without_diagonal) __attribute__((always_inline)) {
        for (int h = begin; h < end; ++h)
#pragma GCC unroll 8
            for (int s = 0; s < Layout::sentences; ++s) {
                const Pack x = without_diagonal(h, scores.at(s, h, column));
                bad[s] = x < std::numeric_limits<double>::infinity() ? bad[s] : broadcast(1.0);
                best[s] = larger(x, best[s]);
            }
    };
    const auto as_it_is = [](int, Pack x) __attribute__((always_inline)) { return x; };
    const PackBits own = PackBits{1, 2, 3, 4, 5, 6, 7, 8} + column;
    const int last = scores.padded + 1;
    look(1, std::min(column + 1, last), as_it_is);
    look(column + 1, std::min(column + 1 + pack_size, last),
         [&](int h, Pack x) __attribute__((always_inline)) { return own == h ? nothing : x; });
    look(column + 1 + pack_size, last, as_it_is);
}

}  // namespace details

template <class Layout>
[[gnu::always_inline]] inline void find_shifts(const EdgeSource<Layout>& scores, bool several_roots,
                                               Shifts<Layout>& shifts) {
    const Pack nothing = broadcast(minus_infinity<double>);
    Pack root = nothing;
    Pack bad[Layout::sentences] = {};
    details::TwoPartSum<typename Layout::Element> total;
    for (int p = 0; p < scores.padded; p += pack_size) {
        const int column = scores.chunk(p);
        Pack x[Layout::sentences], from_root[Layout::sentences];
        details::best_words(scores, column, x, bad);
        for (int s = 0; s < Layout::sentences; ++s) {
            from_root[s] = scores.at(s, 0, column);
            bad[s] = from_root[s] < std::numeric_limits<double>::infinity() ? bad[s] : broadcast(1.0);
            if (several_roots) x[s] = larger(from_root[s], x[s]);
            x[s] = x[s] == nothing ? Pack{} : x[s];
            from_root[s] -= x[s];
        }
        if constexpr (Layout::sentences == 1) {
            store(shifts.of_column + p, x[0]);
            for (int c = 0; c < pack_size && p + c < scores.padded; ++c) total.add(x[0][c]);
            root = larger(from_root[0], root);
        } else {
            transpose(x);
            transpose(from_root);
            for (int c = p - column; c < pack_size && column + c < scores.padded; ++c) {
                store(shifts.of_column + (column + c) * pack_size, x[c]);
                total.add(x[c]);
                root = larger(from_root[c], root);
            }
        }
    }
    auto common = Layout::largest(root);
    if (several_roots) common = Layout::constant(0.0);
    common = common == Layout::constant(minus_infinity<double>) ? Layout::constant(0.0) : common;
    Layout::set(shifts.of_root, common);
    total.add(common);
    shifts.total = total.value();
    if constexpr (Layout::sentences == 1) {
        shifts.bad = Layout::largest(bad[0]);
    } else {
        transpose(bad);
        for (const Pack& x : bad) shifts.bad = larger(x, shifts.bad);
    }
}

/// Hands the weights of all edges, as packs, to put(h, pack index, weight). What it hands out for the diagonal means
/// nothing.
template <class Put>
[[gnu::always_inline]] inline void each_weight(const EdgeSource<Lanes>& scores, const Shifts<Lanes>& shifts, Put put) {
    for (int h = 0; h <= scores.padded; ++h)
        for (int p = 0; p < scores.padded; p += pack_size) {
            const int column = scores.chunk(p);
            const int first = p - column, last = std::min(pack_size, scores.padded - column);
            Pack x[pack_size];
            for (int s = 0; s < pack_size; ++s) x[s] = scores.at(s, h, column);
            transpose(x);
            for (int c = 0; c < pack_size; ++c) x[c] -= load(shifts.of_column + (column + c) * pack_size);
            if (h == 0)
                for (int c = 0; c < pack_size; ++c) x[c] -= load(shifts.of_root);
            if (first < 4) scaled_exp<4>(x);
            if (last > 4) scaled_exp<4>(x + 4);
#pragma GCC unroll 8
            for (int c = 0; c < pack_size; ++c)
                if (c >= first && c < last) put(h, column + c, x[c]);
        }
}

template <class Put>
[[gnu::always_inline]] inline void each_weight(const EdgeSource<Alone>& scores, const Shifts<Alone>& shifts, Put put) {
    for (int h = 0; h <= scores.padded; ++h)
        for (int p = 0; p < scores.padded; p += pack_size) {
            Pack x = scores.at(0, h, p) - load(shifts.of_column + p);
            if (h == 0) x -= *shifts.of_root;
            scaled_exp<1>(&x);
            put(h, p / pack_size, x);
        }
}

}  // namespace arbora
