// Expectations of edge values and their gradients from a kept solve: two matrix products, no further solve.
//
// For edges e = (i -> j), f = (k -> l), with V[h, d] = w[h, d] / c[d]:
//
//     Cov(e, f) = [e = f] marginal(e) - V[k, l] (E[i, l] - E[j, l]) V[i, j] (E[k, j] - E[l, j])
//
// (a transfer-current identity; the expectation semiring view is Zmigrod et al. 2020). Summed over e with values G[i,
// j], H = G * V:
//
//     D[j, l]    = sum_i H[i, j] (E[i, l] - E[j, l])
//     grad[k, l] = G[k, l] marginal[k, l] - V[k, l] sum_j (E[k, j] - E[l, j]) D[j, l]
//
// is d E[sum of G over the tree's edges] / d score[k, l]. With one root allowed, E of words is infinitesimal beside
// E[ROOT] = 1: in D the term i = ROOT keeps only its H[ROOT, j], and for k = ROOT the sum keeps only D. 2 n^3
// multiply-adds, memory O(n^2).
#pragma once

#include <limits>

#include "group.hpp"

namespace arbora {

/// Lays out staged edges as the rows of packs a kernel works on.
template <class Layout>
[[gnu::always_inline]] inline void gather(const EdgeSource<Layout>& source, Rows to) {
    for (int h = 0; h <= source.padded; ++h)
        for (int p = 0; p < source.padded; p += pack_size) {
            double* const out = to.data + h * to.stride + p * Layout::element_size;
            if constexpr (Layout::sentences == 1) {
                store(out, source.at(0, h, p));
            } else {
                Pack x[pack_size];
                read_lanes(source, h, p, x);
                for (int c = 0; c < pack_size && p + c < source.padded; ++c) store(out + c * pack_size, x[c]);
            }
        }
}

/// The way back: sentence s's edges in rows of round_up(padded) columns at to[s]. entry(h, p) is the p-th pack of row
/// h.
template <class Layout, class Entry>
[[gnu::always_inline]] inline void scatter(int padded, double* const (&to)[Layout::sentences], Entry entry) {
    const std::ptrdiff_t stride = round_up(padded);
    for (int h = 0; h <= padded; ++h)
        for (int p = 0; p < padded; p += pack_size) {
            if constexpr (Layout::sentences == 1) {
                store(to[0] + h * stride + p, entry(h, p / pack_size));
            } else {
                Pack x[pack_size];
                for (int c = 0; c < pack_size; ++c) x[c] = p + c < padded ? entry(h, p + c) : Pack{};
                transpose(x);
                for (int s = 0; s < pack_size; ++s) store(to[s] + h * stride + p, x[s]);
            }
        }
}

template <class Layout>
struct ScatterMarginals {
    static void run(const EdgeMatrices<Layout>& edges, double* const (&to)[Layout::sentences]) {
        scatter<Layout>(edges.padded, to, [&](int h, int p) {
            return load(edges.weights.data + h * edges.weights.stride + p * pack_size) *
                   load(edges.escape.data + h * edges.escape.stride + p * pack_size);
        });
    }
};

template <class Layout>
struct ScatterRows {
    static void run(Rows rows, int padded, double* const (&to)[Layout::sentences]) {
        scatter<Layout>(padded, to, [&](int h, int p) { return load(rows.data + h * rows.stride + p * pack_size); });
    }
};

template <class Layout>
struct Gather {
    static void run(const EdgeSource<Layout>& source, Rows to) { gather(source, to); }
};

/// Sum over columns, first to last, of the n real ones. Lanes: per lane.
template <class Layout>
[[gnu::always_inline]] inline void add_in_order(Pack x, int p, int padded, typename Layout::Element& total) {
    if constexpr (Layout::sentences == 1) {
        for (int lane = 0; lane < pack_size && p * pack_size + lane < padded; ++lane) total += x[lane];
    } else {
        (void)p, (void)padded;
        total += x;
    }
}

/// sum of G * marginal. G may be anything where the edge is impossible.
template <class Layout>
struct Expectation {
    static void run(const EdgeMatrices<Layout>& edges, Rows values, typename Layout::Element& total) {
        typename Layout::Element sum = {};
        for (int p = 0; p < Layout::packs(edges.padded); ++p) {
            Pack column = {};
            for (int h = 0; h <= edges.padded; ++h) {
                const Pack v = load(edges.weights.data + h * edges.weights.stride + p * pack_size);
                const Pack m = v * load(edges.escape.data + h * edges.escape.stride + p * pack_size);
                column += m > 0.0 ? m * load(values.data + h * values.stride + p * pack_size) : Pack{};
            }
            add_in_order<Layout>(column, p, edges.padded, sum);
        }
        total = sum;
    }
};

/// Beyond this error relative to the largest value, a gradient is worth a solve that carries derivatives.
inline constexpr double tolerable_error = 1e-11;

/// Replaces values by the gradient of their expectation. `work` has room for work_size(words) doubles.
template <class Layout>
struct Gradient {
    using Element = typename Layout::Element;
    static constexpr int e = Layout::element_size;

