// Scores that cannot be worked with, and where the first of them is. A score is finite, or -inf for an edge that is forbidden.
//
// Searches and solves read every score anyway: they use `is_bad`, or end with NaN and then ask who does, and report a bad
// score in `Feasibility`. What is looked for here is the one to be named.
//
// A quick look, several scores at a time, at all of them and at what stands on the diagonal; only where that finds
// something, a careful one. O(n^2).
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "../simd/dispatch.hpp"
#include "../simd/vector.hpp"
#include "sentence.hpp"

namespace spantree {

/// Of one score.
template <class T>
[[gnu::always_inline]] constexpr bool is_bad(T score) {
    return !(score < std::numeric_limits<T>::infinity());
}

struct LabelledEdge {
    int head = 0;
    int dep = 0;
    int label = 0;
};

/// The first score that is NaN or +inf.
template <class T>
std::optional<LabelledEdge> first_bad_score(const Sentence<T>& sentence) {
    const int labels = std::max(sentence.labels, 1);
    for (int head = 0; head <= sentence.words; ++head)
        for (int dep = 1; dep <= sentence.words; ++dep)
            for (int label = 0; label < labels; ++label)
                if (head != dep && is_bad(sentence(head, dep, label))) return LabelledEdge{head, dep, label};
    return std::nullopt;
}

namespace details {

/// Whether anything is bad in `rows` rows of `count` numbers, row by row as they lie in memory.
template <int most, class T>
[[gnu::always_inline]] inline bool any_bad(const T* first, std::ptrdiff_t stride, int rows, int count) {
    return with_lanes<most>(count, [&]<int Lanes>() __attribute__((always_inline)) {
        Vector<T, Lanes> bad{};
        const auto look = [&](const T* at) __attribute__((always_inline)) {
            bad =
                load<Lanes>(at) < std::numeric_limits<T>::infinity() ? bad : Vector<T, Lanes>{} + T(1);  // as `is_bad`
        };
        for (int row = 0; row < rows; ++row, first += stride) {
            const T* const last = first + count - Lanes;  // may overlap the one before
            for (const T* at = first; at < last; at += Lanes) look(at);
            look(last);
        }
        bool found = false;
        for (int lane = 0; lane < Lanes; ++lane) found |= bad[lane] != 0;
        return found;
    });
}

/// The first sentence of [begin, end) in which something is bad, be it on the diagonal. Column 0 is not read: some
/// libraries fill it with NaN.
struct FirstSuspect {
    template <class Registers>
    struct Kernel {
        template <class T>
        static std::size_t run(const std::vector<Sentence<T>>& sentences, std::size_t begin, std::size_t end) {
            constexpr int lanes = Registers::template lanes<T>;
            for (; begin < end; ++begin) {
                const Sentence<T>& sentence = sentences[begin];
                const int n = sentence.words, cell = std::max(sentence.labels, 1);
                if (n == 0) continue;
                const bool rows_of_heads = sentence.dep_stride == cell;
                if (rows_of_heads ? any_bad<lanes>(sentence.edge(0, 1), sentence.head_stride, n + 1, n * cell)
                                  : any_bad<lanes>(sentence.edge(0, 1), sentence.dep_stride, n, (n + 1) * cell))
                    break;
            }
            return begin;
        }
    };
};

}  // namespace details

/// The first sentence of [begin, end) with a bad score; end if there is none. In each of them the heads of a word, or
/// the dependents, lie next to each other, and so do the labels of an edge.
template <class T>
std::size_t first_bad_sentence(const std::vector<Sentence<T>>& sentences, std::size_t begin, std::size_t end) {
    while ((begin = dispatch_on_registers<details::FirstSuspect>(sentences, begin, end)) < end &&
           !first_bad_score(sentences[begin]))
        ++begin;
    return begin;
}

}  // namespace spantree
