// The inner loop of everything: out[r, :] += sum_s coefficient[r, s] * x[s, :], terms added one after the other in the
// order of s.
//
// Tiles of out stay in registers while s runs, so memory is touched once per tile, not once per term. Cost: rows *
// packs * terms multiply-adds. The order of additions to an entry does not depend on the tiles.
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

template <class Layout, int rows, int packs>
[[gnu::always_inline]] inline void update_tile(double* out, std::ptrdiff_t out_stride, Strided coefficient,
                                               const double* x, std::ptrdiff_t x_stride, int terms) {
    typename Layout::Pack tile[rows][packs];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int p = 0; p < packs; ++p) tile[r][p] = Layout::load(out + r * out_stride + p * pack_size);
    for (int s = 0; s < terms; ++s) {
        typename Layout::Pack term[packs];
#pragma GCC unroll 8
        for (int p = 0; p < packs; ++p) term[p] = Layout::load(x + s * x_stride + p * pack_size);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            const auto c = Layout::spread(Layout::get(coefficient.data + r * coefficient.row + s * coefficient.term));
#pragma GCC unroll 8
            for (int p = 0; p < packs; ++p) tile[r][p] += c * term[p];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int p = 0; p < packs; ++p) Layout::store(out + r * out_stride + p * pack_size, tile[r][p]);
}

template <class Layout, int rows, int packs>
[[gnu::always_inline]] inline void update_rows(double* out, std::ptrdiff_t out_stride, int first_pack, int last_pack,
                                               Strided coefficient, Rows x, int terms) {
    int pack = first_pack;
    for (; pack + packs <= last_pack; pack += packs)
        update_tile<Layout, rows, packs>(out + pack * pack_size, out_stride, coefficient, x.data + pack * pack_size,
                                         x.stride, terms);
    if constexpr (packs > 1)
        update_rows<Layout, rows, packs / 2>(out, out_stride, pack, last_pack, coefficient, x, terms);
}

/// Packs [first_pack, last_pack) of `rows` rows, in tiles of up to `height` rows and `tile` packs.
template <class Layout, int tile, int height = tile>
[[gnu::always_inline]] inline void update(Rows out, int rows, int first_pack, int last_pack, Strided coefficient,
                                          Rows x, int terms) {
    if (terms == 0) return;
    int row = 0;
    for (; row + height <= rows; row += height) {
        update_rows<Layout, height, tile>(out.data + row * out.stride, out.stride, first_pack, last_pack, coefficient,
                                          x, terms);
        coefficient.data += height * coefficient.row;
    }
    if constexpr (height > 1)
        update<Layout, tile, height / 2>({out.data + row * out.stride, out.stride}, rows - row, first_pack, last_pack,
                                         coefficient, x, terms);
}

}  // namespace spantree
