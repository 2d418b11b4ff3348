// The best tree of one sentence: ArcMax, and contraction where that does not give a tree. O(n^2) time and memory.
#pragma once

#include <tuple>
#include <vector>

#include "../sentence.hpp"
#include "../tree.hpp"
#include "arcmax.hpp"
#include "contraction.hpp"
#include "weight.hpp"

namespace arbora {

namespace details {

/// A sentence's scores as rows of integer weights for `Contraction`.
template <class T, class Weight>
struct SentenceRows {
    const Sentence<T>& sentence;
    const BestHeads<T>& best;
    Rounding<Weight> rounding;

    Weight weight(int head, int dep) const { return rounding(sentence(head, dep)); }
    Weight from_root(int dep) const { return weight(0, dep); }
    int first_choice(int dep) const { return static_cast<int>(best.head[dep]); }
    /// Strided reads are collected first, block by block, so that the arithmetic vectorises.
    Weight* row(int dep, Weight* row) const {
        constexpr int block = 64;
        T scores[block];
        const int width = static_cast<int>(row_width(sentence.words));
        for (int first = 0; first < width; first += block) {
            const int count = std::min(block, sentence.words - first);
            const T* from = sentence.edge(first + 1, dep);
            for (int i = 0; i < count; ++i) scores[i] = from[i * sentence.head_stride];
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
    Feasibility operator()(const Sentence<T>& sentence, Root root, Heads* heads) {
        heads[0] = no_head;
        if (sentence.words == 0) return {};
        find_best_heads(sentence, best_);
        return arcmax(sentence, root, heads) ? Feasibility{} : contract(sentence, root, heads);
    }

private:
    bool arcmax(const Sentence<T>& sentence, Root root, Heads* heads) {
        int roots = 0;
        for (int dep = 1; dep <= sentence.words; ++dep) {
            const bool from_root = best_.root_wins(sentence, dep);
            roots += from_root;
            heads[dep] = from_root ? 0 : static_cast<Heads>(best_.head[dep]);
            if (!from_root && best_.head[dep] == 0) return false;  // no edge enters this word
        }
        if (roots == 0 || (root == Root::single && roots > 1)) return false;
        return all_reach_root(sentence.words, [&](int dep) { return heads[dep]; }, mark_);
    }

    Feasibility contract(const Sentence<T>& sentence, Root root, Heads* heads) {
        const double largest = largest_magnitude(sentence);
        const int headroom = headroom_bits(sentence.words);
        return with_weight_type(largest, WeightTraits<std::int64_t>::usable_bits - headroom, [&]<class Weight>(Weight) {
            const Rounding<Weight> rounding(largest, WeightTraits<Weight>::usable_bits - headroom);
            auto& contraction = std::get<Contraction<Weight>>(contractions_);
            const details::SentenceRows<T, Weight> rows{sentence, best_, rounding};
            Feasibility feasible = contraction.run(rows, sentence.words, Root::multi, false);
            if (feasible && root == Root::single) feasible = contraction.reduce_roots(rows);
            if (!feasible) return feasible;
            contraction.expand();
            for (int dep = 1; dep <= sentence.words; ++dep) heads[dep] = contraction.node(dep).choice.head;
            return feasible;
        });
    }

    BestHeads<T> best_;
    std::vector<int> mark_;
    std::tuple<Contraction<std::int64_t>, Contraction<Wide<4>>, Contraction<Wide<20>>> contractions_;
};

}  // namespace arbora
