// Integers of several 64-bit limbs, wide enough to hold sums of doubles without rounding, and the way there and back.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <compare>
#include <cstdint>

namespace spantree {

/// The exponents of the highest and the lowest bit of a double or of several: |x| < 2^top, and x is a multiple of
/// 2^unit. Zero has no bits.
struct BitRange {
    static constexpr int highest = 1024, lowest = -1074;  // of any double

    int top = lowest, unit = highest;

    static BitRange of(double x) {
        const auto bits = std::bit_cast<std::uint64_t>(x);
        const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
        const std::uint64_t fraction = bits & 0xfffffffffffff;
        const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | std::uint64_t{1} << 52;
        if (mantissa == 0 || exponent == 0x7ff) return {};
        const int of_mantissa = (exponent == 0 ? 1 : exponent) - 1075;
        return {of_mantissa + static_cast<int>(std::bit_width(mantissa)), of_mantissa + std::countr_zero(mantissa)};
    }
    void include(const BitRange& other) {
        top = other.top > top ? other.top : top;
        unit = other.unit < unit ? other.unit : unit;
    }
    int size() const { return top > unit ? top - unit : 0; }
};

namespace details {

// Not inlined: it is long integers that are slow, not calls, and there would be hundreds of copies.

[[gnu::noinline]] inline void add_limbs(std::uint64_t* a, const std::uint64_t* b, int limbs) {
    unsigned carry = 0;
    for (int i = 0; i < limbs; ++i) {
        const std::uint64_t sum = a[i] + b[i], with_carry = sum + carry;
        carry = (sum < b[i]) | (with_carry < sum);
        a[i] = with_carry;
    }
}

[[gnu::noinline]] inline void subtract_limbs(std::uint64_t* a, const std::uint64_t* b, int limbs) {
    unsigned borrow = 0;
    for (int i = 0; i < limbs; ++i) {
        const std::uint64_t difference = a[i] - b[i], with_borrow = difference - borrow;
        borrow = (a[i] < b[i]) | (difference < borrow);
        a[i] = with_borrow;
    }
}

/// -1, 0, 1 for less, equal, greater.
[[gnu::noinline]] inline int compare_limbs(const std::uint64_t* a, const std::uint64_t* b, int limbs) {
    const auto top_a = static_cast<std::int64_t>(a[limbs - 1]), top_b = static_cast<std::int64_t>(b[limbs - 1]);
    if (top_a != top_b) return top_a < top_b ? -1 : 1;
    for (int i = limbs - 2; i >= 0; --i)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

}  // namespace details

/// A fixed-width two's complement integer of Limbs * 64 bits. It wraps around.
template <int Limbs>
struct Wide {
    std::array<std::uint64_t, Limbs> limb{};  // least significant first

    /// x / 2^unit, which is a whole number and fits; anything if it does not.
    [[gnu::noinline]] static Wide of(double x, int unit) {
        int exponent;
        const double fraction = std::frexp(std::fabs(x), &exponent);
        if (!(fraction < 1.0)) return {};  // NaN or infinite
        const auto mantissa = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
        const int shift = exponent - 53 - unit;
        Wide result;
        if (shift < 0) {
            result.limb[0] = shift > -64 ? mantissa >> -shift : 0;
        } else if (shift / 64 < Limbs) {
            const int at = shift / 64, by = shift % 64;
            result.limb[at] = mantissa << by;
            if (by > 0 && at + 1 < Limbs) result.limb[at + 1] = mantissa >> (64 - by);
        }
        return x < 0 ? -result : result;
    }

    /// The double nearest to this times 2^unit: ties to even, infinite where there is none.
    [[gnu::noinline]] double value(int unit) const {
        if (static_cast<std::int64_t>(limb[Limbs - 1]) < 0) return -(-*this).value(unit);
        int top = Limbs - 1;
        while (top > 0 && limb[top] == 0) --top;
        if (limb[top] == 0) return 0.0;
        // The 64 highest bits. What follows them matters only if it is not zero, so one bit stands for all of it.
        const int by = std::countl_zero(limb[top]);
        std::uint64_t high = limb[top] << by;
        if (by > 0 && top > 0) high |= limb[top - 1] >> (64 - by);
        bool more = by > 0 ? top > 0 && limb[top - 1] << by != 0 : top > 0 && limb[top - 1] != 0;
        for (int i = 0; i + 1 < top; ++i) more |= limb[i] != 0;
        return std::ldexp(static_cast<double>(high | (more ? 1 : 0)), 64 * top - by + unit);
    }

    friend Wide operator+(Wide a, const Wide& b) {
        details::add_limbs(a.limb.data(), b.limb.data(), Limbs);
        return a;
    }
    friend Wide operator-(Wide a, const Wide& b) {
        details::subtract_limbs(a.limb.data(), b.limb.data(), Limbs);
        return a;
    }
    friend Wide operator-(const Wide& a) { return Wide{} - a; }
    friend Wide operator*(Wide a, std::int64_t times) {
        if (times < 0) return -a * -times;
        Wide sum;
        for (; times > 0; times >>= 1, a = a + a)
            if (times & 1) sum = sum + a;
        return sum;
    }
    friend std::strong_ordering operator<=>(const Wide& a, const Wide& b) {
        return details::compare_limbs(a.limb.data(), b.limb.data(), Limbs) <=> 0;
    }
    friend bool operator==(const Wide&, const Wide&) = default;
    [[gnu::noinline]] friend Wide operator<<(Wide a, int bits) {  // bits < 64
        if (bits == 0) return a;
        for (int i = Limbs - 1; i > 0; --i) a.limb[i] = a.limb[i] << bits | a.limb[i - 1] >> (64 - bits);
        a.limb[0] <<= bits;
        return a;
    }
    [[gnu::noinline]] friend Wide operator>>(Wide a, int bits) {  // arithmetic, bits < 64
        if (bits == 0) return a;
        for (int i = 0; i + 1 < Limbs; ++i) a.limb[i] = a.limb[i] >> bits | a.limb[i + 1] << (64 - bits);
        a.limb[Limbs - 1] = static_cast<std::uint64_t>(static_cast<std::int64_t>(a.limb[Limbs - 1]) >> bits);
        return a;
    }
};

/// Limbs for any sum of up to 2^30 doubles: 2,098 bits of one, 30 for their number, a sign, and 9 to spare for marks.
inline constexpr int limbs_of_any_sum = 34;

}  // namespace spantree
