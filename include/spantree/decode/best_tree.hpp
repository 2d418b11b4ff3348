// The best tree of one sentence. ArcMax first: every word takes its best head, and if that is a tree, it is the best
// one (Stanojevic & Cohen 2021, section 5). Contraction where it is not. O(n^2) time and memory.
#pragma once

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../batch/aligned_buffer.hpp"
#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../batch/tree.hpp"
#include "../simd/memory.hpp"
#include "contraction.hpp"
#include "own_scores.hpp"
#include "survey.hpp"
#include "weight.hpp"

namespace spantree {

namespace details {

/// A sentence's scores as rows of weights for `Contraction`.
template <class T, class Weight>
class SentenceWeights {
public:
    using InRow = std::conditional_t<WeightTraits<Weight>::rounds, double, Weight>;

    SentenceWeights(const Sentence<T>& sentence, const Survey<T>& survey, const Rounding<Weight>& rounding,
                    StopSignal& stop)
        : sentence_(sentence),
          survey_(survey),
          rounding_(rounding),
          stop_(stop),
          rounded_(rounding.always_rounds() ? sentence.words : 0) {}

    const Sentence<T>& sentence() const { return sentence_; }
    const Rounding<Weight>& rounding() const { return rounding_; }

    Weight weight(int head, int dep) const { return rounding_(sentence_(head, dep), rounded_); }
    int first_choice(int dep) const { return static_cast<int>(survey_.head[dep]); }
    std::int64_t tolerance() const { return rounded_ ? std::min<std::int64_t>(rounded_, sentence_.words) : -1; }

    void from_root(InRow* to) const {
        read(sentence_.edge(0, 1), sentence_.dep_stride, no_word, [&](int u, const auto& x) { put(to + u, x); });
    }
    void from_first_choice(InRow* to) const {
        read(survey_.best + 1, 1, no_word, [&](int u, const auto& x) { put(to + u, x); });
    }
    void start_row(InRow* row, int dep, const InRow& choice) const {
        read_row(dep, [&](int u, const auto& x) { put(row + u, x - choice); });
        row[dep - 1] = WeightTraits<InRow>::barred;
        std::fill(row + sentence_.words, row + row_width(sentence_.words), WeightTraits<InRow>::absent);
    }
    void merge_row(InRow* row, int dep, const InRow& choice) const {
        read_row(dep, [&]<class X>(int u, const X& x) {
            if constexpr (rounds) {
                const X gain = x - choice, old = load<sizeof x / sizeof(InRow)>(row + u);
                put(row + u, gain > old ? gain : old);
            } else {
                details::MergeRows::run(row + u, &x, choice, 1);
            }
        });
    }

private:
    static constexpr bool rounds = WeightTraits<Weight>::rounds;
    static constexpr int no_word = 0;

    template <class X>
    [[gnu::always_inline]] static void put(InRow* to, const X& x) {
        if constexpr (rounds)
            store(to, x);
        else
            *to = x;
    }

    template <class Use>
    [[gnu::always_inline]] void read_row(int dep, Use use) const {
        check_if_wide<Weight>(stop_);
        read(sentence_.edge(1, dep), sentence_.head_stride, dep, use);
    }

    /// use(u, weights of the words u + 1, u + 2, ...) until all words were given, some of them twice. The score of the word
    /// `but` may be anything and counts as forbidden.
    template <class Use>
    [[gnu::always_inline]] void read(const T* from, std::ptrdiff_t stride, int but, Use use) const {
        if constexpr (rounds) {
            constexpr int most = 4;  // wider selects are done lane by lane where registers have 32 bytes
            with_lanes<most>(sentence_.words, [&]<int Lanes>() __attribute__((always_inline)) {
                const auto together = [&](int u) __attribute__((always_inline)) {
                    fetch_ahead(from + u);
                    return load_as_doubles<Lanes>(from + u);
                };
                const auto apart = [&](int u) __attribute__((always_inline)) {
                    return [&]<int... lane>(std::integer_sequence<int, lane...>) __attribute__((always_inline)) {
                        return Vector<double, Lanes>{static_cast<double>(from[(u + lane) * stride])...};
                    }(std::make_integer_sequence<int, Lanes>{});
                };
                if (rounding_.cuts())
                    round<true, Lanes>(apart, but, use);
                else if (stride == 1)
                    round<false, Lanes>(together, but, use);
                else
                    round<false, Lanes>(apart, but, use);
            });
        } else {
            for (int u = 0; u < sentence_.words; ++u)
                use(u, u + 1 == but ? WeightTraits<Weight>::absent : rounding_(from[u * stride], rounded_));
        }
    }

    template <bool cut, int Lanes, class Scores, class Use>
    [[gnu::always_inline]] void round(Scores scores, int but, Use use) const {
        using Places = Vector<std::int64_t, Lanes>;
        const Vector<double, Lanes> none = Vector<double, Lanes>{} + minus_infinity<double>;
        const Places without = Places{} + (but - 1);
        Places rounded{};
        for (int first = 0; first < sentence_.words; first += Lanes) {
            const int u = std::min(first, sentence_.words - Lanes);  // the last block may overlap the one before
            const Vector<double, Lanes> x = iota<std::int64_t, Lanes>() + u == without ? none : scores(u);
            use(u, rounding_.template in_row<cut, Lanes>(x, rounded));
        }
        for (int lane = 0; lane < Lanes; ++lane) rounded_ += rounded[lane];
    }

    const Sentence<T>& sentence_;
    const Survey<T>& survey_;
    const Rounding<Weight>& rounding_;
    StopSignal& stop_;
    mutable std::int64_t rounded_;  // at least as many as of the weights given so far were rounded
};

template <class T, class Weight>
using ContractionOf = Contraction<Weight, typename SentenceWeights<T, Weight>::InRow>;

/// Whether the weights were good enough to tell if there is a tree, and which is the best. Writes heads[1..words].
template <class T, class Weight>
bool is_settled(ContractionOf<T, Weight>& contraction, const SentenceWeights<T, Weight>& weights, Root root,
                Heads* heads, Feasibility& feasible) {
    const Sentence<T>& sentence = weights.sentence();
    feasible = contraction.run(weights, sentence.words, Root::multi, false);
    if (feasible && root == Root::single && !contraction.doubtful()) feasible = contraction.reduce_roots(weights);
    if (!feasible) return true;
    if (!contraction.doubtful()) contraction.expand(weights);
    if (contraction.doubtful()) return false;
    bool within_reach = true;
    for (int dep = 1; dep <= sentence.words; ++dep) {
        const int head = contraction.node(dep).choice.head;
        heads[dep] = head;
        within_reach &= weights.rounding().reaches(sentence(head, dep));
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
                const SentenceWeights<double, Weight> weights(sentence, found, rounding, stop);
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
        const Rounding<std::int64_t> rounding(survey_.largest, reach(sentence_, survey_));
        const details::SentenceWeights<T, std::int64_t> weights(sentence_, survey_, rounding, stop);
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
    details::ContractionOf<T, std::int64_t> contraction_;
    details::WideBestTree wide_;
};

}  // namespace spantree
