// The best tree of one sentence. ArcMax first: every word takes its best head, and if that is a tree, it is the best
// one (Stanojevic & Cohen 2021, section 5). Contraction where it is not. O(n^2) time and memory.
#pragma once

#include <tuple>
#include <vector>

#include "../batch/aligned_buffer.hpp"
#include "../batch/sentence.hpp"
#include "../batch/tree.hpp"
#include "contraction.hpp"
#include "survey.hpp"
#include "weight.hpp"

namespace spantree {

namespace details {

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
    /// Takes in a sentence. Its survey is good until the next one.
    const Survey<T>& read(const Sentence<T>& sentence) {
        best_.resize(static_cast<std::size_t>(sentence.words) + 1);
        head_.resize(static_cast<std::size_t>(sentence.words) + 1);
        sentence_ = sentence;
        constexpr int fits_the_cache = 256;  // words; beyond it, reading single columns costs a cache line per score
        if (sentence.words > fits_the_cache && sentence.head_stride != 1) {
            const std::ptrdiff_t stride = turned_stride<T>(sentence.words);
            T* const turned = turned_.reserve(static_cast<std::size_t>(sentence.words + 1) * stride);
            survey_ = survey_and_turn(sentence, best_.data(), head_.data(), turned);
            sentence_ = {turned, sentence.words, 1, stride, 0, 0};
        } else {
            survey_ = survey(sentence, best_.data(), head_.data());
        }
        return survey_;
    }

    /// Writes heads[0..words] for the sentence read. Of the trees with the highest score, always the same one.
    Feasibility write(Root root, Heads* heads) {
        heads[0] = no_head;
        return sentence_.words == 0 || arcmax(root, heads) ? Feasibility{} : contract(root, heads);
    }

    Feasibility operator()(const Sentence<T>& sentence, Root root, Heads* heads) {
        read(sentence);
        return write(root, heads);
    }

    std::size_t bytes() const {
        const auto of = [](const auto&... contraction) { return (contraction.bytes() + ...); };
        return turned_.bytes() + std::apply(of, contractions_);
    }

private:
    bool arcmax(Root root, Heads* heads) {
        int roots = 0;
        for (int dep = 1; dep <= sentence_.words; ++dep) {
            const bool from_root = survey_.root_wins(sentence_, dep);
            roots += from_root;
            heads[dep] = from_root ? 0 : static_cast<Heads>(survey_.head[dep]);
            if (!from_root && survey_.head[dep] == 0) return false;  // no edge enters this word
        }
        if (roots == 0 || (root == Root::single && roots > 1)) return false;
        return all_reach_root(sentence_.words, [&](int dep) { return heads[dep]; }, mark_);
    }

    Feasibility contract(Root root, Heads* heads) {
        const double largest = survey_.largest;
        const int headroom = headroom_bits(sentence_.words);
        return with_weight_type(largest, WeightTraits<std::int64_t>::usable_bits - headroom, [&]<class Weight>(Weight) {
            const Rounding<Weight> rounding(largest, WeightTraits<Weight>::usable_bits - headroom);
            auto& contraction = std::get<Contraction<Weight>>(contractions_);
            const details::SentenceRows<T, Weight> rows{sentence_, survey_, rounding};
            Feasibility feasible = contraction.run(rows, sentence_.words, Root::multi, false);
            if (feasible && root == Root::single) feasible = contraction.reduce_roots(rows);
            if (!feasible) return feasible;
            contraction.expand();
            for (int dep = 1; dep <= sentence_.words; ++dep) heads[dep] = contraction.node(dep).choice.head;
            return feasible;
        });
    }

    std::vector<T> best_;
    std::vector<IndexLike<T>> head_;
    std::vector<int> mark_;
    AlignedBuffer<T> turned_;
    Sentence<T> sentence_;  // or its turned copy
    Survey<T> survey_;
    std::tuple<Contraction<std::int64_t>, Contraction<Wide<4>>, Contraction<Wide<20>>> contractions_;
};

}  // namespace spantree
