// Eight doubles side by side, in as many registers as it takes: the unit of all vectorised work.
//
// Only +, -, *, / and comparisons of IEEE doubles, never contracted into fused operations and never reordered, so that
// a number comes out with the same bits alone, in a lane beside others, and on every machine.
#pragma once

#include <cstdint>

#include "vector.hpp"

namespace spantree {

inline constexpr int pack_size = 8;

constexpr int round_up(int count) { return (count + pack_size - 1) / pack_size * pack_size; }

// Registers of eight doubles: GCC settles what becomes of a vector before it knows that the kernel's machine has them, and
// then takes a number in every lane and a select apart lane by lane, into 8 and up to 50 instructions. So these are written
// out: for GCC, and in types that depend on a template's parameter, because clang looks at the others even where it leaves
// them out. Not at -O0: kernels are then not inlined into functions that may use such registers. Nor for a test of widths
// that the machine does not have, which defines SPANTREE_REGISTERS_OF_ANY_WIDTH.
#if defined(__x86_64__) && !defined(__clang__) && defined(__OPTIMIZE__) && !defined(SPANTREE_REGISTERS_OF_ANY_WIDTH)
inline constexpr bool eight_written_out = true;
#else
inline constexpr bool eight_written_out = false;
#endif

/// x in every lane of a register.
template <int width>
[[gnu::always_inline]] inline Vector<double, width> spread(double x) {
    if constexpr (width == 8 && eight_written_out) {
        Vector<double, width> result;
        asm("vbroadcastsd %1, %0" : "=v"(result) : "vm"(x));
        return result;
    } else {
        return x - Vector<double, width>{};  // (-0.0 + 0.0 would be +0.0)
    }
}

/// As AVX-512 numbers them: of NaN neither is true, nor is it an error.
enum class Comparison { equal = 0, less = 0x11 };

/// a < b ? x : y, or a == b ? x : y, in registers. One comparison a select: masks that outlive their comparison are compiled
/// lane by lane.
template <Comparison comparison, class V>
[[gnu::always_inline]] inline V select(const V& a, const V& b, const V& x, const V& y) {
    if constexpr (sizeof(V) == 64 && eight_written_out) {
        unsigned char mask;
        V result;
        asm("vcmppd %3, %2, %1, %0" : "=Yk"(mask) : "v"(a), "vm"(b), "i"(comparison));
        asm("vblendmpd %2, %1, %0%{%3%}" : "=v"(result) : "v"(y), "vm"(x), "Yk"(mask));
        return result;
    } else {
        return comparison == Comparison::less ? (a < b ? x : y) : (a == b ? x : y);
    }
}

/// a > b ? a : b, in registers.
template <class V>
[[gnu::always_inline]] inline V larger_of(const V& a, const V& b) {
    if constexpr (sizeof(V) == 64 && eight_written_out) {
        V result;
        asm("vmaxpd %2, %1, %0" : "=v"(result) : "v"(a), "vm"(b));  // b if one of them is NaN
        return result;
    } else {
        return a > b ? a : b;
    }
}

/// In registers of `width` doubles.
template <int width>
struct PackOf {
    static constexpr int parts = pack_size / width;
    using Part = Vector<double, width>;
    using Bits = Vector<std::int64_t, width>;

    Part part[parts];

    [[gnu::always_inline]] static PackOf load(const double* from) {
        PackOf x;
        for (int i = 0; i < parts; ++i) x.part[i] = spantree::load<width>(from + i * width);
        return x;
    }
    [[gnu::always_inline]] void store(double* to) const {
        for (int i = 0; i < parts; ++i) spantree::store(to + i * width, part[i]);
    }
    [[gnu::always_inline]] static PackOf broadcast(double x) {
        PackOf result;
        for (int i = 0; i < parts; ++i) result.part[i] = spread<width>(x);
        return result;
    }
    [[gnu::always_inline]] double operator[](int lane) const { return part[lane / width][lane % width]; }

