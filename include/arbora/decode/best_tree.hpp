// The best tree of one sentence. ArcMax first: every word takes its best head, and if that is a tree, it is the best
// one (Stanojevic & Cohen 2021, section 5). Contraction where it is not. O(n^2) time and memory.
#pragma once

#include <tuple>
#include <vector>

#include "../sentence.hpp"
#include "../survey.hpp"
#include "../tree.hpp"
#include "contraction.hpp"
#include "weight.hpp"

namespace arbora {

namespace details {

/// A copy of the sentence with the heads of each word next to each other, made tile by tile: whole cache lines are
/// written, and long stretches read.
template <class T>
Sentence<T> with_heads_together(const Sentence<T>& sentence, std::vector<T>& storage) {
    constexpr int head_tile = 64 / sizeof(T), dep_tile = 64;
    const int nodes = sentence.words + 1;
    storage.resize(static_cast<std::size_t>(nodes) * nodes);
    for (int first_head = 0; first_head < nodes; first_head += head_tile)
        for (int first_dep = 1; first_dep < nodes; first_dep += dep_tile)
            for (int dep = first_dep; dep < std::min(first_dep + dep_tile, nodes); ++dep)
                for (int head = first_head; head < std::min(first_head + head_tile, nodes); ++head)
                    storage[static_cast<std::size_t>(dep) * nodes + head] = sentence(head, dep);
    return {storage.data(), sentence.words, 1, nodes, 0, 0};
}

/// A sentence's scores as rows of integer weights for `Contraction`.
template <class T, class Weight>
struct SentenceRows {
    const Sentence<T>& sentence;
    const Survey<T>& survey;
    Rounding<Weight> rounding;

    Weight weight(int head, int dep) const { return rounding(sentence(head, dep)); }
    Weight from_root(int dep) const { return weight(0, dep); }
    int first_choice(int dep) const { return static_cast<int>(survey.head[dep]); }
    /// Strided reads are collected first, block by block, so that the arithmetic vectorises.
    Weight* row(int dep, Weight* row) const {
        constexpr int block = 64;
        T scores[block];
        const int width = static_cast<int>(row_width(sentence.words));
        for (int first = 0; first < width; first += block) {
            const int count = std::min(block, sentence.words - first);
            const T* from = sentence.edge(first + 1, dep);
            for (int i = 0; i < count; ++i) scores[i] = from[i * sentence.head_stride];
            if (dep > first && dep <= first + count)
                scores[dep - 1 - first] = minus_infinity<T>;  // no score: may be anything
            const int padded = std::min(block, width - first);
            for (int i = count; i < padded; ++i) scores[i] = minus_infinity<T>;
            for (int vector = 0; vector < padded; vector += lanes<std::int64_t>)
                for (int i = vector; i < vector + lanes<std::int64_t>; ++i) row[first + i] = rounding(scores[i]);
        }
        row[dep - 1] = WeightTraits<Weight>::barred;
        return row;
    }
};

}  // namespace details

/// Scratch memory for decoding; reused from sentence to sentence on one thread.
template <class T>
class BestTree {
public:
    /// Writes heads[0..words]. Of the trees with the highest score, always the same one.
    Feasibility operator()(const Sentence<T>& sentence, const Survey<T>& survey, Root root, Heads* heads) {
        heads[0] = no_head;
        if (sentence.words == 0) return {};
        return arcmax(sentence, survey, root, heads) ? Feasibility{} : contract(sentence, survey, root, heads);
    }

    /// The same for a sentence that has not been surveyed.
    Feasibility operator()(const Sentence<T>& sentence, Root root, Heads* heads) {
        best_.resize(static_cast<std::size_t>(sentence.words) + 1);
        head_.resize(static_cast<std::size_t>(sentence.words) + 1);
        return (*this)(sentence, survey(sentence, best_.data(), head_.data()), root, heads);
    }

    std::size_t bytes() const {
        const auto of = [](const auto&... contraction) { return (contraction.bytes() + ...); };
        return turned_.capacity() * sizeof(T) + std::apply(of, contractions_);
    }

private:
    bool arcmax(const Sentence<T>& sentence, const Survey<T>& survey, Root root, Heads* heads) {
        int roots = 0;
        for (int dep = 1; dep <= sentence.words; ++dep) {
            const bool from_root = survey.root_wins(sentence, dep);
            roots += from_root;
            heads[dep] = from_root ? 0 : static_cast<Heads>(survey.head[dep]);
            if (!from_root && survey.head[dep] == 0) return false;  // no edge enters this word
        }
        if (roots == 0 || (root == Root::single && roots > 1)) return false;
        return all_reach_root(sentence.words, [&](int dep) { return heads[dep]; }, mark_);
    }

    Feasibility contract(const Sentence<T>& given, const Survey<T>& survey, Root root, Heads* heads) {
        constexpr int fits_the_cache = 256;  // words; beyond it, reading single columns costs a cache line per score
        const bool turn = given.words > fits_the_cache && given.head_stride != 1;
        const Sentence<T> sentence = turn ? details::with_heads_together(given, turned_) : given;
        const double largest = survey.largest;
        const int headroom = headroom_bits(sentence.words);
        return with_weight_type(largest, WeightTraits<std::int64_t>::usable_bits - headroom, [&]<class Weight>(Weight) {
            const Rounding<Weight> rounding(largest, WeightTraits<Weight>::usable_bits - headroom);
            auto& contraction = std::get<Contraction<Weight>>(contractions_);
            const details::SentenceRows<T, Weight> rows{sentence, survey, rounding};
            Feasibility feasible = contraction.run(rows, sentence.words, Root::multi, false);
            if (feasible && root == Root::single) feasible = contraction.reduce_roots(rows);
            if (!feasible) return feasible;
            contraction.expand();
            for (int dep = 1; dep <= sentence.words; ++dep) heads[dep] = contraction.node(dep).choice.head;
            return feasible;
        });
    }

    std::vector<T> best_;
    std::vector<IndexLike<T>> head_;
    std::vector<int> mark_;
    std::vector<T> turned_;
    std::tuple<Contraction<std::int64_t>, Contraction<Wide<4>>, Contraction<Wide<20>>> contractions_;
};

}  // namespace arbora
