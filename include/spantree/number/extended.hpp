// Nonnegative numbers with an exponent of their own: any range, the relative precision of a double. One number (`Extended`),
// several side by side (`ExtendedBlock`), running products (`ExtendedProduct`); with derivatives they are Jets (jet.hpp).
//
//     value = mantissa * 2^exponent,   mantissa in [1, 2), exponent a whole number in a double;
//     zero has mantissa 0 and an exponent far below all others.
//
// No sum, product or quotient of positive numbers is ever 0, so 0 means "structurally impossible". Of a sum's terms those more
// than 2^1022 times smaller than the largest are dropped: they are far below its last digit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

#include "../simd/pack.hpp"
#include "../simd/vector.hpp"
#include "exp.hpp"

namespace spantree {

namespace details {

/// Unsigned, since not every machine can shift signed ones to the right side by side.
template <class Reals>
struct BitsOf {
    using type = Vector<std::uint64_t, sizeof(Reals) / sizeof(double)>;
};
template <>
struct BitsOf<double> {
    using type = std::uint64_t;
};

}  // namespace details

/// 2^k for whole k from -1023, where it is 0, to 1023. `Reals` is double, or a vector of them.
template <class Reals>
[[gnu::always_inline]] inline Reals power_of_two_in_range(Reals k) {
    using Bits = typename details::BitsOf<Reals>::type;
    return __builtin_bit_cast(Reals, __builtin_bit_cast(Bits, k + (nearest_integer + 1023.0)) << 52);
}

/// 2^k for whole k <= 1023; 0 from k = -1023 down. In registers.
template <class Reals>
[[gnu::always_inline]] inline Reals power_of_two(Reals k) {
    return power_of_two_in_range(larger_of<Reals>(k, Reals{} - 1023.0));
}

/// The same where vectors may be wider than registers.
template <class Reals>
[[gnu::always_inline]] inline Reals power_of_two_anywhere(Reals k) {
    const Reals least = Reals{} - 1023.0;
    return power_of_two_in_range(k > least ? k : least);
}

/// x = mantissa * 2^power with a mantissa in [1, 2), for positive normal x; of others neither means anything.
template <class Reals>
struct SplitNumber {
    Reals mantissa, power;

    [[gnu::always_inline]] explicit SplitNumber(const Reals& x) {
        using Bits = typename details::BitsOf<Reals>::type;
        constexpr std::uint64_t fraction = (std::uint64_t{1} << 52) - 1, one = 0x3ff0000000000000;
        const Bits bits = __builtin_bit_cast(Bits, x);
        mantissa = __builtin_bit_cast(Reals, (bits & fraction) | one);
        // The exponent's bits, which count from -1023, in the low bits of 2^52: a conversion that every machine can do.
        power = __builtin_bit_cast(Reals, (bits >> 52) | std::uint64_t{0x4330000000000000}) - (0x1p52 + 1023.0);
    }
};

/// `Reals` is double, or a vector of them.
template <class Reals>
struct ExtendedOf {
    /// Below that of any other number, since logarithms of weights are at least -1e290 (chart/sum_product.hpp); and sums of a
    /// million of these are still finite.
    static constexpr double exponent_of_zero = -1e300;
    static constexpr bool is_one = std::is_same_v<Reals, double>;

    Reals mantissa{};
    Reals exponent = Reals{} + exponent_of_zero;

    ExtendedOf() = default;
    /// As they are.
    [[gnu::always_inline]] ExtendedOf(const Reals& mantissa, const Reals& exponent)
        : mantissa(mantissa), exponent(exponent) {}
    /// Finite x, if it is positive; else 0.
    explicit ExtendedOf(double x)
        requires is_one
        : ExtendedOf(x < std::numeric_limits<double>::min() ? ExtendedOf(x * 0x1p54, -54.0).normalised()
                                                            : ExtendedOf(x, 0.0).normalised()) {}

    /// From a mantissa that is any normal number, or 0.
    [[gnu::always_inline]] ExtendedOf normalised() const {
        const SplitNumber<Reals> split(mantissa);
        const auto present = mantissa > Reals{};
        return {present ? split.mantissa : Reals{}, present ? exponent + split.power : Reals{} + exponent_of_zero};
    }

    /// From a mantissa in [1, 4), or 0.
    [[gnu::always_inline]] ExtendedOf carried() const {
        const Reals two = Reals{} + 2.0;
        return {mantissa < two ? mantissa : 0.5 * mantissa, mantissa < two ? exponent : exponent + 1.0};
    }

