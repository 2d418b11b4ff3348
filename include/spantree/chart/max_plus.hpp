// The semiring of best scores: (max, +).
//
// Over double it vectorises; weights are whole numbers, so that sums are exact. Over wide integers (decode/weight.hpp) it
// holds whatever the scores are.
#pragma once

#include <cstddef>

#include "../batch/sentence.hpp"
#include "../decode/weight.hpp"
#include "../simd/vector.hpp"
#include "chart.hpp"

namespace spantree::projective {

template <class Weight, int Lanes = spantree::lanes<double>>
struct MaxPlus {
    using Cell = Weight;
    using Block = Weight;
    template <int>
    using In = MaxPlus;
    static constexpr int parts = 1;
    static constexpr int lanes = 1;

    static Cell zero(int = 0) { return WeightTraits<Weight>::absent; }
    static Cell one(int = 0) { return {}; }
    static bool is_zero(const Cell& x) { return WeightTraits<Weight>::is_absent(x); }

    static Block load(const Cell* from, std::ptrdiff_t) { return *from; }
    static void store(Cell* to, std::ptrdiff_t, const Block& x) { *to = x; }
    static Block times(const Block& a, const Block& b) { return is_zero(a) || is_zero(b) ? zero() : a + b; }
    static Block sum_of_products(const Terms<Cell>& terms, std::ptrdiff_t) {
        Block best = zero();
        for (int u = 0; u < terms.count; ++u)
            best = std::max(best, times(terms.a[u * terms.step_a], terms.b[u * terms.step_b]));
        return best;
    }
};

template <int Lanes>
struct MaxPlus<double, Lanes> {
    using Cell = double;
    template <int width>
    using In = MaxPlus<double, width>;
    static constexpr int parts = 1;
    static constexpr int lanes = Lanes;
    using Block = Vector<double, lanes>;

    static Cell zero(int = 0) { return minus_infinity<double>; }
    static Cell one(int = 0) { return 0.0; }
    static bool is_zero(Cell x) { return x == minus_infinity<double>; }
    static Cell times(Cell a, Cell b) { return a + b; }

    static Block load(const Cell* from, std::ptrdiff_t) { return spantree::load<lanes>(from); }
    static void store(Cell* to, std::ptrdiff_t, const Block& x) { spantree::store(to, x); }
    static Block times(const Block& a, const Block& b) { return a + b; }
    static Block sum_of_products(const Terms<Cell>& terms, std::ptrdiff_t) {
        // Two chains of maxima, so that one need not wait for the other.
        Block best[2] = {Block{} + minus_infinity<double>, Block{} + minus_infinity<double>};
        const auto gather = [&](Block& into, int u) __attribute__((always_inline)) {
            const Block x =
                spantree::load<lanes>(terms.a + u * terms.step_a) + spantree::load<lanes>(terms.b + u * terms.step_b);
            into = x > into ? x : into;
        };
        int u = 0;
        for (; u + 1 < terms.count; u += 2) {
            gather(best[0], u);
            gather(best[1], u + 1);
        }
        if (u < terms.count) gather(best[0], u);
        return best[0] > best[1] ? best[0] : best[1];
    }
};

}  // namespace spantree::projective