    static std::size_t matrix_size(int padded) {
        return EdgeMatrices<Layout>::size(padded) + 4 * EdgeMatrices<Layout>::stride(padded);
    }
    static std::size_t work_size(int padded) { return 2 * matrix_size(padded); }

    template <int tile>
    struct Kernel {
        /// `error` receives a bound on the rounding error of the result, relative to the largest value.
        static void run(const EdgeMatrices<Layout>& edges, bool several_roots, Rows values, double* work,
                        typename Layout::Element& error) {
            Gradient::run<tile>(edges, several_roots, values, work, error);
        }
    };

private:
    template <int tile>
    [[gnu::always_inline]] static void run(const EdgeMatrices<Layout>& edges, bool several_roots, Rows values,
                                           double* work, typename Layout::Element& error) {
        const int n = edges.padded, packs = Layout::packs(n);
        const std::ptrdiff_t stride = values.stride;
        const Rows h{work, stride}, d{work + matrix_size(n), stride};
        const auto v = [&](int i, int p) {
            return load(edges.weights.data + i * edges.weights.stride + p * pack_size);
        };
        const auto escape = [&](int i, int p) {
            return load(edges.escape.data + i * edges.escape.stride + p * pack_size);
        };
        const auto at = [&](Rows rows, int i, int p) { return rows.data + i * rows.stride + p * pack_size; };

        // H = G V, and its sums over heads: the last row of h.
        for (int p = 0; p < packs; ++p) {
            Pack sum = {};
            for (int i = 0; i <= n; ++i) {
                const Pack weight = v(i, p);
                const Pack value = weight > 0.0 ? load(at(values, i, p)) : Pack{};
                store(at(values, i, p), value);
                const Pack product = value * weight;
                store(at(h, i, p), product);
                if (i > 0 || several_roots) sum += product;
            }
            store(at(h, n + 1, p), sum);
        }
        for (int j = 0; j < n; ++j) {
            const Pack from_root = Layout::spread(Layout::get(h.data + j * e));
            const Pack sum = Layout::spread(Layout::get(h.data + (n + 1) * stride + j * e));
            for (int p = 0; p < packs; ++p) store(at(d, j, p), from_root - sum * escape(j + 1, p));
        }
        update<Layout, tile>(d, n, 0, packs, {h.data + stride, e, stride},
                             {edges.escape.data + edges.escape.stride, edges.escape.stride}, n);

        // sum_j E[k, j] D[j, l] in h.
        for (int k = 0; k <= n; ++k)
            for (int p = 0; p < packs; ++p) store(at(h, k, p), Pack{});
        update<Layout, tile>(h, n + 1, 0, packs, {edges.escape.data, edges.escape.stride, e}, d, n);
        double* const own = d.data;  // sum_j E[l, j] D[j, l]
        for (int l = 0; l < n; ++l) Layout::set(own + l * e, Layout::get(h.data + (l + 1) * stride + l * e));
        for (int p = 0; p < packs; ++p)
            for (int k = 0; k <= n; ++k) {
                const Pack value = load(at(values, k, p));
                Pack through = load(at(h, k, p));
                if (k > 0 || several_roots) through -= load(own + p * pack_size);
                store(at(values, k, p), value * (v(k, p) * escape(k, p)) - v(k, p) * through);
            }
        error = error_bound(edges, d.data + stride);
    }

    /// Of grad, relative to the largest value: 2^-52 max over (k, l) of V[k, l] max_i E[i, l] sum_j E[k, j] sum_i V[i,
    /// j].
    [[gnu::always_inline]] static Element error_bound(const EdgeMatrices<Layout>& edges, double* work) {
        const int n = edges.padded, packs = Layout::packs(n);
        const auto v = [&](int i, int p) {
            return load(edges.weights.data + i * edges.weights.stride + p * pack_size);
        };
        const auto escape = [&](int i, int p) {
            return load(edges.escape.data + i * edges.escape.stride + p * pack_size);
        };
        for (int p = 0; p < packs; ++p) {
            Pack sum = {};
            for (int i = 0; i <= n; ++i) sum += v(i, p);
            store(work + p * pack_size, sum);
        }
        Pack bound = {};
        double* const visits = work + packs * pack_size;
        for (int k = 0; k <= n; ++k) {
            Element total = {};
            for (int p = 0; p < packs; ++p)
                add_in_order<Layout>(escape(k, p) * load(work + p * pack_size), p, n, total);
            Layout::set(visits + k * e, total);
        }
        for (int p = 0; p < packs; ++p) {
            Pack largest_escape = {}, largest_weight = {};
            for (int k = 0; k <= n; ++k) {
                largest_escape = larger(escape(k, p), largest_escape);
                largest_weight = larger(v(k, p) * Layout::spread(Layout::get(visits + k * e)), largest_weight);
            }
            bound = larger(largest_escape * largest_weight, bound);
        }
        return Layout::largest(bound) * std::numeric_limits<double>::epsilon();
    }
};

}  // namespace arbora
