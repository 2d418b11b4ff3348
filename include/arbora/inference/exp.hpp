// exp(x) * 2^960 for x <= 0, eight at a time, to about one unit in the last place.
//
// x = k ln 2 + r with |r| <= ln 2 / 2, exp(r) = 1 + r + r^2 (1/2 + r Q(r)), Q the polynomial of degree 8 that
// interpolates at the Chebyshev points (relative error 3e-17). The factor 2^960 is there for the range: a weight down
// to exp(-1370) times the largest one is still a normal number, and sums of weights stay far from overflow.
#pragma once

#include "pack.hpp"

namespace arbora {

inline constexpr int weight_exponent = 960;
inline constexpr double weight_unit = 0x1p960;  // what a weight of 1 is stored as
inline constexpr double weight_unit_inverse = 0x1p-960;
inline constexpr double smallest_log_weight = -1370.0;  // below it, a weight is stored as 0

/// In place. Several packs at once, operation by operation, so that their long chains of operations overlap.
template <int count>
[[gnu::always_inline]] inline void scaled_exp(Pack* x) {
    constexpr double shift =
        0x1.8p52 + weight_exponent;  // adding it leaves the nearest integer (+ 960) in the low bits
    constexpr double log2_e = 0x1.71547652b82fep+0;
    constexpr double ln2_high = 0x1.62e42fec00000p-1;
    constexpr double ln2_low = 0x1.d1cf79abc9e3bp-32;
    const auto each = [](auto step) {
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) step(i);
    };
    Pack shifted[count], r[count], r2[count], r4[count], low[count], high[count];
    each([&](int i) { shifted[i] = x[i] * log2_e + shift; });
    each([&](int i) { r[i] = shifted[i] - shift; });
    each([&](int i) { r[i] = (x[i] - r[i] * ln2_high) - r[i] * ln2_low; });
    each([&](int i) { r2[i] = r[i] * r[i]; });
    each([&](int i) { r4[i] = r2[i] * r2[i]; });
    each([&](int i) {
        low[i] = (0x1.5555555555555p-3 + r[i] * 0x1.5555555554cb7p-5) +
                 r2[i] * (0x1.1111111110e6ap-7 + r[i] * 0x1.6c16c1738ff55p-10);
    });
    each([&](int i) {
        high[i] = (0x1.a01a01a4b322fp-13 + r[i] * 0x1.a019c9a5652d3p-16) +
                  r2[i] * (0x1.71de17e40edfep-19 + r[i] * 0x1.2880411bad1aap-22);
    });
    each([&](int i) { low[i] = low[i] + r4[i] * (high[i] + r4[i] * 0x1.af236aac51d05p-26); });
    each([&](int i) { low[i] = 1.0 + (r[i] + r2[i] * (0.5 + r[i] * low[i])); });
    each([&](int i) {
        const PackBits power = reinterpret_cast<PackBits>(shifted[i]) << 52;
        // Out of range, NaN included, everything above was nonsense.
        x[i] =
            only_where(x[i] >= smallest_log_weight, reinterpret_cast<Pack>(reinterpret_cast<PackBits>(low[i]) + power));
    });
}

}  // namespace arbora