    [[gnu::always_inline]] friend ExtendedOf operator*(const ExtendedOf& a, const ExtendedOf& b) {
        return ExtendedOf(a.mantissa * b.mantissa, a.exponent + b.exponent).normalised();
    }
    /// b is not 0.
    [[gnu::always_inline]] friend ExtendedOf operator/(const ExtendedOf& a, const ExtendedOf& b) {
        return ExtendedOf(a.mantissa / b.mantissa, a.exponent - b.exponent).normalised();
    }
    [[gnu::always_inline]] friend ExtendedOf operator+(const ExtendedOf& a, const ExtendedOf& b) {
        const Reals top = a.exponent > b.exponent ? a.exponent : b.exponent;
        return ExtendedOf(a.mantissa * power_of_two_anywhere<Reals>(a.exponent - top) +
                              b.mantissa * power_of_two_anywhere<Reals>(b.exponent - top),
                          top)
            .carried();
    }
    ExtendedOf& operator+=(const ExtendedOf& x) { return *this = *this + x; }
    ExtendedOf& operator*=(const ExtendedOf& x) { return *this = *this * x; }

    // Of one number

    /// exp(x), to the last digits up to |x| = 2^47; further out x counts as +-2^47. -inf: 0. So the exponent of a product of
    /// 44 such numbers is still exact, being below 2^53.
    static ExtendedOf exp(double x)
        requires is_one
    {
        if (x == -std::numeric_limits<double>::infinity()) return {};
        x = std::clamp(x, -0x1p47, 0x1p47);
        // x - k ln 2 with ln 2 in two parts: k < 2^48 leaves an error of 2^48 * 2^-109 in the second.
        constexpr double ln2 = 0x1.62e42fefa39efp-1, ln2_rest = 0x1.abc9e3b39803fp-56;
        const double k = std::nearbyint(x * std::numbers::log2e);
        const double r[] = {std::fma(-k, ln2_rest, std::fma(-k, ln2, x))};
        double above_one[1];
        exp_minus_one(r, above_one);
        return ExtendedOf(1.0 + above_one[0], k).normalised();
    }

    /// -inf of 0. The mantissa is centred around 1, so that numbers just below 1 keep their digits.
    double log() const
        requires is_one
    {
        if (!*this) return -std::numeric_limits<double>::infinity();
        const bool upper_half = mantissa > std::numbers::sqrt2;
        return std::log(upper_half ? 0.5 * mantissa : mantissa) + (exponent + upper_half) * std::numbers::ln2;
    }

    /// The nearest double; 0 or infinity if it is out of range.
    double value() const
        requires is_one
    {
        if (std::fabs(exponent) < 1000.0) return mantissa * power_of_two(exponent);
        return std::ldexp(mantissa, static_cast<int>(std::clamp(exponent, -2000.0, 2000.0)));
    }

    explicit operator bool() const
        requires is_one
    {
        return mantissa > 0.0;
    }
    friend bool operator==(const ExtendedOf& a, const ExtendedOf& b)
        requires is_one
    {
        return a.mantissa == b.mantissa && a.exponent == b.exponent;
    }
    friend bool operator<(const ExtendedOf& a, const ExtendedOf& b)
        requires is_one
    {
        return a.exponent != b.exponent ? a.exponent < b.exponent : a.mantissa < b.mantissa;
    }
};

using Extended = ExtendedOf<double>;

template <int lanes>
using ExtendedBlock = ExtendedOf<Vector<double, lanes>>;

/// A running product of positive factors. Element: double, or a pack.
template <class Element>
struct ExtendedProduct;

template <>
struct ExtendedProduct<double> {
    double mantissa = 1.0, exponent = 0.0;

    [[gnu::always_inline]] void operator*=(double factor) {
        const SplitNumber<double> split(mantissa * factor);
        mantissa = split.mantissa;
        exponent += split.power;
    }
};

template <int width>
struct ExtendedProduct<PackOf<width>> {
    PackOf<width> mantissa = PackOf<width>::broadcast(1.0), exponent = {};

    [[gnu::always_inline]] void operator*=(const PackOf<width>& factor) {
        for (int i = 0; i < PackOf<width>::parts; ++i) {
            const SplitNumber<typename PackOf<width>::Part> split(mantissa.part[i] * factor.part[i]);
            mantissa.part[i] = split.mantissa;
            exponent.part[i] += split.power;
        }
    }
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
