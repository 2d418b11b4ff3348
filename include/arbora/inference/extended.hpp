// Nonnegative numbers with an exponent of their own, for sentences whose weights leave the range of doubles.
//
// value = mantissa * 2^exponent, mantissa in [1, 2) or 0. The exponent is an integer kept in a double: it cannot
// overflow, whatever the scores. No sum or product of positive numbers is ever 0, so 0 means "structurally impossible".
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace arbora {

struct Extended {
    double mantissa = 0.0;
    double exponent = 0.0;

    static Extended from_log(double x) {
        if (x == -INFINITY) return {};
        constexpr double log2_e = 0x1.71547652b82fep+0;
        constexpr long double ln2 = 0.693147180559945309417232121458176568L;
        const double power = std::floor(x * log2_e);
        // Scores this large have no digits left for a mantissa.
        if (std::fabs(x) > 0x1p52) return {1.0, power};
        return normalised(static_cast<double>(std::exp(static_cast<long double>(x) - power * ln2)), power);
    }

    double log() const {
        constexpr double ln2 = 0x1.62e42fefa39efp-1;
        return std::log(mantissa) + exponent * ln2;
    }

    /// The nearest double; 0 below the smallest.
    double value() const {
        return exponent < -2000.0 ? 0.0 : std::ldexp(mantissa, static_cast<int>(std::fmin(exponent, 2000.0)));
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
        if (a.exponent < b.exponent) std::swap(a, b);
        const double gap = a.exponent - b.exponent;
        return gap > 64.0 ? a : normalised(a.mantissa + std::ldexp(b.mantissa, -static_cast<int>(gap)), a.exponent);
    }
    Extended& operator+=(Extended other) { return *this = *this + other; }

private:
    static Extended normalised(double m, double e) {
        if (!(m > 0.0)) return {};
        const auto bits = std::bit_cast<std::uint64_t>(m);
        return {std::bit_cast<double>((bits & 0x000fffffffffffff) | 0x3ff0000000000000),
                e + static_cast<double>(static_cast<int>(bits >> 52) - 1023)};
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

}  // namespace arbora
