// Exponentials, to about one unit in the last place. There are two ways:
//
// By a table, for many numbers: x = k ln 2 / 16 + r with |r| <= ln 2 / 32, and exp(x) = 2^(k/16) exp(r). The sixteen
// values of 2^(k/16) within an octave come from a table; exp(r) = 1 + r + r^2 Q(r), Q the polynomial of degree 4 that
// interpolates at the Chebyshev points (relative error 3e-17). Weights of a walk are exp(x) * 2^960, for the range: a weight
// down to exp(-1370) times the largest one is still a normal number, and sums of weights stay far from overflow.
//
// By a longer polynomial, for all else: x = k ln 2 + r with |r| <= ln 2 / 2, where k may be any whole number. Beside it, the
// table takes 0.7 of the time where eight numbers fill a register, 0.8 where two do, and 1.07 where four do.
#pragma once

#include "../simd/pack.hpp"

namespace spantree {

inline constexpr double nearest_integer = 0x1.8p52;  // adding it leaves the nearest integer in the low bits

inline constexpr int weight_exponent = 960;
inline constexpr double weight_unit = 0x1p960;  // what a weight of 1 is stored as
inline constexpr double weight_unit_inverse = 0x1p-960;
inline constexpr double smallest_log_weight = -1370.0;  // below it, a weight is stored as 0

namespace details {

/// The bits of 2^(j/16), less j << 48: adding k << 48 to entry k % 16 then gives 2^(k/16), exponent and all.
alignas(64) inline constexpr std::uint64_t root_table[16] = {
    0x3ff0000000000000, 0x3fefb5586cf9890f, 0x3fef72b83c7d517b, 0x3fef387a6e756238,
    0x3fef06fe0a31b715, 0x3feedea64c123422, 0x3feebfdad5362a27, 0x3feeab07dd485429,
    0x3feea09e667f3bcd, 0x3feea11473eb0187, 0x3feeace5422aa0db, 0x3feec49182a3f090,
    0x3feee89f995ad3ad, 0x3fef199bdd85529c, 0x3fef5818dcfba487, 0x3fefa4afa2a490da};

/// Entries k % 16 of the table. Where eight of them fill a register, looking up is a shuffle of two.
template <int width>
[[gnu::always_inline]] inline Vector<std::uint64_t, width> root_entries(const Vector<std::uint64_t, width>& k) {
#ifndef __clang__
    if constexpr (width == 8) return __builtin_shuffle(load<8>(root_table), load<8>(root_table + 8), k);
#endif
    Vector<std::uint64_t, width> entries{};
    for (int lane = 0; lane < width; ++lane) entries[lane] = root_table[k[lane] & 15];
    return entries;
}

/// exp(x) * 2^exponent, if that is below 2^1023, in place; 0 below `smallest`. Several packs at once, operation by operation, so that their
/// long chains of operations overlap.
template <int count, int exponent, int width>
[[gnu::always_inline]] inline void exp_by_table(PackOf<width>* packs, double smallest) {
    // Adding it leaves the nearest integer (+ 16 * exponent) in the low bits.
    constexpr double shift = nearest_integer + 16 * exponent;
    constexpr double steps_per_nat = 0x1.71547652b82fep+4;  // 16 / ln 2
    constexpr double step_high = 0x1.62e42fefa0000p-5;      // ln 2 / 16, in two parts
    constexpr double step_low = 0x1.cf79abc9e3b3ap-44;
    constexpr int parts = PackOf<width>::parts;
    using Part = typename PackOf<width>::Part;
    using Bits = Vector<std::uint64_t, width>;  // may wrap around where the result is nonsense
    const auto each = [](auto step) __attribute__((always_inline)) {
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) step(i);
    };
    for (int part = 0; part < parts; ++part) {
        Part x[count], shifted[count], r[count], r2[count], low[count], high[count], power[count];
        each([&](int i) { x[i] = packs[i].part[part]; });
        each([&](int i) { shifted[i] = x[i] * steps_per_nat + shift; });
        each([&](int i) { r[i] = shifted[i] - shift; });
        each([&](int i) { r[i] = (x[i] - r[i] * step_high) - r[i] * step_low; });
        each([&](int i) { r2[i] = r[i] * r[i]; });
        each([&](int i) {
            const Bits k = reinterpret_cast<Bits>(shifted[i]);
            power[i] = reinterpret_cast<Part>(root_entries<width>(k) + (k << 48));
        });
        each([&](int i) { low[i] = 0.5 + r[i] * 0x1.55555554dd388p-3; });
        each([&](int i) {
            high[i] = (0x1.555555551946fp-5 + r[i] * 0x1.11120b03cd855p-7) + r2[i] * 0x1.6c17bb5ebddb4p-10;
        });
        each([&](int i) { low[i] = r[i] + r2[i] * (low[i] + r2[i] * high[i]); });
        // Out of range everything above was nonsense. NaN stays NaN.
        each([&](int i) { packs[i].part[part] = x[i] < smallest ? Part{} : power[i] + power[i] * low[i]; });
    }
}

}  // namespace details

