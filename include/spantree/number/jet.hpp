// Nonnegative numbers of any range that carry derivatives, several side by side: what a careful solve computes with.
//
// A number is 2^exponent times a jet; extended.hpp has the numbers without derivatives. The jet of order 0 is a mantissa; that
// of order 1 also has the derivative along a direction u; that of order 2 those along u, along g, and the mixed second one
// along both, all at the same exponent. With parts numbered by the set of directions, {} = 0, {u} = 1, {g} = 2, {u, g} = 3:
//
//     (a b)[S]  =  sum over T within S of  a[T] b[S \ T]              (a + b)[S]  =  a[S] + b[S]
//
// The mantissa is a sum of products of nonnegative numbers and has a small relative error. A derivative's error is small
// relative to the mantissa times the largest value of its direction: it stays at rounding level in d log a = a[u] / a[],
// however far apart the terms are. A sum drops what is more than 2^1022 times smaller than its largest term.
//
// Mantissas need not be normalised to be right: those of `normalised` numbers lie in [1, 2), and a sum of a few thousand
// products of two of them stays far from overflow. 0 is a mantissa of 0 at an exponent far below all others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "../batch/sentence.hpp"
#include "../simd/pack.hpp"
#include "../simd/vector.hpp"
#include "extended.hpp"

namespace spantree {

/// `lanes` numbers side by side, with derivatives along `order` directions.
template <int order, int lanes>
struct Jet {
    static constexpr int parts = 1 << order;
    static constexpr int planes = parts + 1;  // doubles per number
    static constexpr double exponent_of_zero = Extended::exponent_of_zero;
    using Reals = Vector<double, lanes>;

    Reals part[parts] = {};
    Reals exponent = Reals{} + exponent_of_zero;

    /// From planes of numbers, `plane` doubles apart.
    [[gnu::always_inline]] static Jet load(const double* from, std::ptrdiff_t plane) {
        Jet x;
        for (int i = 0; i < parts; ++i) x.part[i] = spantree::load<lanes>(from + i * plane);
        x.exponent = spantree::load<lanes>(from + parts * plane);
        return x;
    }
    [[gnu::always_inline]] void store(double* to, std::ptrdiff_t plane) const {
        for (int i = 0; i < parts; ++i) spantree::store(to + i * plane, part[i]);
        spantree::store(to + parts * plane, exponent);
    }
    /// The same number in every lane.
    [[gnu::always_inline]] static Jet spread(const Jet<order, 1>& x) {
        Jet y;
        for (int i = 0; i < parts; ++i) y.part[i] = spantree::spread<lanes>(x.part[i][0]);
        y.exponent = spantree::spread<lanes>(x.exponent[0]);
        return y;
    }
    [[gnu::always_inline]] Jet<order, 1> lane(int i) const {
        Jet<order, 1> x;
        for (int p = 0; p < parts; ++p) x.part[p][0] = part[p][i];
        x.exponent[0] = exponent[i];
        return x;
    }

    [[gnu::always_inline]] friend Jet operator*(const Jet& a, const Jet& b) {
        Jet x;
        for (int set = 0; set < parts; ++set) {
            Reals sum = a.part[0] * b.part[set];
            for (int of_a = 1; of_a <= set; ++of_a)
                if ((of_a & ~set) == 0) sum += a.part[of_a] * b.part[set ^ of_a];
            x.part[set] = sum;
        }
        x.exponent = a.exponent + b.exponent;
        return x;
    }
    [[gnu::always_inline]] friend Jet operator+(const Jet& a, const Jet& b) {
        Jet x;
        x.exponent = larger_of(a.exponent, b.exponent);
        const Reals of_a = power_of_two<Reals>(a.exponent - x.exponent),
                    of_b = power_of_two<Reals>(b.exponent - x.exponent);
        for (int i = 0; i < parts; ++i) x.part[i] = a.part[i] * of_a + b.part[i] * of_b;
        return x;
    }
    [[gnu::always_inline]] Jet& operator+=(const Jet& b) { return *this = *this + b; }

