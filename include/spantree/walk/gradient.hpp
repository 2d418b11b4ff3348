// Expectations of edge values and their gradients from a kept solve: two matrix products, no further solve.
//
// For edges e = (i -> j), f = (k -> l), with V[h, d] = w[h, d] / c[d]:
//
//     Cov(e, f)  =  [e = f] marginal(e)  -  V[k, l] (E[i, l] - E[j, l]) V[i, j] (E[k, j] - E[l, j])
//
// (a transfer-current identity; the expectation semiring view is Zmigrod et al. 2020). Summed over e with values G[i, j],
// H = G * V:
//
//     D[j, l]    = sum_i H[i, j] (E[i, l] - E[j, l])
//     grad[k, l] = G[k, l] marginal[k, l] - V[k, l] sum_j (E[k, j] - E[l, j]) D[j, l]
//
// is d E[sum of G over the tree's edges] / d score[k, l]. With one root allowed, E of words is infinitesimal beside
// E[ROOT] = 1: in D the term i = ROOT keeps only its H[ROOT, j], and for k = ROOT the sum keeps only D. 2 n^3
// multiply-adds, memory O(n^2).
#pragma once

#include <algorithm>
#include <limits>

#include "../batch/parallel.hpp"
#include "group.hpp"

namespace spantree {

/// Lays out staged edges as the rows of packs a kernel works on.
template <class Format>
struct Gather {
    template <class Registers>
    struct Kernel {
        static void run(const EdgeSource<Format>& source, Rows to) {
            using Layout = LayoutOn<Format, Registers>;
            for (int h = 0; h <= source.padded; ++h)
                for (int p = 0; p < source.padded; p += pack_size) {
                    double* const out = to.data + h * to.stride + p * Format::element_size;
                    if constexpr (Format::sentences == 1) {
                        Layout::store(out, Layout::load(source.address(0, h, p)));
                    } else {
                        typename Layout::Pack x[pack_size];
                        read_lanes(source, h, p, x);
                        for (int c = 0; c < pack_size && p + c < source.padded; ++c)
                            Layout::store(out + c * pack_size, x[c]);
                    }
                }
        }
    };
};

/// The way back: sentence s's edges in rows at to[s]: of round_up(padded) columns, or, of eight sentences of eight words or
/// more, just `padded`. entry(h, p) is the p-th pack of row h.
template <class Layout, class Entry>
[[gnu::always_inline]] inline void scatter(int padded, const Rows (&to)[Layout::sentences], Entry entry) {
    using Pack = typename Layout::Pack;
    for (int h = 0; h <= padded; ++h)
        for (int begin = 0; begin < padded; begin += pack_size) {
            if constexpr (Layout::sentences == 1) {
                Layout::store(to[0].data + h * to[0].stride + begin, entry(h, begin / pack_size));
            } else {
                // The last eight columns may be some of those before again: nothing is written beyond the row.
                const int column = padded < pack_size ? begin : std::min(begin, padded - pack_size);
                Pack x[pack_size];
                for (int c = 0; c < pack_size; ++c) x[c] = column + c < padded ? entry(h, column + c) : Pack{};
                transpose(x);
                for (int s = 0; s < pack_size; ++s) Layout::store(to[s].data + h * to[s].stride + column, x[s]);
            }
        }
}

template <class Format>
struct ScatterMarginals {
    template <class Registers>
    struct Kernel {
        static void run(const EdgeMatrices<Format>& edges, const Rows (&to)[Format::sentences]) {
            using Layout = LayoutOn<Format, Registers>;
            const auto at = [](Rows rows, int row, int p) __attribute__((always_inline)) {
                return Layout::load(rows.data + row * rows.stride + p * pack_size);
            };
            if (edges.scales.data)
                scatter<Layout>(edges.padded, to, [&](int h, int p) __attribute__((always_inline)) {
                    return ((at(edges.weights, h, p) * weight_unit_inverse) * at(edges.scales, 0, p)) *
                           (at(edges.escape, h, p) * at(edges.scales, 1, p));
                });
            else
                scatter<Layout>(edges.padded, to, [&](int h, int p) __attribute__((always_inline)) {
                    return at(edges.weights, h, p) * at(edges.escape, h, p);
                });
        }
    };
};

template <class Format>
struct ScatterRows {
    template <class Registers>
    struct Kernel {
        static void run(Rows rows, int padded, const Rows (&to)[Format::sentences]) {
            using Layout = LayoutOn<Format, Registers>;
            scatter<Layout>(padded, to, [&](int h, int p) __attribute__((always_inline)) {
                return Layout::load(rows.data + h * rows.stride + p * pack_size);
            });
        }
    };
};

/// Sum over columns, first to last, of the n real ones, of each sentence.
template <class Layout>
[[gnu::always_inline]] inline void add_in_order(const typename Layout::Pack& x, int p, int padded,
                                                typename Layout::Element& total) {
    if constexpr (Layout::sentences == 1) {
        for (int lane = 0; lane < pack_size && p * pack_size + lane < padded; ++lane) total += x[lane];
    } else {
        (void)p, (void)padded;
        total += x;
    }
}

/// sum of G * marginal, one element. G may be anything where the edge is impossible.
template <class Format>
struct Expectation {
    template <class Registers>
    struct Kernel {
        static void run(const EdgeMatrices<Format>& edges, Rows values, double* total) {
            using Layout = LayoutOn<Format, Registers>;
            using Pack = typename Layout::Pack;
            typename Layout::Element sum = {};
            for (int p = 0; p < Layout::packs(edges.padded); ++p) {
                Pack column = {};
                for (int h = 0; h <= edges.padded; ++h) {
                    const Pack v = Layout::load(edges.weights.data + h * edges.weights.stride + p * pack_size);
                    const Pack m = v * Layout::load(edges.escape.data + h * edges.escape.stride + p * pack_size);
                    const Pack value = Layout::load(values.data + h * values.stride + p * pack_size);
                    column += if_less(Pack{}, m, m * value, Pack{});
                }
                add_in_order<Layout>(column, p, edges.padded, sum);
            }
            Layout::set(total, sum);
        }
    };
};

/// Beyond this error relative to the largest value, a gradient is worth a solve that carries derivatives. The scores that it is
/// computed from are themselves right to 1e-11, where they are large (`moderate` in batch/centred.hpp).
inline constexpr double tolerable_error = 1e-11;

/// The two matrix products that derivatives of marginals are made of, with V, E of a solve.
template <class Layout, int tile>
class Products {
public:
    using Pack = typename Layout::Pack;
    static constexpr int e = Layout::element_size;

