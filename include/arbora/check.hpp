// Finds the first score that is neither finite nor -inf.
#pragma once

#include <limits>
#include <optional>

#include "dispatch.hpp"
#include "sentence.hpp"

namespace arbora {

struct Edge {
    int head = 0;
    int dep = 0;
    int label = 0;
};

namespace details {

/// Whether x[0..count) holds a NaN or +inf: one pass that vectorises.
struct AnyBad {
    template <class T>
    static bool run(const T* x, std::ptrdiff_t count) {
        int bad = 0;
        for (std::ptrdiff_t i = 0; i < count; ++i) bad |= !(x[i] < std::numeric_limits<T>::infinity());
        return bad != 0;
    }
};

/// The same over rows of a matrix; the diagonal is looked at too, so `true` still has to be confirmed.
struct AnyBadRow {
    template <class T>
    static bool run(const T* x, std::ptrdiff_t row_stride, int rows, std::ptrdiff_t columns) {
        bool bad = false;
        for (int row = 0; row < rows; ++row) bad |= AnyBad::run(x + row * row_stride, columns);
        return bad;
    }
};

template <class T>
bool may_be_bad(const Sentence<T>& sentence) {
    const int n = sentence.words;
    const std::ptrdiff_t cell = sentence.labels ? sentence.labels : 1;
    if (sentence.labels && sentence.label_stride != 1) return true;
    if (sentence.dep_stride == cell)
        return dispatch<AnyBadRow>(sentence.edge(0, 1), sentence.head_stride, n + 1, n * cell);
    if (sentence.head_stride == cell)
        return dispatch<AnyBadRow>(sentence.edge(0, 1), sentence.dep_stride, n, (n + 1) * cell);
    return true;
}

}  // namespace details

template <class T>
std::optional<Edge> first_bad_score(const Sentence<T>& sentence) {
    if (sentence.words == 0 || !details::may_be_bad(sentence)) return std::nullopt;
    const int labels = sentence.labels ? sentence.labels : 1;
    for (int head = 0; head <= sentence.words; ++head)
        for (int dep = 1; dep <= sentence.words; ++dep)
            for (int label = 0; label < labels; ++label)
                if (head != dep && !(sentence(head, dep, label) < std::numeric_limits<T>::infinity()))
                    return Edge{head, dep, label};
    return std::nullopt;
}

}  // namespace arbora
