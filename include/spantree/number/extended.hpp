// Nonnegative numbers with an exponent of their own, for sentences whose weights leave the range of doubles.
//
// value = mantissa * 2^exponent, mantissa in [1, 2) or 0. The exponent is an integer kept as the sum of two doubles: it
// cannot overflow, and beside the exponent of a soft mask such as -1e30 those of the other scores keep their digits. No
// sum or product of positive numbers is ever 0, so 0 means "structurally impossible".
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace spantree {

/// high + low, |low| far below |high|: sums and differences of integers that differ hugely in size (Dekker).
struct WideInteger {
    double high = 0.0;
    double low = 0.0;

    double value() const { return high + low; }

    friend WideInteger operator+(WideInteger a, WideInteger b) {
        const double sum = a.high + b.high, added = sum - a.high;
        const double error = ((a.high - (sum - added)) + (b.high - added)) + (a.low + b.low);
        const double high = sum + error;
        return {high, error - (high - sum)};
    }
    friend WideInteger operator-(WideInteger a, WideInteger b) { return a + WideInteger{-b.high, -b.low}; }
};

struct Extended {
    double mantissa = 0.0;
    WideInteger exponent;

    static Extended from_log(double x) {
        if (x == -INFINITY) return {};
        constexpr double log2_e = 0x1.71547652b82fep+0;
        constexpr long double ln2 = 0.693147180559945309417232121458176568L;
        const double power = std::floor(x * log2_e);
        // Scores this large have no digits left for a mantissa.
        if (std::fabs(x) > 0x1p52) return {1.0, {power}};
        return normalised(static_cast<double>(std::exp(static_cast<long double>(x) - power * ln2)), {power});
    }

    double log() const {
        constexpr double ln2 = 0x1.62e42fefa39efp-1;
        return std::log(mantissa) + exponent.low * ln2 + exponent.high * ln2;
    }

    /// The nearest double; 0 below the smallest.
    double value() const {
        const double power = exponent.value();
        return power < -2000.0 ? 0.0 : std::ldexp(mantissa, static_cast<int>(std::fmin(power, 2000.0)));
    }

    explicit operator bool() const { return mantissa > 0.0; }

    friend Extended operator*(Extended a, Extended b) {
        return normalised(a.mantissa * b.mantissa, a.exponent + b.exponent);
    }
    friend Extended operator/(Extended a, Extended b) {
        return normalised(a.mantissa / b.mantissa, a.exponent - b.exponent);
    }
    friend Extended operator+(Extended a, Extended b) {
        if (!a) return b;
        if (!b) return a;
        double gap = (a.exponent - b.exponent).value();
        if (gap < 0.0) std::swap(a, b);
        gap = std::fabs(gap);
        return gap > 64.0 ? a : normalised(a.mantissa + std::ldexp(b.mantissa, -static_cast<int>(gap)), a.exponent);
    }
    Extended& operator+=(Extended other) { return *this = *this + other; }

private:
    static Extended normalised(double m, WideInteger e) {
        if (!(m > 0.0)) return {};
        const auto bits = std::bit_cast<std::uint64_t>(m);
        return {std::bit_cast<double>((bits & 0x000fffffffffffff) | 0x3ff0000000000000),
                e + WideInteger{static_cast<double>(static_cast<int>(bits >> 52) - 1023)}};
    }
};

/// A positive number and the derivative of its logarithm in some direction. A sum's slope is the average of its terms'
/// slopes, so slopes keep their digits however far apart the terms are.
template <class Value>
struct Sloped {
    Value value{};
    double slope = 0.0;

    explicit operator bool() const { return static_cast<bool>(value); }

    friend Sloped operator*(Sloped a, Sloped b) { return {a.value * b.value, a.slope + b.slope}; }
    friend Sloped operator/(Sloped a, Sloped b) { return {a.value / b.value, a.slope - b.slope}; }
    friend Sloped operator+(Sloped a, Sloped b) {
        if (!a) return b;
        if (!b) return a;
        const Value total = a.value + b.value;
        return {total, share(a.value, total) * a.slope + share(b.value, total) * b.slope};
    }
    Sloped& operator+=(Sloped other) { return *this = *this + other; }

private:
    static double share(Extended part, Extended total) { return (part / total).value(); }
    static double share(double part, double total) { return part / total; }
};

}  // namespace spantree