    /// `stop`, if any, is asked in long sentences, which throws `Stopped`.
    Products(const EdgeMatrices<typename Layout::Format>& edges, bool several_roots, StopSignal* stop = nullptr)
        : n(edges.padded), packs(Layout::packs(n)), several_roots_(several_roots), edges_(edges), stop_(stop) {}

    /// out[r, :] += sum over j of coefficient[r, j] x[j, :], a few hundred rows at a time.
    [[gnu::always_inline]] void add(Rows out, int rows, Strided coefficient, Rows x) const {
        constexpr int at_once = 256;  // fewer rows are nothing to wait for
        for (int first = 0; first < rows; first += at_once) {
            if (stop_ && first > 0) stop_->check();
            update<Layout, tile>({out.data + first * out.stride, out.stride}, std::min(at_once, rows - first), 0, packs,
                                 {coefficient.data + first * coefficient.row, coefficient.row, coefficient.term}, x, n);
        }
    }

    [[gnu::always_inline]] Pack weight(int i, int p) const {
        return Layout::load(edges_.weights.data + i * edges_.weights.stride + p * pack_size);
    }
    [[gnu::always_inline]] Pack escape(int i, int p) const {
        return Layout::load(edges_.escape.data + i * edges_.escape.stride + p * pack_size);
    }
    [[gnu::always_inline]] static double* at(Rows rows, int i, int p) {
        return rows.data + i * rows.stride + p * pack_size;
    }

    /// D[j, l] = sum_i values[i, j] V[i, j] (E[i, l] - E[j, l]). `h` has room for n + 2 rows. Values of edges that no tree
    /// has do not matter, whatever they are: they become 0.
    [[gnu::always_inline]] void spread(Rows values, Rows h, Rows d) const {
        // H = values V, and its sums over heads: the last row of h.
        for (int p = 0; p < packs; ++p) Layout::store(at(h, n + 1, p), Pack{});
        for (int i = 0; i <= n; ++i)
            for (int p = 0; p < packs; ++p) {
                const Pack v = weight(i, p);
                const Pack value = if_less(Pack{}, v * escape(i, p), Layout::load(at(values, i, p)), Pack{});
                Layout::store(at(values, i, p), value);
                const Pack product = value * v;
                Layout::store(at(h, i, p), product);
                if (i > 0 || several_roots_) Layout::store(at(h, n + 1, p), Layout::load(at(h, n + 1, p)) + product);
            }
        for (int j = 0; j < n; ++j) {
            const Pack from_root = Layout::spread(Layout::get(h.data + j * e));
            const Pack sum = Layout::spread(Layout::get(h.data + (n + 1) * h.stride + j * e));
            for (int p = 0; p < packs; ++p)
                Layout::store(at(d, j, p), from_root * escape(0, p) - sum * escape(j + 1, p));
        }
        add(d, n, {h.data + h.stride, e, h.stride}, {edges_.escape.data + edges_.escape.stride, edges_.escape.stride});
    }

