// The inner loop of everything: out[r, :] += sum_s coefficient[r, s] * x[s, :], terms added one after the other in the
// order of s.
//
// Tiles of out stay in registers while s runs, so memory is touched once per tile, not once per term. A tile is one
// register wide in each of its packs: where a pack takes several registers, the same tile is done for one after the
// other, since four rows of two registers need six loads for eight multiplications, and two rows of two packs of two
// registers need eight. Tiles below each other come first: they share x, which stays in the nearest cache.
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

/// Rows of a tile: with sixteen registers, eight of them hold four rows of two.
inline constexpr int tile_rows = 4;

template <class Layout, int rows, int packs>
[[gnu::always_inline]] inline void update_tile(Rows out, Strided coefficient, Rows x, int terms) {
    using Pack = typename Layout::Pack;
    constexpr int width = pack_size / Pack::parts;
    for (int part = 0; part < Pack::parts; ++part) {
        double* const to = out.data + part * width;
        const double* const from = x.data + part * width;
        typename Pack::Part tile[rows][packs];
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
            for (int p = 0; p < packs; ++p) tile[r][p] = load<width>(to + r * out.stride + p * pack_size);
        for (int s = 0; s < terms; ++s) {
            typename Pack::Part term[packs];
#pragma GCC unroll 8
            for (int p = 0; p < packs; ++p) term[p] = load<width>(from + s * x.stride + p * pack_size);
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r) {
                auto c = Layout::part_of(coefficient.data + r * coefficient.row + s * coefficient.term, part);
                keep_in_register(c);
#pragma GCC unroll 8
                for (int p = 0; p < packs; ++p) tile[r][p] += c * term[p];
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
            for (int p = 0; p < packs; ++p) store(to + r * out.stride + p * pack_size, tile[r][p]);
    }
}

/// `packs` packs of `rows` rows, in tiles of up to `height` rows.
template <class Layout, int packs, int height>
[[gnu::always_inline]] inline void update_packs(Rows out, int rows, Strided coefficient, Rows x, int terms) {
    for (; rows >= height; rows -= height) {
        update_tile<Layout, height, packs>(out, coefficient, x, terms);
        out.data += height * out.stride;
        coefficient.data += height * coefficient.row;
    }
    if constexpr (height > 1) update_packs<Layout, packs, height / 2>(out, rows, coefficient, x, terms);
}

/// Packs [first_pack, last_pack) of `rows` rows, in tiles of up to `height` rows and `tile` packs.
template <class Layout, int tile, int height = tile_rows>
[[gnu::always_inline]] inline void update(Rows out, int rows, int first_pack, int last_pack, Strided coefficient,
                                          Rows x, int terms) {
    if (terms == 0) return;
    int pack = first_pack;
    for (; pack + tile <= last_pack; pack += tile)
        update_packs<Layout, tile, height>({out.data + pack * pack_size, out.stride}, rows, coefficient,
                                           {x.data + pack * pack_size, x.stride}, terms);
    if constexpr (tile > 1) update<Layout, tile / 2, height>(out, rows, pack, last_pack, coefficient, x, terms);
}

}  // namespace spantree
