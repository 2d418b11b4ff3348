// Scores as whole numbers, so that sums and differences of them are exact.
//
// Searching for trees adds, subtracts and compares scores. In floating point the result depends on the order, and a
// score of -1e30, once added, drowns the others: a best tree that is not best, or ties that fall one way here and the
// other way there. So a score becomes a whole number of units, a unit being a power of two:
//
//   std::int64_t, double   fast, but bits below the unit are rounded off
//   Wide                   as many bits as the scores have: nothing is rounded
//
// Rounding is harmless where it decides nothing. Whatever a search compares are two sums over edges, at most n on each
// side that are not on both, each off by at most half a unit: if they differ by more than n units, the larger is the
// larger. A search in fast weights reports a `doubt` when two of them come closer. Then it is done again in wide ones.
// Where all scores happen to be multiples of the unit there is no doubt, and equal sums are equal. Either way the
// search takes, decision by decision, the course that real arithmetic would: trees are the best there are, and ties
// fall the same way however they are computed.
//
// A soft mask, -1e9 say, would make the unit large. So fast weights have a `reach`: scores below -reach count as
// -reach. That can only flatter trees with such edges; a best tree that has none of them is the best tree all the same.
// Such scores count as rounded: what ties with them is in doubt.
//
// Two values far below every sum stand for edges that do not exist (`absent`) and that must not be taken again because
// both ends are in one contracted node (`barred`).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "../batch/sentence.hpp"
#include "../number/wide.hpp"

namespace spantree {

/// Bits that sums may grow beyond a single score in a sentence of n words: contraction.hpp forms differences of two
/// sums of n edges, and differences of those. Less than 4 (n + 1) scores.
constexpr int headroom_bits(int words) { return std::bit_width(4u * static_cast<unsigned>(words) + 4u); }

/// What the searches need to know about a weight type.
template <class Weight>
struct WeightTraits;

template <>
struct WeightTraits<std::int64_t> {
    static constexpr bool rounds = true;
    static constexpr int usable_bits = 59;  // sums of weights; with them, absent and barred still fit, far apart
    static constexpr std::int64_t absent = std::int64_t{-4} << 60;
    static constexpr std::int64_t barred = std::int64_t{-6} << 60;
    static constexpr std::int64_t one = 1;
    static bool is_absent(std::int64_t x) { return x < std::int64_t{-2} << 60; }
    static bool is_barred(std::int64_t x) { return x < std::int64_t{-5} << 60; }
};

/// For searches that only add: whole numbers of up to 53 bits.
template <>
struct WeightTraits<double> {
    static constexpr bool rounds = true;
    static constexpr int usable_bits = 53;
    static constexpr double absent = minus_infinity<double>;
    static bool is_absent(double x) { return x == absent; }
};

template <int Limbs>
struct WeightTraits<Wide<Limbs>> {
    using Top = WeightTraits<std::int64_t>;
    static constexpr bool rounds = false;
    static constexpr int usable_bits = 64 * (Limbs - 1) + Top::usable_bits;
    static constexpr Wide<Limbs> with_top(std::int64_t top) {
        Wide<Limbs> x;
        x.limb[Limbs - 1] = static_cast<std::uint64_t>(top);
        return x;
    }
    static std::int64_t top(const Wide<Limbs>& x) { return static_cast<std::int64_t>(x.limb[Limbs - 1]); }
    static constexpr Wide<Limbs> absent = with_top(Top::absent);
    static constexpr Wide<Limbs> barred = with_top(Top::barred);
    static constexpr Wide<Limbs> one = Wide<Limbs>{{1}};
    static bool is_absent(const Wide<Limbs>& x) { return Top::is_absent(top(x)); }
    static bool is_barred(const Wide<Limbs>& x) { return Top::is_barred(top(x)); }
};

/// Rounding(reach, bits): scores up to `reach` become fast weights of at most `bits` bits.
template <class Weight>
class Rounding {
public:
    Rounding() = default;
    Rounding(double reach, int bits) : reach_(reach) {
        constexpr int most_bits = 51;        // see `shift`
        constexpr int most_exponent = 1000;  // that 2^exponent and its inverse are both normal numbers
        const int exponent = std::min(bits, most_bits) - (reach > 0 ? std::ilogb(reach) + 1 : 0);
        scale_ = std::ldexp(1.0, std::clamp(exponent, -most_exponent, most_exponent));
        unit_ = 1.0 / scale_;
    }

    /// Sets bits in `inexact` if the score is no whole number of units. In bounds for any score, NaN included.
    Weight operator()(double score, std::int64_t& inexact) const {
        // Adding 1.5 * 2^52 leaves the nearest integer in the low bits: a conversion that vectorises everywhere.
        constexpr double shift = 0x1.8p52;
        const bool forbidden = score == minus_infinity<double>;
        const double at_least = score > -reach_ ? score : -reach_;
        const double x = at_least < reach_ ? at_least : reach_;
        const double shifted = x * scale_ + shift, whole = shifted - shift;
        inexact |= whole * unit_ != (forbidden ? whole * unit_ : score) ? std::int64_t{-1} : 0;
        if constexpr (std::is_same_v<Weight, double>)
            return forbidden ? WeightTraits<double>::absent : whole;
        else
            return forbidden ? WeightTraits<Weight>::absent
                             : std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(shift);
    }

    bool reaches(double score) const { return score >= -reach_; }

private:
    double reach_ = 0.0, scale_ = 1.0, unit_ = 1.0;
};

/// Rounding(unit): scores that are multiples of 2^unit, exactly.
template <int Limbs>
class Rounding<Wide<Limbs>> {
public:
    Rounding() = default;
    explicit Rounding(int unit) : unit_(unit) {}

    Wide<Limbs> operator()(double score, std::int64_t&) const {
        return score == minus_infinity<double> ? WeightTraits<Wide<Limbs>>::absent : Wide<Limbs>::of(score, unit_);
    }
    bool reaches(double) const { return true; }

private:
    int unit_ = 0;
};

/// Calls use(rounding) with a rounding to wide weights that hold scores with these bits and sums that are `more_bits`
/// longer. Three limbs are enough for float32 scores of ordinary size beside any mask a float32 can hold.
template <class Use>
auto with_wide_weights(const BitRange& bits, int more_bits, Use use) {
    if (bits.size() + more_bits <= WeightTraits<Wide<3>>::usable_bits) return use(Rounding<Wide<3>>(bits.unit));
    return use(Rounding<Wide<limbs_of_any_sum>>(bits.unit));
}

}  // namespace spantree
