// Projective trees of one sentence one by one, none twice, each in proportion to its probability among those left.
//
// As for trees that may cross (without_replacement.hpp): drawn with replacement, repeats dropped, while the next new tree is
// expected within a few draws; then a prefix trie, or from the start a race, over the choices that derive a tree from the
// chart.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "../chart/sample.hpp"
#include "../chart/solved_sentence.hpp"
#include "chart_decisions.hpp"
#include "without_replacement.hpp"

namespace spantree::sampling {

template <class T>
class DistinctProjectiveTrees {
public:
    /// As in DistinctTrees; without `solved`, it is solved here.
    Feasibility start(const Sentence<T>& sentence, const projective::SolvedSentence* solved, Root root,
                      DistinctMethod method, std::int64_t size, const SentenceStreams& streams, StopSignal& stop) {
        sentence_ = sentence;
        root_ = root;
        streams_ = streams;
        stop_ = &stop;
        keys_.start(streams);
        drawn_.reset(sentence.words, sentence.labels > 0);
        paths_.clear();
        mass_ = 0.0;
        attempts_ = found_ = 0;
        plain_.reset();
        extended_.reset();
        if (!(solved_ = solved)) solve(stop);
        if (!solved_->feasible()) return solved_->found();
        if (sentence.labels) label_table_.start(sentence_);
        by_draws_ = method == DistinctMethod::automatic;
        if (by_draws_)
            draw_.start(sentence.words, root);
        else
            search(method == DistinctMethod::beam ? size : no_beam);
        return {};
    }

    std::optional<DistinctTree> next(Heads* heads, Heads* labels, StopSignal& stop) {
        stop_ = &stop;
        stop.check();
        if (by_draws_) {
            const double left = 1.0 - mass_;
            if (draw_new(heads, labels)) return DistinctTree{last_log_probability_, keys_.next(std::log(left))};
            switch_to_trie();
        }
        return plain_ ? next_of(*plain_, heads, labels) : next_of(*extended_, heads, labels);
    }

    /// As in DistinctTrees.
    bool saw_bad_label() const { return sentence_.labels && label_table_.bad(); }

    /// Within the same call as the last `next`.
    double log_left() {
        if (by_draws_ && mass_ < exactly_complemented) return std::log1p(-mass_);
        if (by_draws_) switch_to_trie();
        return plain_ ? plain_->log_left() : extended_->log_left();
    }

    double next_key() {
        const double beam_key = plain_ && plain_->beam         ? plain_->beam->next_key()
                                : extended_ && extended_->beam ? extended_->beam->next_key()
                                                               : no_key;
        return beam_key < no_key ? beam_key : keys_.next(log_left());
    }

private:
    static constexpr std::uint64_t trie_stream = std::uint64_t{1} << 61;
    static constexpr std::int64_t no_beam = -1;
    static constexpr double no_key = std::numeric_limits<double>::infinity();
    static constexpr double exactly_complemented = 0.9;  // up to here, 1 - mass has all its digits but one
    /// A tree of the trie costs about as much as this many draws.
    static constexpr double draws_worth_a_trie = 8.0;

    /// Decisions, and one of the two ways to draw from them without replacement.
    template <class Real>
    struct Search {
        ChartDecisions<Real, T> decisions;
        RandomStream random{{}, 0, 0};
        std::unique_ptr<PrefixTrie<ChartDecisions<Real, T>>> trie;
        std::unique_ptr<RacingBeam<ChartDecisions<Real, T>>> beam;

        double log_left() const { return beam ? beam->log_left() : log_of(trie->left()); }
    };

    // By draws

    /// Draws until a tree is new; false if that is not the cheapest way any more.
    bool draw_new(Heads* heads, Heads* labels) {
        if ((1.0 - mass_) * draws_worth_a_trie < 1.0) return false;
        // With P(new) >= 1 / draws_worth_a_trie, all of so many are repeats once in 5,000.
        for (int tries = 0; tries < 8 * static_cast<int>(draws_worth_a_trie); ++tries) {
            if (attempts_ % 256 == 0) stop_->check();
            RandomStream random = streams_.tree(attempts_);
            solved_->with_inside([&](const auto& sums) { draw_(sums, random, heads); });
            if (sentence_.labels) label_table_.draw(heads, streams_.tree(attempts_ | label_stream), labels);
            ++attempts_;
            if (!drawn_.insert(heads, labels)) continue;
            paths_.insert(paths_.end(), draw_.choices().begin(), draw_.choices().end());
            for (int word = 1; sentence_.labels && word <= sentence_.words; ++word)
                paths_.push_back(static_cast<int>(labels[word]));
            last_log_probability_ = log_probability(heads, labels);
            mass_ += std::exp(last_log_probability_);
            ++found_;
            return true;
        }
        return false;
    }