    /// *this += term[0], then term[1], ...: the same digits as one after the other, all at the largest exponent, which takes
    /// less time, most of all where the next sum waits for this one.
    template <int count>
    [[gnu::always_inline]] void add_all(const Jet (&term)[count]) {
        Reals top = exponent;
        for (int i = 0; i < count; ++i) top = larger_of(top, term[i].exponent);
        const Reals unit = power_of_two<Reals>(exponent - top);
        for (int set = 0; set < parts; ++set) part[set] *= unit;
        for (int i = 0; i < count; ++i) {
            const Reals unit_of_term = power_of_two<Reals>(term[i].exponent - top);
            for (int set = 0; set < parts; ++set) part[set] += term[i].part[set] * unit_of_term;
        }
        exponent = top;
    }

    /// Mantissas in [1, 2), or 0.
    [[gnu::always_inline]] Jet normalised() const {
        const SplitNumber<Reals> split(part[0]);
        const Reals unit = power_of_two<Reals>(-split.power);
        Jet x;
        x.part[0] = split.mantissa;
        for (int i = 1; i < parts; ++i) x.part[i] = part[i] * unit;
        x.exponent = exponent + split.power;
        for (int i = parts - 1; i >= 0; --i) x.part[i] = part[0] > Reals{} ? x.part[i] : Reals{};
        x.exponent = part[0] > Reals{} ? x.exponent : Reals{} + exponent_of_zero;
        return x;
    }
};

/// One number.
template <int order>
using JetOf = Jet<order, 1>;

template <int order>
inline bool is_positive(const JetOf<order>& x) {
    return x.part[0][0] > 0.0;
}

/// exp(x), a value that is given, with the derivatives of x along the directions: slope[u], slope[g], and, of order 2, the
/// mixed one.
template <int order>
JetOf<order> exp_jet(const Extended& value, const double* slope) {
    JetOf<order> y;
    y.part[0][0] = value.mantissa;
    y.exponent[0] = value.exponent;
    for (int set = 1; set < y.parts; ++set) {
        double product = y.part[0][0];
        for (int direction = 0; direction < order; ++direction)
            if (set >> direction & 1) product *= slope[direction];
        y.part[set][0] = product;
    }
    if constexpr (order == 2) y.part[3][0] += y.part[0][0] * slope[2];
    return y;
}

/// 1 / x for positive x.
template <int order, int lanes>
[[gnu::always_inline]] inline Jet<order, lanes> inverse(const Jet<order, lanes>& x) {
    using Reals = typename Jet<order, lanes>::Reals;
    Jet<order, lanes> y;
    const Reals mantissa = 1.0 / x.part[0];
    y.part[0] = mantissa;
    // From x y = 1: part S of y is minus 1 / x[] times the sum of x[T] y[S \ T] over T within S, T not empty.
    for (int set = 1; set < y.parts; ++set) {
        Reals sum{};
        for (int of_x = 1; of_x <= set; ++of_x)
            if ((of_x & ~set) == 0) sum += x.part[of_x] * y.part[set ^ of_x];
        y.part[set] = -sum * mantissa;
    }
    y.exponent = -x.exponent;
    return y;
}

/// log x for positive x, without derivatives.
template <int order>
double log_of(const JetOf<order>& x) {
    return Extended(x.part[0][0], x.exponent[0]).normalised().log();
}

/// Numbers and their derivatives as doubles; 0 below the smallest. What is certainly 0 is not multiplied out: a product that
/// underflows takes several times as long as others.
template <int order, int lanes>
[[gnu::always_inline]] inline void as_doubles(const Jet<order, lanes>& x,
                                              typename Jet<order, lanes>::Reals (&part)[Jet<order, lanes>::parts]) {
    using Reals = typename Jet<order, lanes>::Reals;
    const auto at_most = [](const Reals& a, double most)
                             __attribute__((always_inline)) { return -larger_of<Reals>(-a, Reals{} - most); };
    const Reals zero{}, power = x.exponent, far = zero - 1000.0;
    const Reals near = at_most(larger_of(power, far), 1000.0);
    const Reals unit = power_of_two<Reals>(near);
    const Reals rest = power_of_two<Reals>(at_most(larger_of<Reals>(power - near, far), 1000.0));
    // The smallest double is 2^-1074.
    const Reals least =
        select<Comparison::less>(power, far, power_of_two<Reals>(at_most(zero - 1080.0 - power, 1000.0)), zero);
    for (int i = 0; i < x.parts; ++i) {
        const Reals size = larger_of<Reals>(x.part[i], -x.part[i]);
        part[i] = select<Comparison::less>(size, least, zero, x.part[i]) * unit * rest;
    }
}

}  // namespace spantree
