// Numbers per edge, from where a caller has them to where a kernel reads them.
#pragma once

#include <algorithm>

#include "../batch/sentence.hpp"
#include "../simd/layout.hpp"

namespace spantree {

/// Doubles of one sentence's edges: head h in row h, word d in column d - 1.
struct StagedEdges {
    const double* data = nullptr;
    std::ptrdiff_t stride = 0;
};

/// Copies the edges of an unlabelled sentence into (padded + 1) rows of round_up(padded) columns; `filler` on the diagonal
/// and in the padding.
template <class T>
[[gnu::always_inline]] inline StagedEdges stage_edges(const Sentence<T>& sentence, int padded, double filler,
                                                      double* to) {
    const std::ptrdiff_t stride = round_up(padded);
    const int words = sentence.words;
    for (int h = 0; h <= padded; ++h) {
        double* const row = to + h * stride;
        std::fill(row + (h <= words ? words : 0), row + stride, filler);
        if (h > words) continue;
        const T* const from = sentence.edge(h, 1);
        if (sentence.dep_stride == 1)
            for (int d = 0; d < words; ++d) row[d] = static_cast<double>(from[d]);
        else
            for (int d = 0; d < words; ++d) row[d] = static_cast<double>(from[d * sentence.dep_stride]);
        if (h > 0) row[h - 1] = filler;
    }
    return {to, stride};
}

template <class T>
[[gnu::always_inline]] inline StagedEdges stage_scores(const Sentence<T>& sentence, int padded, double* to) {
    return stage_edges(sentence, padded, minus_infinity<double>, to);
}

/// Where a kernel reads the edges of a group.
template <class Format>
struct EdgeSource {
    StagedEdges sentence[Format::sentences];
    int padded = 0;

    /// Where to read eight columns from, to have `column` among them: never beyond the end of a row.
    [[gnu::always_inline]] int chunk(int column) const {
        return padded < pack_size || Format::sentences == 1 ? column : std::min(column, padded - pack_size);
    }
    [[gnu::always_inline]] const double* address(int s, int h, int column) const {
        return sentence[s].data + h * sentence[s].stride + column;
    }
};

/// Edges from head h to the eight words from `column` on, of eight sentences: x[c] is word column + c in every lane.
template <int width>
[[gnu::always_inline]] inline void read_lanes(const EdgeSource<Together>& source, int h, int column,
                                              PackOf<width> (&x)[pack_size]) {
    if constexpr (width == pack_size) {
        // Sentences four apart share a register from the start, so that only squares of four are left to be turned.
        constexpr int half = pack_size / 2;
        Vector<double, pack_size> rows[pack_size];
        for (int s = 0; s < half; ++s) {
            const double* const low = source.address(s, h, column);
            const double* const high = source.address(s + half, h, column);
            rows[s] = join(load<half>(low), load<half>(high));
            rows[s + half] = join(load<half>(low + half), load<half>(high + half));
        }
        transpose_squares<half>(rows);
        for (int c = 0; c < pack_size; ++c) x[c].part[0] = rows[c];
    } else {
        for (int s = 0; s < pack_size; ++s) x[s] = PackOf<width>::load(source.address(s, h, column));
        transpose(x);
    }
}

}  // namespace spantree
