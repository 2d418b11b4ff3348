// ArcMax: every word takes its best head. If the choices form a tree, it is the best tree (Stanojevic & Cohen 2021, section 3.4).
//
// The best head among *words* and the comparison with ROOT are kept apart: with one root allowed, ROOT is asked last (contraction.hpp).
// Cost O(n^2), one pass over the scores in the order they lie in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "../dispatch.hpp"
#include "../sentence.hpp"
#include "../vector.hpp"

namespace arbora {

/// For each word: the highest-scoring head among the other words, lowest index first among equals; 0 if every such edge is -inf.
template <class T>
struct BestHeads {
    // As wide as a score, so that the comparison of scores selects indices lane by lane.
    using Index = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

    std::vector<T> score;      // by word, [0] unused
    std::vector<Index> head;   // by word, [0] unused

    void resize(int words) {
        score.resize(static_cast<std::size_t>(words) + 1);
        head.resize(static_cast<std::size_t>(words) + 1);
    }

    bool root_wins(const Sentence<T>& sentence, int dep) const { return sentence(0, dep) > score[dep]; }
};

namespace details {

/// Scores with the heads' rows contiguous: a block of words advances together, one head at a time.
struct BestHeadsByRow {
    template <class T, class Index>
    static void run(const T* scores, std::ptrdiff_t head_stride, int n, T* best, Index* head) {
        for_each_block<T>(n, [&]<int Lanes>(int before) __attribute__((always_inline)) {
            const int dep = before + 1;
            const auto deps = iota<Index, Lanes>() + static_cast<Index>(dep);
            const auto forbidden = Vector<T, Lanes>{} + minus_infinity<T>;
            auto top = forbidden;
            auto top_head = Vector<Index, Lanes>{};
            auto here = Vector<Index, Lanes>{};
            for (int h = 1; h <= n; ++h) {
                here += 1;
                auto x = load<Lanes>(scores + h * head_stride + dep);
                x = deps == here ? forbidden : x;
                top_head = x > top ? here : top_head;
                top = x > top ? x : top;
            }
            store(best + dep, top);
            store(head + dep, top_head);
        });
    }
};

/// Scores with the dependents' columns contiguous: each word scans its heads, several at a time.
struct BestHeadsByColumn {
    template <class T, class Index>
    static void run(const T* scores, std::ptrdiff_t dep_stride, int n, T* best, Index* head) {
        if (n >= lanes<T>) columns<lanes<T>>(scores, dep_stride, n, best, head);
        else if (n >= 4) columns<4>(scores, dep_stride, n, best, head);
        else columns<1>(scores, dep_stride, n, best, head);
    }

    template <int Lanes, class T, class Index>
    [[gnu::always_inline]] static void columns(const T* scores, std::ptrdiff_t dep_stride, int n, T* best, Index* head) {
        const auto forbidden = Vector<T, Lanes>{} + minus_infinity<T>;
        for (int dep = 1; dep <= n; ++dep) {
            const T* column = scores + dep * dep_stride;
            const auto self = Vector<Index, Lanes>{} + static_cast<Index>(dep);
            auto top = forbidden;
            auto top_head = Vector<Index, Lanes>{};
            for (int first = 1; first <= n; first += Lanes) {
                const int h = std::min(first, n + 1 - Lanes);  // the last block may overlap the one before
                const auto here = iota<Index, Lanes>() + static_cast<Index>(h);
                auto x = load<Lanes>(column + h);
                x = here == self ? forbidden : x;
                top_head = x > top ? here : top_head;
                top = x > top ? x : top;
            }
            T winner = top[0];
            Index at = top_head[0];
            for (int lane = 1; lane < Lanes; ++lane) {
                const T x = top[lane];
                const Index x_at = top_head[lane];
                const bool better = (x > winner) | ((x == winner) & (x_at < at));
                winner = better ? x : winner;
                at = better ? x_at : at;
            }
            best[dep] = winner;
            head[dep] = winner == minus_infinity<T> ? 0 : at;
        }
    }
};

}  // namespace details

template <class T>
void find_best_heads(const Sentence<T>& sentence, BestHeads<T>& result) {
    result.resize(sentence.words);
    T* best = result.score.data();
    auto* head = result.head.data();
    if (sentence.dep_stride == 1)
        dispatch<details::BestHeadsByRow>(sentence.scores, sentence.head_stride, sentence.words, best, head);
    else
        dispatch<details::BestHeadsByColumn>(sentence.scores, sentence.dep_stride, sentence.words, best, head);
}

}  // namespace arbora
