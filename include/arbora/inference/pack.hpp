// Eight doubles side by side: the unit of all vectorised work, whatever registers the machine has.
//
// Only +, -, *, / and comparisons of IEEE doubles, never contracted into fused operations and never reordered, so that
// a number comes out with the same bits alone, in a lane beside others, and on every machine.
#pragma once

#include <cstdint>
#include <cstring>

#include "../vector.hpp"

namespace arbora {

inline constexpr int pack_size = 8;

using Pack = Vector<double, pack_size>;
using PackBits = Vector<std::int64_t, pack_size>;

[[gnu::always_inline]] inline Pack load(const double* from) { return *reinterpret_cast<const Pack*>(from); }
[[gnu::always_inline]] inline void store(double* to, Pack x) { *reinterpret_cast<Pack*>(to) = x; }

[[gnu::always_inline]] inline Pack load_unaligned(const double* from) {
    Pack x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
[[gnu::always_inline]] inline void store_unaligned(double* to, Pack x) { std::memcpy(to, &x, sizeof x); }

[[gnu::always_inline]] inline Pack broadcast(double x) { return __builtin_shuffle(Pack{x}, PackBits{}); }

/// (Masks are only ever selected with, one comparison a mask: combining them first is compiled lane by lane.)
/// `x` where the mask is set, +0.0 elsewhere.
[[gnu::always_inline]] inline Pack only_where(PackBits mask, Pack x) { return mask ? x : Pack{}; }

[[gnu::always_inline]] inline Pack larger(Pack a, Pack b) { return a > b ? a : b; }

[[gnu::always_inline]] inline Pack join(const Vector<double, 4>& low, const Vector<double, 4>& high) {
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

constexpr int round_up(int count) { return (count + pack_size - 1) / pack_size * pack_size; }

/// Sum in a fixed order: ((0+1)+(2+3))+((4+5)+(6+7)).
[[gnu::always_inline]] inline double sum(Pack x) {
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

}  // namespace arbora
