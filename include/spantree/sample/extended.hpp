// Nonnegative numbers with an exponent of their own: any range, the relative precision of a double.
//
// The samplers' algorithms are written once, for `double` and for `Extended`; the functions below are what they need of
// either.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace spantree::sampling {

/// mantissa * 2^exponent, mantissa in [1, 2); zero has mantissa 0 and an exponent below all others.
class Extended {
public:
    Extended() = default;
    explicit Extended(double x) : Extended(x, 0) {}
    /// x * 2^exponent
    Extended(double x, std::int64_t exponent) {
        if (!(x > 0.0)) return;
        constexpr std::int64_t fraction = (std::int64_t{1} << 52) - 1;
        const auto bits = std::bit_cast<std::int64_t>(x);
        if (bits <= fraction) {  // subnormal
            *this = Extended(x * 0x1p600, exponent - 600);
            return;
        }
        mantissa_ = std::bit_cast<double>((bits & fraction) | std::bit_cast<std::int64_t>(1.0));
        exponent_ = exponent + (bits >> 52) - 1023;
    }

    static Extended exp(double x) {
        const double clamped = std::clamp(x, -largest_log, largest_log);
        const double k = std::nearbyint(clamped * std::numbers::log2e);
        constexpr double ln2_high = 0x1.62e42fep-1,
                         ln2_low = 0x1.f473de6af278fp-30;  // k ln2_high is exact up to k = 2^26
        return x == -std::numeric_limits<double>::infinity()
                   ? Extended()
                   : Extended(std::exp((clamped - k * ln2_high) - k * ln2_low), static_cast<std::int64_t>(k));
    }

    friend Extended operator*(Extended a, Extended b) {
        return a && b ? Extended(a.mantissa_ * b.mantissa_, a.exponent_ + b.exponent_) : Extended();
    }
    friend Extended operator/(Extended a, Extended b) {
        return a ? Extended(a.mantissa_ / b.mantissa_, a.exponent_ - b.exponent_) : Extended();
    }
    friend Extended operator+(Extended a, Extended b) {
        if (a.exponent_ < b.exponent_) return b + a;
        const std::int64_t gap = a.exponent_ - b.exponent_;
        return !b || gap > 1000 ? a : Extended(a.mantissa_ + b.mantissa_ * power_of_two(-gap), a.exponent_);
    }
    Extended& operator+=(Extended x) { return *this = *this + x; }
    Extended& operator*=(Extended x) { return *this = *this * x; }

    friend bool operator<(Extended a, Extended b) {
        return a.exponent_ != b.exponent_ ? a.exponent_ < b.exponent_ : a.mantissa_ < b.mantissa_;
    }
    explicit operator bool() const { return mantissa_ > 0.0; }

    double log() const { return std::log(mantissa_) + static_cast<double>(exponent_) * std::numbers::ln2; }

    /// The nearest double: 0 or infinity if it is out of range.
    explicit operator double() const {
        if (!*this || exponent_ < -1100) return 0.0;
        return exponent_ > 1023 ? std::numeric_limits<double>::infinity()
                                : std::ldexp(mantissa_, static_cast<int>(exponent_));
    }

private:
    static constexpr double largest_log = 1e12;  // a weight further below or above others weighs as much as this

    static double power_of_two(std::int64_t k) { return std::bit_cast<double>((k + 1023) << 52); }

    double mantissa_ = 0.0;
    std::int64_t exponent_ = std::numeric_limits<std::int64_t>::min() / 4;
};

template <class Real>
Real exp_of(double x) {
    if constexpr (std::is_same_v<Real, double>)
        return std::exp(x);
    else
        return Extended::exp(x);
}

inline double log_of(double x) { return std::log(x); }
inline double log_of(Extended x) { return x ? x.log() : -std::numeric_limits<double>::infinity(); }

inline bool is_positive(double x) { return x > 0.0; }
inline bool is_positive(Extended x) { return static_cast<bool>(x); }

}  // namespace spantree::sampling
