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
// larger. So it is if they differ by more units than there are edges whose scores were rounded; of a million random
// float32 scores, next to none are. A search in fast weights reports a `doubt` when two sums come closer. Then it is done
// again in wide ones.
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
#include <limits>
#include <type_traits>

#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../number/wide.hpp"
#include "../simd/pack.hpp"
#include "../simd/vector.hpp"

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
    /// Whether x > y and y is not barred. (No branch.)
    static bool is_better(std::int64_t x, std::int64_t y) { return (x > y) & (y >= std::int64_t{-5} << 60); }
};

/// Whole numbers of up to 53 bits, for searches that only add, and rows of weights. What is barred compares with nothing,
/// whatever is taken off it.
template <>
struct WeightTraits<double> {
    static constexpr bool rounds = true;
    static constexpr int usable_bits = 53;
    static constexpr double absent = minus_infinity<double>;
    static constexpr double barred = std::numeric_limits<double>::quiet_NaN();
    static bool is_absent(double x) { return !(x > -0x1p60); }
    static bool is_better(double x, double y) { return x > y; }
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
    static bool is_better(const Wide<Limbs>& x, const Wide<Limbs>& y) {
        return x > y && top(y) >= std::int64_t{-5} << 60;
    }
};

/// Rounding(largest, reach, bits): scores become fast weights of at most `bits` bits. None but those of other labels than
/// an edge's best is beyond `largest`.
template <class Weight>
class Rounding {
public:
    static constexpr int most_bits = 51;  // see `shift`

    Rounding() = default;
    Rounding(double largest, double reach, int bits = most_bits) {
        constexpr int most_exponent = 1000;  // that 2^exponent is a normal number
        const int exponent = reach > 0 ? std::min(std::ilogb(reach) + 1, BitRange::highest - 1) : 0;
        reach_ = std::ldexp(1.0, exponent);  // a whole number of units
        // Doubles end before the power of two beyond them. Large scores of either sign are cut then: rely on no tree.
        lowest_ = reach <= reach_ ? -reach_ : std::numeric_limits<double>::infinity();
        scale_ = std::ldexp(1.0, std::clamp(std::min(bits, most_bits) - exponent, -most_exponent, most_exponent));
        // Scaled down, a tiny score might become zero and look like a whole number.
        cuts_ = largest > reach_;
        always_rounds_ = cuts_ || scale_ < 1.0;
    }

    /// Whether to take all weights for rounded ones.
    bool always_rounds() const { return always_rounds_; }

    /// Counts in `rounded` a score that is no whole number of units. In bounds for any score, NaN included.
    Weight operator()(double score, std::int64_t& rounded) const {
        if (score == minus_infinity<double>) return WeightTraits<Weight>::absent;
        const double at_most = score < reach_ ? score : reach_, x = at_most > -reach_ ? at_most : -reach_;
        const double scaled = x * scale_, shifted = scaled + shift, whole = shifted - shift;
        rounded += whole != scaled || x != score;
        if constexpr (std::is_same_v<Weight, double>)
            return whole;
        else
            return std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(shift);
    }

    /// The same for several, as doubles. None is beyond `largest`, and none beyond reach unless `cuts()`.
    template <bool cut, int Lanes>
    [[gnu::always_inline]] Vector<double, Lanes> in_row(const Vector<double, Lanes>& score,
                                                        Vector<std::int64_t, Lanes>& rounded) const {
        using Counts = Vector<std::int64_t, Lanes>;
        const Vector<double, Lanes> zero{};
        Vector<double, Lanes> x = score < reach_ ? score : zero + reach_;
        if constexpr (cut) x = x > -reach_ ? x : zero - reach_;
        const Vector<double, Lanes> scaled = x * scale_, whole = (scaled + shift) - shift;
        rounded += whole != scaled ? Counts{} + 1 : Counts{};
        if constexpr (cut) return score == minus_infinity<double> ? zero + WeightTraits<double>::absent : whole;
        return whole;
    }
    bool cuts() const { return cuts_; }

    /// The same as doubles; `inexact` becomes 1 where a score is no whole number of units.
    template <class Reals>
    [[gnu::always_inline]] Reals whole(const Reals& score, Reals& inexact) const {
        constexpr int lanes = sizeof(Reals) / sizeof(double);
        const Reals lowest = spread<lanes>(-reach_), nothing = spread<lanes>(minus_infinity<double>);
        const Reals x = -larger_of(-larger_of(score, lowest), lowest);
        const Reals scaled = x * scale_, result = (scaled + shift) - shift;
        inexact = select<Comparison::equal>(result, scaled, inexact, spread<lanes>(1.0));
        return select<Comparison::equal>(score, nothing, nothing, result);
    }

    bool reaches(double score) const { return score >= lowest_; }

private:
    /// Adding it leaves the nearest integer in the low bits: a conversion that vectorises everywhere.
    static constexpr double shift = 0x1.8p52;

    double reach_ = 1.0, lowest_ = -1.0, scale_ = 1.0;
    bool cuts_ = false, always_rounds_ = false;
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
    bool always_rounds() const { return false; }
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

/// For each row of weights: wide ones take so long that the caller may want to stop (5,000 words, seconds). A whole search
/// in fast ones is over before he can.
template <class Weight>
void check_if_wide(StopSignal& stop) {
    if constexpr (!WeightTraits<Weight>::rounds) stop.check();
}

}  // namespace spantree
