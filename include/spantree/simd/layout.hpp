// Two ways to lay matrices out in packs, for one source of every kernel.
//
//   Together: a pack holds one entry of eight sentences. For batches of short sentences: no remainders, no horizontal
//   work. Alone: a pack holds eight columns of one sentence.
//
// A kernel is written on a Layout, which is one of them and the registers to work in: TogetherIn<width> or AloneIn<width>.
// It does the same operations in the same order per sentence in all of them: same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "pack.hpp"

namespace spantree {

struct Together {
    static constexpr int element_size = pack_size;  // doubles from one column to the next
    static constexpr int sentences = pack_size;
    static constexpr int leaf_words = 4;  // solved in registers, at least
    static constexpr int packs(int columns) { return columns; }
    static constexpr int first_pack(int column) { return column; }
};

struct Alone {
    static constexpr int element_size = 1;
    static constexpr int sentences = 1;
    static constexpr int leaf_words = pack_size;  // a split within a pack would make no sense
    static constexpr int packs(int columns) { return (columns + pack_size - 1) / pack_size; }
    static constexpr int first_pack(int column) { return column / pack_size; }
};

/// Kernels: an Element is an entry of the matrix, a Pack what is worked on at once.
template <int doubles>
struct TogetherIn : Together {
    static constexpr int width = doubles;
    // There are twice as many registers of eight.
    static constexpr int leaf_words = width == pack_size ? 2 * Together::leaf_words : Together::leaf_words;
    using Format = Together;
    using Pack = PackOf<width>;
    using Element = Pack;
    using ElementPart = typename Pack::Part;
    static constexpr int element_parts = Pack::parts;

    [[gnu::always_inline]] static Pack load(const double* at) { return Pack::load(at); }
    [[gnu::always_inline]] static void store(double* at, const Pack& x) { x.store(at); }
    [[gnu::always_inline]] static Pack broadcast(double x) { return Pack::broadcast(x); }
    [[gnu::always_inline]] static Element get(const double* at) { return load(at); }
    [[gnu::always_inline]] static void set(double* at, const Element& x) { store(at, x); }
    [[gnu::always_inline]] static Element constant(double x) { return broadcast(x); }
    [[gnu::always_inline]] static Pack spread(const Element& x) { return x; }
    /// One register of spread(get(at)).
    [[gnu::always_inline]] static typename Pack::Part part_of(const double* at, int part) {
        return spantree::load<width>(at + part * width);
    }
    /// One register of get(at).
    [[gnu::always_inline]] static ElementPart get_part(const double* at, int part) { return part_of(at, part); }
    [[gnu::always_inline]] static void set_part(double* at, int part, const ElementPart& x) {
        spantree::store(at + part * width, x);
    }
    [[gnu::always_inline]] static Element largest(const Pack& x) { return x; }

    /// x where the columns of pack p belong to the first `words` words (of each lane), `otherwise` elsewhere.
    [[gnu::always_inline]] static Pack if_real(const Element& words, int p, const Pack& x, const Pack& otherwise) {
        return if_less(broadcast(p), words, x, otherwise);
    }

    /// Sum of columns [begin, end), of which pack(p) are the p-th: eight running sums by column modulo eight, then in a
    /// fixed order.
    template <class PackAt>
    [[gnu::always_inline]] static Element sum_columns(int begin, int end, PackAt pack) {
        Pack part[pack_size] = {};
        for (int first = begin / pack_size * pack_size; first < end; first += pack_size) {
            if (first >= begin && first + pack_size <= end) {
#pragma GCC unroll 8
                for (int lane = 0; lane < pack_size; ++lane) part[lane] += pack(first + lane);
            } else {
#pragma GCC unroll 8
                for (int lane = 0; lane < pack_size; ++lane)
                    if (first + lane >= begin && first + lane < end) part[lane] += pack(first + lane);
            }
        }
        return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    }
};

template <int doubles>
struct AloneIn : Alone {
    static constexpr int width = doubles;
    using Format = Alone;
    using Pack = PackOf<width>;
    using Element = double;
    using ElementPart = double;
    static constexpr int element_parts = 1;

    [[gnu::always_inline]] static Pack load(const double* at) { return Pack::load(at); }
    [[gnu::always_inline]] static void store(double* at, const Pack& x) { x.store(at); }
    [[gnu::always_inline]] static Pack broadcast(double x) { return Pack::broadcast(x); }
    [[gnu::always_inline]] static Element get(const double* at) { return *at; }
    [[gnu::always_inline]] static void set(double* at, Element x) { *at = x; }
    [[gnu::always_inline]] static Element constant(double x) { return x; }
    [[gnu::always_inline]] static Pack spread(Element x) { return broadcast(x); }
    [[gnu::always_inline]] static typename Pack::Part part_of(const double* at, int) {
        return spantree::spread<width>(*at);
    }
    [[gnu::always_inline]] static ElementPart get_part(const double* at, int) { return *at; }
    [[gnu::always_inline]] static void set_part(double* at, int, ElementPart x) { *at = x; }
    [[gnu::always_inline]] static Element largest(const Pack& x) {
        double result = x[0];
        for (int lane = 1; lane < pack_size; ++lane) result = x[lane] > result ? x[lane] : result;
        return result;
    }

    [[gnu::always_inline]] static Pack if_real(Element words, int p, const Pack& x, const Pack& otherwise) {
        return Pack::only_lanes(0, static_cast<int>(words) - p * pack_size, x, otherwise);
    }

    template <class PackAt>
    [[gnu::always_inline]] static Element sum_columns(int begin, int end, PackAt pack) {
        Pack part = {};
        for (int first = begin / pack_size * pack_size; first < end; first += pack_size)
            part += Pack::only_lanes(begin - first, end - first, pack(first / pack_size), Pack{});
        return sum(part);
    }
};

/// The layout for a format and a machine.
template <class Format, class Registers>
using LayoutOn = std::conditional_t<Format::sentences == 1, AloneIn<Registers::width>, TogetherIn<Registers::width>>;

}  // namespace spantree
