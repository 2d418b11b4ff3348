// Scores as integers.
//
// Contracting cycles adds and subtracts scores. In floating point the result depends on the order, and a score of
// -1e30, once added, drowns the others: a best tree that is not best, or ties that fall one way here and the other way
// there. So scores are first rounded to multiples of a power of two, the unit, and become integers: sums and
// comparisons are exact and the order does not matter.
//
//   Narrow  64 bits, unit about 2^-51 of the largest score: no coarser than the rounding of a sum of doubles. It
//   vectorises. Wide    as many bits as it takes to hold the largest score and, beside it, every bit of all those of
//   ordinary size.
//
// Two values far below every weight stand for edges that do not exist (`absent`) and that must not be taken again
// because both ends are in one contracted node (`barred`). All sums that contraction.hpp forms stay within 4 (n + 1)
// times the largest score: `headroom_bits` keeps the three ranges apart.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <compare>
#include <cstdint>

#include "../batch/sentence.hpp"

namespace spantree {

/// Bits that sums may grow beyond a single score in a sentence of n words.
constexpr int headroom_bits(int words) { return std::bit_width(4u * static_cast<unsigned>(words) + 4u); }

/// A fixed-width two's complement integer of Limbs * 64 bits.
template <int Limbs>
struct Wide {
    std::array<std::uint64_t, Limbs> limb{};  // least significant first

    friend Wide operator+(Wide a, const Wide& b) {
        unsigned carry = 0;
        for (int i = 0; i < Limbs; ++i) {
            const std::uint64_t sum = a.limb[i] + b.limb[i];
            const std::uint64_t with_carry = sum + carry;
            carry = (sum < b.limb[i]) | (with_carry < sum);
            a.limb[i] = with_carry;
        }
        return a;
    }
    friend Wide operator-(const Wide& a) {
        Wide flipped = a;
        for (auto& limb : flipped.limb) limb = ~limb;
        return flipped + Wide{{1}};
    }
    friend Wide operator-(const Wide& a, const Wide& b) { return a + -b; }
    friend std::strong_ordering operator<=>(const Wide& a, const Wide& b) {
        const auto top_a = static_cast<std::int64_t>(a.limb[Limbs - 1]),
                   top_b = static_cast<std::int64_t>(b.limb[Limbs - 1]);
        if (top_a != top_b) return top_a <=> top_b;
        for (int i = Limbs - 2; i >= 0; --i)
            if (a.limb[i] != b.limb[i]) return a.limb[i] <=> b.limb[i];
        return std::strong_ordering::equal;
    }
    friend bool operator==(const Wide&, const Wide&) = default;
    friend Wide operator>>(Wide a, int bits) {  // arithmetic, bits < 64
        if (bits == 0) return a;
        for (int i = 0; i + 1 < Limbs; ++i) a.limb[i] = a.limb[i] >> bits | a.limb[i + 1] << (64 - bits);
        a.limb[Limbs - 1] = static_cast<std::uint64_t>(static_cast<std::int64_t>(a.limb[Limbs - 1]) >> bits);
        return a;
    }
};

/// What contraction.hpp needs to know about a weight type.
template <class Weight>
struct WeightTraits;

template <>
struct WeightTraits<std::int64_t> {
    static constexpr int usable_bits = 59;
    static constexpr std::int64_t absent = std::int64_t{-4} << 60;
    static constexpr std::int64_t barred = std::int64_t{-6} << 60;
    static bool is_absent(std::int64_t x) { return x < std::int64_t{-2} << 60; }
    static bool is_barred(std::int64_t x) { return x < std::int64_t{-5} << 60; }
};

template <int Limbs>
struct WeightTraits<Wide<Limbs>> {
    using Top = WeightTraits<std::int64_t>;
    static constexpr int usable_bits = 64 * (Limbs - 1) + Top::usable_bits;
    static constexpr Wide<Limbs> with_top(std::int64_t top) {
        Wide<Limbs> x;
        x.limb[Limbs - 1] = static_cast<std::uint64_t>(top);
        return x;
    }
    static std::int64_t top(const Wide<Limbs>& x) { return static_cast<std::int64_t>(x.limb[Limbs - 1]); }
    static constexpr Wide<Limbs> absent = with_top(Top::absent);
    static constexpr Wide<Limbs> barred = with_top(Top::barred);
    static bool is_absent(const Wide<Limbs>& x) { return Top::is_absent(top(x)); }
    static bool is_barred(const Wide<Limbs>& x) { return Top::is_barred(top(x)); }
};

/// Rounds scores of magnitude up to `largest` to integers of at most `bits` bits.
template <class Weight>
class Rounding;

template <>
class Rounding<std::int64_t> {
public:
    Rounding(double largest, int bits) {
        bits = std::min(bits, 51);
        const int exponent = largest > 0 ? std::ilogb(largest) + 1 : 0;
        scale_ = std::ldexp(1.0, std::clamp(bits - exponent, -1000, 1000));
    }
    std::int64_t operator()(double score) const {
        // Adding 1.5 * 2^52 leaves the rounded integer in the low bits: a conversion that vectorises everywhere.
        constexpr double shift = 6755399441055744.0;
        const bool forbidden = score == minus_infinity<double>;
        const double shifted = (forbidden ? 0.0 : score) * scale_ + shift;
        return forbidden ? WeightTraits<std::int64_t>::absent
                         : std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(shift);
    }

private:
    double scale_;
};

template <int Limbs>
class Rounding<Wide<Limbs>> {
public:
    Rounding(double largest, int bits) : unit_exponent_((largest > 0 ? std::ilogb(largest) + 1 : 0) - bits) {}

    Wide<Limbs> operator()(double score) const {
        if (score == minus_infinity<double>) return WeightTraits<Wide<Limbs>>::absent;
        if (score == 0.0) return {};
        int exponent;
        const double fraction = std::frexp(std::fabs(score), &exponent);
        auto mantissa = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
        const int shift = exponent - 53 - unit_exponent_;
        Wide<Limbs> x;
        if (shift < 0) {
            x.limb[0] = shift > -64 ? mantissa >> -shift : 0;
        } else {
            const int at = shift / 64, by = shift % 64;
            x.limb[at] = mantissa << by;
            if (by > 0 && at + 1 < Limbs) x.limb[at + 1] = mantissa >> (64 - by);
        }
        return score < 0 ? -x : x;
    }

private:
    int unit_exponent_;
};

/// Calls use(Weight{}) with the narrowest weight type that is exact enough for scores up to `largest` when 64-bit
/// integers have `narrow_bits` bits to hold one of them.
///
/// Narrow integers do where the unit is below 1e-10 and no score is beyond 2048; a larger one is likely to be a soft
/// mask, such as -1e9, whose neighbours' last bits matter. float32's range fits four limbs; the twenty of the last case
/// span any double and 240 bits below one.
template <class Use>
auto with_weight_type(double largest, int narrow_bits, Use use) {
    constexpr int coarsest_unit = -33;
    constexpr double soft_mask = 2048.0;
    const int unit = (largest > 0 ? std::ilogb(largest) + 1 : 0) - std::min(narrow_bits, 51);
    if (largest <= soft_mask && (largest < 1 || unit <= coarsest_unit)) return use(std::int64_t{});
    if (largest < 0x1p140) return use(Wide<4>{});
    return use(Wide<20>{});
}

}  // namespace spantree
