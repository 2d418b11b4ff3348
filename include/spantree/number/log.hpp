// log(2^exponent x) for positive normal x and whole exponents, several at a time, to about one unit in the last place of the
// larger of it and 1.
//
// x = 2^k m with m in [sqrt(1/2), sqrt(2)), and log m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172: eleven terms of
// the series of artanh leave 2e-18.
#pragma once

#include "../simd/pack.hpp"

namespace spantree {

template <int width>
[[gnu::always_inline]] inline PackOf<width> natural_log(const PackOf<width>& x, const PackOf<width>& exponent = {}) {
    using Bits = typename PackOf<width>::Bits;
    using Wrapping = Vector<std::uint64_t, width>;  // where x is not positive the result is nonsense, and may be
    using Part = typename PackOf<width>::Part;
    constexpr std::uint64_t sqrt_half = 0x3fe6a09e667f3bcd;  // the bits of sqrt(1/2)
    PackOf<width> result;
    for (int i = 0; i < PackOf<width>::parts; ++i) {
        const Wrapping bits = reinterpret_cast<Wrapping>(x.part[i]);
        // k in the low bits of 1.5 * 2^52; m is what is left.
        const Wrapping k = reinterpret_cast<Wrapping>(reinterpret_cast<Bits>(bits - sqrt_half) >> 52);
        const Part power =
            (reinterpret_cast<Part>(k + std::uint64_t{0x4338000000000000}) - 0x1.8p52) + exponent.part[i];
        const Part m = reinterpret_cast<Part>(bits - (k << 52));
        const Part s = (m - 1.0) / (m + 1.0), s2 = s * s;
        Part series = Part{} + 1.0 / 21;
#pragma GCC unroll 10
        for (int term = 19; term >= 3; term -= 2) series = series * s2 + 1.0 / term;
        const Part of_m = 2.0 * (s + s * (s2 * series));
        result.part[i] = power * 0x1.62e42fefa3800p-1 + (of_m + power * 0x1.ef35793c76730p-45);
    }
    return result;
}

}  // namespace spantree
