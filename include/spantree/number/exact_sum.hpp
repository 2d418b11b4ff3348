// Sums and differences of doubles that lose nothing: a number as high + low (Dekker 1971, Knuth 1969).
//
// Two parts may lie far apart: -1e30 + 3.5 is kept exactly, and 1e30 added to it gives 3.5 back. A plain double would have
// lost it. All functions work on one double and, lane by lane, on packs.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

namespace spantree {

template <class Real>
struct TwoPart {
    Real high{}, low{};

    [[gnu::always_inline]] Real value() const { return high + low; }
};

/// a + b without error. One beyond the range of doubles is an infinity and nothing else.
template <class Real>
[[gnu::always_inline]] inline TwoPart<Real> exact_sum(const Real& a, const Real& b) {
    const Real sum = a + b, added = sum - a;
    if constexpr (std::is_same_v<Real, double>)
        if (!std::isfinite(sum)) return {sum, 0.0};
    return {sum, (a - (sum - added)) + (b - added)};
}

/// a - b without error.
template <class Real>
[[gnu::always_inline]] inline TwoPart<Real> exact_difference(const Real& a, const Real& b) {
    return exact_sum<Real>(a, Real{} - b);
}

/// With an error of about 2^-105 of the result's larger part.
template <class Real>
[[gnu::always_inline]] inline TwoPart<Real> operator+(const TwoPart<Real>& a, const Real& b) {
    const TwoPart<Real> sum = exact_sum(a.high, b);
    return exact_sum<Real>(sum.high, sum.low + a.low);
}
template <class Real>
[[gnu::always_inline]] inline TwoPart<Real> operator-(const TwoPart<Real>& a, const Real& b) {
    return a + (Real{} - b);
}
template <class Real>
[[gnu::always_inline]] inline TwoPart<Real> operator+(const TwoPart<Real>& a, const TwoPart<Real>& b) {
    const TwoPart<Real> high = exact_sum(a.high, b.high), low = exact_sum(a.low, b.low);
    const TwoPart<Real> middle = exact_sum<Real>(high.high, high.low + low.high);
    return exact_sum<Real>(middle.high, middle.low + low.low);
}
template <class Real>
[[gnu::always_inline]] inline TwoPart<Real> operator-(const TwoPart<Real>& a, const TwoPart<Real>& b) {
    return a + TwoPart<Real>{Real{} - b.high, Real{} - b.low};
}
template <class Real>
[[gnu::always_inline]] inline TwoPart<Real>& operator+=(TwoPart<Real>& a, const Real& b) {
    return a = a + b;
}

/// The sum of finite numbers in two parts; partial sums may leave the range of doubles.
inline double sum_of(std::span<const double> terms) {
    double largest = 0.0;
    for (const double x : terms) largest = std::max(largest, std::fabs(x));
    // Far up there, a smaller unit costs no digit of the sum.
    const double unit = largest > 0x1p900 ? 0x1p-64 : 1.0;
    TwoPart<double> sum;
    for (const double x : terms) sum += x * unit;
    return sum.value() / unit;
}

}  // namespace spantree
