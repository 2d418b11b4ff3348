// Two ways to lay matrices out in packs, for one source of every kernel.
//
//   Lanes: a pack holds one entry of eight sentences. For batches of short sentences: no remainders, no horizontal
//   work. Alone: a pack holds eight columns of one sentence.
//
// A kernel written on a Layout does the same operations in the same order per sentence in both: same bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "pack.hpp"

namespace arbora {

struct Lanes {
    using Element = Pack;
    using Exponent = PackBits;
    static constexpr int element_size = pack_size;  // doubles from one column to the next
    static constexpr int leaf_words = 4;            // solved in registers
    static constexpr int packs(int columns) { return columns; }
    static constexpr int first_pack(int column) { return column; }

    [[gnu::always_inline]] static Pack get(const double* at) { return load(at); }
    [[gnu::always_inline]] static void set(double* at, Pack x) { store(at, x); }
    [[gnu::always_inline]] static Pack spread(Pack x) { return x; }
    [[gnu::always_inline]] static Pack constant(double x) { return broadcast(x); }
    [[gnu::always_inline]] static Pack largest(Pack x) { return x; }
    static constexpr int sentences = pack_size;

    /// Sum of columns [begin, end): eight running sums by column modulo eight, then in a fixed order.
    [[gnu::always_inline]] static Pack sum_columns(const double* row, int begin, int end) {
        Pack part[pack_size] = {};
        for (int first = begin / pack_size * pack_size; first < end; first += pack_size) {
            const double* const at = row + first * element_size;
            if (first >= begin && first + pack_size <= end) {
#pragma GCC unroll 8
                for (int lane = 0; lane < pack_size; ++lane) part[lane] += get(at + lane * element_size);
            } else {
#pragma GCC unroll 8
                for (int lane = 0; lane < pack_size; ++lane)
                    if (first + lane >= begin && first + lane < end) part[lane] += get(at + lane * element_size);
            }
        }
        return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    }
};

struct Alone {
    using Element = double;
    using Exponent = std::int64_t;
    static constexpr int element_size = 1;
    static constexpr int leaf_words = pack_size;  // a split within a pack would make no sense
    static constexpr int packs(int columns) { return (columns + pack_size - 1) / pack_size; }
    static constexpr int first_pack(int column) { return column / pack_size; }

    [[gnu::always_inline]] static double get(const double* at) { return *at; }
    [[gnu::always_inline]] static void set(double* at, double x) { *at = x; }
    [[gnu::always_inline]] static Pack spread(double x) { return broadcast(x); }
    [[gnu::always_inline]] static double constant(double x) { return x; }
    [[gnu::always_inline]] static double largest(Pack x) {
        double result = x[0];
        for (int lane = 1; lane < pack_size; ++lane) result = x[lane] > result ? x[lane] : result;
        return result;
    }
    static constexpr int sentences = 1;

    [[gnu::always_inline]] static double sum_columns(const double* row, int begin, int end) {
        Pack part = {};
        for (int first = begin / pack_size * pack_size; first < end; first += pack_size) {
            const PackBits column = PackBits{0, 1, 2, 3, 4, 5, 6, 7} + first;
            part += only_where(column >= begin, only_where(column < end, load(row + first)));
        }
        return sum(part);
    }
};

/// A running product kept as mantissa in [1, 2) times a power of two, for factors whose product would leave the range
/// of a double.
template <class Layout>
struct Product {
    typename Layout::Element mantissa = Layout::constant(1.0);
    typename Layout::Exponent exponent = {};

    [[gnu::always_inline]] void operator*=(typename Layout::Element factor) {
        mantissa *= factor;
        auto bits = std::bit_cast<typename Layout::Exponent>(mantissa);
        exponent += (bits >> 52) - 1023;
        bits = (bits & 0x000fffffffffffff) | 0x3ff0000000000000;
        mantissa = std::bit_cast<typename Layout::Element>(bits);
    }
};

}  // namespace arbora