    // By decisions

    /// What was drawn so far goes into the trie.
    void switch_to_trie() {
        search(no_beam);
        const auto insert = [&](auto& with) {
            const auto depth = static_cast<std::size_t>(with.decisions.count());
            for (std::size_t at = 0; depth > 0 && at < paths_.size(); at += depth) {
                if (at % 4096 < depth) stop_->check();
                with.trie->insert(paths_.data() + at);
            }
            if (depth == 0 && found_ > 0) with.trie->insert(paths_.data());  // a sentence without words has one tree
        };
        if (plain_)
            insert(*plain_);
        else
            insert(*extended_);
        by_draws_ = false;  // only now: whoever was stopped before begins again
    }

    void solve(StopSignal& stop) {
        own_.solve(sentence_, root_, projective::Purpose::partition, stop);
        solved_ = &own_;
    }

    void search(std::int64_t beam_size) {
        if (!solved_->has_room_for_every_tree()) {
            if (solved_ != &own_) solve(*stop_);
            own_.make_room_for_every_tree(*stop_);
        }
        const auto begin = [&](auto& with) {
            using Decisions = decltype(with.decisions);
            with.decisions.start(*solved_, sentence_.labels ? &label_table_ : nullptr);
            with.random = streams_.tree(0);
            if (beam_size != no_beam)
                with.beam = std::make_unique<RacingBeam<Decisions>>(with.decisions, beam_size, with.random);
            else
                with.trie = std::make_unique<PrefixTrie<Decisions>>(with.decisions);
        };
        if (solved_->draws_in_doubles() && labels_in_doubles())
            begin(*(plain_ = std::make_unique<Search<double>>()));
        else
            begin(*(extended_ = std::make_unique<Search<Extended>>()));
    }

    /// Whether every label's share of its edge is a normal number: e^-600 = 2^-866, so is its product with 2^-100.
    bool labels_in_doubles() const {
        for (int head = 0; head <= sentence_.words && sentence_.labels; ++head)
            for (int dep = 1; dep <= sentence_.words; ++dep) {
                double least = std::numeric_limits<double>::infinity(), most = minus_infinity<double>;
                for (int label = 0; label < sentence_.labels && head != dep; ++label) {
                    const double score = sentence_(head, dep, label);
                    most = std::max(most, score);
                    if (score > minus_infinity<double>) least = std::min(least, score);
                }
                if (!(most - least < 600.0) && most > minus_infinity<double>) return false;
            }
        return true;
    }

    template <class Real>
    std::optional<DistinctTree> next_of(Search<Real>& with, Heads* heads, Heads* labels) {
        if (with.beam) {
            const double key = with.beam->next_key();
            if (key == minus_infinity<double>) return std::nullopt;
            with.decisions.tree_of(with.beam->next(), heads, labels);
            return DistinctTree{log_probability(heads, labels), key};
        }
        const double log_left_before = log_of(with.trie->left());
        if (log_left_before == minus_infinity<double>) return std::nullopt;
        RandomStream random = streams_.tree(found_++ | trie_stream);
        with.decisions.tree_of(with.trie->draw(random), heads, labels);
        return DistinctTree{log_probability(heads, labels), keys_.next(log_left_before)};
    }

    double log_probability(const Heads* heads, const Heads* labels) {
        double result = solved_->scores().relative_score(heads) - solved_->log_partition().rest;
        for (int dep = 1; sentence_.labels && dep <= sentence_.words; ++dep)
            result += label_table_.log_share(static_cast<int>(heads[dep]), dep, static_cast<int>(labels[dep]));
        return result;
    }

    Sentence<T> sentence_{};
    SentenceStreams streams_{};
    StopSignal* stop_ = nullptr;  // that of the call under way
    Root root_ = Root::single;
    const projective::SolvedSentence* solved_ = nullptr;
    /// If there was none, and with room for trees that only come when all others are gone.
    projective::SolvedSentence own_;

    bool by_draws_ = false;
    projective::ChartSampler draw_;
    LabelTable<T> label_table_;
    TreeSet drawn_;
    std::vector<int> paths_;  // the decisions of the trees drawn, one after the other
    double mass_ = 0.0;       // of these trees
    double last_log_probability_ = 0.0;
    std::uint64_t attempts_ = 0, found_ = 0;

    std::unique_ptr<Search<double>> plain_;
    std::unique_ptr<Search<Extended>> extended_;
    RaceKeys keys_;
};

}  // namespace spantree::sampling
