// The best tree of one sentence. ArcMax first: every word takes its best head, and if that is a tree, it is the best
// one (Stanojevic & Cohen 2021, section 5). Contraction where it is not. O(n^2) time and memory.
#pragma once

#include <tuple>
#include <vector>

#include "../batch/aligned_buffer.hpp"
#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../batch/tree.hpp"
#include "contraction.hpp"
#include "own_scores.hpp"
#include "survey.hpp"
#include "weight.hpp"

namespace spantree {

namespace details {

/// A sentence's scores as rows of weights for `Contraction`.
template <class T, class Weight>
struct SentenceWeights {
    const Sentence<T>& sentence;
    const Survey<T>& survey;
    const Rounding<Weight>& rounding;
    StopSignal& stop;
    mutable std::int64_t inexact = rounding.always_rounds();  // not zero: a weight given so far was rounded

    Weight weight(int head, int dep) const { return rounding(sentence(head, dep), inexact); }
    Weight from_root(int dep) const { return weight(0, dep); }
    int first_choice(int dep) const { return static_cast<int>(survey.head[dep]); }
    std::int64_t tolerance() const { return inexact ? sentence.words : -1; }

    /// Strided reads are collected first, block by block, so that the arithmetic vectorises.
    Weight* row(int dep, Weight* row) const {
        check_if_wide<Weight>(stop);
        constexpr int block = 64, side = 4;  // wider selects are done lane by lane where registers have 32 bytes
        T scores[block];
        const int width = static_cast<int>(row_width(sentence.words));
        Vector<std::int64_t, side> rounded{};
        for (int first = 0; first < width; first += block) {
            const int count = std::min(block, sentence.words - first);
            const T* from = sentence.edge(first + 1, dep);
            for (int i = 0; i < count; ++i) scores[i] = from[i * sentence.head_stride];
            if (dep > first && dep <= first + count)
                scores[dep - 1 - first] = minus_infinity<T>;  // no score: may be anything
            const int padded = std::min(block, width - first);
            for (int i = count; i < padded; ++i) scores[i] = minus_infinity<T>;
            for (int i = 0; i < padded; i += side) {
                if constexpr (WeightTraits<Weight>::rounds) {
                    const auto x = __builtin_convertvector(load<side>(scores + i), Vector<double, side>);
                    store(row + first + i, rounding.template operator()<side>(x, rounded));
                } else {
                    for (int j = i; j < i + side; ++j) row[first + j] = rounding(scores[j], inexact);
                }
            }
        }
        for (int lane = 0; lane < side; ++lane) inexact |= rounded[lane];
        row[dep - 1] = WeightTraits<Weight>::barred;
        return row;
    }
};

/// Whether the weights were good enough to tell if there is a tree, and which is the best. Writes heads[1..words].
template <class T, class Weight>
bool is_settled(Contraction<Weight>& contraction, const SentenceWeights<T, Weight>& weights, Root root, Heads* heads,
                Feasibility& feasible) {
    const Sentence<T>& sentence = weights.sentence;
    feasible = contraction.run(weights, sentence.words, Root::multi, false);
    if (feasible && root == Root::single && !contraction.doubtful()) feasible = contraction.reduce_roots(weights);
    if (!feasible) return true;
    if (contraction.doubtful()) return false;
    contraction.expand();
    bool within_reach = true;
    for (int dep = 1; dep <= sentence.words; ++dep) {
        const int head = contraction.node(dep).choice.head;
        heads[dep] = head;
        within_reach &= weights.rounding.reaches(sentence(head, dep));
    }
    return within_reach;
}

/// The best tree in wide weights.
class WideBestTree {
public:
    Feasibility operator()(const OwnScores& scores, Root root, Heads* heads, StopSignal& stop) {
        const Sentence<double>& sentence = scores.sentence();
        std::vector<double> best(static_cast<std::size_t>(sentence.words) + 1);
        std::vector<IndexLike<double>> head(best.size());
        const Survey<double> found = survey(sentence, best.data(), head.data());
        return with_wide_weights(
            scores.bits(), headroom_bits(sentence.words), [&]<class Weight>(const Rounding<Weight>& rounding) {
                Feasibility feasible;
                const SentenceWeights<double, Weight> weights{sentence, found, rounding, stop};
                auto& contraction = std::get<Contraction<Weight>>(contractions_);
                return is_settled(contraction, weights, root, heads, feasible) ? feasible : Feasibility{1};
            });
    }

    std::size_t bytes() const { return std::get<0>(contractions_).bytes() + std::get<1>(contractions_).bytes(); }

private:
    std::tuple<Contraction<Wide<3>>, Contraction<Wide<limbs_of_any_sum>>> contractions_;
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
    Feasibility write(Root root, Heads* heads, StopSignal& stop) {
        heads[0] = no_head;
        if (survey_.bad) return {0, true};
        return sentence_.words == 0 || arcmax(root, heads) ? Feasibility{} : contract(root, heads, stop);
    }

    Feasibility operator()(const Sentence<T>& sentence, Root root, Heads* heads, StopSignal& stop) {
        read(sentence);
        return write(root, heads, stop);
    }

    std::size_t bytes() const { return turned_.bytes() + contraction_.bytes() + wide_.bytes(); }

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

    /// With fast weights, and with wide ones where those leave a doubt.
    Feasibility contract(Root root, Heads* heads, StopSignal& stop) {
        const Rounding<std::int64_t> rounding(survey_.largest, reach(sentence_, survey_),
                                              WeightTraits<std::int64_t>::usable_bits - headroom_bits(sentence_.words));
        const details::SentenceWeights<T, std::int64_t> weights{sentence_, survey_, rounding, stop};
        Feasibility feasible;
        if (details::is_settled(contraction_, weights, root, heads, feasible)) return feasible;
        return wide_(OwnScores(sentence_), root, heads, stop);
    }

    std::vector<T> best_;
    std::vector<IndexLike<T>> head_;
    std::vector<int> mark_;
    AlignedBuffer<T> turned_;
    Sentence<T> sentence_;  // or its turned copy
    Survey<T> survey_;
    Contraction<std::int64_t> contraction_;
    details::WideBestTree wide_;
};

}  // namespace spantree
