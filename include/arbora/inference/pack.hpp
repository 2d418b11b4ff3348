// Eight doubles side by side: the unit of all vectorised work, whatever registers the machine has.
//
// Only +, -, *, / and comparisons of IEEE doubles, never contracted into fused operations and never reordered, so that
// a number comes out with the same bits alone, in a lane beside others, and on every machine.
#pragma once

#include <cstdint>
#include <cstring>

namespace arbora {

inline constexpr int pack_size = 8;

using Pack [[gnu::vector_size(64)]] = double;
using PackBits [[gnu::vector_size(64)]] = std::int64_t;

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

constexpr int round_up(int count) { return (count + pack_size - 1) / pack_size * pack_size; }

/// Sum in a fixed order: ((0+1)+(2+3))+((4+5)+(6+7)).
[[gnu::always_inline]] inline double sum(Pack x) {
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/// Turns eight rows of eight into eight columns of eight: what was lane c of x[r] becomes lane r of x[c].
[[gnu::always_inline]] inline void transpose(Pack (&x)[pack_size]) {
    Pack y[pack_size];
    for (int r = 0; r < 8; r += 2) {
        y[r] = __builtin_shuffle(x[r], x[r + 1], PackBits{0, 8, 2, 10, 4, 12, 6, 14});
        y[r + 1] = __builtin_shuffle(x[r], x[r + 1], PackBits{1, 9, 3, 11, 5, 13, 7, 15});
    }
    for (int r = 0; r < 8; r += 4)
        for (int c = 0; c < 2; ++c) {
            x[r + c] = __builtin_shuffle(y[r + c], y[r + c + 2], PackBits{0, 1, 8, 9, 4, 5, 12, 13});
            x[r + c + 2] = __builtin_shuffle(y[r + c], y[r + c + 2], PackBits{2, 3, 10, 11, 6, 7, 14, 15});
        }
    for (int c = 0; c < 4; ++c) {
        y[c] = __builtin_shuffle(x[c], x[c + 4], PackBits{0, 1, 2, 3, 8, 9, 10, 11});
        y[c + 4] = __builtin_shuffle(x[c], x[c + 4], PackBits{4, 5, 6, 7, 12, 13, 14, 15});
    }
    for (int r = 0; r < 8; ++r) x[r] = y[r];
}

}  // namespace arbora
