// Numbers per edge, from where a caller has them to where a kernel reads them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../sentence.hpp"
#include "layout.hpp"

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
    [[gnu::always_inline]] const double* address(int s, int h, int column) const {
        return sentence[s].data + h * sentence[s].stride + column;
    }
    [[gnu::always_inline]] Pack at(int s, int h, int column) const { return load_unaligned(address(s, h, column)); }
};

/// Edges from head h to the eight words from `column` on, of eight sentences: x[c] is word column + c in every lane.
[[gnu::always_inline]] inline void read_lanes(const EdgeSource<Lanes>& source, int h, int column,
                                              Pack (&x)[pack_size]) {
    // Sentences four apart share a pack from the start, so that only squares of four are left to be turned.
    constexpr int half = pack_size / 2;
    for (int s = 0; s < half; ++s) {
        const double* const low = source.address(s, h, column);
        const double* const high = source.address(s + half, h, column);
        x[s] = join(load<half>(low), load<half>(high));
        x[s + half] = join(load<half>(low + half), load<half>(high + half));
    }
    transpose_squares<half>(x);
}

}  // namespace arbora
