// One sentence's edge scores, seen where they lie in the caller's memory.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "../root.hpp"

namespace spantree {

using Heads = std::int64_t;  // element of a heads vector: head of each word, -1 at ROOT and in the padding

inline constexpr Heads no_head = -1;

/// scores(h, d) is the log-weight of the edge h -> d; nodes are 0 (ROOT) to `words`. Labelled scores have a third
/// index. What stands in column 0 and on the diagonal has no meaning and is never read as a score.
template <class T>
struct Sentence {
    const T* scores = nullptr;
    int words = 0;
    std::ptrdiff_t head_stride = 0;
    std::ptrdiff_t dep_stride = 0;
    int labels = 0;  // 0: unlabelled
    std::ptrdiff_t label_stride = 0;

    T operator()(int head, int dep) const { return scores[head * head_stride + dep * dep_stride]; }
    T operator()(int head, int dep, int label) const {
        return scores[head * head_stride + dep * dep_stride + label * label_stride];
    }
    const T* edge(int head, int dep) const { return scores + head * head_stride + dep * dep_stride; }
};

/// What a search or a solve found out about a sentence: whether it has a tree; if not, why.
struct Feasibility {
    int unattachable = 0;    // a word that cannot be attached (1..n)
    bool bad_score = false;  // bad_scores.hpp
    explicit operator bool() const { return unattachable == 0 && !bad_score; }
};

template <class T>
inline constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

}  // namespace spantree
