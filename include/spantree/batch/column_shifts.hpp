// A sentence's scores as a matrix of doubles, and what is left of it when constants are taken off.
//
// Matrices are [head, dep], words + 1 numbers a row; -inf in column 0, on the diagonal and where an edge is forbidden. Numbers
// by word begin with word 1.
#pragma once

#include <algorithm>
#include <limits>

#include "../number/exact_sum.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/pack.hpp"
#include "sentence.hpp"

namespace spantree {

/// How far a matrix reaches, leaving aside what is -inf.
struct Extent {
    double highest = 0.0;         // and at least 0
    double lowest = 0.0;          // and at most 0
    double lowest_product = 0.0;  // the sum of the columns' lowest, each at most 0
};

namespace details {

/// Calls body(dep) for the first of every `lanes` words; the last block ends at the last word and so may overlap the one
/// before.
template <int lanes, class Body>
[[gnu::always_inline]] inline void for_each_word_block(int words, Body body) {
    for (int first = 0; first < words; first += lanes) body(std::min(first, words - lanes) + 1);
}

/// Reads scores whose rows are contiguous, and raises `highest`, by word, to the largest of its column from `first_head` on.
/// Returns whether some is NaN or +inf; that counts as -inf.
struct ReadScores {
    template <class Registers>
    struct Kernel {
        template <class T>
        static bool run(const Sentence<T>& sentence, int first_head, double* matrix, double* highest) {
            const int words = sentence.words;
            return with_lanes<Registers::width>(words, [&]<int lanes>() __attribute__((always_inline)) {
                using Reals = Vector<double, lanes>;
                const Reals nothing = spread<lanes>(minus_infinity<double>);
                Reals bad = {};
                for (int head = 0; head <= words; ++head) {
                    const T* const from = sentence.scores + head * sentence.head_stride;
                    double* const to = matrix + static_cast<std::ptrdiff_t>(head) * (words + 1);
                    *to = minus_infinity<double>;
                    for_each_word_block<lanes>(words, [&](int dep) __attribute__((always_inline)) {
                        const Reals deps = iota<double, lanes>() + static_cast<double>(dep);
                        const Reals x = select<Comparison::equal>(deps, spread<lanes>(head), nothing,
                                                                  load_as_doubles<lanes>(from + dep));
                        const Reals score = select<Comparison::less>(x, -nothing, x, nothing);
                        bad = select<Comparison::equal>(x, score, bad, spread<lanes>(1.0));
                        store(to + dep, score);
                        if (head >= first_head)
                            store(highest + dep - 1, larger_of(load<lanes>(highest + dep - 1), score));
                    });
                }
                return largest_lane<double, lanes>(bad) > 0.0;
            });
        }
    };
};

/// Some rows less `shift`, by word; beyond the range of doubles, the last number within it.
struct TakeOffColumns {
    template <class Registers>
    struct Kernel {
        static void run(const double* scores, int rows, int words, const double* shift, double* result) {
            with_lanes<Registers::width>(words, [&]<int lanes>() __attribute__((always_inline)) {
                const auto nothing = spread<lanes>(minus_infinity<double>),
                           lowest = spread<lanes>(-std::numeric_limits<double>::max());
                for (int row = 0; row < rows; ++row, scores += words + 1, result += words + 1) {
                    *result = minus_infinity<double>;
                    for_each_word_block<lanes>(words, [&](int dep) __attribute__((always_inline)) {
                        const auto score = load<lanes>(scores + dep);
                        const auto low_cut = larger_of(score - load<lanes>(shift + dep - 1), lowest);
                        const auto left = -larger_of(-low_cut, lowest);
                        store(result + dep, select<Comparison::equal>(score, nothing, nothing, left));
                    });
                }
            });
        }
    };
};

/// One row: a score, and what `more` adds to it if given, less `shift` and two constants, rounded once. Returns whether that
/// succeeded; nearly always it does. As in number/rounded_sum.hpp, additions are followed by their rounding errors, and these
/// added up in two parts; `beyond` is the size of what is lost then, mostly nothing.
struct TakeOffExactly {
    template <class Registers>
    struct Kernel {
        static bool run(const double* scores, const double* more, int words, const double* shift, double constant,
                        double another, double* result) {
            *result = minus_infinity<double>;
            return with_lanes<Registers::width>(words, [&]<int lanes>() __attribute__((always_inline)) {
                using Reals = Vector<double, lanes>;
                const Reals nothing = spread<lanes>(minus_infinity<double>);
                const auto size = [](const Reals& x) __attribute__((always_inline)) { return larger_of(x, -x); };
                Reals doubtful = {};
                for_each_word_block<lanes>(words, [&](int dep) __attribute__((always_inline)) {
                    const Reals score = load<lanes>(scores + dep);
                    Reals sum = score, error = {}, beyond = {};
                    const auto add = [&](const Reals& x) __attribute__((always_inline)) {
                        const TwoPart<Reals> total = exact_sum(sum, x), errors = exact_sum(error, total.low);
                        sum = total.high;
                        error = errors.high;
                        beyond += size(errors.low);
                    };
                    if (more) add(load<lanes>(more + dep));
                    add(-load<lanes>(shift + dep - 1));
                    add(spread<lanes>(-constant));
                    add(spread<lanes>(-another));
                    // Twice: `beyond` is rounded too, and so is what it is taken off.
                    const Reals slack =
                        select<Comparison::equal>(beyond, Reals{}, Reals{}, beyond + beyond + size(error) * 0x1p-52);
                    const Reals low = sum + (error - slack), high = sum + (error + slack);
                    const Reals in_doubt = select<Comparison::equal>(low, high, doubtful, spread<lanes>(1.0));
                    doubtful = select<Comparison::equal>(score, nothing, doubtful, in_doubt);
                    store(result + dep, select<Comparison::equal>(score, nothing, nothing, low));
                });
                return largest_lane<double, lanes>(doubtful) == 0.0;
            });
        }
    };
};

struct FindExtent {
    template <class Registers>
    struct Kernel {
        static Extent run(const double* matrix, int words) {
            return with_lanes<Registers::width>(words, [&]<int lanes>() __attribute__((always_inline)) {
                using Reals = Vector<double, lanes>;
                const Reals nothing = spread<lanes>(minus_infinity<double>);
                Extent result;
                for (int first = 0; first < words; first += lanes) {
                    const int before = std::min(first, words - lanes);
                    Reals highest = {}, depth = {};
                    for (int head = 0; head <= words; ++head) {
                        const Reals x =
                            load<lanes>(matrix + static_cast<std::ptrdiff_t>(head) * (words + 1) + before + 1);
                        highest = larger_of(x, highest);
                        depth = larger_of(select<Comparison::equal>(x, nothing, Reals{}, -x), depth);
                    }
                    result.highest = std::max(result.highest, largest_lane<double, lanes>(highest));
                    result.lowest = std::min(result.lowest, -largest_lane<double, lanes>(depth));
                    for (int lane = first - before; lane < lanes; ++lane) result.lowest_product -= depth[lane];
                }
                return result;
            });
        }
    };
};

}  // namespace details

/// Of a matrix of numbers below +inf.
inline Extent extent_of(const double* matrix, int words) {
    return words > 0 ? dispatch_on_registers<details::FindExtent>(matrix, words) : Extent{};
}

}  // namespace spantree