    /// to[k, l] = sum_j (E[k, j] - E[l, j]) d[j, l]. `own` has room for a row.
    [[gnu::always_inline]] void gather(Rows d, Rows to, double* own) const {
        gather_parts(d, to, own);
        for (int k = 0; k <= n; ++k)
            for (int p = 0; p < packs; ++p) Layout::store(at(to, k, p), gathered(to, own, k, p));
    }

    /// The same in two parts, to[k, l] = sum_j E[k, j] d[j, l] and own[l] = sum_j E[l, j] d[j, l], for `gathered` to subtract.
    [[gnu::always_inline]] void gather_parts(Rows d, Rows to, double* own) const {
        for (int k = 0; k <= n; ++k)
            for (int p = 0; p < packs; ++p) Layout::store(at(to, k, p), Pack{});
        add(to, n + 1, {edges_.escape.data, edges_.escape.stride, e}, d);
        for (int l = 0; l < n; ++l) Layout::set(own + l * e, Layout::get(to.data + (l + 1) * to.stride + l * e));
    }

    [[gnu::always_inline]] Pack gathered(Rows to, const double* own, int k, int p) const {
        const Pack sum = Layout::load(at(to, k, p));
        return k > 0 || several_roots_ ? sum - Layout::load(own + p * pack_size) : sum;
    }

    const int n, packs;

private:
    bool several_roots_;
    const EdgeMatrices<typename Layout::Format>& edges_;
    StopSignal* stop_;
};

/// Room for n + 1 rows of edges, a row of sums, and what kernels write beyond.
template <class Format>
std::size_t edge_matrix_size(int padded) {
    return EdgeMatrices<Format>::size(padded) + 4 * EdgeMatrices<Format>::stride(padded);
}

/// Replaces values by the gradient of their expectation. `work` has room for work_size(words) doubles.
template <class Format>
struct Gradient {
    static std::size_t work_size(int padded) { return 2 * edge_matrix_size<Format>(padded); }

    template <class Registers>
    struct Kernel {
        static void run(const EdgeMatrices<Format>& edges, bool several_roots, Rows values, double* work,
                        StopSignal* stop) {
            Gradient::run<LayoutOn<Format, Registers>, Registers::tile>(edges, several_roots, values, work, stop);
        }
    };

private:
    template <class Layout, int tile>
    [[gnu::always_inline]] static void run(const EdgeMatrices<Format>& edges, bool several_roots, Rows values,
                                           double* work, StopSignal* stop) {
        using Pack = typename Layout::Pack;
        const Products<Layout, tile> products(edges, several_roots, stop);
        const Rows h{work, values.stride}, d{work + edge_matrix_size<Format>(edges.padded), values.stride};
        products.spread(values, h, d);
        double* const own = d.data + products.n * d.stride;
        products.gather_parts(d, h, own);
        for (int k = 0; k <= products.n; ++k)
            for (int p = 0; p < products.packs; ++p) {
                const Pack v = products.weight(k, p), value = Layout::load(products.at(values, k, p));
                Layout::store(products.at(values, k, p),
                              value * (v * products.escape(k, p)) - v * products.gathered(h, own, k, p));
            }
    }
};

/// A bound on the rounding error of `Gradient`, relative to the largest value: one element. `work` has room for
/// work_size(words) doubles.
template <class Format>
struct GradientError {
    static constexpr int e = Format::element_size;

    template <class Registers>
    struct Kernel {
        static void run(const EdgeMatrices<Format>& edges, double* work, double* error) {
            using Layout = LayoutOn<Format, Registers>;
            Layout::set(error, GradientError::bound<Layout>(edges, work));
        }
    };

private:
    /// Of grad, relative to the largest value: 2^-52 max over (k, l) of V[k, l] max_i E[i, l] sum_j E[k, j] sum_i V[i,
    /// j].
    template <class Layout>
    [[gnu::always_inline]] static typename Layout::Element bound(const EdgeMatrices<Format>& edges, double* work) {
        using Pack = typename Layout::Pack;
        using Element = typename Layout::Element;
        const int n = edges.padded, packs = Layout::packs(n);
        const auto v = [&](int i, int p) {
            return Layout::load(edges.weights.data + i * edges.weights.stride + p * pack_size);
        };
        const auto escape = [&](int i, int p) {
            return Layout::load(edges.escape.data + i * edges.escape.stride + p * pack_size);
        };
        for (int p = 0; p < packs; ++p) {
            Pack sum = {};
            for (int i = 0; i <= n; ++i) sum += v(i, p);
            Layout::store(work + p * pack_size, sum);
        }
        Pack bound = {};
        double* const visits = work + packs * pack_size;
        for (int k = 0; k <= n; ++k) {
            Element total = {};
            for (int p = 0; p < packs; ++p)
                add_in_order<Layout>(escape(k, p) * Layout::load(work + p * pack_size), p, n, total);
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

}  // namespace spantree
