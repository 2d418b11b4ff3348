// The third derivative of log Z by the scores, contracted with two directions, from a kept solve: matrix products alone.
//
// With elementwise *, M = V * E the marginals, and the two products of gradient.hpp,
//
//     D_X[j, l]   =  sum_i X[i, j] V[i, j] (E[i, l] - E[j, l])
//     P(Y)[k, l]  =  V[k, l] sum_m (E[k, m] - E[l, m]) Y[m, l],
//
// marginals move by hessian(G) = G * M - P(D_G) when the scores move by G, and that moves by
//
//     third(U, G)  =  U * G * M - U * P(D_G) - G * P(D_U) + P(D_U D_G + D_G D_U - D_{U * G})
//
// when they move by U (the kernel K of the trees as a determinantal process changes by K dT - K dT K). Scores that have a
// mixed second derivative C of their own, as the logarithm of a sum over labels has, add hessian(C): the same formula with
// U * G + C in the place of U * G. 8 n^3 multiply-adds, memory O(n^2).
#pragma once

#include <limits>

#include "gradient.hpp"

namespace spantree {

/// Replaces u by hessian(u), g by hessian(g), and ug, which holds U * G + C, by third. `work` has room for
/// work_size(words) doubles.
template <class Format>
struct Third {
    static std::size_t work_size(int padded) { return 6 * edge_matrix_size<Format>(padded); }

    template <class Registers>
    struct Kernel {
        static void run(const EdgeMatrices<Format>& edges, bool several_roots, Rows u, Rows g, Rows ug, double* work,
                        StopSignal* stop) {
            Third::run<LayoutOn<Format, Registers>, Registers::tile>(edges, several_roots, u, g, ug, work, stop);
        }
    };

private:
    template <class Layout, int tile>
    [[gnu::always_inline]] static void run(const EdgeMatrices<Format>& edges, bool several_roots, Rows u, Rows g,
                                           Rows ug, double* work, StopSignal* stop) {
        using Pack = typename Layout::Pack;
        constexpr int e = Format::element_size;
        const Products<Layout, tile> products(edges, several_roots, stop);
        const int n = products.n, packs = products.packs;
        Rows room[6];
        for (int i = 0; i < 6; ++i) room[i] = {work + i * edge_matrix_size<Format>(n), u.stride};
        const auto [h, d_u, d_g, mixed, through_u, through_g] = room;
        products.spread(u, h, d_u);
        products.spread(g, h, d_g);
        products.spread(ug, h, mixed);
        double* const own = h.data + (n + 1) * h.stride;
        products.gather(d_u, through_u, own);
        products.gather(d_g, through_g, own);
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < packs; ++p)
                Layout::store(products.at(mixed, j, p), Pack{} - Layout::load(products.at(mixed, j, p)));
        products.add(mixed, n, {d_u.data, d_u.stride, e}, d_g);
        products.add(mixed, n, {d_g.data, d_g.stride, e}, d_u);
        products.gather(mixed, h, own);
        for (int p = 0; p < packs; ++p)
            for (int k = 0; k <= n; ++k) {
                const Pack v = products.weight(k, p), m = v * products.escape(k, p);
                double* const to[] = {products.at(u, k, p), products.at(g, k, p), products.at(ug, k, p)};
                const Pack value_u = Layout::load(to[0]), value_g = Layout::load(to[1]);
                const Pack out_u = v * Layout::load(products.at(through_u, k, p)),
                           out_g = v * Layout::load(products.at(through_g, k, p));
                Layout::store(to[0], value_u * m - out_u);
                Layout::store(to[1], value_g * m - out_g);
                Layout::store(to[2], ((Layout::load(to[2]) * m - value_u * out_g) - value_g * out_u) +
                                         v * Layout::load(products.at(h, k, p)));
            }
    }
};

/// What a bound on the error of `Gradient` is multiplied by to bound that of `Third`: sum_m max_i E[i, m] sum_i V[i, m].
template <class Format>
struct ThirdError {
    template <class Registers>
    struct Kernel {
        static void run(const EdgeMatrices<Format>& edges, double* factor) {
            using Layout = LayoutOn<Format, Registers>;
            using Pack = typename Layout::Pack;
            const Products<Layout, Registers::tile> products(edges, false);
            typename Layout::Element total = {};
            for (int p = 0; p < products.packs; ++p) {
                Pack sum = {}, largest = {};
                for (int i = 0; i <= products.n; ++i) {
                    sum += products.weight(i, p);
                    largest = larger(products.escape(i, p), largest);
                }
                add_in_order<Layout>(sum * largest, p, products.n, total);
            }
            Layout::set(factor, total);
        }
    };
};

}  // namespace spantree