    /// f(part of a, part of b) for every part.
    template <class F>
    [[gnu::always_inline]] static PackOf each(const PackOf& a, const PackOf& b, F f) {
        PackOf result;
        for (int i = 0; i < parts; ++i) result.part[i] = f(a.part[i], b.part[i]);
        return result;
    }
    [[gnu::always_inline]] friend PackOf operator+(const PackOf& a, const PackOf& b) {
        return each(a, b, [](const Part& x, const Part& y) __attribute__((always_inline)) { return x + y; });
    }
    [[gnu::always_inline]] friend PackOf operator-(const PackOf& a, const PackOf& b) {
        return each(a, b, [](const Part& x, const Part& y) __attribute__((always_inline)) { return x - y; });
    }
    [[gnu::always_inline]] friend PackOf operator*(const PackOf& a, const PackOf& b) {
        return each(a, b, [](const Part& x, const Part& y) __attribute__((always_inline)) { return x * y; });
    }
    [[gnu::always_inline]] friend PackOf operator/(const PackOf& a, const PackOf& b) {
        return each(a, b, [](const Part& x, const Part& y) __attribute__((always_inline)) { return x / y; });
    }
    [[gnu::always_inline]] friend PackOf operator+(double a, const PackOf& b) { return broadcast(a) + b; }
    [[gnu::always_inline]] friend PackOf operator+(const PackOf& a, double b) { return a + broadcast(b); }
    [[gnu::always_inline]] friend PackOf operator-(double a, const PackOf& b) { return broadcast(a) - b; }
    [[gnu::always_inline]] friend PackOf operator-(const PackOf& a, double b) { return a - broadcast(b); }
    [[gnu::always_inline]] friend PackOf operator*(double a, const PackOf& b) { return broadcast(a) * b; }
    [[gnu::always_inline]] friend PackOf operator*(const PackOf& a, double b) { return a * broadcast(b); }
    [[gnu::always_inline]] friend PackOf operator/(double a, const PackOf& b) { return broadcast(a) / b; }
    [[gnu::always_inline]] PackOf& operator+=(const PackOf& b) { return *this = *this + b; }
    [[gnu::always_inline]] PackOf& operator-=(const PackOf& b) { return *this = *this - b; }
    [[gnu::always_inline]] PackOf& operator*=(const PackOf& b) { return *this = *this * b; }

    /// Lanes [begin, end) of x, `otherwise` in the rest.
    [[gnu::always_inline]] static PackOf only_lanes(int begin, int end, const PackOf& x, const PackOf& otherwise) {
        PackOf result;
        for (int i = 0; i < parts; ++i) {
            const Bits lane = iota<std::int64_t, width>() + std::int64_t{i * width};
            const Part before_end = lane < end ? x.part[i] : otherwise.part[i];
            result.part[i] = lane < begin ? otherwise.part[i] : before_end;
        }
        return result;
    }
};

// Selections, of packs and of one double.

/// a < b ? x : y
template <int width>
[[gnu::always_inline]] inline PackOf<width> if_less(const PackOf<width>& a, const PackOf<width>& b,
                                                    const PackOf<width>& x, const PackOf<width>& y) {
    PackOf<width> result;
    for (int i = 0; i < PackOf<width>::parts; ++i)
        result.part[i] = select<Comparison::less>(a.part[i], b.part[i], x.part[i], y.part[i]);
    return result;
}
[[gnu::always_inline]] inline double if_less(double a, double b, double x, double y) { return a < b ? x : y; }

/// a == b ? x : y
template <int width>
[[gnu::always_inline]] inline PackOf<width> if_equal(const PackOf<width>& a, const PackOf<width>& b,
                                                     const PackOf<width>& x, const PackOf<width>& y) {
    PackOf<width> result;
    for (int i = 0; i < PackOf<width>::parts; ++i)
        result.part[i] = select<Comparison::equal>(a.part[i], b.part[i], x.part[i], y.part[i]);
    return result;
}
[[gnu::always_inline]] inline double if_equal(double a, double b, double x, double y) { return a == b ? x : y; }

/// a > b ? a : b
template <int width>
[[gnu::always_inline]] inline PackOf<width> larger(const PackOf<width>& a, const PackOf<width>& b) {
    PackOf<width> result;
    for (int i = 0; i < PackOf<width>::parts; ++i) result.part[i] = larger_of(a.part[i], b.part[i]);
    return result;
}
[[gnu::always_inline]] inline double larger(double a, double b) { return a > b ? a : b; }

/// The largest power of two that is at most 1 / x, for normal x >= 1.
template <int width>
[[gnu::always_inline]] inline PackOf<width> power_below(const PackOf<width>& x) {
    using Bits = Vector<std::uint64_t, width>;
    PackOf<width> result;
    for (int i = 0; i < PackOf<width>::parts; ++i) {
        const Bits exponent = reinterpret_cast<Bits>(x.part[i]) >> 52;
        result.part[i] = reinterpret_cast<typename PackOf<width>::Part>((2045 - exponent) << 52);
    }
    return result;
}

/// Sum in a fixed order: ((0+1)+(2+3))+((4+5)+(6+7)).
template <int width>
[[gnu::always_inline]] inline double sum(const PackOf<width>& x) {
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/// Turns eight rows of eight into columns: what was lane c of x[r] becomes lane r of x[c].
template <int width>
[[gnu::always_inline]] inline void transpose(PackOf<width> (&x)[pack_size]) {
    PackOf<width> y[pack_size];
#pragma GCC unroll 4
    for (int row = 0; row < pack_size; row += width)
#pragma GCC unroll 4
        for (int column = 0; column < pack_size; column += width) {
            Vector<double, width> square[width];
            for (int i = 0; i < width; ++i) square[i] = x[row + i].part[column / width];
            transpose(square);
            for (int i = 0; i < width; ++i) y[column + i].part[row / width] = square[i];
        }
    for (int r = 0; r < pack_size; ++r) x[r] = y[r];
}

}  // namespace spantree
