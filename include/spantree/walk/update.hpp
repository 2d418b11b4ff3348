// The inner loop of everything: out[r, :] += sum_s coefficient[r, s] * x[s, :], terms added one after the other in the
// order of s.
//
// Tiles of out stay in registers while s runs, so memory is touched once per tile, not once per term. A tile is one
// register wide in each of its packs: where a pack takes several registers, the same tile is done for one after the
// other, since four rows of two registers need six loads for eight multiplications, and two rows of two packs of two
// registers need eight. Tiles below each other come first: they share x, which stays in the nearest cache. What out is
// before need not lie there: then it is read elsewhere, and nothing has to be copied first.
// Cost: rows * packs * terms multiply-adds. The order of additions to an entry does not depend on the tiles.
#pragma once

#include <cstddef>

#include "../simd/layout.hpp"

namespace spantree {

/// Entries a fixed number of doubles apart, backwards if negative.
struct Strided {
    const double* data;
    std::ptrdiff_t row;   // from r to r + 1
    std::ptrdiff_t term;  // from s to s + 1
};

struct Rows {
    double* data;
    std::ptrdiff_t stride;  // from one row to the next
};

/// What rows of out are before: other rows, or, in all of a row's columns, the entry of one column.
template <bool one_column>
struct Start {
    const double* data;
    std::ptrdiff_t stride;

    Start below(int rows) const { return {data + rows * stride, stride}; }
    Start beside(int packs) const { return {one_column ? data : data + packs * pack_size, stride}; }

    /// One register of a pack.
    template <class Layout>
    [[gnu::always_inline]] auto part(int row, int pack, int part) const {
        constexpr int width = Layout::width;
        if constexpr (one_column)
            return Layout::part_of(data + row * stride, part);
        else
            return load<width>(data + row * stride + pack * pack_size + part * width);
    }
};
using StartRows = Start<false>;
using StartColumn = Start<true>;

/// Rows of a tile: with sixteen registers, eight of them hold four rows of two.
inline constexpr int tile_rows = 4;

/// If `chained`, rows of the tile then add to those below: out[r, :] += sum_s<r among[r, s] * out[s, :].
template <class Layout, int rows, int packs, bool chained = false, bool one_column>
[[gnu::always_inline]] inline void update_tile(Rows out, Start<one_column> start, Strided coefficient, Rows x,
                                               int terms, Strided among = {}) {
    using Pack = typename Layout::Pack;
    constexpr int width = Layout::width;
    for (int part = 0; part < Pack::parts; ++part) {
        double* const to = out.data + part * width;
        const double* const from = x.data + part * width;
        typename Pack::Part tile[rows][packs];
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
            for (int p = 0; p < packs; ++p) tile[r][p] = start.template part<Layout>(r, p, part);
        for (int s = 0; s < terms; ++s) {
            typename Pack::Part term[packs];
#pragma GCC unroll 8
            for (int p = 0; p < packs; ++p) {
                term[p] = load<width>(from + s * x.stride + p * pack_size);
                keep_in_register(term[p]);
            }
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r) {
                auto c = Layout::part_of(coefficient.data + r * coefficient.row + s * coefficient.term, part);
                keep_in_register(c);
#pragma GCC unroll 8
                for (int p = 0; p < packs; ++p) tile[r][p] += c * term[p];
            }
        }
        if constexpr (chained) {
#pragma GCC unroll 8
            for (int r = 1; r < rows; ++r)
#pragma GCC unroll 8
                for (int s = 0; s < r; ++s) {
                    auto c = Layout::part_of(among.data + r * among.row + s * among.term, part);
                    keep_in_register(c);
#pragma GCC unroll 8
                    for (int p = 0; p < packs; ++p) tile[r][p] += c * tile[s][p];
                }
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
            for (int p = 0; p < packs; ++p) store(to + r * out.stride + p * pack_size, tile[r][p]);
    }
}

/// `packs` packs of `rows` rows, in tiles of up to `height` rows.
template <class Layout, int packs, int height, bool one_column>
[[gnu::always_inline]] inline void update_packs(Rows out, Start<one_column> start, int rows, Strided coefficient,
                                                Rows x, int terms) {
    for (; rows >= height; rows -= height) {
        update_tile<Layout, height, packs>(out, start, coefficient, x, terms);
        out.data += height * out.stride;
        start = start.below(height);
        coefficient.data += height * coefficient.row;
    }
    if constexpr (height > 1) update_packs<Layout, packs, height / 2>(out, start, rows, coefficient, x, terms);
}

/// Packs [first_pack, last_pack) of `rows` rows, in tiles of up to `height` rows and `tile` packs.
template <class Layout, int tile, int height = tile_rows, bool one_column>
[[gnu::always_inline]] inline void update_from(Start<one_column> start, Rows out, int rows, int first_pack,
                                               int last_pack, Strided coefficient, Rows x, int terms) {
    int pack = first_pack;
    for (; pack + tile <= last_pack; pack += tile)
        update_packs<Layout, tile, height>({out.data + pack * pack_size, out.stride}, start.beside(pack), rows,
                                           coefficient, {x.data + pack * pack_size, x.stride}, terms);
    if constexpr (tile > 1)
        update_from<Layout, tile / 2, height>(start, out, rows, pack, last_pack, coefficient, x, terms);
}

template <class Layout, int tile, int height = tile_rows>
[[gnu::always_inline]] inline void update(Rows out, int rows, int first_pack, int last_pack, Strided coefficient,
                                          Rows x, int terms) {
    if (terms > 0)
        update_from<Layout, tile, height>(StartRows{out.data, out.stride}, out, rows, first_pack, last_pack,
                                          coefficient, x, terms);
}

/// The same for `tile_rows` rows that then add to those below them.
template <class Layout, int tile>
[[gnu::always_inline]] inline void update_chained(Rows out, int first_pack, int last_pack, Strided coefficient, Rows x,
                                                  int terms, Strided among) {
    int pack = first_pack;
    for (; pack + tile <= last_pack; pack += tile) {
        const Rows at{out.data + pack * pack_size, out.stride};
        update_tile<Layout, tile_rows, tile, true>(at, StartRows{at.data, at.stride}, coefficient,
                                                   {x.data + pack * pack_size, x.stride}, terms, among);
    }
    if constexpr (tile > 1) update_chained<Layout, tile / 2>(out, pack, last_pack, coefficient, x, terms, among);
}

}  // namespace spantree
