// Projective trees of one sentence one by one, none twice: a prefix trie, or a race, over the choices that derive a
// tree from the chart. A choice costs O(n) there, so nothing cheaper than the trie is needed at the start.
#pragma once

#include <memory>
#include <optional>

#include "../chart/solution.hpp"
#include "chart_decisions.hpp"
#include "without_replacement.hpp"

namespace spantree::sampling {

template <class T>
class DistinctProjectiveTrees {
public:
    /// As in DistinctTrees; `automatic` is `trie`.
    Feasibility start(const Sentence<T>& sentence, Root root, DistinctMethod method, std::int64_t size,
                      const SentenceStreams& streams, StopSignal& stop) {
        sentence_ = sentence;
        streams_ = streams;
        drawn_ = 0;
        keys_.start(streams);
        trie_.reset();
        beam_.reset();
        solved_.solve(sentence, root, projective::Purpose::all_trees, stop);
        if (!solved_.feasible()) return {solved_.unattachable()};
        solved_.with_inside([&](const auto& sums) { decisions_.start(sums, sentence.labels ? &sentence_ : nullptr); });
        beam_random_ = streams.tree(0);
        if (method == DistinctMethod::beam)
            beam_ = std::make_unique<RacingBeam<ChartDecisions<T>>>(decisions_, size, beam_random_);
        else
            trie_ = std::make_unique<PrefixTrie<ChartDecisions<T>>>(decisions_);
        return {};
    }

    std::optional<DistinctTree> next(Heads* heads, Heads* labels, StopSignal& stop) {
        stop.check();
        if (beam_) {
            const double key = beam_->next_key();
            if (key == minus_infinity<double>) return std::nullopt;
            decisions_.tree_of(beam_->next(), heads, labels);
            return DistinctTree{log_probability(heads, labels), key};
        }
        const double log_left_before = log_of(trie_->left());
        if (log_left_before == minus_infinity<double>) return std::nullopt;
        RandomStream random = streams_.tree(drawn_++);
        decisions_.tree_of(trie_->draw(random), heads, labels);
        return DistinctTree{log_probability(heads, labels), keys_.next(log_left_before)};
    }

    double log_left() const { return beam_ ? beam_->log_left() : log_of(trie_->left()); }
    double next_key() { return beam_ ? beam_->next_key() : keys_.next(log_left()); }

private:
    double log_probability(const Heads* heads, const Heads* labels) const {
        double result = solved_.scores().relative_score(heads) - solved_.log_partition().rest;
        for (int dep = 1; sentence_.labels && dep <= sentence_.words; ++dep) {
            const int head = static_cast<int>(heads[dep]);
            const double score = sentence_(head, dep, static_cast<int>(labels[dep]));
            result += LabelTotal(sentence_, head, dep).log_share(score);
        }
        return result;
    }

    Sentence<T> sentence_{};
    SentenceStreams streams_{};
    projective::SolvedSentence solved_;
    std::uint64_t drawn_ = 0;
    ChartDecisions<T> decisions_;
    RandomStream beam_random_{{}, 0, 0};
    std::unique_ptr<PrefixTrie<ChartDecisions<T>>> trie_;
    std::unique_ptr<RacingBeam<ChartDecisions<T>>> beam_;
    RaceKeys keys_;
};

}  // namespace spantree::sampling
