// One solve from scores to escape probabilities, for eight sentences side by side (Lanes) or for one (Alone).
//
// With c[j] = sum_h w[h, j] E[h, j] (E[ROOT, j] = 1), the marginal of edge h -> j is V[h, j] E[h, j], V[h, j] = w[h, j]
// / c[j]; Z = last_root * product of the pivots. A sentence whose numbers come too near to the end of the range of
// doubles, or that has no tree at all, is found by `in_range` afterwards; what lies in its lane then means nothing.
#pragma once

#include <cmath>
#include <vector>

#include "../dispatch.hpp"
#include "../sentence.hpp"
#include "solve.hpp"
#include "weights.hpp"

namespace arbora {

/// The least c[j] / max_i E[i, j] for which marginals down to 1e-250 keep their digits.
inline constexpr double smallest_escape = 1e-60;

/// V and E of a group: rows are heads (row 0 is ROOT), columns are words.
template <class Layout>
struct EdgeMatrices {
    int padded = 0;
    Rows weights{};
    Rows escape{};

    static std::ptrdiff_t stride(int padded) { return odd_packs(Layout::packs(round_up(padded))); }
    static std::size_t size(int padded) { return static_cast<std::size_t>(padded_words(padded) + 1) * stride(padded); }

    EdgeMatrices() = default;
    EdgeMatrices(int words, double* memory)
        : padded(words), weights{memory, stride(words)}, escape{memory + size(words), stride(words)} {}
};

namespace details {

/// Which columns of pack p belong to words of the sentence (of each lane).
[[gnu::always_inline]] inline PackBits real_columns(Pack words, int p) { return broadcast(p) < words; }
[[gnu::always_inline]] inline PackBits real_columns(double words, int p) {
    return (PackBits{0, 1, 2, 3, 4, 5, 6, 7} + p * pack_size) < static_cast<std::int64_t>(words);
}

/// Divides weights by c, sets E[ROOT] and makes columns of padding 0.
template <class Layout>
[[gnu::always_inline]] inline void normalise(const EdgeMatrices<Layout>& edges, Pivots<Layout>& pivots) {
    Pack smallest = broadcast(1e300);
    for (int p = 0; p < Layout::packs(edges.padded); ++p) {
        double* const w = edges.weights.data + p * pack_size;
        double* const e = edges.escape.data + p * pack_size;
        const std::ptrdiff_t w_step = edges.weights.stride, e_step = edges.escape.stride;
        const auto real = real_columns(pivots.words, p);
        Pack c = load(w) * weight_unit_inverse;
        Pack largest = broadcast(1.0);
        store(e, only_where(real, largest));
        for (int h = 1; h <= edges.padded; ++h) {
            const Pack escape = only_where(real, load(e + h * e_step));
            store(e + h * e_step, escape);
            largest = larger(escape, largest);
            c += (load(w + h * w_step) * weight_unit_inverse) * escape;
        }
        Pack ratio = c < 1e300 ? c / largest : Pack{};  // too large, or not a number: as bad as too small
        ratio = real ? ratio : smallest;
        smallest = ratio < smallest ? ratio : smallest;
        const Pack inverse = only_where(real, 1.0 / c);
        for (int h = 0; h <= edges.padded; ++h)
            store(w + h * w_step, (load(w + h * w_step) * weight_unit_inverse) * inverse);
    }
    pivots.smallest_escape = -Layout::largest(-smallest);
}

}  // namespace details

/// The steps of a solve. Each is a kernel of its own: compilers do not do well by one that does everything.
template <class Layout>
struct Weigh {
    static void run(const EdgeSource<Layout>& scores, bool several_roots, bool all_pairs, Shifts<Layout>& shifts,
                    Walk<Layout> walk, Rows weights) {
        Shifts<Layout> local = shifts;
        weigh(scores, several_roots, all_pairs, local, walk, weights);
        shifts = local;
    }
};

template <class Layout>
struct SolveWalk {
    template <int tile>
    struct Kernel {
        static void run(Solve<Layout>& solve, Walk<Layout> walk, int words, bool all_pairs, Rows escape,
                        Pivots<Layout>& pivots) {
            Pivots<Layout> local = pivots;
            solve.template run<tile>(walk, words, all_pairs, escape, local);
            pivots = local;
        }
    };
};

template <class Layout>
struct Normalise {
    static void run(const EdgeMatrices<Layout>& edges, Pivots<Layout>& pivots) {
        Pivots<Layout> local = pivots;
        details::normalise(edges, local);
        pivots = local;
    }
};

/// Fills `edges` (V and E) if all_pairs, the shifts, and what `pivots` gathers.
template <class Layout>
void solve_group(Solve<Layout>& solve, Walk<Layout> walk, const EdgeSource<Layout>& scores, bool all_pairs,
                 Shifts<Layout>& shifts, const EdgeMatrices<Layout>& edges, Pivots<Layout>& pivots) {
    dispatch<Weigh<Layout>>(scores, pivots.several_roots, all_pairs, shifts, walk, edges.weights);
    const Rows escape_of_words{edges.escape.data + edges.escape.stride, edges.escape.stride};
    dispatch_tiled<SolveWalk<Layout>>(solve, walk, scores.padded, all_pairs, escape_of_words, pivots);
    if (all_pairs) dispatch<Normalise<Layout>>(edges, pivots);
}

/// What a solve says about one sentence.
struct Outcome {
    double scaled_log_partition = 0.0;  // of the scores minus their shifts
    double log_partition = 0.0;
    bool in_range = false;  // its scores are scores, it has a tree, and doubles were good enough
};

/// Sentence s of a group.
template <class Layout>
Outcome outcome(const Shifts<Layout>& shifts, const Pivots<Layout>& pivots, int s) {
    const auto of = [s](const auto& element) {
        if constexpr (Layout::sentences == 1)
            return element;
        else
            return element[s];
    };
    Outcome result;
    const double last_root = of(pivots.last_root);
    result.in_range = of(pivots.smallest) >= smallest_pivot * weight_unit &&
                      of(pivots.smallest_escape) >= smallest_escape && last_root >= smallest_pivot * weight_unit &&
                      last_root < 1e300;
    if (!result.in_range) return result;
    constexpr double ln2 = 0x1.62e42fefa39efp-1;
    result.scaled_log_partition = std::log(of(pivots.product.mantissa) * (last_root * weight_unit_inverse)) +
                                  static_cast<double>(of(pivots.product.exponent)) * ln2;
    result.log_partition = result.scaled_log_partition + of(shifts.total);
    return result;
}

}  // namespace arbora