/// Weights of a walk, exp(x) * 2^960 for x <= 0, in place.
template <int count, int width>
[[gnu::always_inline]] inline void scaled_exp(PackOf<width>* packs) {
    details::exp_by_table<count, weight_exponent>(packs, smallest_log_weight);
}

/// exp(x) for x up to 700, in place; 0 below -708. NaN stays NaN.
template <int count, int width>
[[gnu::always_inline]] inline void plain_exp(PackOf<width>* packs) {
    details::exp_by_table<count, 0>(packs, -708.0);
}

/// exp(r) - 1 = r + r^2 Q(r) for |r| <= ln 2 / 2, of several numbers or vectors at once: Q is the polynomial of degree 9 that
/// interpolates at the Chebyshev points (relative error 2e-17).
template <int count, class Reals>
[[gnu::always_inline]] inline void exp_minus_one(const Reals (&r)[count], Reals (&result)[count]) {
    Reals r2[count], q[count];
    const auto each = [](auto step) __attribute__((always_inline)) {
#pragma GCC unroll 16
        for (int i = 0; i < count; ++i) step(i);
    };
    each([&](int i) { r2[i] = r[i] * r[i]; });
    each([&](int i) { q[i] = 0x1.289185613a3d6p-22 + r[i] * 0x1.af38a9b0ec855p-26; });
    each([&](int i) { q[i] = (0x1.a019b90d2ae7ap-16 + r[i] * 0x1.71de0dae63bb3p-19) + r2[i] * q[i]; });
    each([&](int i) { q[i] = (0x1.6c16c1788bd90p-10 + r[i] * 0x1.a01a01a7c41d5p-13) + r2[i] * q[i]; });
    each([&](int i) { q[i] = (0x1.5555555553d63p-5 + r[i] * 0x1.11111111109b3p-7) + r2[i] * q[i]; });
    each([&](int i) { q[i] = (0.5 + r[i] * 0x1.5555555555556p-3) + r2[i] * q[i]; });
    each([&](int i) { result[i] = r[i] + r2[i] * q[i]; });
}

/// exp(x) = mantissa * 2^exponent, mantissa in [0.7, 1.5], for finite x, of a number or a vector. Beyond -2^45 a double has no
/// digits left to tell a mantissa from another.
template <class Reals>
struct SplitExp {
    Reals mantissa, exponent;

    [[gnu::always_inline]] explicit SplitExp(const Reals& x) {
        constexpr double ln2_high = 0x1.62e42fep-1,
                         ln2_low = 0x1.f473de6af278fp-30;  // k ln2_high is exact for k < 2^26
        exponent = (x * 0x1.71547652b82fep+0 + nearest_integer) - nearest_integer;
        const Reals r[] = {(x - exponent * ln2_high) - exponent * ln2_low};
        Reals rest[1];
        exp_minus_one(r, rest);
        mantissa = x > Reals{} - 0x1p45 ? 1.0 + rest[0] : Reals{} + 1.0;
    }
};

}  // namespace spantree
