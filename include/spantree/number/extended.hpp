// Nonnegative numbers with an exponent of their own: any range, the relative precision of a double.
//
//     value = mantissa * 2^exponent,   mantissa in [1, 2); zero has mantissa 0 and an exponent below all others.
//
// No sum, product or quotient of positive numbers is ever 0, so 0 means "structurally impossible".
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>
#include <utility>

namespace spantree {

struct Extended {
    double mantissa = 0.0;
    std::int64_t exponent = below_all;

    Extended() = default;
    explicit Extended(double x) : Extended(x, 0) {}

    /// x * 2^scale, for finite x; 0 if x is not positive.
    Extended(double x, std::int64_t scale) {
        if (!(x > 0.0)) return;
        constexpr std::int64_t fraction = (std::int64_t{1} << 52) - 1;
        auto bits = std::bit_cast<std::int64_t>(x);
        if (bits <= fraction) {  // subnormal: 2^54 times it is not
            bits = std::bit_cast<std::int64_t>(x * 0x1p54);
            scale -= 54;
        }
        mantissa = std::bit_cast<double>((bits & fraction) | std::bit_cast<std::int64_t>(1.0));
        exponent = scale + (bits >> 52) - 1023;
    }

    /// exp(x), to the last digits up to |x| = 2^50; further out x counts as +-2^50. -inf: 0.
    static Extended exp(double x) {
        if (x == -std::numeric_limits<double>::infinity()) return {};
        x = std::clamp(x, -0x1p50, 0x1p50);
        // x - k ln 2 with ln 2 in two parts: k < 2^51 leaves an error of 2^51 * 2^-109 in the second.
        constexpr double ln2 = 0x1.62e42fefa39efp-1, ln2_rest = 0x1.abc9e3b39803fp-56;
        const double k = std::nearbyint(x * std::numbers::log2e);
        const double rest = std::fma(-k, ln2_rest, std::fma(-k, ln2, x));
        return Extended(std::exp(rest), static_cast<std::int64_t>(k));
    }

    /// -inf of 0. The mantissa is centred around 1, so that numbers just below 1 keep their digits.
    double log() const {
        if (!*this) return -std::numeric_limits<double>::infinity();
        const bool upper_half = mantissa > std::numbers::sqrt2;
        return std::log(upper_half ? 0.5 * mantissa : mantissa) +
               static_cast<double>(exponent + upper_half) * std::numbers::ln2;
    }

    /// The nearest double; 0 or infinity if it is out of range.
    double value() const {
        return std::ldexp(mantissa, static_cast<int>(std::clamp<std::int64_t>(exponent, -2000, 2000)));
    }

    explicit operator bool() const { return mantissa > 0.0; }

    friend Extended operator*(Extended a, Extended b) {
        return a && b ? Extended(a.mantissa * b.mantissa, a.exponent + b.exponent) : Extended();
    }
    /// b is not 0.
    friend Extended operator/(Extended a, Extended b) {
        return a ? Extended(a.mantissa / b.mantissa, a.exponent - b.exponent) : Extended();
    }
    friend Extended operator+(Extended a, Extended b) {
        if (a.exponent < b.exponent) std::swap(a, b);
        const std::int64_t gap = a.exponent - b.exponent;
        // A gap of 54 bits leaves the sum as it is; up to 1000 of them 2^-gap is a normal number.
        if (gap > 1000) return a;
        return Extended(a.mantissa + b.mantissa * std::bit_cast<double>((1023 - gap) << 52), a.exponent);
    }
    Extended& operator+=(Extended x) { return *this = *this + x; }
    Extended& operator*=(Extended x) { return *this = *this * x; }

    friend bool operator==(Extended, Extended) = default;
    friend bool operator<(Extended a, Extended b) {
        return a.exponent != b.exponent ? a.exponent < b.exponent : a.mantissa < b.mantissa;
    }

private:
    static constexpr std::int64_t below_all = std::numeric_limits<std::int64_t>::min() / 4;
};

// What algorithms written for double and for Extended alike need of either.

template <class Real>
Real exp_of(double x) {
    if constexpr (std::is_same_v<Real, double>)
        return std::exp(x);
    else
        return Extended::exp(x);
}

inline double log_of(double x) { return std::log(x); }
inline double log_of(Extended x) { return x.log(); }

inline double value_of(double x) { return x; }
inline double value_of(Extended x) { return x.value(); }

inline bool is_positive(double x) { return x > 0.0; }
inline bool is_positive(Extended x) { return static_cast<bool>(x); }

}  // namespace spantree
